"""How far to trust the decoders, learned on hidden views: shrinkage, spread, noise and reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[Any]
PSEUDO = 20.0  # hidden instances' worth of belief in the average over views or features
LEVELS = np.append(np.arange(0.05, 0.96, 0.05), 0.99)  # of intervals
NORMAL_REACH = norm.ppf(0.5 + LEVELS / 2)  # of these on each side, where errors are normal


@dataclass(frozen=True, eq=False)
class Calibration:
    """value = mean + shrink (decoded - mean); draws deviate `spread` times; then noise.

    noise (*shape,) is a standard deviation; by_seen (L,) multiplies it for samples of which
    1, 2, ..., L views are seen: the less is seen, the less is known. An interval of LEVELS[q]
    reaches reach[q] standard deviations to each side.
    """

    shrink: float
    spread: float
    noise: Array
    by_seen: Array
    reach: Array = field(default_factory=NORMAL_REACH.copy)

    def noise_of(self, seen: NDArray[np.int64]) -> Array:
        """The noise of samples with `seen` (n,) observed views, (n, *shape)."""
        factor = self.by_seen[seen - 1].reshape(-1, *[1] * self.noise.ndim)
        return np.asarray(factor * self.noise)

    def reach_of(self, level: float) -> float:
        """How many standard deviations an interval of any level reaches: a straight line between
        those known, over the normal distribution's; beyond the last one in proportion."""
        normal = float(norm.ppf(0.5 + level / 2))
        known = np.interp(normal, np.append(0.0, NORMAL_REACH), np.append(0.0, self.reach))
        return float(known * max(1.0, normal / NORMAL_REACH[-1]))


class Evidence(NamedTuple):
    """m hidden instances of a view, in standard deviations from the mean; zero where not `there`.

    truth, decoded: both as deviations; uncertain: the variance of draws of what is decoded;
    (m, *shape). std (*shape,). seen (m,): how many other views were observed
    """

    truth: Array
    decoded: Array
    uncertain: Array
    there: NDArray[np.bool_]
    std: Array
    seen: NDArray[np.int64]


def evidence(
    truth: Array, decoded: Array, spread: Array, there: Array, mean: Array, std: Array, seen: Array
) -> Evidence:
    """truth, decoded, the variance `spread` of its draws, there (m, *shape); mean, std (*shape,);
    all scaled."""
    unit = np.where(std > 0, std, 1.0)
    there = there & (std > 0)
    away, decoded, uncertain = (truth - mean) / unit, (decoded - mean) / unit, spread / unit**2
    for part in (away, decoded, uncertain):
        part[~there] = 0.0
    return Evidence(away, decoded, uncertain, there, std, seen)


def calibrate(
    views: Sequence[Evidence], shrinks: bool = True, n_views: int | None = None
) -> list[Calibration]:
    """One calibration per view. Views with few instances borrow from the others.

    n_views: how many views a sample may have, where `views` are only some of them.
    """
    slopes = [_slope(e) for e in views]
    cross, power = sum(c for c, _ in slopes), sum(p for _, p in slopes)
    common = float(np.clip(cross / power, 0.0, 1.0)) if shrinks and power > 0 else 1.0
    errors = [(_residual(e, common).sum(), e.there.sum()) for e in views]
    pooled = sum(e for e, _ in errors) / max(sum(n for _, n in errors), 1)
    by_seen = _by_seen(views, common, n_views or len(views))
    shared = (common if shrinks else None, pooled, by_seen)
    return [_one(e, slope, *shared) for e, slope in zip(views, slopes, strict=True)]


def _by_seen(views: Sequence[Evidence], shrink: float, n_views: int) -> Array:
    """How the error grows where fewer views are seen, (L,), relative to its view's average."""
    total, count = np.zeros(n_views), np.zeros(n_views)
    for e in views:
        if e.there.any():
            residual = _residual(e, shrink).reshape(len(e.truth), -1).sum(1)
            each = residual / np.maximum(e.there.reshape(len(e.truth), -1).sum(1), 1)
            np.add.at(total, e.seen - 1, each / max(each.mean(), 1e-12))
            np.add.at(count, e.seen - 1, 1)
    return np.sqrt((total + PSEUDO) / (count + PSEUDO))


def _slope(e: Evidence) -> tuple[float, float]:
    """Least squares of the truth on what was decoded: (cross product, power) per feature."""
    width = max(e.there[:1].size, 1)
    return float((e.truth * e.decoded).sum()) / width, float((e.decoded**2).sum()) / width


def _residual(e: Evidence, shrink: float) -> Array:
    residual: Array = (e.truth - shrink * e.decoded) ** 2
    return residual


def _one(
    e: Evidence, slope: tuple[float, float], common: float | None, pooled: float, by_seen: Array
) -> Calibration:
    cross, power = slope
    if not e.there.any():
        noise = np.sqrt(pooled) if pooled > 0 else 1.0
        return Calibration(1.0 if common is None else common, 1.0, e.std * noise, by_seen)
    shrink, width = 1.0, e.there[:1].size
    if common is not None and power > 0:
        belief = PSEUDO * power / len(e.truth)
        shrink = float(np.clip((cross + belief * common) / (power + belief), 0.0, 1.0))
    residual, uncertain = _residual(e, shrink), shrink**2 * e.uncertain
    spread = float(np.sqrt(min(1.0, 0.8 * residual.sum() / max(uncertain.sum(), 1e-12))))
    average = (residual.sum() + PSEUDO * width * pooled) / (e.there.sum() + PSEUDO * width)
    left = residual.sum(0) - spread**2 * uncertain.sum(0)
    variance = (left + PSEUDO * average) / (e.there.sum(0) + PSEUDO)
    noise = np.sqrt(np.maximum(variance, 0.05 * average)) * e.std
    return Calibration(shrink, spread, noise, by_seen)


def reaches(views: Sequence[Array], sparse: Sequence[bool]) -> list[Array]:
    """How far intervals of LEVELS reach in each view, so that they cover that share of the entries.

    views: by how many standard deviations entries of hidden instances are off, (m, features), NaN
    where unknown. Few instances leave a view with what all views have, and few in all with what a
    normal distribution has; entries of one instance are alike, so instances count.
    sparse: views that are mostly one value. An interval has to hold it, so it is never narrower
    than the normal one.
    """
    each = [_quantiles(far) for far in views]
    common = _shrunk([e for e, thin in zip(each, sparse, strict=True) if not thin], NORMAL_REACH)
    found = [_shrunk([one], common) for one in each]
    return [np.maximum(r, NORMAL_REACH * thin) for r, thin in zip(found, sparse, strict=True)]


def _quantiles(far: Array) -> tuple[int, Array]:
    """The number of instances, and the quantiles of their entries, (q,).

    The variance s^2 of a feature is a mean over n = m + PSEUDO instances, of which an instance that
    is off by z s is one; without it s^2 is (n - z^2) / (n - 1) times that.
    """
    there = ~np.isnan(far)
    m = int(there.any(1).sum())
    n, z = m + PSEUDO, far[there]
    others = np.maximum(n - z**2, 1.0) / (n - 1)
    z /= np.sqrt(others, out=others)  # in place: there may be many
    return m, np.quantile(z, LEVELS, overwrite_input=True) if m else NORMAL_REACH


def _shrunk(each: Sequence[tuple[int, Array]], towards: Array) -> Array:
    """The mean of quantiles, weighted by the numbers of instances they are of."""
    total = sum(m * q for m, q in each) + PSEUDO * towards
    return np.asarray(total / (sum(m for m, _ in each) + PSEUDO))


def mostly_one_value(truth: Array) -> bool:
    """Whether most entries equal the median of their feature, as the zeros of rare words do; truth
    (m, features), NaN where unknown."""
    known = (~np.isnan(truth)).sum(0)
    middle = np.maximum(known - 1, 0)[None] // 2  # NaN are sorted last
    median = np.take_along_axis(np.sort(truth, axis=0), middle, 0) if len(truth) else truth
    return bool((truth == median).sum() > known.sum() / 2)
