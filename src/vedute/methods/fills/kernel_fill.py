"""Kernel fill: every view as a smooth function of the others.

Kernel ridge regression of each view on all others, in rounds that start from low-rank fill.
With a the other views of a row, completed and each divided by sqrt(width):

    k(a, b) = exp(-gamma / 2 |a - b|^2)        f(a) = k(a, A) (k(A, A) + ridge I)^-1 Y

A, Y are rows that have the view. gamma, a multiple of 1 / median distance, and ridge minimise the
leave-one-out error. With more than 3000 rows, f is a sum of kernels at a random subset M
(Nystroem), b = (K_AM' K_AM + ridge K_MM)^-1 K_AM' Y. A is a sample of at most 20 000 rows: more
are costly and change f little.

Holes are predicted from all other columns, those of the same view included. With x_-j a completed
row without column j and M a sample of the rows that have it,

    x_j = k(x_-j, M_-j) a_j,   a_j = (K_j + ridge I)^-1 M_j

A distance without column j is the full distance minus the contribution of j, so a single distance
matrix serves all columns.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from vedute.data.holdout import HoldOut
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators.context import FitContext
from vedute.estimators.method import Array
from vedute.estimators.settings import estimator
from vedute.methods.fills.engine.components import (
    ChainedFill,
    Regression,
    dual,
    leave_one_out_errors,
    primal,
)
from vedute.methods.fills.engine.wide_table import Table

EXACT, LANDMARKS, MOST_ROWS = 3000, 1500, 20_000  # numbers of rows
JITTER = 1e-8
KERNEL_NUMBERS = 2**22  # numbers in a block of a kernel matrix
Columns = dict[str, Array]
GAMMAS = np.array([1 / 16, 1 / 4, 1.0, 4.0])  # multiples of 1 / median squared distance
RIDGES = 10.0 ** np.arange(-3.0, 1.1, 0.5)
COLUMN_SAMPLE = 150  # rows used to choose gamma and ridge
COLUMN_ROWS, COLUMN_WORK = 1000, 1e11  # training rows; multiplications for all columns
COLUMN_ROUNDS = 2  # rounds of predicting holes from the previous round
COLUMN_BATCH = 4096  # rows per batch


@estimator
class KernelFill(ChainedFill):
    """Every view is predicted from the others by kernel regression."""

    attributes: ClassVar = {"columns_": "The regressions of columns with holes; empty if none has."}
    paper = "Saunders et al., ICML 1998"
    most_rows = MOST_ROWS
    keeps_samples = True

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        self.columns_: Columns = {}
        super().learn(data, held, context)
        table = Table.of_views(data, self.scalers)
        if table.holes is not None:
            rng = np.random.default_rng(self.seed_)
            with threadpool_limits(1, "blas"):
                x = self._values(table)
                self.columns_ = learn_columns(x, table.seen(), table.holes, rng)

    def _values(self, table: Table) -> Array:
        x, columns = super()._values(table), getattr(self, "columns_", None)
        if not columns or table.holes is None:
            return x
        return fill_columns(columns, x, table.holes, COLUMN_ROUNDS)

    def _settings(self, A: Array, Y: Array) -> dict[str, float]:
        squared = squareform(pdist(A, "sqeuclidean")) if len(A) > 1 else np.zeros((len(A), len(A)))
        gamma, ridge = chosen_kernel(squared, Y)
        return {"gamma": gamma, "ridge": ridge}

    def _regress(
        self, A: Array, Y: Array, settings: dict[str, float], rng: Generator
    ) -> tuple[Regression, Array]:
        gamma, ridge, rows = settings["gamma"], settings["ridge"], A
        if len(A) <= EXACT:
            weights, alone = dual(kernel(A, A, gamma), Y, ridge)
        else:
            rows = A[np.sort(rng.permutation(len(A))[:LANDMARKS])]
            inner = kernel(rows, rows, gamma) + JITTER * np.eye(len(rows))
            weights, alone = primal(kernel(A, rows, gamma), inner, Y, ridge)
        rows, weights = np.asarray(rows, np.float32, "C"), np.asarray(weights, np.float32, "C")
        return {"rows": rows, "weights": weights, "gamma": gamma}, alone

    def _predict(self, regression: Regression, A: Array) -> Array:
        rows = regression["rows"].astype(np.float64)
        weights = regression["weights"].astype(np.float64)
        predicted = np.empty((len(A), weights.shape[1]))
        for part in slices(len(A), max(1, KERNEL_NUMBERS // max(len(rows), 1))):
            predicted[part] = kernel(A[part], rows, regression["gamma"]) @ weights
        return predicted


def kernel(A: Array, B: Array, gamma: float) -> Array:
    """The kernel exp(-gamma / 2 |a - b|^2), (n, m)."""
    exponent = -2.0 * (A @ B.T)
    exponent += (A**2).sum(1)[:, None]
    exponent += (B**2).sum(1)
    np.maximum(exponent, 0.0, out=exponent)
    exponent *= -gamma / 2
    return np.exp(exponent, out=exponent)


# Regressions of columns with holes.


def learn_columns(x: Array, seen: Array, holes: Array, rng: Generator) -> Columns:
    """Fit the regressions of all columns with holes, on the completed table x (n, p).

    rows (m, p): M; weights (m, p): a_j in column j, zero where there are no holes; gammas (p,)
    """
    for _ in range(COLUMN_ROUNDS - 1):
        x = fill_columns(_column_regressions(x, seen, holes, rng), x, holes, 1)
    return _column_regressions(x, seen, holes, rng)


def _column_regressions(x: Array, seen: Array, holes: Array, rng: Generator) -> Columns:
    holed = np.flatnonzero(holes.any(0))
    most = int(min(COLUMN_ROWS, (COLUMN_WORK / max(len(holed), 1)) ** (1 / 3)))
    rows = np.sort(rng.permutation(len(x))[:most])
    x, seen = x[rows], seen[rows]
    squared, weights = euclidean_distances(x, squared=True), np.zeros_like(x)
    gammas = np.zeros(x.shape[1])
    for j in holed.tolist():
        observed = np.flatnonzero(seen[:, j])
        if len(observed) > 1:
            part = without_column(squared, x, x, j)[np.ix_(observed, observed)]
            y = x[observed, j, None]
            sample = np.sort(rng.permutation(len(observed))[:COLUMN_SAMPLE])
            gammas[j], ridge = chosen_kernel(part[np.ix_(sample, sample)], y[sample])
            weights[observed, j] = dual(np.exp(-gammas[j] / 2 * part), y, ridge)[0][:, 0]
    return {"rows": x.astype(np.float32), "weights": weights.astype(np.float32), "gammas": gammas}


def chosen_kernel(squared: Array, y: Array) -> tuple[float, float]:
    """Choose gamma and ridge for y (n, k), given squared distances (n, n)."""
    pairs = squared[np.triu_indices(len(squared), 1)]
    gammas = GAMMAS / ((np.median(pairs) if pairs.size else 0.0) or 1.0)
    errors = np.empty((len(gammas), len(RIDGES)))
    for at, gamma in enumerate(gammas):
        errors[at] = leave_one_out_errors(np.exp(-gamma / 2 * squared), y, RIDGES)
    i, k = np.unravel_index(np.argmin(errors), errors.shape)
    return float(gammas[i]), float(RIDGES[k])


def fill_columns(columns: Columns, x: Array, holes: Array, rounds: int) -> Array:
    """Predict the holes of the completed table x (n, p) from the other columns, batch by batch."""
    donors, weights = (columns[k].astype(np.float64) for k in ("rows", "weights"))
    holed, gammas = np.flatnonzero(holes.any(1)), columns["gammas"]
    for _ in range(rounds):
        old, x = x, x.copy()
        for batch in (holed[rows] for rows in slices(len(holed), COLUMN_BATCH)):
            squared = euclidean_distances(old[batch], donors, squared=True)
            for j in np.flatnonzero(holes[batch].any(0) & (gammas > 0)).tolist():
                at = np.flatnonzero(holes[batch, j])
                part = without_column(squared[at], old[batch[at]], donors, j)
                x[batch[at], j] = np.exp(-gammas[j] / 2 * part) @ weights[:, j]
    return x


def without_column(squared: Array, a: Array, b: Array, j: int) -> Array:
    """The squared distances of a (n, p) and b (m, p) without column j."""
    return np.asarray(np.maximum(squared - (a[:, j, None] - b[:, j]) ** 2, 0.0))
