"""Terms that several methods share. Pure functions of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vedute import likelihoods
from vedute.views import Views


def view_error(kind: str, out: Tensor, x: Tensor, holes: Tensor | None, mean: bool) -> Tensor:
    """-log p(x | out) up to a constant, over the entries of a view that are there.

    out (..., B, *shape), x and holes (B, *shape) -> (..., B); `mean` averages over the observed
    entries (free of the width of the view), else they are summed.
    """
    e = likelihoods.error(kind, out.float(), x)
    axes = tuple(range(-x.ndim + 1, 0))
    if holes is None:
        return e.mean(axes) if mean else e.sum(axes)
    e = e.masked_fill(holes, 0.0)
    there = (~holes).sum(axes).clamp(min=1)
    return e.sum(axes) / there if mean else e.sum(axes)


def view_errors(kinds: Sequence[str], outs: Sequence[Tensor], batch: Views, mean: bool) -> Tensor:
    """`view_error` of every view: outs[v] (..., B, *shape_v) -> (..., B, L)."""
    return torch.stack(
        [
            view_error(k, o, x, h, mean)
            for k, o, x, h in zip(kinds, outs, batch.x, batch.holes, strict=True)
        ],
        dim=-1,
    )
