"""Sharper images: at the end of a training, decoders alone learn absolute errors.

What makes squared errors small is a mean, and a mean of images is blurred; what makes absolute ones
small is a median, and a median has edges. Latents stay what squared errors made of them: learned by
absolute errors, they tell less of the class (docs/pictures.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from vedute.data.holdout import HoldOut
from vedute.metrics.ssim import ssim
from vedute.nn.likelihoods import LIKELIHOODS, Kinds, Likelihood

SHARP = {"normal": LIKELIHOODS["laplace"]}
LEAST = 1e-3  # of a similarity, which may be negative
NOTHING = 1e-12  # of an error, which may be zero


def sharp(kinds: Kinds) -> list[Likelihood]:
    """Absolute errors instead of squared ones."""
    return [SHARP.get(kind.name, kind) for kind in kinds]


def blur(held: HoldOut, values: Sequence[Tensor]) -> float:
    """log(root of the mean squared error / SSIM) of hidden images: it falls where they gain more
    in similarity than they lose in error. values: L tensors (m, C, H, W) in [-1, 1]."""
    similarity = float(torch.cat([_similar(held, x, v) for v, x in enumerate(values)]).mean())
    error = held.mean_error(values)
    return math.log(max(error, NOTHING)) / 2 - math.log(max(similarity, LEAST))


def _similar(held: HoldOut, value: Tensor, v: int) -> Tensor:
    """SSIM of view v where it is hidden; holes of the truth count as found."""
    truth, holes, rows = held.truth.x[v], held.truth.holes[v], held.hidden[:, v]
    value = value if holes is None else torch.where(holes, truth, value)
    return ssim(*((t[rows] + 1).clamp(0, 2) / 2 for t in (value, truth)))
