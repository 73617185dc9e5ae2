"""Ridge fill: every view as a linear function of the others.

Ridge regression of each view on all others, in rounds that start from low-rank fill: multiple
imputation by chained equations (van Buuren & Groothuis-Oudshoorn 2011) with views in place of
variables and means in place of draws. With a the other views of a row, completed and each divided
by sqrt(width):

    f(a) = a (A'A + ridge I)^-1 A'Y

A, Y are rows that have the view; ridge minimises the leave-one-out error.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from vedute.estimators.method import Array
from vedute.estimators.settings import estimator
from vedute.methods.fills.engine.components import (
    ChainedFill,
    Regression,
    dual,
    leave_one_out_errors,
    primal,
)

RIDGES = 10.0 ** np.arange(-4.0, 2.1, 0.5)  # multiples of the mean square of a row


@estimator
class RidgeFill(ChainedFill):
    """Every view is predicted from the others by ridge regression."""

    paper = "van Buuren & Groothuis-Oudshoorn, J. Stat. Softw. 2011"

    def _settings(self, A: Array, Y: Array) -> dict[str, float]:
        unit = float((A**2).sum() / max(len(A), 1)) or 1.0
        errors = leave_one_out_errors(A @ A.T, Y, unit * RIDGES)
        return {"ridge": float(unit * RIDGES[errors.argmin()])}

    def _regress(
        self, A: Array, Y: Array, settings: dict[str, float], rng: Generator
    ) -> tuple[Regression, Array]:
        n, d = A.shape
        if d <= n:
            weights, alone = primal(A, np.eye(d), Y, settings["ridge"])
        else:
            by_row, alone = dual(A @ A.T, Y, settings["ridge"])
            weights = A.T @ by_row
        return {"weights": np.ascontiguousarray(weights)}, alone

    def _predict(self, regression: Regression, A: Array) -> Array:
        return np.asarray(A @ regression["weights"])
