"""Probabilities of categories, imputed or observed.

The expected value of an indicator is the probability of its category. Decoded values y of the
indicators of a column that is learned as numbers may leave [0, 1] or not sum to one. The nearest
probabilities p (Euclidean projection) are

    p_k = max(y_k - t, 0),    t such that sum_k p_k = 1

They keep the order, so that the most likely category is the one that `impute` chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from vedute.data.frames import numbers
from vedute.data.views import Views
from vedute.estimators.fitted_view import FittedView
from vedute.nn import noise

Floats = NDArray[np.float64]
TINY = np.finfo(np.float64).tiny
SHARE_ROUNDING = 1e-9  # of sums of probabilities


class Column(NamedTuple):
    """A column of categories and the position of its numbers in a sample: one number for two
    categories, one indicator per category for more. If name is None, the view is the column."""

    name: Any
    categories: Sequence[Any]
    at: slice


Probabilities = Mapping[int, Sequence[tuple[Column, Floats]]]  # (n, K), by view and column


def columns(view: FittedView) -> list[Column]:
    """Return columns of categories, of zeros and ones, or of a view one-hot over its last axis."""
    spec, shares, start, results = view.spec, view.likelihood.shares, 0, list[Column]()
    names = _positions(spec.shape) if spec.columns is None else spec.columns
    levels = spec.levels if spec.columns is not None and spec.levels else [None] * len(names)
    dtypes = spec.dtypes if len(spec.dtypes) == len(names) else spec.dtypes[:1] * len(names)
    for name, categories, dtype in zip(names, levels, dtypes or [""] * len(names), strict=True):
        truth = dtype in ("bool", "boolean")
        if categories is None and not shares and (truth or view.likelihood.name == "bernoulli"):
            categories = (False, True) if truth else (0, 1)
        width = numbers(categories)
        if categories is not None:
            results.append(Column(name, categories, slice(start, start + width)))
        start += width
    if not results and shares:
        *before, width = spec.shape
        for i, name in enumerate(_positions(before) if before else [None]):
            at = slice(i * width, (i + 1) * width)
            results.append(Column(name, spec.columns or range(width), at))
    return results


def _positions(shape: Sequence[int]) -> list[Any]:
    """Return names of the entries of an array: 0, 1, ..., or "0,0", "0,1", ..."""
    if len(shape) == 1:
        return list(range(shape[0]))
    return [",".join(map(str, i)) for i in np.ndindex(*shape)]


def probabilities(
    views: Sequence[FittedView], values: Sequence[Floats], raw: Views
) -> Probabilities:
    """Return the probability of each category, for views with categories.

    values: imputed values of all views, before a category is chosen, L arrays (n, *shape_v);
    raw: observed values, in the same units
    """
    return {
        v: of_view(view, values[v], raw.x[v].numpy(), raw.seen(v).numpy())
        for v, view in enumerate(views)
        if columns(view)
    }


def of_view(
    view: FittedView, mean: Floats, x: Floats | None = None, seen: NDArray[np.bool_] | None = None
) -> Sequence[tuple[Column, Floats]]:
    """Return probabilities (n, K) by column, given expected and observed values (n, *shape)."""
    value = np.asarray(view.possible(mean)).reshape(len(mean), -1)
    x = value if x is None else np.asarray(x).reshape(value.shape)
    seen = np.zeros(value.shape, bool) if seen is None else np.asarray(seen).reshape(value.shape)
    return [
        (c, with_observed(value[:, c.at], x[:, c.at], seen[:, c.at], len(c.categories)))
        for c in columns(view)
    ]


def frames(views: Sequence[FittedView], p: Probabilities, index: Any) -> dict[str, pd.DataFrame]:
    """Return probabilities by name of view, with a row per sample and this index."""
    results = {}
    for v, pairs in p.items():
        labels: Any = pairs[0][0].categories
        if pairs[0][0].name is not None:
            both = [(column.name, k) for column, _ in pairs for k in column.categories]
            levels = [pd.Index(list(a), tupleize_cols=False) for a in zip(*both, strict=True)]
            labels = pd.MultiIndex.from_arrays(levels, names=["column", "category"])
        chances = np.hstack([chances for _, chances in pairs])
        results[views[v].name] = pd.DataFrame(chances, index, labels)
    return results


def drawn(values: Floats, p: Sequence[tuple[Column, Floats]]) -> Floats:
    """Return values (n, *shape) with categories drawn with probabilities p, (n, K) per column."""
    flat = values.reshape(len(values), -1).copy()
    for column, chances in p:
        if len(column.categories) == 1:
            continue
        ends = chances.cumsum(1)
        even = noise.like(
            torch.empty(len(flat), 1, dtype=torch.float64), torch.Tensor.uniform_
        ).numpy()
        choice = (ends <= even * ends[:, -1:]).sum(1)
        single = column.at.stop - column.at.start == 1  # zero or one, for two categories
        flat[:, column.at] = choice[:, None] if single else np.eye(chances.shape[1])[choice]
    return flat.reshape(values.shape)


def unordered(view: FittedView) -> list[Column]:
    """Return the columns of three or more categories, which have no order."""
    several = []
    for column in columns(view):
        if len(column.categories) > 2:
            several.append(column)
    return several


def smallest_sets(p: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return the fewest categories of each column that reach the level, most likely first."""
    parts, sets = {"category": p}, {}
    if p.columns.nlevels > 1:
        names = p.columns.get_level_values(0)
        parts = {k: p.loc[:, names == k].droplevel(0, axis=1) for k in dict.fromkeys(names)}
    for name, part in parts.items():
        chances, categories = part.to_numpy(), list(part.columns)
        order = np.argsort(-chances, axis=1, kind="stable")
        before = np.take_along_axis(chances, order, 1).cumsum(1)
        sizes = np.minimum(1 + (before < level - SHARE_ROUNDING).sum(1), (chances > 0).sum(1))
        pairs = zip(order, sizes, strict=True)
        sets[name] = [tuple(categories[k] for k in row[:size]) for row, size in pairs]
    return pd.DataFrame(sets, p.index)


def with_observed(value: Floats, x: Floats, seen: NDArray[np.bool_], n_categories: int) -> Floats:
    """Return probabilities (n, K) of one column, given its observed numbers x; all (n, 1 or K)."""
    if n_categories == 1:
        return np.ones(value.shape)
    if value.shape[1] == 1:
        p = np.where(seen, x, value.clip(0, 1))
        return np.hstack([1 - p, p])
    p = np.where(seen, 0, projected(value))
    excluded = p.sum(1, keepdims=True) == 0  # all that the model expects is observed to be zero
    p = np.where(excluded & ~seen, 1, p)
    left = 1 - np.where(seen, x, 0).sum(1, keepdims=True)
    p = left.clip(0, 1) * p / np.maximum(p.sum(1, keepdims=True), TINY)
    return np.where(seen, x, p)


def projected(value: Floats) -> Floats:
    """Project each row of (n, K) onto the nearest probabilities."""
    y = np.asarray(value, np.float64)
    down = -np.sort(-y, axis=1)
    k = np.arange(1, y.shape[1] + 1)
    t = (down.cumsum(1) - 1) / k  # if the k largest are above zero
    above = (down > t).sum(1, keepdims=True)
    return np.asarray((y - np.take_along_axis(t, above - 1, axis=1)).clip(0))
