"""Fills on the leading components of each view, initialised by a matrix of low rank.

A view v of the table, x_v (n, p), has an orthonormal basis W_v (p, k); c_v = x_v W_v (n, k). A
narrow view is kept as is, with W_v the identity.

Holes in observed views are filled during training: first by the matrix of low rank, then as they
would be imputed. To impute them, the components c of the view get a mean and a covariance given the
other views, and then their expectation given its observed entries as well.

Chained regressions predict each view from the others, in rounds, from a completed table. That of
view v is trained on the rows that have v and applied to rows that lack it. In both, other missing
views are filled without using v: in the first round by the initial completion, later by the
regressions of the previous round. Training rows then look like rows to predict.

"Without v" implies that x_iv itself is held out where row i has v. For a linear smoother the
leave-one-out prediction is exact: with H (n, n) the hat matrix,

    prediction of row i without row i = (fitted_i - H_ii x_i) / (1 - H_ii)

These predictions also choose the settings of each regression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from scipy.linalg import cho_solve, lapack, solve_triangular
from sklearn.covariance import ledoit_wolf
from threadpoolctl import threadpool_limits

from vedute.data.holdout import HoldOut
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext
from vedute.estimators.method import Array, WarmStart
from vedute.estimators.settings import Choice, estimator, setting
from vedute.methods.fills.engine import softimpute, wide_table
from vedute.methods.fills.engine.softimpute import factored
from vedute.methods.fills.engine.wide_table import Table
from vedute.nn import noise

MOST_AXES = 256  # largest number of components of a view
RANK = 32  # largest rank of the initial matrix
ROUNDS = 3  # training rounds with holes: filled by low rank first, then by the fitted model
COPIES = 16  # of a row in double precision, beside a sparse view
LEAST_NOISE = 1e-3  # noise of an entry, relative to its variance
SAMPLE = 500  # rows used to choose the settings of a regression
MANY_COMPONENTS = 1024  # largest number of components of a view
MOST_INPUTS = 4e7  # numbers in the inputs of all regressions, for more than MOST_AXES components
MOST_LOADINGS = 1.2e7  # numbers in the bases of all views, likewise
Regression = dict[str, Any]


@estimator
class ComponentsFill(Estimator):
    """Views are inferred through their leading components."""

    attributes: ClassVar = {
        "components_": "(features, rank) array: the initial matrix of low rank.",
        "threshold_": "The penalty on its singular values.",
        "bases_": "Per view, its leading components, (width, k).",
        "noises_": "Per view, the variance of an entry not explained by its components.",
        "choice_": "What was chosen on held-out data.",
    }
    relearns = True

    @abstractmethod
    def _learn_components(self, small: Table, rng: Generator) -> None:
        """Learn from components, zero where a view is missing."""

    @abstractmethod
    def _complete(self, small: Table) -> Array:
        """The components (n, k) of all views."""

    @abstractmethod
    def _covariance(self, small: Table, v: int) -> Array:
        """Covariance of the components of view v given the others, for rows with the same views."""

    def _most(self, mask: Array, widths: Sequence[int]) -> int:
        """The largest number of components of a view."""
        return MOST_AXES

    def table_numbers(self) -> int:
        for W in self.bases_:
            if W.dtype == np.float32:  # of a sparse view, so that rows are wide
                return COPIES * self.n_features_in_
        return 1

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        rng = np.random.default_rng(noise.seed())
        table = Table.of_views(data, self.scalers)
        with threadpool_limits(1, "blas"):  # steps are too small for several threads
            if context.number == 1:
                self.components_, threshold = softimpute.chosen(table, RANK, rng)
                self.choice_: dict[str, Any] = {"threshold": threshold}
            start = self.components_, self.choice_["threshold"], rng
            self.components_, self.threshold_ = softimpute.refit(table, *start)
        whole = self._without_holes(table)
        self.bases_: list[Array] = []
        most = self._most(table.mask, table.widths)
        for v, (width, at) in enumerate(zip(whole.widths, whole.places, strict=True)):
            if width <= most:
                self.bases_.append(np.eye(width))
            elif whole.compressed:  # rows that lack the view are zero
                self.bases_.append(softimpute.axes(whole.x.view(v), most, rng))
            else:
                rows = whole.x[whole.mask[:, v], at]
                self.bases_.append(softimpute.leading(rows, most, rng)[2])
        for k in range(1 if table.holes is None else ROUNDS):
            if k > 0:
                inferred = np.where(table.spread(table.mask), self._values(table), 0.0)
                whole = replace(whole, x=inferred)
            small = narrowed(whole, self.bases_)
            self.noises_: list[float] = []
            for v, (has, at) in enumerate(zip(whole.mask.T, whole.places, strict=True)):
                thin, count = whole.compressed, max(int(has.sum()), 1) * whole.widths[v]
                power = whole.x.view(v).power() if thin else (whole.x[has, at] ** 2).sum()
                lost = max(power - (small.x[has, small.places[v]] ** 2).sum(), LEAST_NOISE * power)
                self.noises_.append(float(lost) / count or 1.0)
            self._learn_components(small, rng)

    def embed(self, data: Views) -> Array:
        return self._completed(Table.of_views(data, self.scalers)).astype(np.float32)

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        table = self._values(Table.of_views(data, self.scalers))
        return wide_table.values(table, self.scalers, draws)

    def _values(self, table: Table) -> Array:
        """The table (n, p) with missing values inferred."""
        x = widened(self._completed(table), self.bases_)
        return np.where(table.seen(), table.x.dense() if table.compressed else table.x, x)

    def _completed(self, table: Table) -> Array:
        """Components (n, k) of every view of every row."""
        small = narrowed(self._without_holes(table), self.bases_)
        x = self._complete(small)
        if table.holes is None:
            return x
        others = np.arange(len(small.widths))
        for v, (at, columns) in enumerate(zip(table.places, small.places, strict=True)):
            holed, W = np.flatnonzero(table.holes[:, at].any(1)), self.bases_[v]
            part, seen = small[holed].only(others != v), table.seen()[holed, at]
            components = self._complete(part)[:, columns]
            for _, rows in part.groups:
                covariance = self._covariance(part[rows], v)
                for i in rows:
                    row = table.x[holed[i], at], seen[i], W, components[i]
                    components[i] = given_entries(*row, covariance, self.noises_[v])
            x[holed, columns] = components
        return x

    def _initialized(self, small: Table) -> Array:
        """Components with missing ones filled by the matrix of low rank."""
        narrow, ends = [], np.cumsum([*map(len, self.bases_)])
        for W, part in zip(self.bases_, np.split(self.components_, ends[:-1]), strict=True):
            narrow.append(W.T @ part.astype(W.dtype))
        V: Array = np.vstack(narrow)
        fitted = softimpute.project(small, V, self.threshold_) @ V.T
        return np.where(small.seen(), small.x, fitted)

    def _without_holes(self, table: Table) -> Table:
        """The table with holes filled by the matrix of low rank; missing views stay missing."""
        if table.holes is None:
            return table
        x = softimpute.project(table, self.components_, self.threshold_) @ self.components_.T
        x = np.where(table.holes, x, table.x)
        return replace(table, x=np.where(table.spread(table.mask), x, 0.0), holes=None)


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
    most_rows: ClassVar[float] = np.inf  # training rows per regression

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
        rows, parts, x = [], [], []
        for v, has in enumerate(small.mask.T):
            able = np.flatnonzero((small.mask.sum(1) > 1) & has)
            if len(able) > self.most_rows:
                able = np.sort(rng.permutation(able)[: int(self.most_rows)])
            rows.append(able)
            parts.append(small[able].only(np.arange(len(small.widths)) != v))
            x.append(self._initialized(parts[v]))
        self.regressions_: list[list[Regression]] = []
        chosen: list[dict[str, float]] = self.choice_.setdefault("views", [])
        with progress.task("", self.n_rounds * len(small.widths), "regression"):
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
        """Components with missing ones as the warm start infers them, in batches beside a sparse
        view; rows without any view stay at the mean."""
        if self.warm_start is None:
            return super()._initialized(small)
        x: Array = np.zeros_like(small.x)
        imputer = self.warm_start.learner.imputer()
        nonempty, sparse = np.flatnonzero(small.mask.any(1)), self.table_numbers() > 1
        size = self.learner.imputer().rows() if sparse else max(len(nonempty), 1)
        for batch in slices(len(nonempty), size):
            rows = nonempty[batch]
            part, mask = small[rows], torch.from_numpy(small.mask[rows])
            wide = wide_table.values(widened(part.x, self.bases_), self.scalers)
            observed = tuple(map(torch.from_numpy, map(itemgetter(0), wide)))
            names, holes = tuple(map(attrgetter("name"), self.views_)), (None,) * len(observed)
            data = Views(observed, mask, torch.arange(len(rows)), holes, names)
            decoded = map(torch.from_numpy, map(itemgetter(0), imputer.decoded(data)))
            whole = replace(data, x=tuple(decoded), mask=torch.ones_like(mask))
            inferred = narrowed(Table.of_views(whole, self.scalers), self.bases_)
            x[rows] = np.where(part.seen(), part.x, inferred.x)
        return x

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


def narrowed(table: Table, bases: Sequence[Array]) -> Table:
    """Project the table (n, p) without holes onto components (n, k), zero where missing."""
    parts, widths = [], []
    for v, W in enumerate(bases):
        x = table.x.view(v) if table.compressed else table.x[:, table.places[v]]
        parts.append(x.astype(W.dtype) @ W)
        widths.append(W.shape[1])
    return Table(np.hstack(parts, dtype=np.float64), table.mask, None, tuple(widths))


def widened(x: Array, bases: Sequence[Array]) -> Array:
    """Map components x (n, k) of all views back to (n, p)."""
    parts, start = [], 0
    for W in bases:
        end = start + W.shape[1]
        parts.append(x[:, start:end].astype(W.dtype) @ W.T)
        start = end
    return np.hstack(parts)


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
    return np.asarray(mean + covariance @ np.linalg.solve(inner, right))


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
