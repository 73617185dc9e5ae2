"""Calibration of decoders on hidden views: shrinkage, spread, noise and reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from vedute.data.scaling import Scaler

Array = NDArray[Any]
PSEUDO = 20.0  # weight of the average over views or features, in hidden instances
LEVELS = np.append(np.arange(0.05, 0.96, 0.05), 0.99)  # of intervals
NORMAL_REACH = norm.ppf(0.5 + LEVELS / 2)  # of these on each side, for normal errors


@dataclass(frozen=True, eq=False)
class Calibration:
    """value = mean + shrink (decoded - mean); draws deviate `spread` times; then noise."""

    shrink: float
    spread: float
    noise: Array  # standard deviation, (*shape,)
    by_seen: Array  # (L,), its factor for samples with 1, 2, ..., L observed views
    reach: Array = field(default_factory=NORMAL_REACH.copy)  # standard deviations, by LEVELS

    def noise_of(self, seen: NDArray[np.int64]) -> Array:
        """Return the noise of samples with `seen` (n,) observed views, (n, *shape)."""
        factor = self.by_seen[seen - 1].reshape(-1, *[1] * self.noise.ndim)
        return np.asarray(factor * self.noise)

    def reach_of(self, level: float) -> float:
        """Return the half-width of an interval of any level, in standard deviations, interpolated
        over that of a normal distribution."""
        normal = float(norm.ppf(0.5 + level / 2))
        reach = np.interp(normal, np.append(0.0, NORMAL_REACH), np.append(0.0, self.reach))
        return float(reach * max(1.0, normal / NORMAL_REACH[-1]))


class Evidence:
    """m hidden instances of a view: their truth, decoded values and variance of draws of these,
    (m, *shape) each, in standard deviations from the mean; zero outside the mask (m, *shape).

    seen (m,): the numbers of other, observed views; cross and power, per feature: of a regression
    of the truth on decoded values.
    """

    def __init__(
        self, truth: Array, decoded: Array, var: Array, mask: Array, scaler: Scaler, seen: Array
    ) -> None:
        mean, self.std, self.seen = scaler.mean, scaler.std, seen
        self.mask, unit = mask & (self.std > 0), np.where(self.std > 0, self.std, 1.0)
        self.truth, self.decoded = (truth - mean) / unit, (decoded - mean) / unit
        self.variance = var / unit**2
        for part in (self.truth, self.decoded, self.variance):
            part[~self.mask] = 0.0
        self.width = max(mask[:1].size, 1)
        self.cross = float((self.truth * self.decoded).sum()) / self.width
        self.power = float((self.decoded**2).sum()) / self.width


def calibrate(
    views: Sequence[Evidence], shrinks: bool = True, n_views: int | None = None
) -> list[Calibration]:
    """Calibrate each view; those with few instances are shrunk to the average over views. n_views:
    the number of views a sample may have, if `views` is a subset."""
    cross, power = sum(map(attrgetter("cross"), views)), sum(map(attrgetter("power"), views))
    common = float(np.clip(cross / power, 0.0, 1.0)) if shrinks and power > 0 else 1.0
    total, count = np.zeros((2, n_views or len(views)))  # errors by the number of observed views
    squares, entries = 0.0, 0
    for e in views:
        square: Array = (e.truth - common * e.decoded) ** 2
        squares, entries = squares + square.sum(), entries + e.mask.sum()
        if e.mask.any():
            known = e.mask.reshape(len(square), -1).sum(1)
            errors = square.reshape(len(square), -1).sum(1) / np.maximum(known, 1)
            np.add.at(total, e.seen - 1, errors / max(errors.mean(), 1e-12))
            np.add.at(count, e.seen - 1, 1)
    pooled, by_seen = squares / max(entries, 1), np.sqrt((total + PSEUDO) / (count + PSEUDO))
    results = []
    for e in views:
        if not e.mask.any():
            noise = e.std * (np.sqrt(pooled) if pooled > 0 else 1.0)
            results.append(Calibration(common, 1.0, noise, by_seen))
            continue
        shrink, prior = common, PSEUDO * e.power / len(e.truth)
        if shrinks:
            ratio = (e.cross + prior * common) / (e.power + prior) if e.power > 0 else 1.0
            shrink = float(np.clip(ratio, 0.0, 1.0))
        square, variance = (e.truth - shrink * e.decoded) ** 2, shrink**2 * e.variance
        spread = float(np.sqrt(min(1.0, 0.8 * square.sum() / max(variance.sum(), 1e-12))))
        prior = PSEUDO * e.width
        average = (square.sum() + prior * pooled) / (e.mask.sum() + prior)
        remaining = square.sum(0) - spread**2 * variance.sum(0)  # errors that draws do not explain
        noise = (remaining + PSEUDO * average) / (e.mask.sum(0) + PSEUDO)
        noise = np.sqrt(np.maximum(noise, 0.05 * average)) * e.std
        results.append(Calibration(shrink, spread, noise, by_seen))
    return results


def reaches(views: Sequence[Array], sparse: Sequence[bool]) -> list[Array]:
    """Return the reach of intervals of LEVELS in each view that covers that share of its entries.

    views: the errors at entries of hidden instances in standard deviations, (m, features), NaN
    where unknown. With few instances, a view is shrunk to all views, and these to a normal
    distribution; entries of an instance are correlated, so instances are counted.
    sparse: views with mostly one value. Intervals must contain it, so they are never narrower than
    normal ones.

    The variance s^2 of a feature is a mean over n = m + PSEUDO instances, which includes one with
    error z s; without that instance it is s^2 (n - z^2) / (n - 1).
    """
    total, count, own = np.zeros(len(LEVELS)), 0, []
    for far, thin in zip(views, sparse, strict=True):
        known = ~np.isnan(far)
        m = int(known.any(1).sum())
        n, z = m + PSEUDO, far[known]
        others = np.maximum(n - z**2, 1.0) / (n - 1)
        z /= np.sqrt(others, out=others)  # in place, as arrays may be large
        quantiles = m * (np.quantile(z, LEVELS, overwrite_input=True) if m else NORMAL_REACH)
        own.append((n, quantiles, NORMAL_REACH * thin))
        if not thin:
            total, count = total + quantiles, count + m
    common, results = (total + PSEUDO * NORMAL_REACH) / (count + PSEUDO), []
    for n, quantiles, least in own:
        results.append(np.maximum((quantiles + PSEUDO * common) / n, least))
    return results


def mostly_one_value(truth: Array) -> bool:
    """Return whether most of truth (m, features) are the median of their feature; NaN: unknown."""
    known = (~np.isnan(truth)).sum(0)
    middle = np.maximum(known - 1, 0)[None] // 2  # NaN are sorted last
    median = np.take_along_axis(np.sort(truth, axis=0), middle, 0) if len(truth) else truth
    return bool((truth == median).sum() > known.sum() / 2)
