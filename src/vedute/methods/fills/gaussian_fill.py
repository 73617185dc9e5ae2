"""Gaussian fill: all views together are one Gaussian.

EM for the covariance of incomplete normal data (Dempster, Laird & Rubin 1977), regularised. With c
the components of all views of a row (of wide views, the leading ones), o the observed and m the
missing part of them, and a noise that is the same for all:

    B = (S_oo + noise I)^-1 S_om
    E: c_m = B' c_o,  its covariance S_mm - S_mo B
    M: S = mean of E[c c']

The mean is that of the scaled views, zero. The noise has the least error on hidden views.
Rows with the same views share their matrices; the more patterns there are, the fewer components
are kept, so that the cost of a step is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.linalg import cho_solve, lapack
from threadpoolctl import threadpool_limits

from vedute.estimators.method import Array
from vedute.estimators.search_space import Choice
from vedute.estimators.settings import estimator, setting
from vedute.methods.fills.engine.cholesky import factored
from vedute.methods.fills.engine.components import MOST_AXES, ComponentsFill
from vedute.methods.fills.engine.softimpute import Table

NOISES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # relative to the average variance
FEW_ROWS_LEFT = 2  # steps for each that is tried
WORK = 2e9  # multiplications of a step, about


@estimator
class GaussianFill(ComponentsFill):
    """Missing values are conditional means in one Gaussian."""

    n_steps: int = setting(4, "Steps of EM.", at_least=1, tune=Choice((2, 4, 8)))

    attributes: ClassVar = {
        "covariance_": "(k, k), of the components of all views.",
        "noise_": "The variance added to each when a row is completed.",
    }
    paper = "Dempster et al., J. R. Stat. Soc. B 1977"
    absent = "their conditional mean in a Gaussian"

    def _most(self, mask: Array, widths: Sequence[int]) -> int:
        """So many that a step, which factors a matrix per pattern of views, stays affordable."""
        patterns = len(np.unique(mask, axis=0))
        room = (3 * WORK / patterns) ** (1 / 3)
        return next(
            k for k in range(MOST_AXES, 0, -1) if np.minimum(widths, k).sum() <= room or k == 1
        )

    def _learn_components(self, small: Table, rng: Generator) -> None:
        unit = float((small.x**2).sum() / small.spread(small.mask).sum()) or 1.0
        if "noise" not in self.choice_:
            with threadpool_limits(1, "blas"):  # many small steps: threads would wait
                self.choice_["noise"] = self._best_noise(small, unit)
        self.noise_ = self.choice_["noise"] * unit
        with threadpool_limits(1, "blas"):
            self.covariance_ = em(small, self._moments(small), self.noise_, self.n_steps)

    def _moments(self, small: Table) -> Array:
        x = self._started(small)
        found: Array = x.T @ x / len(x)
        return found

    def _best_noise(self, small: Table, unit: float) -> float:
        """The noise with the least error on hidden views; less and less, until it rises."""
        hidden = small.chosen_to_hide()
        if hidden is None:
            return NOISES[-1]
        where, left = small.spread(hidden), small.mask & ~hidden
        part = replace(small, x=np.where(where, 0.0, small.x), mask=left)
        S, best = self._moments(part), (np.inf, NOISES[0])
        for noise in NOISES:
            S = em(part, S, noise * unit, FEW_ROWS_LEFT)
            off = (completed(part, S, noise * unit) - small.x)[where]
            if off @ off > best[0]:
                break
            best = float(off @ off), noise
        return best[1]

    def _complete(self, small: Table) -> Array:
        return completed(small, self.covariance_, self.noise_)

    def _covariance(self, small: Table, v: int) -> Array:
        (pattern, _), *_ = small.groups
        o, S, at = np.repeat(pattern, small.widths), self.covariance_, list(small.views())[v][1]
        found: Array = S[at, at] - S[at, o] @ slopes(S[np.ix_(o, o)], S[o, at], self.noise_)
        return found


def em(small: Table, S: Array, noise: float, steps: int) -> Array:
    """Steps of EM for the covariance, from S (k, k)."""
    for _ in range(steps):
        x, left = conditional(small, S, noise)
        S = (x.T @ x + left) / len(x)
    return S


def conditional(small: Table, S: Array, noise: float) -> tuple[Array, Array]:
    """Rows completed by conditional means (n, k), and the sum of conditional covariances (k, k).

    With P = (S + noise I)^-1, also c_m = -P_mm^-1 P_mo c_o, with the covariance P_mm^-1 - noise I:
    cheaper where less is missing than observed.
    """
    x, left, P = small.x.copy(), np.zeros_like(S), None
    for pattern, rows in small.groups:
        o = np.repeat(pattern, small.widths)
        m, seen = ~o, small.x[np.ix_(rows, o)]
        if not m.any():
            continue
        if m.sum() < o.sum():
            P = inverse(S, noise) if P is None else P
            inner = inverse(P[np.ix_(m, m)])
            x[np.ix_(rows, m)] = -seen @ P[np.ix_(o, m)] @ inner
            inner[np.diag_indices_from(inner)] -= noise
        else:
            B = slopes(S[np.ix_(o, o)], S[np.ix_(o, m)], noise)
            x[np.ix_(rows, m)] = seen @ B
            inner = S[np.ix_(m, m)] - S[np.ix_(m, o)] @ B
        left[np.ix_(m, m)] += len(rows) * inner
    return x, left


def completed(small: Table, S: Array, noise: float) -> Array:
    """The rows of `conditional` alone."""
    x: Array = small.x.copy()
    P: Array | None = None
    for pattern, rows in small.groups:
        o = np.repeat(pattern, small.widths)
        m, seen = ~o, small.x[np.ix_(rows, o)].T
        if not m.any():
            continue
        if m.sum() < o.sum():
            P = inverse(S, noise) if P is None else P
            found = -slopes(P[np.ix_(m, m)], P[np.ix_(m, o)] @ seen, 0.0)
        else:
            found = S[np.ix_(m, o)] @ slopes(S[np.ix_(o, o)], seen, noise)
        x[np.ix_(rows, m)] = found.T
    return x


def inverse(S: Array, noise: float = 0.0) -> Array:
    """(S + noise I)^-1, which is symmetric and positive definite."""
    factor = factored(S + noise * np.eye(len(S)), lower=True)[0]
    lower: Array = np.tril(lapack.dpotri(factor, lower=1)[0])
    return lower + np.tril(lower, -1).T


def slopes(S: Array, right: Array, noise: float) -> Array:
    """(S + noise I)^-1 right"""
    if not len(S):
        return right
    factor = factored(S + noise * np.eye(len(S)))
    found: Array = cho_solve(factor, right, check_finite=False)
    return found
