"""Comparison of methods on a dataset: how well they impute views that were hidden from all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data import holdout
from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators.base import Estimator
from vedute.figures import plots
from vedute.figures.plots import styled
from vedute.io.contents import known_labels
from vedute.metrics import scores as scoring
from vedute.nn import noise
from vedute.scale import backends

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]
LABELED = ("acc", "nmi", "ari")


@dataclass(frozen=True, eq=False)
class Trial:
    """`views` without instances `hidden` (n, L); truth: L arrays (n, *shape_v), NaN: unknown."""

    views: Views
    hidden: NDArray[np.bool_]
    truth: list[Array]

    @classmethod
    def of(cls, views: Views, seed: int) -> Trial:
        """Hide about a tenth of the observed views, at most one per sample."""
        with noise.alone():
            torch.manual_seed(seed)
            hidden = holdout.choose(views.mask, fewest=1, holes=views.hole_parts)
        if hidden is None:
            fix = "give samples with two views or more"
            raise ValueError(f"no view can be hidden to measure errors; {fix}")
        true = [views.known(v) for v in range(len(views.x))]
        return cls(views.bare().hide(hidden), hidden.numpy(), true)

    def imputed(self, model: Estimator) -> list[Array]:
        """All views as a fitted model fills them in, L arrays (n, *shape_v)."""
        return [x.numpy() for x in model.impute(self.views).x]

    def error(self, model: Estimator) -> float:
        """The mean squared error of the hidden views in standard deviations; 1 is the mean's."""
        return scoring.imputation_error(self.truth, self.imputed(model), self.hidden)


@dataclass(frozen=True)
class MethodScores:
    """The scores of a method."""

    method: str
    error: float = np.nan  # of the hidden views; NaN if it cannot impute
    by_view: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)  # with labels: acc, nmi, ari
    seconds: float = 0.0
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of experts, by view
    failed: str = ""  # the reason if it has no scores
    n_clusters: int | None = None
    stability: Mapping[str, Array] = field(default_factory=dict)  # if it chose n_clusters


def compare(trial: Trial, models: Mapping[str, Estimator], y: Array | None) -> list[MethodScores]:
    """Fit every model on the same views, on joblib's workers if set; an error ends one method."""
    rows = []
    with progress.shown(), progress.task("comparing", len(models), "method"):
        outcomes = backends.outcomes(scores_of, (trial, y), list(models.items()))
        for name, row in zip(models, outcomes, strict=True):
            if isinstance(row, BrokenExecutor):
                row = MethodScores(name, failed="its worker was killed")
            rows.append(row)
            progress.advance(1, "method")
    return rows


def ranked(rows: Sequence[MethodScores]) -> list[MethodScores]:
    """Sort rows by error, those without one by accuracy, failed ones last."""
    return sorted(
        rows, key=lambda r: (bool(r.failed), np.isnan(r.error), r.error, -r.scores.get("acc", 0.0))
    )


def columns(rows: Sequence[MethodScores]) -> dict[str, Array]:
    """The scores as columns of a file."""
    views = dict.fromkeys(k for r in rows for k in r.by_view)
    table = {"method": [r.method for r in rows], "error": [r.error for r in rows]}
    table |= {f"error_{k}": [r.by_view.get(k, np.nan) for r in rows] for k in views}
    if any(r.scores for r in rows):
        table |= {k: [r.scores.get(k, np.nan) for r in rows] for k in LABELED}
    table["seconds"] = [round(r.seconds, 3) for r in rows]
    return {k: np.array(v) for k, v in table.items()}


@styled
def figure(rows: Sequence[MethodScores]) -> Figure:
    """A figure of hidden-view errors, a dot per view; with labels, of cluster agreement too."""
    shown = [r for r in ranked(rows) if not r.failed]
    views = dict.fromkeys(k for r in shown for k in r.by_view)
    by_view = {k: [r.by_view.get(k, np.nan) for r in shown] for k in views}
    unit = "squared, in standard deviations; 1 is the mean"
    parts = [("Error of hidden views", unit, [r.error for r in shown], by_view)]
    if any(r.scores for r in shown):
        agreement = {k.upper(): [100 * r.scores.get(k, np.nan) for r in shown] for k in LABELED}
        parts.append(("Clusters against labels", "%", agreement["ACC"], agreement))
    drawn, axes = plots.panels(len(parts), (1.5 + 4.0 * len(parts), 1.8 + 0.45 * len(shown)))
    for ax, (title, unit, bars, dots) in zip(axes, parts, strict=True):
        ax.barh(range(len(bars)), bars, height=0.55, color=plots.PALE)
        for (name, values), color in zip(dots.items(), plots.cycle(len(dots)), strict=True):
            ax.scatter(values, range(len(bars)), s=26, color=color, label=name, zorder=3)
        notes = ["" if np.isnan(value) else f"{value:.3g}" for value in bars]
        plots.rows(ax, [r.method for r in shown], notes)
        plots.titled(ax, title)
        ax.set(xlabel=unit)
        ax.set_xlim(left=0)
        if dots:
            plots.legend(ax, above=True)
    axes[0].axvline(1.0, **plots.DASHED)
    return drawn


def scores_of(shared: tuple[Trial, Array | None], named: tuple[str, Estimator]) -> MethodScores:
    """Fit the named model on the trial's views; its scores, or the error that ended it."""
    (trial, y), (name, model), start = shared, named, perf_counter()
    results: dict[str, Any] = {}
    try:
        model = model.fit(trial.views)
        if model.generative:
            imputed = trial.truth, trial.imputed(model), trial.hidden
            results["error"] = scoring.imputation_error(*imputed)
            errors = scoring.imputation_errors_by_view(*imputed)
            results["by_view"] = dict(zip(trial.views.names, errors, strict=True))
        results["seconds"] = perf_counter() - start
        if y is not None and model.n_clusters is not None:
            known = known_labels(y)
            results["scores"] = scoring.clustering_scores(y[known], model.labels_[known])
        learned = model.results()
    except (ValueError, TypeError, ArithmeticError) as e:
        return MethodScores(name, failed=" ".join(str(e).split()))
    inside = {"weights": "weights_", "n_clusters": "n_clusters_", "stability": "stability_"}
    results |= {field: learned[k] for field, k in inside.items() if k in learned}
    return MethodScores(name, **results)
