"""Structural similarity of images (Wang, Bovik, Sheikh & Simoncelli, 2004), in batches.

With means m, variances s and covariance s_ab of a and b in every 7 x 7 window,

    SSIM = (2 m_a m_b + C1) (2 s_ab + C2) / ((m_a^2 + m_b^2 + C1) (s_a + s_b + C2))

C1 = 0.01^2 and C2 = 0.03^2 for values in [0, 1], averaged over windows and channels. The window is
uniform, variances have n - 1 below, and only windows that lie inside the image count: what
scikit-image does by default. Means by a Gaussian window are other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from vedute.data.holdout import HoldOut

WINDOW = 7
C1, C2 = 0.01**2, 0.03**2
LEAST = 1e-3  # of a similarity, which may be negative
NOTHING = 1e-12  # of an error, which may be zero


def ssim(a: Tensor, b: Tensor) -> Tensor:
    """SSIM of pairs of images (B, C, H, W) with values in [0, 1], (B,)."""
    if a.shape != b.shape or a.ndim != 4 or min(a.shape[2:]) < WINDOW:
        raise ValueError(
            f"images have shapes {tuple(a.shape)} and {tuple(b.shape)}; pass equal ones "
            f"(B, C, H, W), at least {WINDOW} pixels high and wide"
        )
    parts = a, b, a * a, b * b, a * b
    means = F.avg_pool2d(torch.cat(parts), WINDOW, stride=1).chunk(len(parts))
    mean_a, mean_b, square_a, square_b, cross = means
    unbiased = WINDOW**2 / (WINDOW**2 - 1)
    var_a = unbiased * (square_a - mean_a.square())
    var_b = unbiased * (square_b - mean_b.square())
    cov = unbiased * (cross - mean_a * mean_b)
    above = (2 * mean_a * mean_b + C1) * (2 * cov + C2)
    below = (mean_a.square() + mean_b.square() + C1) * (var_a + var_b + C2)
    similarity: Tensor = (above / below).flatten(1).mean(1)
    return similarity


def blur(held: HoldOut, values: Sequence[Tensor]) -> float:
    """log(root of the mean squared error / SSIM) of hidden images: it falls where images gain more
    in similarity than they lose in error. A mean of images is blurred, although no other image has
    a smaller squared error.

    Pixels count as they are seen: in units of their deviations, those that seldom change would
    outweigh the rest.
    """
    pairs = []
    for v, value in enumerate(values):
        truth, holes, rows = held.truth.x[v], held.truth.holes[v], held.hidden[:, v]
        value = value if holes is None else torch.where(holes, truth, value)
        pairs.append([(a[rows] + 1).clamp(0, 2) / 2 for a in (value, truth)])
    similarity = _mean([ssim(a, b) for a, b in pairs])
    error = _mean([(a - b).square().flatten(1).mean(1) for a, b in pairs])
    return math.log(max(error, NOTHING)) / 2 - math.log(max(similarity, LEAST))


def _mean(parts: Sequence[Tensor]) -> float:
    return float(torch.cat([*parts]).mean())
