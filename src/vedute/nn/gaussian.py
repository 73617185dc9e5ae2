"""Diagonal Gaussians and the algebra every method here is written in.

A Gaussian carries (mean, logvar) of shape (..., D): any leading axes, latent axis last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from vedute.nn import kernels, noise


class Gaussian(NamedTuple):
    mean: Tensor
    logvar: Tensor

    def map(self, f: Callable[[Tensor], Tensor]) -> Gaussian:
        """Apply an indexing or reshaping to both parameters."""
        return Gaussian(f(self.mean), f(self.logvar))


def standard(like: Tensor) -> Gaussian:
    """N(0, 1) in the shape of a tensor."""
    return Gaussian(torch.zeros_like(like), torch.zeros_like(like))


def standard_like(q: Gaussian) -> Gaussian:
    """N(0, 1) in the shape of q."""
    return standard(q.mean)


def std(q: Gaussian) -> Tensor:
    return torch.exp(0.5 * q.logvar)


def sample(q: Gaussian) -> Tensor:
    """Reparameterised draw, mean + std * eps."""
    eps = noise.normal(q.mean)
    if (fused := kernels.of("gaussian", q.mean)) is not None:
        drawn: Tensor = fused.Sample.apply(*(t.contiguous() for t in (*q, eps)))
        return drawn
    return q.mean + std(q) * eps


def draws(q: Gaussian, n: int) -> Tensor:
    """n draws of each, (..., D) -> (n, ..., D)."""
    return sample(q.map(lambda t: t.expand(n, *t.shape)))


def log_prob(q: Gaussian, z: Tensor) -> Tensor:
    """log q(z), summed over the latent axis: (..., D) -> (...), broadcast against q."""
    scaled = (z - q.mean).square() * torch.exp(-q.logvar)
    return -0.5 * (scaled + q.logvar + math.log(2 * math.pi)).sum(-1)


def kl(q: Gaussian, p: Gaussian) -> Tensor:
    """KL(q || p), summed over the latent axis: (..., D) -> (...)."""
    if (found := _divergence(q, p, both=False)) is not None:
        return found
    log_ratio = q.logvar - p.logvar
    shift = (q.mean - p.mean).square() * torch.exp(-p.logvar)
    return 0.5 * (log_ratio.exp() - log_ratio - 1.0 + shift).sum(-1)


def symmetric_kl(q: Gaussian, p: Gaussian) -> Tensor:
    """Half of KL(q || p) + KL(p || q): the log-variances cancel, (..., D) -> (...)."""
    if (found := _divergence(q, p, both=True)) is not None:
        return found
    log_ratio = q.logvar - p.logvar
    shift = (q.mean - p.mean).square() * (torch.exp(-p.logvar) + torch.exp(-q.logvar))
    return 0.25 * (log_ratio.exp() + (-log_ratio).exp() - 2.0 + shift).sum(-1)


def product(q: Gaussian, dim: int, mask: Tensor | None = None) -> Gaussian:
    """Product of the experts along `dim`: precisions add, means average by precision.

        1 / var* = sum_v 1 / var_v        mean* = var* sum_v mean_v / var_v

    `mask` (broadcastable, True = keep) leaves experts out; one per product must remain. Precisions
    are relative to the largest: none overflows. (On a CPU half the time of softmax and logsumexp.)
    """
    if (found := _product(q, dim, mask)) is not None:
        return found
    log_precision = -q.logvar
    if mask is not None:
        log_precision = log_precision.masked_fill(~mask, -torch.inf)
    top = log_precision.detach().amax(dim, keepdim=True)
    weight = (log_precision - top).exp()
    total = weight.sum(dim)
    return Gaussian((weight * q.mean).sum(dim) / total, -(top.squeeze(dim) + total.log()))


# On a GPU: the same in one kernel.


def _product(q: Gaussian, dim: int, mask: Tensor | None) -> Gaussian | None:
    fused, shape = kernels.of("gaussian", q.mean), q.mean.shape
    dim %= len(shape)
    outer = prod(shape[:dim])
    if fused is None or (mask is not None and mask.numel() != outer * shape[dim]):
        return None
    parts = (t.reshape(outer, shape[dim], -1).contiguous() for t in q)
    keep = None if mask is None else mask.contiguous()
    found = fused.Product.apply(*parts, keep)
    return Gaussian(*found).map(lambda t: t.view(*shape[:dim], *shape[dim + 1 :]))


def _divergence(q: Gaussian, p: Gaussian, both: bool) -> Tensor | None:
    fused = kernels.of("gaussian", q.mean)
    if fused is None or q.mean.shape != p.mean.shape:
        return None
    found: Tensor = fused.Divergence.apply(*(t.contiguous() for t in (*q, *p)), both)
    return found
