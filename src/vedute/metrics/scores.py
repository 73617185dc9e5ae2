"""Scores: arrays in, floats out. No function here knows of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from vedute.data.views import Views

Floats = NDArray[np.float64]
Given = Sequence[ArrayLike] | Mapping[str, ArrayLike] | Views


def clustering_accuracy(y: ArrayLike, labels: ArrayLike) -> float:
    """Accuracy under the best one-to-one matching of clusters to classes.

    y, labels (n,) of any type; clusters beyond the number of classes count as wrong.
    """
    truth, clusters = _codes(y, labels)
    counts = np.zeros((truth.max() + 1, clusters.max() + 1), np.int64)
    np.add.at(counts, (truth, clusters), 1)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(truth))


def clustering_scores(y: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """acc, nmi (arithmetic) and ari of clusters `labels` (n,) against classes `y` (n,)."""
    truth, clusters = _codes(y, labels)
    return {
        "acc": clustering_accuracy(truth, clusters),
        "nmi": float(normalized_mutual_info_score(truth, clusters)),
        "ari": float(adjusted_rand_score(truth, clusters)),
    }


def imputation_error(
    truth: Given, filled: Given, hidden: ArrayLike, std: Given | None = None
) -> float:
    """The mean of `instance_errors` over all hidden view instances; NaN if none is hidden."""
    return _mean(instance_errors(truth, filled, hidden, std))


def imputation_errors_by_view(
    truth: Given, filled: Given, hidden: ArrayLike, std: Given | None = None
) -> list[float]:
    """The mean of `instance_errors` in each of the L views; NaN where a view has none hidden."""
    return [_mean(e) for e in instance_errors(truth, filled, hidden, std).T]


def instance_errors(
    truth: Given, filled: Given, hidden: ArrayLike, std: Given | None = None
) -> Floats:
    """The mean over features of ((filled - truth) / std)^2 per hidden view instance, (n, L).

    truth, filled: L arrays (n, *shape_v), dicts of them in the order of `truth`, or Views; frames
    are compared by their index and columns. hidden (n, L) bool, in the order of `truth`; std: L
    arrays (*shape_v), by default of the true values. Constant features and NaN in truth are left
    out; NaN where nothing is left.
    """
    where, (true, guesses) = _checked(hidden, truth, filled)
    scales = [*map(_deviations, true)] if std is None else _lists(truth, std)[1]
    errors = np.full(where.shape, np.nan)
    for v, rows in enumerate(where.T):
        guess, x, scale = guesses[v][rows], true[v][rows], np.asarray(scales[v], np.float64).ravel()
        known = ~np.isnan(x) & (scale > 0)
        if np.isnan(guess[known]).any():
            raise ValueError(f"filled view {v} is NaN where it was hidden; impute it first")
        errors[rows, v] = _row_means(((guess - x) / np.where(scale > 0, scale, 1.0)) ** 2, known)
    return errors


def coverage(truth: Given, lower: Given, upper: Given, hidden: ArrayLike) -> float:
    """The share of entries with lower <= truth <= upper, averaged over hidden view instances.

    truth, lower, upper: L arrays (n, *shape_v); hidden (n, L) bool. NaN in truth are left out.
    """
    where, parts = _checked(hidden, truth, lower, upper)
    shares = np.full(where.shape, np.nan)
    for v, rows in enumerate(where.T):
        x, low, high = (part[v][rows] for part in parts)
        shares[rows, v] = _row_means(((low <= x) & (x <= high)).astype(float), ~np.isnan(x))
    return _mean(shares)


def crps(
    truth: Given, mean: Given, lower: Given, upper: Given, hidden: ArrayLike, level: float
) -> float:
    """Continuous ranked probability score of normal distributions with the given central intervals
    of this level, in standard deviations of the true values; lower is better.

    Averaged over features, then over hidden view instances, like `imputation_error`; mean and
    spread of normal features score 1 / sqrt(pi) = .564. Intervals may be clipped to possible
    values: the wider side determines the width of the distribution.
    """
    where, parts = _checked(hidden, truth, mean, lower, upper)
    reach, scores = float(norm.ppf(0.5 + level / 2)), np.full(where.shape, np.nan)
    for v, rows in enumerate(where.T):
        unit = _deviations(parts[0][v])
        x, middle, low, high = (part[v][rows] for part in parts)
        std = np.maximum(high - middle, middle - low) / reach
        score = normal_crps(x, middle, std) / np.where(unit > 0, unit, 1.0)
        scores[rows, v] = _row_means(score, ~np.isnan(x) & (unit > 0))
    return _mean(scores)


def normal_crps(x: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Floats:
    """CRPS of normal distributions at the true values x, elementwise; |x - mean| where std is 0.

    std (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)), z = (x - mean) / std
    (Gneiting & Raftery, JASA 2007)
    """
    off = np.asarray(x, np.float64) - np.asarray(mean, np.float64)
    s = np.asarray(std, np.float64)
    z = off / np.where(s > 0, s, 1.0)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    score = s * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    return np.asarray(np.where(s > 0, score, np.abs(off)))


def sample_crps(x: ArrayLike, draws: ArrayLike) -> Floats:
    """CRPS of the empirical distribution of draws (m, ...) at the true values x (...):
    E|X - x| - E|X - X'| / 2."""
    drawn = np.sort(np.asarray(draws, np.float64), axis=0)
    m = len(drawn)
    weight = (2 * np.arange(m) - m + 1).reshape(-1, *[1] * (drawn.ndim - 1))  # of sorted draws
    apart = (weight * drawn).sum(0) / m**2
    return np.asarray(np.abs(drawn - np.asarray(x, np.float64)).mean(0) - apart)


def _codes(y: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Encode both as integers from 0, (n,) each."""
    a, b = np.asarray(y), np.asarray(labels)
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise ValueError(
            f"y has shape {a.shape} and labels {b.shape}; pass one class and one cluster per sample"
        )
    return np.unique(a, return_inverse=True)[1], np.unique(b, return_inverse=True)[1]


def _checked(hidden: ArrayLike, *scored: Given) -> tuple[NDArray[np.bool_], list[list[Floats]]]:
    """The (n, L) bool array, and L arrays (n, d) of each, in the order of the first."""
    where, results = np.asarray(hidden, bool), []
    parts = _lists(*scored)
    expected = [np.shape(a) for a in parts[0]]
    for views in parts:
        shapes = [np.shape(a) for a in views]
        if where.ndim != 2 or [s[:1] for s in shapes] != [where.shape[:1]] * where.shape[1]:
            raise ValueError(
                f"hidden has shape {where.shape} and the views {shapes}; "
                "pass L arrays of n rows and a hidden (n, L)"
            )
        if shapes != expected:
            raise ValueError(f"views have shapes {shapes}; the true ones differ, pass equal shapes")
        flat = [(len(where), int(np.prod(shape[1:]))) for shape in shapes]
        pairs = zip(views, flat, strict=True)
        results.append([np.asarray(a, np.float64).reshape(shape) for a, shape in pairs])
    return where, results


def _lists(*scored: Given) -> list[list[ArrayLike]]:
    """Convert all to lists; dicts in the order of the first, Views with NaN where missing, frames
    with the rows and columns of the first in their order."""
    lists: list[list[ArrayLike]] = []
    names: list[str] | None = None
    for views in scored:
        if isinstance(views, Views):
            known = (views.known(v).astype(np.float64) for v in range(len(views.x)))
            views = dict(zip(views.names, known, strict=True))
        if isinstance(views, Mapping):
            names = list(views) if not lists else names
            if names is None or set(views) != set(names):
                raise ValueError(
                    f"views are {', '.join(map(str, views))}; the true ones differ, pass the same"
                )
            views = [views[k] for k in names]
        views = [*views]
        for v, (view, true) in enumerate(zip(views, lists[0] if lists else (), strict=False)):
            if isinstance(view, pd.DataFrame) and isinstance(true, pd.DataFrame):
                if set(view.index) != set(true.index) or set(view.columns) != set(true.columns):
                    raise ValueError(f"view {v} has other samples or columns than the true one")
                views[v] = view.loc[true.index, true.columns]
        lists.append(views)
    return lists


def _deviations(x: Floats) -> Floats:
    """Standard deviations (d,) of the columns of x (n, d) without NaN; exactly 0 if constant."""
    known = ~np.isnan(x)
    count = np.maximum(known.sum(0), 1)
    centered = np.where(known, x - np.where(known, x, 0.0).sum(0) / count, 0.0)
    constant = np.where(known, x, -np.inf).max(0) <= np.where(known, x, np.inf).min(0)
    return np.where(constant, 0.0, np.sqrt((centered**2).sum(0) / count))


def _row_means(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """Means (n,) of the known entries of values (n, d); NaN for a row without any."""
    count = known.sum(1)
    total = np.where(known, values, 0.0).sum(1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def share_explained(error: Floats, base: Floats) -> Floats:
    """The share of the error of the mean that predictions do not make; NaN where that is 0."""
    return 1 - np.divide(error, base, out=np.full_like(base, np.nan), where=base > 0)
