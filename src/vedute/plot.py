"""Plots of data and of fitted models with matplotlib; each function returns the Axes it drew on.

X is anything that `fit` takes. Without `ax` a new figure is made with pyplot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from vedute.analysis.inferred import inferred, place
from vedute.analysis.informs import informs
from vedute.analysis.profiles import profiles, strongest
from vedute.data.views import Views
from vedute.estimators import cross_fitting
from vedute.estimators.base import Estimator
from vedute.figures import plots
from vedute.figures.plots import styled
from vedute.training import history

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MAPPED = 3000  # samples
MOST_PROFILES, MOST_FEATURES = 24, 30

__all__ = ["missing", "training", "map", "hidden_errors", "views", "clusters", "sample"]


@styled
def missing(X: Any, ax: Axes | None = None) -> Axes:
    """Plot which views are observed together, a column per pattern, as wide as it is frequent."""
    views = Views.of(X)
    mask = views.mask.cpu().numpy()
    holes = [views.share_of_holes(v) for v in range(len(views.x))]
    ax = _axes(ax, 7.0, 1.5 + 0.3 * len(holes))
    plots.missing(ax, mask, views.names, holes)
    return ax


@styled
def training(model: Estimator, ax: Axes | None = None, *, terms: bool = False) -> Axes:
    """Plot the error on hidden views during training, and mark the weights that were kept.

    terms: plot the terms of the loss instead; the default if no view was hidden.
    """
    check_is_fitted(model, "views_")
    records, name = getattr(model, "history_", []), type(model).__name__
    if not records:
        raise ValueError(f"{name} is not trained in steps: it has no training to show")
    trained = model.leading()  # of several, the first
    warms = trained.get_params().get("warmup", 0) != 0  # None: as the data decided
    warm = history.warmup_end(records) if warms else 0
    stages = warm, history.second(records)
    ax = _axes(ax, 6.6, 3.4)
    if terms or all(r["hidden_error"] is None for r in records):
        plots.terms(ax, records, *stages)
        ax.set_title(f"{type(trained).__name__}: terms of the loss")
    else:
        plots.errors(ax, records, history.kept(records), *stages)
        ax.set_title(f"{type(trained).__name__}: error on hidden views")
    return ax


@styled
def map(model: Estimator, labels: Any = None, ax: Axes | None = None) -> Axes:
    """The representation of the samples of `fit` in the plane.

    labels: one per sample, to color by: classes, or numbers on a scale; the clusters of the model,
    if it has some, by default. At most 3000 samples are shown. t-SNE keeps what is close together;
    distances between groups mean little. Few samples are shown along their principal axes.
    """
    check_is_fitted(model, "embedding_")
    z, colors = model.embedding_, getattr(model, "labels_", None)
    if labels is not None:
        colors = np.asarray(labels)
        if colors.shape != z.shape[:1]:
            fix = f"pass one per sample of fit, ({len(z)},)"
            raise ValueError(f"labels have shape {colors.shape}; {fix}")
        if colors.dtype.kind == "O":
            colors = np.array([None if pd.isna(x) else str(x) for x in colors], dtype=object)
    name = "cluster" if labels is None else str(getattr(labels, "name", None) or "label")
    rows = cross_fitting.sample_positions(len(z), MOST_MAPPED)
    flat = plots.plane(z[rows].astype(np.float64))
    ax = _axes(ax, 6.4, 4.8)
    plots.points(ax, flat, None if colors is None else colors[rows], name)
    kind = "t-SNE" if plots.by_tsne(len(rows), z.shape[1]) else "principal axes"
    subset = "" if len(rows) == len(z) else f", {len(rows)} of {len(z)} samples"
    ax.set_title(f"Representation by {type(model).__name__}")
    ax.set_xlabel(f"{kind}{subset}" if np.ptp(flat) > 0 else "all samples are in one place")
    return ax


@styled
def hidden_errors(model: Estimator, ax: Axes | None = None) -> Axes:
    """Plot the error of every view that was hidden in `fit`, with mean and median by view, beside
    the error of the mean of each feature (mean-fill)."""
    check_is_fitted(model, "views_")
    model.learner.imputer()  # refuses a method that does not impute
    hidden, known = model.hidden_, model.hidden_predictions_
    if not len(hidden["row"]):
        raise ValueError("no view was hidden in fit, which takes samples with two views")
    error, names = hidden["error"].copy(), [view.name for view in model.views_]
    if "at" in known:  # as predicted before they were learned from
        error[known["at"]] = known["error"]
    ax = _axes(ax, 7.0, 1.7 + 0.42 * len(np.unique(hidden["view"])))
    plots.hidden(ax, error, hidden["mean_error"], hidden["view"], names)
    what = "hidden views" if "at" in known else "views left out of training samples"
    plots.titled(ax, f"Errors of {type(model).__name__} on {what}")
    return ax


@styled
def views(model: Estimator, X: Any, ax: Axes | None = None) -> Axes:
    """Plot how well each view is predicted from each other one alone, and from all others, in
    percent of its variance: see `vedute.analysis.informs.informs`. X should be new data."""
    table = informs(model, X)
    side = float(np.clip(0.62 * table.shape[1], 2.2, 7.5))
    ax = _axes(ax, side + 2.6, 0.75 * side + 1.9)
    plots.matrix(ax, table)
    ax.set_title("Which view informs which")
    return ax


@styled
def clusters(model: Estimator, X: Any, ax: Axes | None = None) -> Axes:
    """Plot the features in which clusters differ most from the other samples, in standard
    deviations: see `vedute.analysis.profiles.profiles`."""
    table = profiles(model, X)
    shown = strongest(table, max(MOST_PROFILES, len(table.columns)))
    sizes = dict(zip(*np.unique(model.predict(X), return_counts=True), strict=True))
    ax = _axes(ax, 4.6 + 0.5 * min(len(sizes), 15), 1.6 + 0.26 * len(shown))
    plots.profiles(ax, shown, sizes)
    ax.set_title("What makes a cluster")
    return ax


@styled
def sample(
    model: Estimator, X: Any, i: Any, view: str | int, ax: Axes | None = None, coverage: float = 0.9
) -> Axes:
    """Plot one view of sample i by feature: observed values, imputed ones and their intervals, with
    values in your units at the right. Images are shown as such.

    i: the position of the sample, or its id where that is not a whole number. At most 30 features
    are shown, those farthest from their mean.
    """
    table = inferred(model, X, i, view, coverage)
    v = place(model, view)
    spec, whole = model.specs[v], "observed" if table["observed"].all() else "imputed"
    if len(spec.shape) > 1:
        ax = _axes(ax, 3.4, 3.6)
        plots.image(ax, table["value"].to_numpy().reshape(spec.shape))
        ax.set_title(f"{plots.short(spec.name, 18)} of sample {i}: {whole}")
        return ax
    unit = np.where(table["std"] > 0, table["std"], 1.0)
    scaled = table[["value", "lower", "upper"]].sub(table["mean"], axis=0).div(unit, axis=0)
    scaled = scaled.assign(observed=table["observed"])
    scaled["text"] = [_text(*ends) for ends in table[["value", "lower", "upper"]].to_numpy()]
    far = scaled["value"].abs().to_numpy().argsort(kind="stable")[::-1][:MOST_FEATURES]
    ax = _axes(ax, 7.0, 1.5 + 0.24 * len(far))
    plots.intervals(ax, scaled.iloc[np.sort(far)], coverage)
    of = f", {len(far)} of {len(table)} features" if len(far) < len(table) else ""
    plots.titled(ax, f"{plots.short(spec.name, 24)} of sample {i}{of}")
    return ax


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    """`ax`, or the Axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def _text(value: float, lower: float, upper: float) -> str:
    """Format a value and its interval with two significant digits of the width."""
    if not upper > lower:
        return f"{value:.4g}"
    digits = int(np.clip(1 - np.floor(np.log10(upper - lower)), 0, 12))
    value, lower, upper = (round(x, digits) + 0.0 for x in (value, lower, upper))  # no -0
    return f"{value:.{digits}f}  ({lower:.{digits}f} to {upper:.{digits}f})"
