"""How far to trust the decoders, learned on hidden views: shrinkage, spread and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
PSEUDO = 20.0  # hidden instances' worth of belief in the average over views or features


@dataclass(frozen=True, eq=False)
class Calibration:
    """value = mean + shrink (decoded - mean); draws deviate `spread` times; then noise.

    noise (*shape,) is a standard deviation; by_seen (L,) multiplies it for samples of which
    1, 2, ..., L views are seen: the less is seen, the less is known.
    """

    shrink: float
    spread: float
    noise: Array
    by_seen: Array

    def noise_of(self, seen: NDArray[np.int64]) -> Array:
        """The noise of samples with `seen` (n,) observed views, (n, *shape)."""
        factor = self.by_seen[seen - 1].reshape(-1, *[1] * self.noise.ndim)
        return np.asarray(factor * self.noise)


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
