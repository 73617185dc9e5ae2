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
    in similarity than they lose in error. values: L tensors (m, C, H, W) in [-1, 1].

    Errors are those of pixels as they are seen: in units of the deviation of each, as elsewhere,
    pixels that seldom change would outweigh the rest, and SSIM knows no such units.
    """
    pairs = [_pair(held, x, v) for v, x in enumerate(values)]
    similarity = _mean([ssim(a, b) for a, b in pairs])
    error = _mean([(a - b).square().flatten(1).mean(1) for a, b in pairs])
    return math.log(max(error, NOTHING)) / 2 - math.log(max(similarity, LEAST))


def _pair(held: HoldOut, value: Tensor, v: int) -> tuple[Tensor, Tensor]:
    """View v where it is hidden, found and true, in [0, 1]; holes of the truth count as found."""
    truth, holes, rows = held.truth.x[v], held.truth.holes[v], held.hidden[:, v]
    value = value if holes is None else torch.where(holes, truth, value)
    found, true = ((t[rows] + 1).clamp(0, 2) / 2 for t in (value, truth))
    return found, true


def _mean(parts: list[Tensor]) -> float:
    return float(torch.cat(parts).mean())
