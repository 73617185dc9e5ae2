"""Low-rank fill: the table of all views as a partially observed matrix of low rank.

Soft-impute (Mazumder, Hastie & Tibshirani, JMLR 2010) with a bound on the rank, on all views
concatenated, z-scored and divided by sqrt(width), by alternating ridge regressions (Hastie,
Mazumder, Lee & Zadeh, JMLR 2015): with O the observed entries and |Z|_* the sum of singular values

    min over Z of 1/2 |X - Z|_O^2 + threshold |Z|_*
      = min over U, V of 1/2 |X - U V'|_O^2 + threshold / 2 (|U|^2 + |V|^2)

so the scores of a training or new sample, given V, are u = (V_o' V_o + threshold I)^-1 V_o' x_o.
Rank and threshold minimise the error on hidden views; V is then refitted on all data.
The representation, u times the roots of the singular values, preserves the distances of U V'.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext
from vedute.estimators.method import Array
from vedute.estimators.settings import Choice, estimator, setting
from vedute.methods.fills.engine import softimpute, wide_table
from vedute.methods.fills.engine.wide_table import Table
from vedute.nn import noise

RANKS = Choice((4, 8, 16, 32, 64, 128))


@estimator
class LowRankFill(Estimator):
    """Missing values are those of a matrix of low rank."""

    max_rank: int = setting(128, "Largest rank that is tried.", at_least=1, tune=RANKS)

    attributes: ClassVar = {
        "components_": "(features, rank) array, V.",
        "threshold_": "The penalty on the singular values.",
        "choice_": "Rank and relative threshold, chosen on hidden views.",
    }
    paper = "Mazumder et al., JMLR 2010"
    absent = "filled by a matrix of low rank"
    baseline = "low-rank fill"
    relearns = True
    shrinks = False

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        rng = np.random.default_rng(noise.seed())
        table = Table.of_views(data, self.scalers)
        with threadpool_limits(1, "blas"):  # steps are too small for several threads
            if context.number == 1:
                if held is None:
                    best = softimpute.chosen(table, self.max_rank, rng, context.groups)
                else:
                    truth = Table.of_views(held.truth, self.scalers).only(held.hidden.numpy())
                    rows = held.truth.index.numpy()
                    best = softimpute.search(table, rows, truth, self.max_rank, rng)
                self.components_, threshold = best
                self.choice_ = {"rank": self.components_.shape[1], "threshold": threshold}
                self.threshold_ = threshold * softimpute.largest(table, rng)
            if held is None:
                start = self.components_, self.choice_["threshold"], rng
                self.components_, self.threshold_ = softimpute.refit(table, *start)

    def embed(self, data: Views) -> Array:
        table, V = Table.of_views(data, self.scalers), self.components_
        scores = softimpute.project(table, V, self.threshold_) * np.linalg.norm(V, axis=0)
        return np.asarray(scores, np.float32)

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        table, V = Table.of_views(data, self.scalers), self.components_
        filled = softimpute.project(table, V, self.threshold_) @ V.T
        return wide_table.values(filled, self.scalers, draws)
