"""Terms that several methods share. Pure functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vedute import likelihoods
from vedute.views import Views

Rows = slice | Tensor


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


def view_errors(
    kinds: Sequence[str],
    tell: Callable[[int, Rows], Tensor],
    batch: Views,
    mean: bool,
    present: Sequence[Tensor] | None = None,
) -> Tensor:
    """`view_error` of every view, (S, B, L); tell(v, rows) decodes view v, (S, rows, *shape_v).

    `present`: per view the rows that have it; only those are decoded, the others get zero.
    """
    errors = []
    for v, (kind, x, holes) in enumerate(zip(kinds, batch.x, batch.holes, strict=True)):
        rows: Rows = slice(None) if present is None else present[v]
        gaps = None if holes is None else holes[rows]
        e = view_error(kind, tell(v, rows), x[rows], gaps, mean)
        if not isinstance(rows, slice):
            e = e.new_zeros(len(e), len(x)).index_copy(1, rows, e)
        errors.append(e)
    return torch.stack(errors, dim=-1)
