"""Kernel regression of every column with holes on all other columns of a completed table.

With x_-j a row without column j and M a sample of the rows that have it,

    x_j = k(x_-j, M_-j) a_j,   a_j = (K_j + ridge I)^-1 M_j,   k(a, b) = exp(-gamma / 2 |a - b|^2)

gamma and ridge minimise the leave-one-out error. A distance without column j is the full distance
minus the contribution of j, so a single distance matrix serves all columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from vedute.methods.fills.engine.chained import dual, leave_one_out_errors

Array = NDArray[Any]
Columns = dict[str, Array]
GAMMAS = np.array([1 / 16, 1 / 4, 1.0, 4.0])  # multiples of 1 / median squared distance
RIDGES = 10.0 ** np.arange(-3.0, 1.1, 0.5)
SAMPLE = 150  # rows used to choose gamma and ridge
MOST, WORK = 1000, 1e11  # training rows; multiplications for all columns
ROUNDS = 2  # rounds of predicting holes from the previous round
CHUNK_ROWS = 4096  # rows per batch


def learn(x: Array, seen: Array, holes: Array, rng: Generator) -> Columns:
    """Fit the regressions of all columns with holes, on the completed table x (n, p).

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
        observed = np.flatnonzero(seen[:, j])
        if len(observed) > 1:
            part, y = without(far, x, x, j)[np.ix_(observed, observed)], x[observed, j, None]
            sample = np.sort(rng.permutation(len(observed))[:SAMPLE])
            gammas[j], ridge = chosen(part[np.ix_(sample, sample)], y[sample])
            weights[observed, j] = dual(np.exp(-gammas[j] / 2 * part), y, ridge)[0][:, 0]
    return {"rows": x.astype(np.float32), "weights": weights.astype(np.float32), "gammas": gammas}


def chosen(far: Array, y: Array) -> tuple[float, float]:
    """Choose gamma and ridge for y (n, 1), given squared distances (n, n)."""
    gammas = GAMMAS / (np.median(far[np.triu_indices(len(far), 1)]) or 1.0)
    errors = [leave_one_out_errors(np.exp(-gamma / 2 * far), y, RIDGES) for gamma in gammas]
    i, k = np.unravel_index(np.argmin(errors), (len(gammas), len(RIDGES)))
    return float(gammas[i]), float(RIDGES[k])


def filled(columns: Columns, x: Array, holes: Array) -> Array:
    """Predict the holes of the completed table x (n, p) from the other columns."""
    for _ in range(ROUNDS):
        x = _once(columns, x, holes)
    return x


def _once(columns: Columns, x: Array, holes: Array) -> Array:
    rows, weights = (columns[k].astype(np.float64) for k in ("rows", "weights"))
    new, holed = x.copy(), np.flatnonzero(holes.any(1))
    for batch in (holed[start : start + CHUNK_ROWS] for start in range(0, len(holed), CHUNK_ROWS)):
        far = distances(x[batch], rows)
        for j in np.flatnonzero(holes[batch].any(0) & (columns["gammas"] > 0)).tolist():
            at = np.flatnonzero(holes[batch, j])
            part = without(far[at], x[batch[at]], rows, j)
            new[batch[at], j] = np.exp(-columns["gammas"][j] / 2 * part) @ weights[:, j]
    return new


def distances(a: Array, b: Array) -> Array:
    """Squared distances of a (n, p) and b (m, p), (n, m)."""
    return np.asarray(euclidean_distances(a, b, squared=True))


def without(far: Array, a: Array, b: Array, j: int) -> Array:
    """The squared distances of a (n, p) and b (m, p) without column j."""
    return np.asarray(np.maximum(far - (a[:, j, None] - b[:, j]) ** 2, 0.0))
