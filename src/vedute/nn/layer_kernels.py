"""Linear layers with a (leaky) ReLU for NVIDIA GPUs: the gradient of the activation and that of the
bias, a sum over the batch, in one kernel (Triton).

    y = a(x W + b), a(u) = u where u > 0, else slope u; slope 1: no activation
    du = dy where y > 0, else slope dy        db = sum over the batch of du
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu

ROWS, COLUMNS, WARPS = 128, 32, 8  # entries at once


@triton.jit
def _gradient(
    up, y, down, d_bias, B, N, slope,
    ACTIVE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """up, y, down (G, B, N), d_bias (G, N); y and down are not touched unless ACTIVE."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    group = tl.program_id(1)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, B, ROWS):
        row = start + tl.arange(0, ROWS)
        at = group * B * N + row[:, None] * N + column[None, :]
        inside = (row < B)[:, None] & (column < N)[None, :]
        value = tl.load(up + at, inside, 0.0)
        if ACTIVE:
            value = tl.where(tl.load(y + at, inside, 0.0) > 0, value, slope * value)
            tl.store(down + at, value, inside)
        total += value
    tl.store(d_bias + group * N + column, tl.sum(total, 0), column < N)


def _through(up: Tensor, y: Tensor, slope: float) -> tuple[Tensor, Tensor]:
    """dy, y (G, B, N) -> du (G, B, N) and db (G, N)."""
    G, B, N = up.shape
    up, active = up.contiguous(), slope != 1.0
    down, d_bias = torch.empty_like(up) if active else up, up.new_empty(G, N)
    grid = (triton.cdiv(N, COLUMNS), G)
    sizes = (B, N, slope, active, ROWS, COLUMNS)
    _gradient[grid](up, y, down, d_bias, *sizes, num_warps=WARPS)
    return down, d_bias


class Linear(torch.autograd.Function):
    """x (B, in), weight (out, in), bias (out), slope 0 or 1 -> (B, out)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
        product = torch.addmm if slope == 1.0 else torch._addmm_activation
        y: Tensor = product(bias, x, weight.t())
        ctx.save_for_backward(x, weight, y)
        ctx.slope = slope
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *ups: Tensor) -> Any:
        x, weight, y = ctx.saved_tensors
        down, d_bias = _through(ups[0][None], y, ctx.slope)
        d_x = down[0] @ weight if ctx.needs_input_grad[0] else None
        return d_x, down[0].t() @ x, d_bias[0], None


class Stacked(torch.autograd.Function):
    """x (G, B, in), weight (G, in, out), bias (G, 1, out) -> (G, B, out)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
        u = torch.baddbmm(bias, x, weight)
        y = u if slope == 1.0 else leaky_relu(u, slope, inplace=True)
        ctx.save_for_backward(x, weight, y)
        ctx.slope = slope
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *ups: Tensor) -> Any:
        x, weight, y = ctx.saved_tensors
        down, d_bias = _through(ups[0], y, ctx.slope)
        return down @ weight.mT, x.mT @ down, d_bias[:, None], None


def linear(x: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
    """A layer of `nn.Linear`, or one of `layers.StackedLinear`."""
    layer = Linear if weight.ndim == 2 else Stacked
    out: Tensor = layer.apply(x, weight, bias, slope)  # type: ignore[no-untyped-call]
    return out
