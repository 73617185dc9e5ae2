"""Diagonal Laplace distributions, for posteriors whose total width is fixed.

A Laplace carries (loc, scale) of shape (..., D): any leading axes, latent axis last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from vedute.nn import noise

NARROWEST = 1e-6  # a scale that a softmax has driven to nothing


class Laplace(NamedTuple):
    loc: Tensor
    scale: Tensor

    def map(self, f: Callable[[Tensor], Tensor]) -> Laplace:
        """Apply an indexing or reshaping to both parameters."""
        return Laplace(f(self.loc), f(self.scale))


def standard_like(t: Tensor) -> Laplace:
    """Lap(0, 1) in the shape of t."""
    return Laplace(torch.zeros_like(t), torch.ones_like(t))


def shared_width(h: Tensor) -> Tensor:
    """Scales D softmax(h) over the latent axis: one dimension narrows only as others widen."""
    return h.shape[-1] * h.softmax(-1) + NARROWEST


def variance(q: Laplace) -> Tensor:
    return 2 * q.scale.square()


def sample(q: Laplace, rows: int = 0) -> Tensor:
    """Reparameterised draw, loc + scale * eps; eps is a difference of two exponentials. `rows`:
    the axis of the samples."""
    up, down = (noise.like(q.loc, noise.exponential, rows) for _ in range(2))
    return q.loc + q.scale * (up - down)


def log_prob(q: Laplace, z: Tensor) -> Tensor:
    """log q(z), summed over the latent axis: (..., D) -> (...), broadcast against q."""
    return -((z - q.loc).abs() / q.scale).sum(-1) - (2 * q.scale).log().sum(-1)
