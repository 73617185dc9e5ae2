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
    """value = mean + shrink (decoded - mean); draws deviate `spread` times; noise (*shape,) std."""

    shrink: float
    spread: float
    noise: Array

    def variance(self, kind: str, mean: Array, draws: Array) -> Array:
        """Of a value: mean (n, *shape), draws of it (k, n, *shape) -> (n, *shape)."""
        if kind in ("bernoulli", "categorical"):
            return np.asarray(np.clip(mean * (1 - mean), 0, None))
        return np.asarray(self.spread**2 * draws.var(0) + self.noise**2)


class Evidence(NamedTuple):
    """m hidden instances of a view, in standard deviations from the mean; zero where not `there`.

    gap: the truth, told: the decoder, wander: the variance of its draws; (m, *shape), std (*shape,)
    """

    gap: Array
    told: Array
    wander: Array
    there: NDArray[np.bool_]
    std: Array


def evidence(
    truth: Array, decoded: Array, draws: Array, there: NDArray[np.bool_], mean: Array, std: Array
) -> Evidence:
    """truth, decoded, there (m, *shape); draws (k, m, *shape); mean, std (*shape,), all scaled."""
    unit = np.where(std > 0, std, 1.0)
    there = there & (std > 0)
    parts = ((truth - mean) / unit, (decoded - mean) / unit, draws.var(0) / unit**2)
    gap, told, wander = (np.where(there, p, 0.0) for p in parts)
    return Evidence(gap, told, wander, there, std)


def calibrate(views: Sequence[Evidence], shrinks: bool = True) -> list[Calibration]:
    """One calibration per view. Views with few instances borrow from the others."""
    slopes = [_slope(e) for e in views]
    cross, power = sum(c for c, _ in slopes), sum(p for _, p in slopes)
    common = float(np.clip(cross / power, 0.0, 1.0)) if power > 0 else 1.0
    variances = [(_residual(e, common).sum(), e.there.sum()) for e in views]
    pooled = sum(v for v, _ in variances) / max(sum(n for _, n in variances), 1)
    return [
        _one(e, c, p, common if shrinks else None, pooled)
        for e, (c, p) in zip(views, slopes, strict=True)
    ]


def _slope(e: Evidence) -> tuple[float, float]:
    """Least squares of the truth on what was told: (cross product, power) per feature."""
    width = max(e.there[:1].size, 1)
    return float((e.gap * e.told).sum()) / width, float((e.told**2).sum()) / width


def _residual(e: Evidence, shrink: float) -> Array:
    residual: Array = (e.gap - shrink * e.told) ** 2
    return residual


def _one(
    e: Evidence, cross: float, power: float, common: float | None, pooled: float
) -> Calibration:
    m = len(e.gap)
    if m == 0 or not e.there.any():
        noise = np.sqrt(pooled) if pooled > 0 else 1.0
        return Calibration(1.0 if common is None else common, 1.0, e.std * noise)
    shrink = 1.0
    if common is not None and power > 0:
        belief = PSEUDO * power / m
        shrink = float(np.clip((cross + belief * common) / (power + belief), 0.0, 1.0))
    residual, wander = _residual(e, shrink), shrink**2 * e.wander
    spread = float(np.sqrt(min(1.0, 0.8 * residual.sum() / max(wander.sum(), 1e-12))))
    view = (residual.sum() + PSEUDO * e.there[:1].size * pooled) / (
        e.there.sum() + PSEUDO * e.there[:1].size
    )
    left = residual.sum(0) - spread**2 * wander.sum(0)
    variance = (left + PSEUDO * view) / (e.there.sum(0) + PSEUDO)
    return Calibration(shrink, spread, np.sqrt(np.maximum(variance, 0.05 * view)) * e.std)
