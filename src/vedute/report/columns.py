"""Columns of the user's tables as a page shows them: categories, groups, colors, correlations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedute.analysis.inspection import features
from vedute.data.escaping import close_to
from vedute.data.frames import Levels, ViewSpec, numbers
from vedute.data.views import Views

Array = NDArray[Any]
WIDEST = 2**14  # numbers of a view whose features color the plane
MOST_GROUPS = 12  # values of a column of numbers that are groups
MOST_PAINTED, SHADES = 60, 9  # features to color the plane by, and shades of each


def columns_of(spec: ViewSpec) -> Iterator[tuple[str, slice, Levels]]:
    """Name, columns and categories of each feature of a view."""
    names = spec.columns if spec.columns is not None and spec.levels else features(spec)
    ends = np.cumsum(widths(spec)).tolist()
    for name, end, levels in zip(names, ends, categories_of(spec), strict=True):
        yield str(name), slice(end - (numbers(levels)), end), levels


def categories_of(spec: ViewSpec) -> Sequence[Levels]:
    """The categories of each feature, or None."""
    return spec.levels or [None] * prod(spec.shape)


def widths(spec: ViewSpec) -> Array:
    """The number of columns of each feature: one, or several for more than two categories."""
    return np.array([numbers(levels) for levels in categories_of(spec)])


def column_values(views: Views, column: str) -> Array:
    """The values of a column by sample as words, (n,); many numbers by their quartiles."""
    known: list[str] = []
    for v, spec in enumerate(views.specs or ()):
        for name, at, levels in columns_of(spec):
            known.append(name)
            if name != column:
                continue
            block = views.known(v).reshape(len(views), -1)[:, at]
            there = ~np.isnan(block).any(1)
            if levels:
                words = np.array([str(level) for level in levels])[likeliest(block, levels)]
            elif len(np.unique(block[there])) <= MOST_GROUPS:
                words = np.array([f"{x:g}" for x in block[:, 0]])
            else:
                edges = np.quantile(block[there], (0, 0.25, 0.5, 0.75, 1))
                names = np.array([f"{a:.3g} to {b:.3g}" for a, b in pairwise(edges)])
                words = names[np.searchsorted(edges[1:-1], block[:, 0]).clip(0, 3)]
            return np.where(there, words, "not known")
    raise ValueError(f"the data have no column {column!r}; {close_to(column, known)}")


def painted(views: Views, rows: Array) -> dict[str, dict[str, Array]]:
    """Features to color the plane by: shades (p,) of `rows`, 0 to SHADES - 1, and SHADES where a
    value is missing; names of categories, or ends and median of numbers. Keys: "view.feature"."""
    shades, words = {}, {}
    room = max(MOST_PAINTED // len(views.names), 1)
    for v, (name, spec) in enumerate(zip(views.names, views.specs or (), strict=False)):
        if len(spec.shape) > 1 or spec.shape[0] > WIDEST:
            continue
        x = views[rows].known(v)
        for feature, at, levels in list(columns_of(spec))[:room]:
            block, known = x[:, at], ~np.isnan(x[:, at]).any(1)
            if not known.any():
                continue
            if levels is None:
                values = block[known, 0]
                edges = np.quantile(values, np.linspace(0, 1, SHADES + 1))
                code, ends = np.searchsorted(edges[1:-1], block[:, 0]), edges[[0, SHADES // 2, -1]]
                names = [f"{end:.3g}" for end in ends]
            else:
                code = likeliest(block, levels)
                names = [*map(str, levels[:SHADES])]
            code = np.where(known, np.minimum(code, SHADES - 1), SHADES).astype(np.uint8)
            shades[f"{name}.{feature}"], words[f"{name}.{feature}"] = code, np.array(names)
    return {"shades": shades, "shade_names": words}


def correlations(true: Array, mean: Array) -> Array:
    """Pearson's correlation of true and inferred values (h, *shape) by feature, (width,); NaN
    where either is constant or unknown."""
    x, y = true.reshape(len(true), -1), mean.reshape(len(mean), -1).astype(np.float64)
    known = ~np.isnan(x)
    count = np.maximum(known.sum(0), 1)
    x, y = np.where(known, x, 0.0), np.where(known, y, 0.0)
    x, y = (np.where(known, a - a.sum(0) / count, 0.0) for a in (x, y))
    below = np.sqrt((x**2).sum(0) * (y**2).sum(0))
    empty = np.full(x.shape[1], np.nan)
    r = np.divide((x * y).sum(0), below, out=empty, where=below > 1e-12)
    return np.asarray(r, np.float32)


def confusions(
    spec: ViewSpec, true: Array, mean: Array
) -> Iterator[tuple[str, Array, tuple[Any, ...]]]:
    """Name, counts (K, K) of true and inferred categories, and categories of each such column."""
    for name, at, levels in columns_of(spec) if spec.levels else ():
        if levels is None or len(levels) < 2:
            continue
        known = ~np.isnan(true[:, at]).any(1)
        codes = [likeliest(a[known][:, at], levels) for a in (true, mean)]
        counts = np.zeros((len(levels), len(levels)), np.int64)
        np.add.at(counts, tuple(codes), 1)
        if counts.any():
            yield name, counts, levels


def likeliest(block: Array, levels: Sequence[Any]) -> Array:
    """The position of the likeliest of `levels` in each row of the columns of a feature, (n,)."""
    yes = np.nan_to_num(block[:, 0]) > 0.5
    return np.asarray(block.argmax(1) if len(levels) > 2 else yes, np.int64)
