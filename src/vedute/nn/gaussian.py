"""Diagonal Gaussians and the algebra every method here is written in.

A Gaussian carries (mean, logvar) of shape (..., D): any leading axes, latent axis last.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from vedute.nn import noise


class Gaussian(NamedTuple):
    mean: Tensor
    logvar: Tensor

    def map(self, f: Callable[[Tensor], Tensor]) -> "Gaussian":
        """Apply an indexing or reshaping to both parameters."""
        return Gaussian(f(self.mean), f(self.logvar))


def standard_like(q: Gaussian) -> Gaussian:
    """Return N(0, 1) in the shape of q."""
    return q.map(torch.zeros_like)


def std(q: Gaussian) -> Tensor:
    return torch.exp(0.5 * q.logvar)


def sample(q: Gaussian) -> Tensor:
    """Return a reparameterised draw, mean + std * eps."""
    return q.mean + torch.exp(0.5 * q.logvar) * noise.like(q.mean)


def draws(q: Gaussian, n: int) -> Tensor:
    """Return n draws of each Gaussian, or its mean if n = 0: (..., D) -> (n or 1, ..., D)."""
    many = q.mean.expand(n or 1, *q.mean.shape)
    return many + torch.exp(0.5 * q.logvar) * noise.like(many) if n else many


def log_prob(q: Gaussian, z: Tensor) -> Tensor:
    """Return log q(z), summed over the latent axis: (..., D) -> (...), broadcast against q."""
    scaled = (z - q.mean).square() * torch.exp(-q.logvar)
    return -0.5 * (scaled + q.logvar + math.log(2 * math.pi)).sum(-1)


def kl(q: Gaussian, p: Gaussian) -> Tensor:
    """Return KL(q || p), summed over the latent axis: (..., D) -> (...)."""
    log_ratio = q.logvar - p.logvar
    shift = (q.mean - p.mean).square() * torch.exp(-p.logvar)
    return 0.5 * (log_ratio.exp() - log_ratio - 1.0 + shift).sum(-1)


def symmetric_kl(q: Gaussian, p: Gaussian) -> Tensor:
    """Return half of KL(q || p) + KL(p || q): the log-variances cancel, (..., D) -> (...)."""
    log_ratio = q.logvar - p.logvar
    shift = (q.mean - p.mean).square() * (torch.exp(-p.logvar) + torch.exp(-q.logvar))
    return 0.25 * (log_ratio.exp() + (-log_ratio).exp() - 2.0 + shift).sum(-1)


def product(q: Gaussian, dim: int, mask: Tensor | None = None) -> Gaussian:
    """Return the product of the experts along `dim`: precisions add, means average by precision.

        1 / var* = sum_v 1 / var_v        mean* = var* sum_v mean_v / var_v

    `mask` (broadcastable, True = keep) leaves experts out; one per product must remain. Precisions
    are relative to the largest, so none overflows. (On a CPU, softmax is half as fast.)
    """
    log_precision = -q.logvar
    if mask is not None:
        log_precision = log_precision.masked_fill(~mask, -torch.inf)
    top = log_precision.detach().amax(dim, keepdim=True)
    weight = (log_precision - top).exp()
    total = weight.sum(dim)
    return Gaussian((weight * q.mean).sum(dim) / total, -(top.squeeze(dim) + total.log()))
