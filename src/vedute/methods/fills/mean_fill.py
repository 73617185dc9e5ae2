"""Mean-fill: missing values as means of their features.

    x_iv = mean over the samples j that have view v of x_jv

The baseline of all imputations. The representation is the table of all views concatenated, each
divided by sqrt(width), with missing views at the mean: k-means on it is the usual baseline for
clustering.
"""

from __future__ import annotations

import numpy as np

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext
from vedute.estimators.method import Array
from vedute.estimators.settings import estimator
from vedute.methods.fills.engine import wide_table


@estimator
class MeanFill(Estimator):
    """Every missing value is the mean of its feature."""

    absent = "filled with the mean"
    baseline = "mean fill"
    shrinks = False

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        """Learn nothing: the means are those of the scalers."""

    def embed(self, data: Views) -> Array:
        return np.hstack([part.x for part in wide_table.parts(data, self.scalers)])

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        means = np.zeros((len(data), sum(s.mean.size for s in self.scalers)))
        return wide_table.values(means, self.scalers, draws)
