"""Gaussian fill: conditional means under one Gaussian for all views.

EM for the covariance of incomplete normal data (Dempster, Laird & Rubin 1977), regularised. With c
the components of all views of a row (the leading ones of wide views), o its observed and m its
missing part, and isotropic noise:

    B = (S_oo + noise I)^-1 S_om
    E: c_m = B' c_o,  its covariance S_mm - S_mo B
    M: S = mean of E[c c']

The mean of the scaled views is zero. The noise minimises the error on hidden views. Rows with the
same views share their matrices; the more patterns, the fewer components are kept, which bounds the
cost of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from vedute.estimators.method import Array
from vedute.estimators.settings import Choice, estimator, setting
from vedute.methods.fills.engine.components import MOST_AXES, ComponentsFill
from vedute.methods.fills.engine.softimpute import factored, solved
from vedute.methods.fills.engine.wide_table import Table

NOISES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # relative to the average variance
SEARCH_STEPS = 2  # steps of EM per candidate
WORK = 2e9  # approximate multiplications per step


@estimator
class GaussianFill(ComponentsFill):
    """Missing values are conditional means in one Gaussian."""

    n_steps: int = setting(4, "Steps of EM.", at_least=1, tune=Choice((2, 4, 8)))

    attributes: ClassVar = {
        "covariance_": "The covariance of the components of all views, (k, k).",
        "noise_": "The variance added to each component when a row is completed.",
    }
    paper = "Dempster et al., J. R. Stat. Soc. B 1977"
    absent = "their conditional mean in a Gaussian"

    def _most(self, mask: Array, widths: Sequence[int]) -> int:
        """The most components that a step can afford; it factors a matrix per pattern of views."""
        patterns = len(np.unique(mask, axis=0))
        room, k = (3 * WORK / patterns) ** (1 / 3), MOST_AXES
        while k > 1 and np.minimum(widths, k).sum() > room:
            k -= 1
        return k

    def _learn_components(self, small: Table, rng: Generator) -> None:
        """Choose the noise on hidden views: lower it until the error rises; then fit by EM."""
        unit = float((small.x**2).sum() / small.spread(small.mask).sum()) or 1.0
        with threadpool_limits(1, "blas"):  # steps are too small for threads
            hidden = None if "noise" in self.choice_ else small.chosen_to_hide()
            self.choice_.setdefault("noise", NOISES[-1 if hidden is None else 0])
            if hidden is not None:
                where, part = small.spread(hidden), small.only(~hidden)
                x, least = self._initialized(part), np.inf
                S = x.T @ x / len(x)
                for noise in NOISES:
                    S = em(part, S, noise * unit, SEARCH_STEPS)
                    off = (conditional(part, S, noise * unit)[0] - small.x)[where]
                    if off @ off > least:
                        break
                    self.choice_["noise"], least = noise, off @ off
            self.noise_ = self.choice_["noise"] * unit
            x = self._initialized(small)
            self.covariance_ = em(small, x.T @ x / len(x), self.noise_, self.n_steps)

    def _complete(self, small: Table) -> Array:
        return conditional(small, self.covariance_, self.noise_)[0]

    def _covariance(self, small: Table, v: int) -> Array:
        (pattern, _), *_ = small.groups
        o, S, at = np.repeat(pattern, small.widths), self.covariance_, small.places[v]
        covariance: Array = S[at, at] - S[at, o] @ solved(S[np.ix_(o, o)], S[o, at], self.noise_)
        return covariance


def em(small: Table, S: Array, noise: float, steps: int) -> Array:
    """Run EM for the covariance from S (k, k)."""
    for _ in range(steps):
        x, left = conditional(small, S, noise, spread=True)
        S = (x.T @ x + left) / len(x)
    return S


def conditional(small: Table, S: Array, noise: float, spread: bool = False) -> tuple[Array, Array]:
    """Complete rows by conditional means (n, k); sum their conditional covariances (k, k), if
    `spread`, else zero.

    With P = (S + noise I)^-1, equivalently c_m = -P_mm^-1 P_mo c_o with covariance P_mm^-1 - noise
    I, which is cheaper if less is missing than observed.
    """
    x, left = small.x.copy(), np.zeros_like(S)
    P: Any = None
    for pattern, rows in small.groups:
        o = np.repeat(pattern, small.widths)
        m, at = ~o, np.ix_(rows, ~o)
        seen, few = small.x[np.ix_(rows, o)], m.sum() < o.sum()
        if not m.any():
            continue
        if few and P is None:
            P = inverse(S, noise)
        if few and spread:
            inner = inverse(P[np.ix_(m, m)])
            x[at] = -seen @ P[np.ix_(o, m)] @ inner
            inner[np.diag_indices_from(inner)] -= noise
            left[np.ix_(m, m)] += len(rows) * inner
        elif few:
            x[at] = -solved(P[np.ix_(m, m)], P[np.ix_(m, o)] @ seen.T, 0.0).T
        elif spread:
            B = solved(S[np.ix_(o, o)], S[np.ix_(o, m)], noise)
            x[at] = seen @ B
            left[np.ix_(m, m)] += len(rows) * (S[np.ix_(m, m)] - S[np.ix_(m, o)] @ B)
        else:
            x[at] = (S[np.ix_(m, o)] @ solved(S[np.ix_(o, o)], seen.T, noise)).T
    return x, left


def inverse(S: Array, noise: float = 0.0) -> Array:
    """The inverse (S + noise I)^-1 of a symmetric positive definite matrix."""
    factor = factored(S + noise * np.eye(len(S)), lower=True)[0]
    lower: Array = np.tril(lapack.dpotri(factor, lower=1)[0])
    return lower + np.tril(lower, -1).T
