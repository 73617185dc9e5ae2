"""Kernel fill: every view as a smooth function of the others.

Kernel ridge regression of each view on all others, in rounds that start from low-rank fill.
With a the other views of a row, completed and each divided by sqrt(width):

    k(a, b) = exp(-gamma / 2 |a - b|^2)        f(a) = k(a, A) (k(A, A) + ridge I)^-1 Y

A, Y are rows that have the view. gamma, a multiple of 1 / median distance, and ridge minimise the
leave-one-out error. With more than 3000 rows, f is a sum of kernels at a random subset M
(Nystroem), b = (K_AM' K_AM + ridge K_MM)^-1 K_AM' Y. A is a sample of at most 20 000 rows: more
are costly and change f little.

Holes are predicted from all other columns, including those of the same view; see `kernel_columns`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits

from vedute.data.holdout import HoldOut
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators.context import FitContext
from vedute.estimators.method import Array
from vedute.estimators.settings import estimator
from vedute.methods.fills.engine import kernel_columns
from vedute.methods.fills.engine.chained import (
    ChainedFill,
    Regression,
    dual,
    leave_one_out_errors,
    primal,
)
from vedute.methods.fills.engine.kernel_columns import GAMMAS, RIDGES
from vedute.methods.fills.engine.softimpute import Table

EXACT, LANDMARKS, MOST_ROWS = 3000, 1500, 20_000  # numbers of rows
JITTER = 1e-8
KERNEL_NUMBERS = 2**22  # numbers in a block of a kernel matrix


@estimator
class KernelFill(ChainedFill):
    """Every view is predicted from the others by kernel regression."""

    attributes: ClassVar = {"columns_": "The regressions of columns with holes; empty if none has."}
    paper = "Saunders et al., ICML 1998"
    most_rows = MOST_ROWS
    keeps_samples = True

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        self.columns_: kernel_columns.Columns = {}
        super().learn(data, held, context)
        table = self._table(data)
        if table.holes is not None:
            rng = np.random.default_rng(self.seed_)
            with threadpool_limits(1, "blas"):
                x = self._values(table)
                self.columns_ = kernel_columns.learn(x, table.seen(), table.holes, rng)

    def _values(self, table: Table) -> Array:
        x, columns = super()._values(table), getattr(self, "columns_", None)
        if not columns or table.holes is None:
            return x
        return kernel_columns.filled(columns, x, table.holes)

    def _settings(self, A: Array, Y: Array) -> dict[str, float]:
        far = pdist(A, "sqeuclidean")
        gammas = GAMMAS / ((np.median(far) if far.size else 0.0) or 1.0)
        far = squareform(far) if len(A) > 1 else np.zeros((len(A), len(A)))
        errors = [leave_one_out_errors(np.exp(-gamma / 2 * far), Y, RIDGES) for gamma in gammas]
        i, j = np.unravel_index(np.argmin(errors), (len(GAMMAS), len(RIDGES)))
        return {"gamma": float(gammas[i]), "ridge": float(RIDGES[j])}

    def _regress(
        self, A: Array, Y: Array, settings: dict[str, float], rng: Generator
    ) -> tuple[Regression, Array]:
        gamma, ridge = settings["gamma"], settings["ridge"]
        if len(A) <= EXACT:
            weights, alone = dual(kernel(A, A, gamma), Y, ridge)
            return _regression(A, weights, gamma), alone
        M = A[np.sort(rng.permutation(len(A))[:LANDMARKS])]
        inner = kernel(M, M, gamma) + JITTER * np.eye(len(M))
        weights, alone = primal(kernel(A, M, gamma), inner, Y, ridge)
        return _regression(M, weights, gamma), alone

    def _predict(self, regression: Regression, A: Array) -> Array:
        rows, weights = (regression[k].astype(np.float64) for k in ("rows", "weights"))
        gamma, size = regression["gamma"], max(1, KERNEL_NUMBERS // max(len(rows), 1))
        return np.vstack([kernel(A[part], rows, gamma) @ weights for part in slices(len(A), size)])


def _regression(rows: Array, weights: Array, gamma: float) -> Regression:
    """A regression in single precision, which halves the size of a saved model."""
    small = {"rows": rows, "weights": weights}
    return {k: np.ascontiguousarray(a, np.float32) for k, a in small.items()} | {"gamma": gamma}


def kernel(A: Array, B: Array, gamma: float) -> Array:
    """The kernel exp(-gamma / 2 |a - b|^2), (n, m)."""
    far = -2.0 * (A @ B.T)
    far += (A**2).sum(1)[:, None]
    far += (B**2).sum(1)
    np.maximum(far, 0.0, out=far)
    far *= -gamma / 2
    return np.exp(far, out=far)
