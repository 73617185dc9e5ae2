"""The demo: Blend and three simple fills on handwritten digits, half of whose rows lack views."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from vedute import datasets, io, methods
from vedute.analysis.comparison import MethodScores
from vedute.commands._command import table
from vedute.data.missing import drop_views
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.metrics import scores as scoring

Array = NDArray[Any]
TITLE = "Handwritten digits, six views; half of the rows lack some of them."
METHODS = ("blend", "lowrank_fill", "knn_fill", "mean_fill")
RATE, MASK_SEED = 0.5, 42
INTERVAL = 0.9
PIXELS = (16, 15)


class Result(NamedTuple):
    """Rows in the order of METHODS, the coverage of Blend's intervals, and what was written."""

    rows: list[MethodScores]
    coverage: float
    files: dict[str, str]

    def scores(self) -> dict[str, float]:
        """Accuracies in percent, errors as they are."""
        row = {r.method: r for r in self.rows}
        blend = row["blend"]
        return {
            **{name: round(100 * score, 2) for name, score in blend.scores.items()},
            "imputation_error": round(blend.error, 4),
            "knn_imputation_error": round(row["knn_fill"].error, 4),
            "lowrank_imputation_error": round(row["lowrank_fill"].error, 4),
            "coverage": round(self.coverage, 4),
        }

    def show(self, console: Console, out: Path) -> None:
        lines = []
        for row in self.rows:
            percent = [f"{100 * x:.1f}" for x in row.scores.values()]
            lines.append([row.method, *percent, f"{row.error:.3f}", f"{row.seconds:.1f}"])
        heads = ("method", "ACC %", "NMI %", "ARI %", "hidden-view error", "seconds")
        console.print(table(heads, lines))
        console.print(
            "Hidden-view error: mean squared error of held-out views, in standard "
            "deviations; 1 is the mean. Blend's 90 % intervals cover "
            f"{self.coverage:.1%} of the hidden values."
        )
        console.print(f"In {out}:")
        for name, what in {**self.files, "scores.json": "these numbers"}.items():
            console.print(f"  {name:22} {what}")


def run(folder: Path, seed: int) -> Result:
    """Fit all methods; write labels, embedding, filled views and figures to `folder`."""
    truth = datasets.load("handwritten")
    views = drop_views(truth, RATE, MASK_SEED)
    hidden, true = (~views.mask).numpy(), _arrays(truth)
    rows, models, filled = [], {}, {}
    for name in METHODS:
        start = perf_counter()
        model = methods.find(name)(n_clusters=10, random_state=seed)
        model.fit(views)
        models[name], filled[name] = model, model.impute(views)
        seconds = perf_counter() - start
        scores = scoring.clustering_scores(_digits(truth), model.labels_)
        error = scoring.imputation_error(true, _arrays(filled[name]), hidden)
        rows.append(MethodScores(name, error, scores=scores, seconds=seconds))
    imputed = models["blend"].impute(views, interval=INTERVAL)
    coverage = scoring.coverage(true, _arrays(imputed.lower), _arrays(imputed.upper), hidden)
    files = _write_tables(folder, truth, models["blend"], filled["blend"])
    if find_spec("matplotlib") is None:
        files["(no figures)"] = "they need matplotlib: pip install 'vedute[plots]'"
    else:
        flat = _balanced(filled["mean_fill"])
        files |= _write_figures(folder, truth, views, models["blend"], imputed, flat)
    return Result(rows, coverage, files)


def _write_tables(folder: Path, truth: Views, model: Estimator, filled: Views) -> dict[str, str]:
    row = np.arange(len(truth))
    labels = {"row": row, "label": model.labels_, "digit": _digits(truth)}
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
    folder: Path, truth: Views, views: Views, model: Estimator, imputed: Any, mean_filled: Array
) -> dict[str, str]:
    from vedute import plot
    from vedute.figures import plots

    v = truth.names.index("pix")
    mean, lower, upper = (x.x[v].numpy() for x in imputed)
    lost = np.flatnonzero(~views.mask[:, v].numpy())
    digits = _digits(truth)[lost]
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
        "map.png": plots.embedding_map(model.embedding_, mean_filled, _digits(truth)),
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


def _digits(truth: Views) -> Array:
    assert truth.y is not None
    return truth.y


def _arrays(views: Views) -> list[Array]:
    return [x.numpy() for x in views.x]


def _balanced(views: Views) -> Array:
    """All views side by side, z-scored, each of the same total variance."""
    blocks = []
    for x in _arrays(views):
        std = x.std(0)
        blocks.append((x - x.mean(0)) / np.where(std > 0, std, 1.0) / np.sqrt(x.shape[1]))
    return np.concatenate(blocks, axis=1)
