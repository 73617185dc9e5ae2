"""Wide views by their leading components: what the regressions of the fills work on.

A view v of the table, x_v (n, p), has an orthonormal basis W_v (p, k); c_v = x_v W_v (n, k). A
view that is narrow enough is kept as it is, with W_v the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from vedute.methods import _softimpute
from vedute.methods._softimpute import Table
from vedute.methods._table import Array

MOST = 256  # components of a view
LEAST_NOISE = 1e-3  # of an entry, relative to its variance


def bases(table: Table, rng: Generator, most: int = MOST) -> list[Array]:
    """W_v of each view, from the rows that have it."""
    found = []
    for v, at in table.views():
        x = table.x[table.mask[:, v], at]
        narrow = x.shape[1] <= most
        found.append(np.eye(x.shape[1]) if narrow else _softimpute.leading(x, most, rng)[2])
    return found


def narrowed(table: Table, bases: Sequence[Array]) -> Table:
    """The table (n, p) without holes -> that of components (n, k), zero where missing."""
    parts = [table.x[:, at] @ W for (_, at), W in zip(table.views(), bases, strict=True)]
    return Table(np.hstack(parts), table.mask, None, tuple(W.shape[1] for W in bases))


def widened(small: Table, x: Array, bases: Sequence[Array]) -> Array:
    """Components x (n, k) of all views -> (n, p)."""
    parts = [x[:, at] @ W.T for (_, at), W in zip(small.views(), bases, strict=True)]
    return np.hstack(parts)


def noises(table: Table, small: Table) -> list[float]:
    """Variance per entry of what the components leave out of each view."""
    found = []
    for v, (wide, narrow) in enumerate(zip(table.views(), small.views(), strict=True)):
        power = [float((t.x[t.mask[:, v], at] ** 2).sum()) for t, at in
                 ((table, wide[1]), (small, narrow[1]))]  # fmt: skip
        count = max(int(table.mask[:, v].sum()), 1) * table.widths[v]
        found.append(max(power[0] - power[1], LEAST_NOISE * power[0]) / count or 1.0)
    return found


def given_entries(
    x: Array, seen: Array, W: Array, mean: Array, covariance: Array, noise: float
) -> Array:
    """E[c | x_o], where c ~ N(mean, S) and x_o = W_o c + noise: the components (k,) of one row.

    c = mean + S (W_o' W_o S + noise I)^-1 W_o' (x_o - W_o mean)
    x, seen (p,), W (p, k), mean (k,), covariance S (k, k)
    """
    W = W[seen]
    right = W.T @ (x[seen] - W @ mean)
    inner = W.T @ W @ covariance + noise * np.eye(len(mean))
    found: Array = mean + covariance @ np.linalg.solve(inner, right)
    return found


def without(table: Table, v: int, rows: Array) -> Table:
    """Some rows of a table, as they are without view v."""
    mask = table.mask[rows].copy()
    mask[:, v] = False
    holes = None if table.holes is None else table.holes[rows] & table.spread(mask)
    x = np.where(table.spread(mask), table.x[rows], 0.0)
    return replace(table, x=x, mask=mask, holes=holes)


def filled(table: Table, V: Array, threshold: float) -> Array:
    """The table (n, p) with what is missing from the matrix of low rank, U V'."""
    fitted = _softimpute.project(table, V, threshold) @ V.T
    return np.where(table.seen(), table.x, fitted)


def without_holes(table: Table, V: Array, threshold: float) -> Table:
    """Holes filled by the matrix of low rank; missing views stay missing."""
    if table.holes is None:
        return table
    there = table.spread(table.mask)
    return replace(table, x=np.where(there, filled(table, V, threshold), 0.0), holes=None)
