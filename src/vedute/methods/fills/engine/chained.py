"""Chained regressions: each view on the others, in rounds, from a completed table.

The regression of view v is trained on the rows that have v and applied to rows that lack it. In
both, other missing views are filled without using v: in the first round by the initial completion,
later by the regressions of the previous round. Training rows then look like rows to predict.

"Without v" implies that x_iv itself is held out where row i has v. For a linear smoother the
leave-one-out prediction is exact: with H (n, n) the hat matrix,

    prediction of row i without row i = (fitted_i - H_ii x_i) / (1 - H_ii)

These predictions also choose the settings of each regression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from scipy.linalg import cho_solve, lapack, solve_triangular
from sklearn.covariance import ledoit_wolf

from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators.method import Array, WarmStart
from vedute.estimators.settings import Choice, estimator, setting
from vedute.methods.fills.engine import wide_table
from vedute.methods.fills.engine.components import (
    MOST_AXES,
    ComponentsFill,
    narrowed,
    widened,
)
from vedute.methods.fills.engine.softimpute import factored
from vedute.methods.fills.engine.wide_table import Table

SAMPLE = 500  # rows used to choose the settings of a regression
MANY_COMPONENTS = 1024  # largest number of components of a view
MOST_INPUTS = 4e7  # numbers in the inputs of all regressions, for more than MOST_AXES components
MOST_LOADINGS = 1.2e7  # numbers in the bases of all views, likewise
Regression = dict[str, Any]


@estimator
class ChainedFill(WarmStart, ComponentsFill):
    """Every view is predicted from the others by a separate regression."""

    n_rounds: int = setting(
        3, "How often all views are predicted.", at_least=1, tune=Choice((1, 2, 3, 4))
    )

    attributes: ClassVar = {
        "regressions_": "Per round and view, a dict.",
        "covariances_": "Per view, the residual covariance of its last regression, (k, k).",
    }
    absent = "predicted from the other views"
    most_rows: ClassVar[int | None] = None  # training rows per regression; None: all

    def _most(self, mask: Array, widths: Sequence[int]) -> int:
        """The most components that the limits allow, since rare words are in the last ones."""
        room, limits = MOST_INPUTS / mask.size, np.asarray(widths)
        for k in range(MANY_COMPONENTS, MOST_AXES, -1):
            kept = np.minimum(limits, k)
            if kept.sum() <= room and kept @ limits <= MOST_LOADINGS:
                return k
        return MOST_AXES

    @abstractmethod
    def _settings(self, A: Array, Y: Array) -> dict[str, float]:
        """Settings of a regression of Y (n, k) on A (n, d), the best by leave-one-out error."""

    @abstractmethod
    def _regress(
        self, A: Array, Y: Array, settings: dict[str, float], rng: Generator
    ) -> tuple[Regression, Array]:
        """Fit a regression; return it and its leave-one-out predictions (n, k)."""

    @abstractmethod
    def _predict(self, regression: Regression, A: Array) -> Array:
        """Predict the view, (n, d) -> (n, k)."""

    def _learn_components(self, small: Table, rng: Generator) -> None:
        """Fit all rounds; x[v] holds rows that have v and another view, filled without v."""
        able, most = small.mask.sum(1) > 1, self.most_rows
        rows = [np.flatnonzero(able & has) for has in small.mask.T]
        if most is not None:
            rows = [np.sort(rng.permutation(a)[:most]) if len(a) > most else a for a in rows]
        parts = [small.without(v, subset) for v, subset in enumerate(rows)]
        x = [self._initialized(part) for part in parts]
        self.regressions_: list[list[Regression]] = []
        chosen: list[dict[str, float]] = self.choice_.setdefault("views", [])
        with progress.counted(self.n_rounds * len(small.widths), "regression"):
            for _ in range(self.n_rounds):
                regressions, predictions = [], []
                for v, at in enumerate(small.places):
                    A, Y = np.delete(x[v], at, axis=1), small.x[rows[v], at]
                    if v == len(chosen):  # in the first round
                        subset = np.sort(rng.permutation(len(A))[:SAMPLE])
                        chosen.append(self._settings(A[subset], Y[subset]))
                    regression, left_out = self._regress(A, Y, chosen[v], rng)
                    regressions.append(regression)
                    predictions.append(left_out)
                    progress.advance(1, "regression")
                if len(self.regressions_) + 1 < self.n_rounds:
                    for v, at in enumerate(small.places):
                        x[v] = self._next(regressions, parts[v], x[v], skip=v)
                        x[v][:, at] = predictions[v]
                self.regressions_.append(regressions)
        self.covariances_: list[Array] = []
        for v, at in enumerate(small.places):
            e = small.x[rows[v], at] - predictions[v]
            e = e if len(e) > 1 else small.x[small.mask[:, v], at]
            one = len(e) == 1  # the amount of shrinkage cannot be estimated
            self.covariances_.append(e.T @ e if one else ledoit_wolf(e, assume_centered=True)[0])

    def _initialized(self, small: Table) -> Array:
        if self.warm_start is None:
            return super()._initialized(small)
        nonempty = np.flatnonzero(small.mask.any(1))  # rows without any view stay at the mean
        part = small[nonempty]
        x: Array = np.zeros_like(small.x)
        x[nonempty] = np.where(part.seen(), part.x, self._inferred(part))
        return x

    def _inferred(self, small: Table) -> Array:
        """Components (n, k) as the warm start infers them, in batches beside a sparse view."""
        assert self.warm_start is not None
        imputer, parts = self.warm_start.learner.imputer(), []
        names, count = tuple(view.name for view in self.views_), max(len(small.x), 1)
        for rows in slices(count, self.learner.imputer().rows() if self.sparse else count):
            part = small[rows]
            wide = widened(part, part.x, self.bases_)
            x = tuple(torch.from_numpy(a[0]) for a in wide_table.values(wide, self.scalers))
            mask, index = torch.from_numpy(part.mask), torch.arange(len(part.x))
            data = Views(x, mask, index, (None,) * len(x), names)
            decoded = tuple(torch.from_numpy(a[0]) for a in imputer.decoded(data))
            whole = replace(data, x=decoded, mask=torch.ones_like(mask))
            parts.append(narrowed(self._table(whole), self.bases_).x)
        return np.vstack(parts)

    def _complete(self, small: Table) -> Array:
        x = self._initialized(small)
        for regressions in self.regressions_:
            x = self._next(regressions, small, x)
        return x

    def _next(
        self, regressions: list[Regression], small: Table, x: Array, skip: int | None = None
    ) -> Array:
        """x (n, k) with all missing views except `skip` predicted anew."""
        new = x.copy()
        for v, (at, regression) in enumerate(zip(small.places, regressions, strict=True)):
            lacking = np.flatnonzero(~small.mask[:, v])
            if v != skip and len(lacking):
                new[lacking, at] = self._predict(regression, np.delete(x[lacking], at, axis=1))
        return new

    def _covariance(self, small: Table, v: int) -> Array:
        return self.covariances_[v]


def leave_one_out_errors(K: Array, Y: Array, ridges: Array) -> Array:
    """Leave-one-out squared errors of Y (n, k) per ridge, under H = K (K + ridge I)^-1."""
    if Y.shape[1] > len(Y):  # fewer columns, same inner products of rows
        left, size, _ = np.linalg.svd(Y, full_matrices=False)
        Y = left * size
    size, Q = np.linalg.eigh(K)
    turned = Q.T @ Y
    errors = []
    for ridge in ridges:
        keep = ridge / (np.maximum(size, 0.0) + ridge)  # I - H = Q keep Q'
        residual = Q @ (keep[:, None] * turned) / ((Q * Q) @ keep)[:, None]
        errors.append(float(np.vdot(residual, residual)))
    return np.array(errors)


def dual(K: Array, Y: Array, ridge: float) -> tuple[Array, Array]:
    """a = (K + ridge I)^-1 Y, (n, k), and leave-one-out predictions."""
    if not len(K):
        return Y, Y
    factor = factored(K + ridge * np.eye(len(K)), lower=True)
    a: Array = cho_solve(factor, Y, check_finite=False)
    inverse = lapack.dpotri(factor[0], lower=1)[0].diagonal()
    return a, Y - a / inverse[:, None]


def primal(B: Array, R: Array, Y: Array, ridge: float) -> tuple[Array, Array]:
    """b = (B'B + ridge R)^-1 B'Y, (m, k), and leave-one-out predictions."""
    factor = factored(B.T @ B + ridge * R, lower=True)
    b: Array = cho_solve(factor, B.T @ Y, check_finite=False)
    half = solve_triangular(factor[0], B.T, lower=True, check_finite=False)
    h = (half**2).sum(0)[:, None]
    return b, (B @ b - h * Y) / (1.0 - h)
