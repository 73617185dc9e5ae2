"""Inferred values of single samples, their uncertainty, and similar samples.

doubt        (n,)    the standard deviation of the inferred values of a sample, in units of each
                     feature's and at most 1, averaged over the features of a view, where observed
                     ones count 0, and over views; NaN if nothing is missing, or not measured
gaps         (n, L)  the number of missing entries in each observed view of a sample
listed       (m,)    the samples that are shown with values, the most uncertain first
nearest      (m, k)  the samples with the nearest representations
cell_<what>  (t,)    cells, one after the other: values of the listed samples, see `Cell`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedute.analysis.inspection import features
from vedute.data.frames import ViewSpec, numbers, width
from vedute.data.mapped import pieces
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators import cross_fitting
from vedute.estimators.base import Estimator
from vedute.estimators.filling import interval_of
from vedute.estimators.imputation import DRAWS

Array = NDArray[Any]
MOST_LISTED, MOST_VALUES, MOST_INFERRED, NEAREST = 300, 30, 20, 5
INFERRED_NUMBERS = 2**24  # most entries to infer for comparing samples
SAMPLE_LEVEL = 0.9  # of intervals


class Cell(NamedTuple):
    """One value of a listed sample.

    of: position in `listed`; view; name of the feature; seen: observed, not inferred; value, low
    and high end of the interval; word: of a category; z: value, low and high in standard deviations
    from the mean of the feature
    """

    of: int
    view: int
    name: str
    seen: bool
    value: float
    low: float
    high: float
    word: str
    z: tuple[float, float, float]


class Looked(NamedTuple):
    """One view of m samples: seen, value, low, high (m, width), center and unit (width,)."""

    spec: ViewSpec
    seen: Array
    value: Array
    low: Array
    high: Array
    center: Array
    unit: Array


def samples(model: Estimator, views: Views, data: Views, z: Array) -> dict[str, Array]:
    """Fields of SampleResults; views in the user's units, scaled data, and embedding z (n, D)."""
    doubt = uncertainty(model, data)
    order = np.argsort(np.where(np.isnan(doubt), np.inf, -doubt), kind="stable")
    listed = order[:MOST_LISTED]
    cells = list(_cells(_looked(model, views[listed], data[listed]), views[listed].mask.numpy()))
    columns = {k: np.array([getattr(cell, k) for cell in cells]) for k in Cell._fields}
    names, columns["name"] = np.unique(columns["name"].astype(str), return_inverse=True)
    columns |= {k: columns[k].astype(np.float32) for k in ("value", "low", "high", "z")}
    fields = {f"cell_{k}": np.asarray(a) for k, a in (columns | {"names": names}).items()}
    fields |= {"doubt": doubt.astype(np.float32), "listed": listed}
    return fields | {"nearest": _nearest(z, listed)}


def uncertainty(model: Estimator, data: Views) -> Array:
    """The uncertainty of the inferred values of each sample, (n,), see above."""
    imputer, entries = model.learner.imputer(), sum(view.numbers for view in model.views_)
    lacking = [~data.seen(v).flatten(1).all(1) for v in range(len(data.x))]
    wanted = np.flatnonzero(np.any([gap.numpy() for gap in lacking], axis=0))
    wanted = wanted[
        cross_fitting.sample_positions(len(wanted), max(MOST_LISTED, INFERRED_NUMBERS // entries))
    ]
    doubt = np.full(len(data), np.nan)
    size = imputer.rows(DRAWS)
    for block in slices(len(wanted), size):
        rows = wanted[block]
        total, count = np.zeros((2, len(rows)))
        part = data[rows]
        for v, std in enumerate(imputer.values(part, spread=True)[1]):
            unit = _moments(model, v)[1]
            gap = ~part.seen(v).flatten(1).numpy() & (unit > 0)
            share = np.minimum(std.reshape(gap.shape) / np.where(unit > 0, unit, 1.0), 1.0)
            total += np.where(gap, share, 0.0) @ _weights(model.views_[v].spec, unit > 0)
            count += gap.sum(1)
        doubt[rows] = np.where(count > 0, total / len(data.x), np.nan)
    return doubt


def gaps(views: Views) -> Array:
    """The number of missing entries in each observed view of a sample, (n, L)."""
    counts = np.zeros(views.shape, np.int64)
    for v, holes in enumerate(views.hole_parts):
        if holes is not None and views.specs is not None:
            firsts = np.cumsum(_widths(views.specs[v])) - 1
            for rows in pieces(holes):
                counts[rows, v] = holes[rows].flatten(1)[:, firsts].sum(1)
    return counts


def _weights(spec: ViewSpec, varies: Array) -> Array:
    """Weights of the numbers of a view (width,): equal for all features that vary, sum one."""
    widths = _widths(spec)
    weights = np.where(varies, np.repeat(1 / widths, widths), 0.0)
    return weights / (weights.sum() or 1.0)


def _widths(spec: ViewSpec) -> Array:
    """The number of columns of each feature: one, or several for more than two categories."""
    if spec.levels is None:
        return np.ones(width(spec.shape), np.int64)
    return np.array([numbers(levels) for levels in spec.levels])


def _looked(model: Estimator, views: Views, data: Views) -> dict[int, Looked]:
    """Values of views of numbers and categories; words and images are not listed."""
    shown, (means, stds) = {}, model.learner.imputer().values(data, spread=True)
    for v, (view, mean, std) in enumerate(zip(model.views_, means, stds, strict=True)):
        if view.likelihood.text or len(view.shape) > 1:
            continue
        ends = interval_of(view, mean, std, data, v, SAMPLE_LEVEL)
        seen, observed = views.seen(v).numpy(), np.nan_to_num(views.known(v))
        filled = view.possible(mean), ends.lower, ends.upper
        value, low, high = (np.where(seen, observed, a) for a in filled)
        shown[v] = Looked(view.spec, seen, value, low, high, *_moments(model, v))
    return shown


def _cells(looked: dict[int, Looked], mask: Array) -> Iterator[Cell]:
    """Cells of each sample: missing features and those farthest from their mean, more of missing
    views than of observed ones."""
    items = {v: _items(view.spec) for v, view in looked.items()}
    for i, seen in enumerate(mask):
        lost = [v for v in looked if not seen[v]]
        present = [v for v in looked if seen[v]]
        room = _shared(lost, items, MOST_INFERRED if present else MOST_VALUES)
        room |= _shared(present, items, MOST_VALUES - sum(room.values()))
        for v, count in room.items():
            yield from _farthest(looked[v], items[v], i, v, count)


def _items(spec: ViewSpec) -> list[tuple[str, slice, tuple[Any, ...] | None]]:
    """The features of a view: name, slice of columns, and categories."""
    if spec.columns is None or spec.levels is None:
        return [(name, slice(f, f + 1), None) for f, name in enumerate(features(spec))]
    items, start = [], 0
    for column, levels in zip(spec.columns, spec.levels, strict=True):
        items.append((str(column), slice(start, start + numbers(levels)), levels))
        start += numbers(levels)
    return items


def _shared(views: Sequence[int], items: dict[int, Any], most: int) -> dict[int, int]:
    """Distribute at most `most` features over views; narrow views leave more to the others."""
    counts = {}
    for i, v in enumerate(sorted(views, key=lambda v: len(items[v]))):
        counts[v] = min(len(items[v]), max(most, 0) // (len(views) - i))
        most -= counts[v]
    return {v: counts[v] for v in sorted(counts)}


def _farthest(view: Looked, items: list[Any], i: int, v: int, count: int) -> Iterator[Cell]:
    """Cells of `count` features of sample i in their order; missing ones have priority."""
    unit = np.where(view.unit > 0, view.unit, 1.0)
    z = [(a[i] - view.center) / unit for a in (view.value, view.low, view.high)]
    far = np.maximum.reduceat(np.abs(z[0]), [at.start for _, at, _ in items])
    seen = np.logical_and.reduceat(view.seen[i], [at.start for _, at, _ in items])
    for f in np.sort(np.lexsort((-far, seen))[:count]):
        name, at, levels = items[f]
        first = at.start + (int(view.value[i, at].argmax()) if levels else 0)
        value, low, high = (float(a[i, first]) for a in (view.value, view.low, view.high))
        word = "" if levels is None else _word(levels, view.value[i, at])
        a, b, c = (float(np.clip(bound[first], -9, 9)) for bound in z)
        yield Cell(i, v, name, bool(view.seen[i, first]), value, low, high, word, (a, b, c))


def _word(levels: tuple[Any, ...], shares: Array) -> str:
    """The most probable category; `shares` of a binary feature has that of its second."""
    shares = np.array([1 - shares[0], shares[0]]) if len(levels) == 2 else shares
    best = min(int(shares.argmax()), len(levels) - 1)
    sure = "" if shares[best] > 0.9995 else f" ({100 * shares[best]:.0f} %)"
    return f"{levels[best]}{sure}"


def _nearest(z: Array, rows: Array) -> Array:
    """The nearest other samples of `rows` of z (n, D), (m, k)."""
    from sklearn.neighbors import NearestNeighbors

    k = min(NEAREST, len(z) - 1)
    if k < 1:
        return np.zeros((len(rows), 0), np.int64)
    neighbors = (
        NearestNeighbors(n_neighbors=k + 1).fit(z).kneighbors(z[rows], return_distance=False)
    )
    others = [[j for j in near if j != row][:k] for near, row in zip(neighbors, rows, strict=True)]
    return np.array(others, np.int64)


def _moments(model: Estimator, v: int) -> tuple[Array, Array]:
    """Mean and standard deviation of the features of view v, in the user's units."""
    scaler = model.views_[v].scaler
    center, unit = scaler.moments(scaler.mean, scaler.std)
    return center.ravel(), unit.ravel()
