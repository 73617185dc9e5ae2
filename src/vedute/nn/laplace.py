"""Diagonal Laplace distributions, for posteriors whose total width is fixed.

A Laplace carries (loc, scale) of shape (..., D): any leading axes, latent axis last.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from vedute.nn import noise

MIN_SCALE = 1e-6  # where a softmax underflows


class Laplace(NamedTuple):
    loc: Tensor
    scale: Tensor

    def map(self, f: Callable[[Tensor], Tensor]) -> "Laplace":
        """Apply an indexing or reshaping to both parameters."""
        return Laplace(f(self.loc), f(self.scale))


def standard_like(t: Tensor) -> Laplace:
    """Return Lap(0, 1) in the shape of t."""
    return Laplace(torch.zeros_like(t), torch.ones_like(t))


def shared_width(h: Tensor) -> Tensor:
    """Return the scales D softmax(h) over the latent axis: one narrows only as others widen."""
    return h.shape[-1] * h.softmax(-1) + MIN_SCALE


def variance(q: Laplace) -> Tensor:
    return 2 * q.scale.square()


def sample(q: Laplace, rows: int = 0) -> Tensor:
    """Return a reparameterised draw, loc + scale * eps, with `rows` the axis of the samples. eps is
    the difference of two exponentials."""
    up, down = (noise.like(q.loc, Tensor.exponential_, rows) for _ in range(2))
    return q.loc + q.scale * (up - down)


def log_prob(q: Laplace, z: Tensor) -> Tensor:
    """Return log q(z), summed over the latent axis: (..., D) -> (...), broadcast against q."""
    return -((z - q.loc).abs() / q.scale).sum(-1) - (2 * q.scale).log().sum(-1)
