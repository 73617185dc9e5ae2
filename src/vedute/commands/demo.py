"""vedute demo: handwritten digits with half their rows incomplete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vedute.commands import _options
from vedute.commands._command import Answer, command, table

if TYPE_CHECKING:
    from rich.console import Console

    from vedute.analysis.comparison import MethodScores
    from vedute.data.views import Views
    from vedute.estimators.base import Estimator

EXAMPLE = "vedute demo -o demo-out"
METHODS = ("blend", "lowrank_fill", "knn_fill", "mean_fill")
RATE, MASK_SEED = 0.5, 42
INTERVAL = 0.9
PIXELS = (16, 15)


@command
def run(
    out: Annotated[Path, _options.out("Folder to write.", show_default=True)] = Path("vedute-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the models; the data stay the same.")] = 0,
    force: _options.Force = False,
) -> Answer:
    """Cluster handwritten digits and infer their missing views, against three simple fills.

    2000 digits in six views (bundled); half of them lack about half their views. No labels
    are used but for the scores. Takes two minutes on two cores.
    """
    from time import perf_counter

    start = perf_counter()
    import json

    from rich.console import Console

    from vedute import datasets, io
    from vedute.data.missing import drop_views
    from vedute.metrics import scores as scoring

    console = Console(highlight=False)
    with io.atomic_folder(out, force) as folder:
        console.print("Handwritten digits, six views; half of the rows lack some of them.")
        truth = datasets.load("handwritten")
        views = drop_views(truth, RATE, MASK_SEED)
        rows, blend, filled = _compared(truth, views, seed)
        imputed = blend.impute(views, interval=INTERVAL)
        ends = truth.x, imputed.lower.x, imputed.upper.x
        true, lower, upper = ([x.numpy() for x in end] for end in ends)
        coverage = scoring.coverage(true, lower, upper, (~views.mask).numpy())
        files = _write_tables(folder, truth, blend, filled["blend"])
        files |= _write_figures(folder, truth, views, blend, imputed, filled["mean_fill"])
        errors = {row.method: round(row.error, 4) for row in rows}
        scores = {
            **{name: round(100 * score, 2) for name, score in rows[0].scores.items()},
            "imputation_error": errors["blend"],
            "knn_imputation_error": errors["knn_fill"],
            "lowrank_imputation_error": errors["lowrank_fill"],
            "coverage": round(coverage, 4),
            "seconds": round(perf_counter() - start, 1),
        }
        (folder / "scores.json").write_text(f"{json.dumps(scores)}\n", encoding="utf-8")
    return Answer(scores, lambda: _show(console, rows, coverage, out, files))


def _compared(
    truth: Views, views: Views, seed: int
) -> tuple[list[MethodScores], Estimator, dict[str, Views]]:
    """Fit all methods: their scores, the fitted Blend, and the filled views by method."""
    from time import perf_counter

    from vedute import methods
    from vedute.analysis.comparison import MethodScores
    from vedute.metrics import scores as scoring

    assert truth.y is not None
    hidden, true = (~views.mask).numpy(), [x.numpy() for x in truth.x]
    rows, models, filled = [], {}, {}
    for name in METHODS:
        start = perf_counter()
        model = methods.find(name)(n_clusters=10, random_state=seed)
        model.fit(views)
        models[name], filled[name] = model, model.impute(views)
        seconds = perf_counter() - start
        scores = scoring.clustering_scores(truth.y, model.labels_)
        error = scoring.imputation_error(true, [x.numpy() for x in filled[name].x], hidden)
        rows.append(MethodScores(name, error, scores=scores, seconds=seconds))
    return rows, models["blend"], filled


def _show(
    console: Console,
    rows: Sequence[MethodScores],
    coverage: float,
    out: Path,
    files: Mapping[str, str],
) -> None:
    lines = []
    for row in rows:
        percent = [f"{100 * x:.1f}" for x in row.scores.values()]
        lines.append([row.method, *percent, f"{row.error:.3f}", f"{row.seconds:.1f}"])
    heads = ("method", "ACC %", "NMI %", "ARI %", "hidden-view error", "seconds")
    console.print(table(heads, lines))
    console.print(
        "Hidden-view error: mean squared error of held-out views, in standard "
        "deviations; 1 is the mean. Blend's 90 % intervals cover "
        f"{coverage:.1%} of the hidden values."
    )
    console.print(f"In {out}:")
    for name, what in {**files, "scores.json": "these numbers"}.items():
        console.print(f"  {name:22} {what}")


def _write_tables(folder: Path, truth: Views, model: Estimator, filled: Views) -> dict[str, str]:
    import numpy as np

    from vedute import io

    assert truth.y is not None
    row = np.arange(len(truth))
    labels = {"row": row, "label": model.labels_, "digit": truth.y}
    io.write_csv(folder / "labels.csv", labels)
    io.write_csv(folder / "embedding.csv", {"row": row, "z": model.embedding_})
    data = io.of_views(filled)
    io.write_views(folder / "filled.npz", data, data.views)
    return {
        "labels.csv": "the cluster of each sample, and the digit it is",
        "embedding.csv": "its representation",
        "filled.npz": "all views, the missing ones inferred",
    }


def _write_figures(
    folder: Path, truth: Views, views: Views, model: Estimator, imputed: Any, mean_filled: Views
) -> dict[str, str]:
    from importlib.util import find_spec

    import numpy as np

    if find_spec("matplotlib") is None:
        return {"(no figures)": "they need matplotlib: pip install 'vedute[plots]'"}
    from vedute import plot
    from vedute.figures import plots

    v = truth.names.index("pix")
    mean, lower, upper = (x.x[v].numpy() for x in imputed)
    lost = np.flatnonzero(~views.mask[:, v].numpy())
    assert truth.y is not None
    digits = truth.y[lost]
    shown = [int(lost[digits == digit][0]) for digit in range(10)]  # the first of each
    seen = [np.array(views.names)[views.mask[row].numpy()] for row in shown]
    notes = ["\n".join(["seen:", *names]) for names in seen]
    patterns, (ax,) = plots.panels(1, (7.0, 3.0))
    plot.missing(views, ax)
    curves, (terms, error) = plots.panels(2, (8.8, 3.4))
    plot.training(model, terms, terms=True)
    plot.training(model, error)
    figures = {
        "missing.png": patterns,
        "training.png": curves,
        "map.png": plots.embedding_map(model.embedding_, _balanced(mean_filled), truth.y),
        "pix.png": plots.inferred_images(
            truth.x[v].numpy(), mean, (upper - lower) / 2, PIXELS, shown, notes
        ),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=150)
    return {
        "missing.png": "which views are missing together",
        "training.png": "loss terms, and the error on hidden views that ends training",
        "map.png": "the representation beside the mean-filled data, in the plane",
        "pix.png": "images that were hidden from the model, as it infers them",
    }


def _balanced(views: Views) -> Any:
    """All views side by side, z-scored, each of the same total variance."""
    import numpy as np

    blocks = []
    for x in (x.numpy() for x in views.x):
        std = x.std(0)
        blocks.append((x - x.mean(0)) / np.where(std > 0, std, 1.0) / np.sqrt(x.shape[1]))
    return np.concatenate(blocks, axis=1)
