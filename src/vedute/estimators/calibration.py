"""Calibration of decoders on hidden views: shrinkage, spread, noise and reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[Any]
PSEUDO = 20.0  # weight of the average over views or features, in hidden instances
LEVELS = np.append(np.arange(0.05, 0.96, 0.05), 0.99)  # of intervals
NORMAL_REACH = norm.ppf(0.5 + LEVELS / 2)  # of these on each side, for normal errors


@dataclass(frozen=True, eq=False)
class Calibration:
    """value = mean + shrink (decoded - mean); draws deviate `spread` times; then noise.

    noise (*shape,) is a standard deviation; by_seen (L,) multiplies it for samples with 1, 2, ...,
    L observed views, as uncertainty falls with their number. An interval of LEVELS[q] extends
    reach[q] standard deviations to each side.
    """

    shrink: float
    spread: float
    noise: Array
    by_seen: Array
    reach: Array = field(default_factory=NORMAL_REACH.copy)

    def noise_of(self, seen: NDArray[np.int64]) -> Array:
        """Return the noise of samples with `seen` (n,) observed views, (n, *shape)."""
        factor = self.by_seen[seen - 1].reshape(-1, *[1] * self.noise.ndim)
        return np.asarray(factor * self.noise)

    def reach_of(self, level: float) -> float:
        """Return the half-width of an interval of any level, in standard deviations: interpolated
        over that of a normal distribution, and beyond the last level in proportion to it."""
        normal = float(norm.ppf(0.5 + level / 2))
        reach = np.interp(normal, np.append(0.0, NORMAL_REACH), np.append(0.0, self.reach))
        return float(reach * max(1.0, normal / NORMAL_REACH[-1]))


class Evidence(NamedTuple):
    """m hidden instances of a view, in standard deviations from the mean; zero outside the mask.

    truth, decoded   both as deviations, (m, *shape)
    uncertain        the variance of draws of decoded values, (m, *shape)
    mask             entries whose truth is known, (m, *shape)
    std              standard deviations, (*shape,)
    seen             the number of other views that were observed, (m,)
    """

    truth: Array
    decoded: Array
    uncertain: Array
    mask: NDArray[np.bool_]
    std: Array
    seen: NDArray[np.int64]


def evidence(
    truth: Array, decoded: Array, spread: Array, mask: Array, mean: Array, std: Array, seen: Array
) -> Evidence:
    """Standardise truth, decoded, the variance `spread` of its draws and mask, (m, *shape) each;
    mean, std (*shape,); all in scaled units."""
    unit = np.where(std > 0, std, 1.0)
    mask = mask & (std > 0)
    deviation, decoded, uncertain = (truth - mean) / unit, (decoded - mean) / unit, spread / unit**2
    for part in (deviation, decoded, uncertain):
        part[~mask] = 0.0
    return Evidence(deviation, decoded, uncertain, mask, std, seen)


def calibrate(
    views: Sequence[Evidence], shrinks: bool = True, n_views: int | None = None
) -> list[Calibration]:
    """Calibrate each view; those with few instances are shrunk to the average over views.

    n_views: the number of views a sample may have, if `views` is a subset.
    """
    slopes = [_slope(e) for e in views]
    cross, power = sum(c for c, _ in slopes), sum(p for _, p in slopes)
    common = float(np.clip(cross / power, 0.0, 1.0)) if shrinks and power > 0 else 1.0
    errors = [(_residual(e, common).sum(), e.mask.sum()) for e in views]
    pooled = sum(e for e, _ in errors) / max(sum(n for _, n in errors), 1)
    by_seen = _by_seen(views, common, n_views or len(views))
    shared = (common if shrinks else None, pooled, by_seen)
    return [_one(e, slope, *shared) for e, slope in zip(views, slopes, strict=True)]


def _by_seen(views: Sequence[Evidence], shrink: float, n_views: int) -> Array:
    """Return the factor of the error by the number of observed views, (L,), relative to the average
    of the view."""
    total, count = np.zeros(n_views), np.zeros(n_views)
    for e in views:
        if e.mask.any():
            residual = _residual(e, shrink).reshape(len(e.truth), -1).sum(1)
            errors = residual / np.maximum(e.mask.reshape(len(e.truth), -1).sum(1), 1)
            np.add.at(total, e.seen - 1, errors / max(errors.mean(), 1e-12))
            np.add.at(count, e.seen - 1, 1)
    return np.sqrt((total + PSEUDO) / (count + PSEUDO))


def _slope(e: Evidence) -> tuple[float, float]:
    """Regress the truth on decoded values by least squares: (cross product, power) per feature."""
    width = max(e.mask[:1].size, 1)
    return float((e.truth * e.decoded).sum()) / width, float((e.decoded**2).sum()) / width


def _residual(e: Evidence, shrink: float) -> Array:
    residual: Array = (e.truth - shrink * e.decoded) ** 2
    return residual


def _one(
    e: Evidence, slope: tuple[float, float], common: float | None, pooled: float, by_seen: Array
) -> Calibration:
    cross, power = slope
    if not e.mask.any():
        noise = np.sqrt(pooled) if pooled > 0 else 1.0
        return Calibration(1.0 if common is None else common, 1.0, e.std * noise, by_seen)
    shrink, width = 1.0, e.mask[:1].size
    if common is not None and power > 0:
        prior = PSEUDO * power / len(e.truth)
        shrink = float(np.clip((cross + prior * common) / (power + prior), 0.0, 1.0))
    residual, uncertain = _residual(e, shrink), shrink**2 * e.uncertain
    spread = float(np.sqrt(min(1.0, 0.8 * residual.sum() / max(uncertain.sum(), 1e-12))))
    average = (residual.sum() + PSEUDO * width * pooled) / (e.mask.sum() + PSEUDO * width)
    remaining = residual.sum(0) - spread**2 * uncertain.sum(0)
    variance = (remaining + PSEUDO * average) / (e.mask.sum(0) + PSEUDO)
    noise = np.sqrt(np.maximum(variance, 0.05 * average)) * e.std
    return Calibration(shrink, spread, noise, by_seen)


def reaches(views: Sequence[Array], sparse: Sequence[bool]) -> list[Array]:
    """Return the reach of intervals of LEVELS in each view that covers that share of its entries.

    views: the errors at entries of hidden instances in standard deviations, (m, features), NaN
    where unknown. With few instances, a view is shrunk to all views, and these to a normal
    distribution; entries of an instance are correlated, so instances are counted.
    sparse: views with mostly one value. Intervals must contain it, so they are never narrower than
    normal ones.
    """
    quantiles = [_quantiles(far) for far in views]
    dense = [q for q, thin in zip(quantiles, sparse, strict=True) if not thin]
    common = _shrunk(dense, NORMAL_REACH)
    shrunk = [_shrunk([q], common) for q in quantiles]
    return [np.maximum(r, NORMAL_REACH * thin) for r, thin in zip(shrunk, sparse, strict=True)]


def _quantiles(far: Array) -> tuple[int, Array]:
    """Return the number of instances and the quantiles of their entries, (q,).

    The variance s^2 of a feature is a mean over n = m + PSEUDO instances, which includes one with
    error z s; without that instance it is s^2 (n - z^2) / (n - 1).
    """
    known = ~np.isnan(far)
    m = int(known.any(1).sum())
    n, z = m + PSEUDO, far[known]
    others = np.maximum(n - z**2, 1.0) / (n - 1)
    z /= np.sqrt(others, out=others)  # in place, as arrays may be large
    return m, np.quantile(z, LEVELS, overwrite_input=True) if m else NORMAL_REACH


def _shrunk(quantiles: Sequence[tuple[int, Array]], towards: Array) -> Array:
    """Return the mean of quantiles weighted by numbers of instances, shrunk towards a prior."""
    total = sum(m * q for m, q in quantiles) + PSEUDO * towards
    return np.asarray(total / (sum(m for m, _ in quantiles) + PSEUDO))


def mostly_one_value(truth: Array) -> bool:
    """Return whether most entries equal the median of their feature, such as zeros of rare words;
    truth (m, features), NaN where unknown."""
    known = (~np.isnan(truth)).sum(0)
    middle = np.maximum(known - 1, 0)[None] // 2  # NaN are sorted last
    median = np.take_along_axis(np.sort(truth, axis=0), middle, 0) if len(truth) else truth
    return bool((truth == median).sum() > known.sum() / 2)
