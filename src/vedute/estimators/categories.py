"""Probabilities of categories, imputed or observed.

The expected value of an indicator is the probability of its category. What a model decodes for the
indicators of one column may leave [0, 1] or not sum to one, where they are learned as numbers
beside others; the nearest probabilities p to such values y are (Euclidean projection)

    p_k = max(y_k - t, 0),    t such that sum_k p_k = 1

and keep their order, so that the likeliest category is the one that `impute` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from vedute.data.frames import ViewSpec, numbers
from vedute.data.views import Views
from vedute.estimators.fitted_view import FittedView
from vedute.nn import noise

Floats = NDArray[np.float64]
TINY = np.finfo(np.float64).tiny
SHARE_ROUNDING = 1e-9  # of sums of probabilities


class Column(NamedTuple):
    """A column of categories, and where its numbers are in a sample: one number for two categories,
    an indicator each for more. name None: the view itself is the column."""

    name: Any
    categories: Sequence[Any]
    at: slice


Probabilities = Mapping[int, Sequence[tuple[Column, Floats]]]  # (n, K), by view and column


def columns(view: FittedView) -> list[Column]:
    """Those of a view that hold categories."""
    spec, start, found = view.spec, 0, []
    for name, categories in _described(view):
        width = numbers(categories)
        if categories is not None:
            found.append(Column(name, categories, slice(start, start + width)))
        start += width
    if not found and view.likelihood.shares:
        found = list(_one_hot(spec))
    return found


def _described(view: FittedView) -> Iterator[tuple[Any, tuple[Any, ...] | None]]:
    """Name and categories of each column; without categories a single number."""
    spec, binary = view.spec, view.likelihood.name == "bernoulli"
    names = _positions(spec.shape) if spec.columns is None else spec.columns
    levels = spec.levels if spec.columns is not None and spec.levels else [None] * len(names)
    dtypes = spec.dtypes if len(spec.dtypes) == len(names) else spec.dtypes[:1] * len(names)
    truths = [d in ("bool", "boolean") for d in dtypes] or [False] * len(names)
    for name, own, truth in zip(names, levels, truths, strict=True):
        two = (False, True) if truth else (0, 1)
        flags = (binary or truth) and not view.likelihood.shares
        yield name, own if own is not None else two if flags else None


def _one_hot(spec: ViewSpec) -> Iterator[Column]:
    """Columns of a view that is one-hot over its last axis."""
    *before, width = spec.shape
    names = [None] if not before else _positions(before)
    for i, name in enumerate(names):
        yield Column(name, spec.columns or range(width), slice(i * width, (i + 1) * width))


def _positions(shape: Sequence[int]) -> list[Any]:
    """Names of the entries of an array: 0, 1, ..., or "0,0", "0,1", ..."""
    if len(shape) == 1:
        return list(range(shape[0]))
    return [",".join(map(str, i)) for i in np.ndindex(*shape)]


def probabilities(
    views: Sequence[FittedView], values: Sequence[Floats], raw: Views
) -> Probabilities:
    """The probability of each category, of the views that have some.

    values: of all views as they are imputed, before a category is chosen, L arrays (n, *shape_v);
    raw: what was observed, in the same units
    """
    found = {}
    for v, view in enumerate(views):
        mine, n = columns(view), len(raw)
        if not mine:
            continue
        value, x, seen = (
            np.asarray(a).reshape(n, -1)
            for a in (view.possible(values[v]), raw.x[v].numpy(), raw.seen(v).numpy())
        )
        each = ((value[:, c.at], x[:, c.at], seen[:, c.at], len(c.categories)) for c in mine)
        found[v] = [(c, known(*of)) for c, of in zip(mine, each, strict=True)]
    return found


def frames(views: Sequence[FittedView], p: Probabilities, index: Any) -> dict[str, pd.DataFrame]:
    """Probabilities by the name of the view, a row per sample; index: of the rows."""
    return {
        views[v].name: pd.DataFrame(
            np.hstack([chances for _, chances in mine]), index, _labels([c for c, _ in mine])
        )
        for v, mine in p.items()
    }


def of_means(view: FittedView, mean: Floats) -> Sequence[tuple[Column, Floats]]:
    """The probabilities of categories where values of this mean (n, *shape) are expected and
    nothing is seen, (n, K) of each column."""
    value = np.asarray(view.possible(mean)).reshape(len(mean), -1)
    nothing = np.zeros(value.shape, bool)
    return [
        (c, known(value[:, c.at], value[:, c.at], nothing[:, c.at], len(c.categories)))
        for c in columns(view)
    ]


def drawn(values: Floats, p: Sequence[tuple[Column, Floats]]) -> Floats:
    """Values (n, *shape) of a view with a draw in each column of categories: one of its categories
    in each row, as likely as p (n, K) says."""
    flat = values.reshape(len(values), -1).copy()
    for column, chances in p:
        if len(column.categories) == 1:
            continue
        ends = chances.cumsum(1)
        even = noise.even(torch.empty(len(flat), 1, dtype=torch.float64)).numpy()
        choice = (ends <= even * ends[:, -1:]).sum(1)
        alone = column.at.stop - column.at.start == 1  # the second category is a one, alone zero
        flat[:, column.at] = choice[:, None] if alone else np.eye(chances.shape[1])[choice]
    return flat.reshape(values.shape)


def unordered(view: FittedView) -> list[Column]:
    """Columns of three or more categories, of which none is between two others."""
    return [column for column in columns(view) if len(column.categories) > 2]


def emptied(values: Floats, mine: Sequence[Column]) -> Floats:
    """Values (n, *shape) with NaN in these columns."""
    flat = np.array(values.reshape(len(values), -1), float)
    for column in mine:
        flat[:, column.at] = np.nan
    return flat.reshape(values.shape)


def smallest_sets(p: pd.DataFrame, level: float) -> pd.DataFrame:
    """The fewest categories of each column that reach the level, likeliest first."""
    if p.columns.nlevels == 1:
        return pd.DataFrame({"category": _smallest(p, level)}, p.index)
    names = p.columns.get_level_values(0)
    return pd.DataFrame(
        {
            name: _smallest(p.loc[:, names == name].droplevel(0, axis=1), level)
            for name in dict.fromkeys(names)
        },
        p.index,
    )


def _smallest(p: pd.DataFrame, level: float) -> list[tuple[Any, ...]]:
    chances, categories = p.to_numpy(), list(p.columns)
    order = np.argsort(-chances, axis=1, kind="stable")
    before = np.take_along_axis(chances, order, 1).cumsum(1)
    sizes = 1 + (before < level - SHARE_ROUNDING).sum(1)
    sizes = np.minimum(sizes, (chances > 0).sum(1))
    return [
        tuple(categories[k] for k in row[:size]) for row, size in zip(order, sizes, strict=True)
    ]


def _labels(mine: Sequence[Column]) -> Any:
    """The labels of the columns of the result."""
    if mine[0].name is None:
        return mine[0].categories
    pairs = [(c.name, category) for c in mine for category in c.categories]
    names, categories = (pd.Index(list(a), tupleize_cols=False) for a in zip(*pairs, strict=True))
    return pd.MultiIndex.from_arrays([names, categories], names=["column", "category"])


def known(value: Floats, x: Floats, seen: NDArray[np.bool_], n_categories: int) -> Floats:
    """Probabilities (n, K) of one column, given what is seen of its numbers x; all (n, 1 or K)."""
    if n_categories == 1:
        return np.ones(value.shape)
    if value.shape[1] == 1:
        p = np.where(seen, x, value.clip(0, 1))
        return np.hstack([1 - p, p])
    p = np.where(seen, 0, projected(value))
    excluded = p.sum(1, keepdims=True) == 0  # all that the model holds possible is seen to be zero
    p = np.where(excluded & ~seen, 1, p)
    left = 1 - np.where(seen, x, 0).sum(1, keepdims=True)
    p = left.clip(0, 1) * p / np.maximum(p.sum(1, keepdims=True), TINY)
    return np.where(seen, x, p)


def projected(value: Floats) -> Floats:
    """The nearest probabilities to each row of (n, K)."""
    y = np.asarray(value, np.float64)
    down = -np.sort(-y, axis=1)
    k = np.arange(1, y.shape[1] + 1)
    t = (down.cumsum(1) - 1) / k  # if the k largest are above zero
    above = (down > t).sum(1, keepdims=True)
    return np.asarray((y - np.take_along_axis(t, above - 1, axis=1)).clip(0))
