"""Each view regressed on the others, in rounds, from a table completed by low rank.

The regression of view v learns from the rows that have v, and is used on rows that lack it. In
both, what else a row lacks is filled without v: by the matrix of low rank at first, by the
regressions of the round before later on. Rows to learn from then look like those to predict.

Where row i has v, "without v" includes that its own x_iv was not learned from. Of a linear
smoother that is exact: with H (n, n) the matrix that maps the values to the fitted ones,

    prediction of row i without row i = (fitted_i - H_ii x_i) / (1 - H_ii)

and the same predictions choose the settings of each regression.
Holes in a view that is observed: the components c of view v in this row have the prediction from
the other views as their mean, and the covariance of its residuals; given the entries that are
observed, the expectation follows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from scipy.linalg import cho_factor, cho_solve, lapack, solve_triangular
from sklearn.covariance import ledoit_wolf
from threadpoolctl import threadpool_limits

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators.base import Array, Estimator
from vedute.estimators.search_space import Choice
from vedute.estimators.settings import estimator, setting
from vedute.methods import _components, _softimpute, _table
from vedute.methods._components import without
from vedute.methods._softimpute import Table

RANK = 128  # the largest of the matrix of low rank
SAMPLE = 500  # rows that choose the settings of a regression
Regression = dict[str, Any]


@estimator
class ChainedFill(Estimator):
    """Every view is predicted from the others by a regression of its own."""

    n_rounds: int = setting(
        3, "How often all views are predicted.", at_least=1, tune=Choice((1, 2, 3, 4))
    )

    attributes: ClassVar = {
        "components_": "(features, rank) array: the matrix of low rank that starts the rounds.",
        "threshold_": "The penalty of its singular values.",
        "bases_": "Per view, its leading components, (width, k).",
        "regressions_": "Per round and view, a dict.",
        "covariances_": "Per view, (k, k), of what its last regression leaves over.",
        "noises_": "Per view, the variance of an entry that the components leave over.",
        "choice_": "Relative threshold, and per view the settings of its regression.",
    }
    absent = "predicted from the other views"
    relearns = True

    @abstractmethod
    def _settings(self, A: Array, Y: Array) -> dict[str, float]:
        """Of a regression of Y (n, k) on A (n, d): the best on rows left out one by one."""

    @abstractmethod
    def _regress(
        self, A: Array, Y: Array, settings: dict[str, float], rng: Generator
    ) -> tuple[Regression, Array]:
        """The regression, and predictions (n, k) of each row without it."""

    @abstractmethod
    def _predict(self, regression: Regression, A: Array) -> Array:
        """(n, d) -> (n, k)"""

    def _check(self, raw: Views) -> None:
        super()._check(raw)
        self.choice_: dict[str, Any] = {}  # once per fit

    def _learn(self, data: Views, held: HoldOut | None) -> None:
        rng = np.random.default_rng(int(torch.randint(2**31 - 1, ())))
        table = self._table(data)
        with threadpool_limits(1, "blas"):
            if not self.choice_:
                best = _softimpute.chosen(table, RANK, rng)
                self.components_ = best.V
                self.choice_ = {"threshold": best.threshold, "views": []}
            start = self.components_, self.choice_["threshold"], rng
            self.components_, self.threshold_ = _softimpute.refit(table, *start)
        table = _components.without_holes(table, self.components_, self.threshold_)
        self.bases_ = _components.bases(table, rng)
        small = _components.narrowed(table, self.bases_)
        self.noises_ = _components.noises(table, small)
        self._learn_rounds(small, rng)

    def _learn_rounds(self, small: Table, rng: Generator) -> None:
        """The regressions; x[v] are the rows that have v and another view, filled without v."""
        able = small.mask.sum(1) > 1
        rows = [np.flatnonzero(able & has) for has in small.mask.T]
        parts = [without(small, v, own) for v, own in enumerate(rows)]
        x = [self._started(part) for part in parts]
        self.regressions_: list[list[Regression]] = []
        for _ in range(self.n_rounds):
            found, left = [], []
            for v, at in small.views():
                A, Y = np.delete(x[v], at, axis=1), small.x[rows[v], at]
                regression, alone = self._regress(A, Y, self._chosen(v, A, Y, rng), rng)
                found.append(regression)
                left.append(alone)
            if len(self.regressions_) + 1 < self.n_rounds:
                for v, at in small.views():
                    x[v] = self._next(found, parts[v], x[v], skip=v)
                    x[v][:, at] = left[v]
            self.regressions_.append(found)
        residuals = [small.x[rows[v], at] - left[v] for v, at in small.views()]
        self.covariances_ = [
            _covariance(e if len(e) > 1 else small.x[small.mask[:, v], at])
            for (v, at), e in zip(small.views(), residuals, strict=True)
        ]

    def _chosen(self, v: int, A: Array, Y: Array, rng: Generator) -> dict[str, float]:
        """The settings of the regression of view v, chosen in the first round."""
        known: list[dict[str, float]] = self.choice_["views"]
        if v == len(known):
            some = np.sort(rng.permutation(len(A))[:SAMPLE])
            known.append(self._settings(A[some], Y[some]))
        return known[v]

    def _embed(self, data: Views) -> Array:
        return self._completed(self._table(data)).astype(np.float32)

    def _decode(self, data: Views, draws: int = 0) -> list[Array]:
        table = self._table(data)
        x = _components.widened(self._narrow(table), self._completed(table), self.bases_)
        x = np.where(table.seen(), table.x, x)
        return _table.values([x[:, at] for _, at in table.views()], self._scalers(), draws)

    def _completed(self, table: Table) -> Array:
        """Components (n, k) of every view of every row."""
        small = self._narrow(table)
        x = self._chained(small)
        for v, at in table.views() if table.holes is not None else ():
            holed = np.flatnonzero(table.holes[:, at].any(1))  # type: ignore[index]
            here = list(small.views())[v][1]
            means = self._chained(without(small, v, holed))[:, here]
            seen, W = table.seen()[:, at], self.bases_[v]
            for i, mean in zip(holed, means, strict=True):
                row = table.x[i, at], seen[i], W, mean
                x[i, here] = _components.given_entries(
                    *row, self.covariances_[v], self.noises_[v]
                )
        return x

    def _chained(self, small: Table) -> Array:
        x = self._started(small)
        for regressions in self.regressions_:
            x = self._next(regressions, small, x)
        return x

    def _next(
        self, regressions: list[Regression], small: Table, x: Array, skip: int | None = None
    ) -> Array:
        """x (n, k) with all missing views, but `skip`, predicted once more."""
        new = x.copy()
        for (v, at), regression in zip(small.views(), regressions, strict=True):
            lacking = np.flatnonzero(~small.mask[:, v])
            if v != skip and len(lacking):
                new[lacking, at] = self._predict(regression, np.delete(x[lacking], at, axis=1))
        return new

    def _started(self, small: Table) -> Array:
        """Components as the matrix of low rank has them."""
        wide = zip(np.split(self.components_, self._edges()), self.bases_, strict=True)
        V = np.vstack([W.T @ part for part, W in wide])
        return _components.filled(small, V, self.threshold_)

    def _edges(self) -> Array:
        return np.cumsum([len(W) for W in self.bases_])[:-1]

    def _narrow(self, table: Table) -> Table:
        table = _components.without_holes(table, self.components_, self.threshold_)
        return _components.narrowed(table, self.bases_)

    def _table(self, data: Views) -> Table:
        return Table.of(_table.parts(data, self._scalers()))


def _covariance(residuals: Array) -> Array:
    """(n, k) of mean zero -> (k, k), shrunk towards a multiple of the identity."""
    found: Array = ledoit_wolf(residuals, assume_centered=True)[0]
    return found


def errors_left_out(K: Array, Y: Array, ridges: Array) -> Array:
    """Squared error of Y (n, k) when each row is left out, under H = K (K + ridge I)^-1."""
    if Y.shape[1] > len(Y):  # rows of the same lengths and angles
        left, size, _ = np.linalg.svd(Y, full_matrices=False)
        Y = left * size
    size, Q = np.linalg.eigh(K)
    turned = Q.T @ Y
    found = []
    for ridge in ridges:
        keep = ridge / (np.maximum(size, 0.0) + ridge)  # I - H = Q keep Q'
        residual = Q @ (keep[:, None] * turned) / ((Q * Q) @ keep)[:, None]
        found.append(float(np.vdot(residual, residual)))
    return np.array(found)


def dual(K: Array, Y: Array, ridge: float) -> tuple[Array, Array]:
    """a = (K + ridge I)^-1 Y, (n, k), and predictions of each row without it."""
    factor = cho_factor(K + ridge * np.eye(len(K)), lower=True, check_finite=False)
    a: Array = cho_solve(factor, Y, check_finite=False)
    inverse = lapack.dpotri(factor[0], lower=1)[0].diagonal()
    return a, Y - a / inverse[:, None]


def primal(B: Array, R: Array, Y: Array, ridge: float) -> tuple[Array, Array]:
    """b = (B'B + ridge R)^-1 B'Y, (m, k), and predictions of each row without it."""
    factor = cho_factor(B.T @ B + ridge * R, lower=True, check_finite=False)
    b: Array = cho_solve(factor, B.T @ Y, check_finite=False)
    half = solve_triangular(factor[0], B.T, lower=True, check_finite=False)
    h = (half**2).sum(0)[:, None]
    return b, (B @ b - h * Y) / (1.0 - h)
