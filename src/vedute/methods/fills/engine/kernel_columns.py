"""Holes: every column of a complete table is regressed on all others, by a kernel.

With x_-j a row without column j and M some of the rows that have it,

    x_j = k(x_-j, M_-j) a_j,   a_j = (K_j + ridge I)^-1 M_j,   k(a, b) = exp(-gamma / 2 |a - b|^2)

gamma and ridge have the least error on rows left out one by one. Distances without a column are
those with it, less its own part, so one matrix of them serves all columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from vedute.methods.fills.engine.chained import dual, errors_left_out

Array = NDArray[Any]
Columns = dict[str, Array]
GAMMAS = np.array([1 / 16, 1 / 4, 1.0, 4.0])  # times 1 / median of the squared distances
RIDGES = 10.0 ** np.arange(-3.0, 1.1, 0.5)
SAMPLE = 150  # rows that choose gamma and ridge
MOST, WORK = 1000, 1e11  # rows to learn from; multiplications for all columns
ROUNDS = 2  # of predicting holes, each from those of the round before
CHUNK_ROWS = 4096  # rows at a time


def learn(x: Array, seen: Array, holes: Array, rng: Generator) -> Columns:
    """The regressions of all columns with holes, learned from x (n, p), where all is filled in.

    rows (m, p): M; weights (m, p): a_j in column j, zero where there are no holes; gammas (p,)
    """
    for _ in range(ROUNDS - 1):
        x = _once(_regressions(x, seen, holes, rng), x, holes)
    return _regressions(x, seen, holes, rng)


def _regressions(x: Array, seen: Array, holes: Array, rng: Generator) -> Columns:
    holed = np.flatnonzero(holes.any(0))
    most = int(min(MOST, (WORK / max(len(holed), 1)) ** (1 / 3)))
    rows = np.sort(rng.permutation(len(x))[:most])
    x, seen = x[rows], seen[rows]
    far, weights, gammas = distances(x, x), np.zeros_like(x), np.zeros(x.shape[1])
    for j in holed.tolist():
        own = np.flatnonzero(seen[:, j])
        if len(own) > 1:
            part, y = without(far, x, x, j)[np.ix_(own, own)], x[own, j, None]
            some = np.sort(rng.permutation(len(own))[:SAMPLE])
            gammas[j], ridge = chosen(part[np.ix_(some, some)], y[some])
            weights[own, j] = dual(np.exp(-gammas[j] / 2 * part), y, ridge)[0][:, 0]
    return {"rows": x.astype(np.float32), "weights": weights.astype(np.float32), "gammas": gammas}


def chosen(far: Array, y: Array) -> tuple[float, float]:
    """gamma and ridge for y (n, 1), given squared distances (n, n)."""
    gammas = GAMMAS / (np.median(far[np.triu_indices(len(far), 1)]) or 1.0)
    errors = [errors_left_out(np.exp(-gamma / 2 * far), y, RIDGES) for gamma in gammas]
    i, k = np.unravel_index(np.argmin(errors), (len(gammas), len(RIDGES)))
    return float(gammas[i]), float(RIDGES[k])


def filled(columns: Columns, x: Array, holes: Array) -> Array:
    """x (n, p), where all is filled in, with its holes predicted from the other columns."""
    for _ in range(ROUNDS):
        x = _once(columns, x, holes)
    return x


def _once(columns: Columns, x: Array, holes: Array) -> Array:
    rows, weights = (columns[k].astype(np.float64) for k in ("rows", "weights"))
    new, holed = x.copy(), np.flatnonzero(holes.any(1))
    for some in (holed[start : start + CHUNK_ROWS] for start in range(0, len(holed), CHUNK_ROWS)):
        far = distances(x[some], rows)
        for j in np.flatnonzero(holes[some].any(0) & (columns["gammas"] > 0)).tolist():
            at = np.flatnonzero(holes[some, j])
            part = without(far[at], x[some[at]], rows, j)
            new[some[at], j] = np.exp(-columns["gammas"][j] / 2 * part) @ weights[:, j]
    return new


def distances(a: Array, b: Array) -> Array:
    """Squared, (n, m)."""
    found: Array = euclidean_distances(a, b, squared=True)
    return found


def without(far: Array, a: Array, b: Array, j: int) -> Array:
    """The squared distances of a (n, p) and b (m, p) without column j."""
    return np.asarray(np.maximum(far - (a[:, j, None] - b[:, j]) ** 2, 0.0))
