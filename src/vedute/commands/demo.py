"""vedute demo: handwritten digits with half their rows incomplete."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console

from vedute.commands import _options
from vedute.commands._command import Answer, command, say, table

if TYPE_CHECKING:
    from vedute.analysis.comparison import MethodScores, Trial
    from vedute.data.views import Views
    from vedute.estimators.base import Estimator

EXAMPLE = "vedute demo -o demo-out"
METHODS = ("blend", "lowrank_fill", "knn_fill", "mean_fill")
QUICK = "lowrank_fill"
RATE, MASK_SEED = 0.5, 42
INTERVAL = 0.9
PIXELS = (16, 15)
FILES = {
    "labels.csv": "the cluster of each sample, and the digit it is",
    "embedding.csv": "its representation",
    "filled.npz": "all views, the missing ones inferred",
}
FIGURES = {
    "missing.png": "which views are missing together",
    "training.png": "loss terms, and the error on hidden views that ends training",
    "map.png": "the representation beside the mean-filled data, in the plane",
    "pix.png": "images that were hidden from the model, as it infers them",
}
NEXT = (
    "vedute inspect DATA",
    "vedute fit DATA -o run --report page.html",
    "vedute impute run -o filled",
)
NO_FIGURES = {"(no figures)": "they need matplotlib: pip install 'vedute[plots]'"}


@command
def run(
    out: Annotated[Path, "-o --out OUT: Folder to write."] = Path("vedute-demo"),
    seed: Annotated[int, "Seed of the models; the data stay the same."] = 0,
    force: _options.Force = False,
) -> Answer:
    """Cluster handwritten digits and infer their missing views, against three simple fills.

    2000 digits in six views (bundled); half of them lack about half their views. No labels
    are used but for the scores. Takes two minutes on two cores.
    """
    import numpy as np

    from vedute import datasets, io, methods
    from vedute.analysis import comparison
    from vedute.data.missing import drop_views
    from vedute.metrics import scores as scoring

    start = perf_counter()
    with io.atomic_folder(out, force) as folder:
        say("Handwritten digits, six views; half of the rows lack some of them.")
        truth = datasets.load("handwritten")
        views = drop_views(truth, RATE, MASK_SEED)
        hidden, true = (~views.mask).numpy(), [x.numpy() for x in truth.x]
        trial = comparison.Trial(views, hidden, true)
        models = {k: methods.find(k)(n_clusters=10, random_state=seed) for k in METHODS}
        rows = _scored((trial, truth.y), models)
        imputed = models["blend"].impute(views, interval=INTERVAL)
        lower, upper = ([x.numpy() for x in end.x] for end in (imputed.lower, imputed.upper))
        coverage = scoring.coverage(true, lower, upper, hidden)
        row, blend = np.arange(len(truth)), models["blend"]
        labels = {"row": row, "label": blend.labels_, "digit": np.asarray(truth.y)}
        io.csv.write_csv(folder / "labels.csv", labels)
        io.csv.write_csv(folder / "embedding.csv", {"row": row, "z": blend.embedding_})
        data = io.of_views(blend.impute(views))
        io.write_views(folder / "filled.npz", data, data.views)
        drawn = find_spec("matplotlib") is not None
        if drawn:
            _write_figures(folder, truth, views, models, imputed)
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
    files = {**FILES, **(FIGURES if drawn else NO_FIGURES), "scores.json": "these numbers"}
    return Answer(scores, lambda: _show(rows, coverage, out, files))


def _scored(shared: tuple[Trial, Any], models: dict[str, Any]) -> list[MethodScores]:
    """Fit and score the models, the quick one first, whose error is printed at once."""
    from vedute.analysis import comparison

    rows = {QUICK: comparison.scores_of(shared, (QUICK, models[QUICK]))}
    error, seconds = rows[QUICK].error, rows[QUICK].seconds
    say(f"Low-rank fill: hidden-view error {error:.3f} after {seconds:.0f} s.")
    for name in METHODS:
        rows[name] = rows.get(name) or comparison.scores_of(shared, (name, models[name]))
    return [rows[name] for name in METHODS]


def _show(rows: Sequence[MethodScores], coverage: float, out: Path, files: dict[str, str]) -> None:
    console, lines = Console(highlight=False), []
    for row in rows:
        percent = [f"{100 * x:.1f}" for x in row.scores.values()]
        lines.append([row.method, *percent, f"{row.error:.3f}", f"{row.seconds:.1f}"])
    heads = ("method", "ACC %", "NMI %", "ARI %", "hidden-view error", "seconds")
    console.print(table(heads, lines))
    unit = "Hidden-view error: mean squared error of held-out views, in standard deviations"
    inside = f"Blend's 90 % intervals cover {coverage:.1%} of the hidden values"
    console.print(f"{unit}; 1 is the mean. {inside}.")
    console.print(f"In {out}:")
    for name, what in files.items():
        console.print(f"  {name:22} {what}")
    console.print("Next, on your own data, such as a folder with one file per view:")
    for line in NEXT:
        console.print(f"  {line}")


def _write_figures(
    folder: Path, truth: Views, views: Views, models: Mapping[str, Estimator], imputed: Any
) -> None:
    import numpy as np

    from vedute import plot
    from vedute.figures import plots

    v, model = truth.names.index("pix"), models["blend"]
    assert truth.y is not None
    patterns, (ax,) = plots.panels(1, (7.0, 3.0))
    plot.missing(views, ax)
    curves, (terms, error) = plots.panels(2, (8.8, 3.4))
    plot.training(model, terms, terms=True)
    plot.training(model, error)
    blocks = []  # all views side by side, z-scored, each of the same total variance
    for x in (x.numpy() for x in models["mean_fill"].impute(views).x):
        std = x.std(0)
        blocks.append((x - x.mean(0)) / np.where(std > 0, std, 1.0) / np.sqrt(x.shape[1]))
    plane = plots.embedding_map(model.embedding_, np.concatenate(blocks, axis=1), truth.y)
    mean, lower, upper = (end.x[v].numpy() for end in imputed)
    lost = np.flatnonzero(~views.mask[:, v].numpy())
    shown = [int(lost[truth.y[lost] == digit][0]) for digit in range(10)]  # the first of each
    seen = [np.array(views.names)[views.mask[row].numpy()] for row in shown]
    notes = ["\n".join(["seen:", *names]) for names in seen]
    inferred = truth.x[v].numpy(), mean, (upper - lower) / 2
    images = plots.inferred_images(inferred, PIXELS, shown, notes)
    for name, figure in zip(FIGURES, (patterns, curves, plane, images), strict=True):
        figure.savefig(folder / name, dpi=150)
