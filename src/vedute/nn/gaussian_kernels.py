"""The algebra of Gaussians as kernels for NVIDIA GPUs: one for a function, one for its gradient.

Each function of `gaussian` is a dozen operations on small tensors, whose starts take longer than
their arithmetic; here it is one (Triton, which comes with torch for CUDA). Only for contiguous
float32 tensors; `gaussian` is the definition, and what runs everywhere else.

    product        p_v = exp(logvar* - logvar_v), the share of expert v, 0 where it is left out
                   d mean_v = p_v d mean*
                   d logvar_v = p_v (d logvar* - (mean_v - mean*) d mean*)
    divergence     r = logvar_q - logvar_p, s = mean_q - mean_p, a = e^-logvar_q, b = e^-logvar_p
      KL(q || p)   sum of (e^r - r - 1 + s^2 b) / 2
      symmetric    sum of (e^r + e^-r - 2 + s^2 (a + b)) / 4
    sample         mean + e^(logvar / 2) eps
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK = 1024  # entries per program


@triton.jit
def _product(
    mean,
    logvar,
    keep,
    out_mean,
    out_logvar,
    size,
    n,
    inner,
    SOME: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Entries (outer, n, inner) -> (outer, inner); keep (outer, n)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    outer = at // inner
    first = outer * n * inner + at % inner
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    for v in range(n):
        log_precision = -tl.load(logvar + first + v * inner, inside, 0.0)
        if SOME:
            kept = tl.load(keep + outer * n + v, inside, 1) != 0
            log_precision = tl.where(kept, log_precision, float("-inf"))
        top = tl.maximum(top, log_precision)
    total = tl.zeros((BLOCK,), tl.float32)
    weighted = tl.zeros((BLOCK,), tl.float32)
    for v in range(n):
        weight = tl.exp(-tl.load(logvar + first + v * inner, inside, 0.0) - top)
        if SOME:
            weight = tl.where(tl.load(keep + outer * n + v, inside, 1) != 0, weight, 0.0)
        total += weight
        weighted += weight * tl.load(mean + first + v * inner, inside, 0.0)
    tl.store(out_mean + at, weighted / total, inside)
    tl.store(out_logvar + at, -(top + tl.log(total)), inside)


@triton.jit
def _product_gradient(
    mean, logvar, keep, out_mean, out_logvar, d_out_mean, d_out_logvar, d_mean, d_logvar,
    size, n, inner, SOME: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # of (outer, n, inner)
    inside = at < size
    row = at // inner  # of (outer, n)
    to = row // n * inner + at % inner
    share = tl.exp(tl.load(out_logvar + to, inside, 0.0) - tl.load(logvar + at, inside, 0.0))
    if SOME:
        share = tl.where(tl.load(keep + row, inside, 1) != 0, share, 0.0)
    up = tl.load(d_out_mean + to, inside, 0.0)
    shift = tl.load(mean + at, inside, 0.0) - tl.load(out_mean + to, inside, 0.0)
    tl.store(d_mean + at, share * up, inside)
    tl.store(d_logvar + at, share * (tl.load(d_out_logvar + to, inside, 0.0) - shift * up), inside)


@triton.jit
def _divergence(
    q_mean, q_logvar, p_mean, p_logvar, out, rows, D,
    BOTH: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """(rows, D) -> (rows); WIDTH: the power of two from D on."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    at = row[:, None] * D + column[None, :]
    inside = (row < rows)[:, None] & (column < D)[None, :]
    a, b = tl.load(q_logvar + at, inside, 0.0), tl.load(p_logvar + at, inside, 0.0)
    shift = tl.load(q_mean + at, inside, 0.0) - tl.load(p_mean + at, inside, 0.0)
    r = a - b
    if BOTH:
        each = 0.25 * (tl.exp(r) + tl.exp(-r) - 2.0 + shift * shift * (tl.exp(-a) + tl.exp(-b)))
    else:
        each = 0.5 * (tl.exp(r) - r - 1.0 + shift * shift * tl.exp(-b))
    tl.store(out + row, tl.sum(tl.where(inside, each, 0.0), 1), row < rows)


@triton.jit
def _divergence_gradient(
    q_mean, q_logvar, p_mean, p_logvar, d_out, d_q_mean, d_q_logvar, d_p_mean, d_p_logvar,
    size, D, BOTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # of (rows, D)
    inside = at < size
    up = tl.load(d_out + at // D, inside, 0.0)
    a, b = tl.load(q_logvar + at, inside, 0.0), tl.load(p_logvar + at, inside, 0.0)
    shift = tl.load(q_mean + at, inside, 0.0) - tl.load(p_mean + at, inside, 0.0)
    r, square = a - b, shift * shift
    if BOTH:
        skew = tl.exp(r) - tl.exp(-r)
        d_shift = 0.5 * up * shift * (tl.exp(-a) + tl.exp(-b))
        d_a = 0.25 * up * (skew - square * tl.exp(-a))
        d_b = -0.25 * up * (skew + square * tl.exp(-b))
    else:
        d_shift = up * shift * tl.exp(-b)
        d_a = 0.5 * up * (tl.exp(r) - 1.0)
        d_b = -0.5 * up * (tl.exp(r) - 1.0 + square * tl.exp(-b))
    tl.store(d_q_mean + at, d_shift, inside)
    tl.store(d_p_mean + at, -d_shift, inside)
    tl.store(d_q_logvar + at, d_a, inside)
    tl.store(d_p_logvar + at, d_b, inside)


@triton.jit
def _sample(mean, logvar, eps, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    std = tl.exp(0.5 * tl.load(logvar + at, inside, 0.0))
    value = tl.load(mean + at, inside, 0.0) + std * tl.load(eps + at, inside, 0.0)
    tl.store(out + at, value, inside)


@triton.jit
def _sample_gradient(logvar, eps, d_out, d_logvar, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    std = tl.exp(0.5 * tl.load(logvar + at, inside, 0.0))
    up = tl.load(d_out + at, inside, 0.0)
    tl.store(d_logvar + at, 0.5 * up * std * tl.load(eps + at, inside, 0.0), inside)


class Product(torch.autograd.Function):
    """mean, logvar (outer, n, inner), keep (outer, n) or None -> mean, logvar (outer, inner)."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, logvar: Tensor, keep: Tensor | None) -> Any:
        outer, n, inner = mean.shape
        out_mean, out_logvar = mean.new_empty(outer, inner), mean.new_empty(outer, inner)
        size, flags = outer * inner, mean if keep is None else keep.view(torch.uint8)
        _product[_grid(size)](
            mean, logvar, flags, out_mean, out_logvar, size, n, inner, keep is not None, BLOCK
        )
        ctx.save_for_backward(mean, logvar, flags, out_mean, out_logvar)
        ctx.some = keep is not None
        return out_mean, out_logvar

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *ups: Tensor) -> Any:
        mean, logvar, flags, out_mean, out_logvar = ctx.saved_tensors
        d_mean, d_logvar = torch.empty_like(mean), torch.empty_like(mean)
        _, n, inner = mean.shape
        _product_gradient[_grid(mean.numel())](
            mean, logvar, flags, out_mean, out_logvar, *(d.contiguous() for d in ups),
            d_mean, d_logvar, mean.numel(), n, inner, ctx.some, BLOCK,
        )  # fmt: skip
        return d_mean, d_logvar, None


class Divergence(torch.autograd.Function):
    """q_mean, q_logvar, p_mean, p_logvar (..., D) -> (...); both: symmetric."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        parts, both = given[:4], given[4]
        D = parts[0].shape[-1]
        out: Tensor = parts[0].new_empty(parts[0].shape[:-1])
        width = triton.next_power_of_2(D)
        rows = max(1, BLOCK // width)
        _divergence[(triton.cdiv(out.numel(), rows),)](
            *parts, out, out.numel(), D, both, rows, width
        )
        ctx.save_for_backward(*parts)
        ctx.both = both
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *ups: Tensor) -> Any:
        parts = ctx.saved_tensors
        downs = [torch.empty_like(t) for t in parts]
        size, D = parts[0].numel(), parts[0].shape[-1]
        d_q_mean, d_q_logvar, d_p_mean, d_p_logvar = downs
        _divergence_gradient[_grid(size)](
            *parts, ups[0].contiguous(), d_q_mean, d_q_logvar, d_p_mean, d_p_logvar,
            size, D, ctx.both, BLOCK,
        )  # fmt: skip
        return *downs, None


class Sample(torch.autograd.Function):
    """mean, logvar, eps, all of one shape -> mean + e^(logvar / 2) eps."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, logvar: Tensor, eps: Tensor) -> Tensor:
        out = torch.empty_like(eps)
        _sample[_grid(out.numel())](mean, logvar, eps, out, out.numel(), BLOCK)
        ctx.save_for_backward(logvar, eps)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *ups: Tensor) -> Any:
        logvar, eps = ctx.saved_tensors
        up, down = ups[0].contiguous(), torch.empty_like(eps)
        _sample_gradient[_grid(down.numel())](logvar, eps, up, down, down.numel(), BLOCK)
        return up, down, None


def _grid(size: int) -> tuple[int]:
    return (triton.cdiv(size, BLOCK),)
