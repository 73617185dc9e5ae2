"""The rows of a batch that this process has, where several processes share the batch.

Each computes the loss of its own rows. What belongs to the whole batch is the same for all: noise
is drawn for all rows, from generators in the same state, and each process takes that of its rows;
a mean over the rows that have a view divides by their number in the whole batch. So the losses,
weighted by their numbers of rows, add up to the loss that one process has of the whole batch.

A thread trains one model at a time: what is at hand is a variable of the thread, which, unlike a
context variable, can be compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vedute.data.views import Views


@dataclass(frozen=True, eq=False)
class Shard:
    """Rows `start`, ... of `total`, in whose order noise is drawn; mask (B, L): which views all
    rows of the batch have, without those hidden in this step; rows: which of the batch are here."""

    start: int
    total: int
    mask: Tensor
    rows: slice


class _Here(threading.local):
    shard: Shard | None = None


_here = _Here()


@contextmanager
def of_batch(rows: slice, mask: Tensor) -> Iterator[None]:
    """Inside, a batch is these rows of a larger one, whose mask (B, L) this is."""
    with _set(Shard(rows.start, len(mask), mask, rows)):
        yield


@contextmanager
def _set(shard: Shard | None) -> Iterator[None]:
    before, _here.shard = _here.shard, shard
    try:
        yield
    finally:
        _here.shard = before


@contextmanager
def present(v: int | None = None) -> Iterator[None]:
    """Inside, noise is drawn for the rows that have view v, or, without v, for all pairs of a row
    and a view that it has. On a GPU, whose shapes are fixed, for those that have it not, too."""
    here = _here.shard
    if here is None:
        yield
        return
    seen, first = here.mask if v is None else here.mask[:, v], here.rows.start
    if seen.is_cuda:
        start, total = seen[:first].numel(), seen.numel()
    else:
        start, total = int(seen[:first].sum()), int(seen.sum())
    with _set(replace(here, start=start, total=total)):
        yield


def draw(t: Tensor, draw: Callable[[Tensor], Tensor], axis: int = 0) -> Tensor:
    """Noise in the shape of t, whose rows are this axis, by a function like torch.randn_like."""
    here = _here.shard
    if here is None:
        return draw(t)
    return draw(_longer(t, axis, here.total)).narrow(axis, here.start, t.shape[axis])


def _longer(t: Tensor, axis: int, total: int) -> Tensor:
    """Memory for so many rows, in the order in which a tensor like t lies there: noise is drawn in
    this order."""
    strides = torch.empty_like(t).stride()
    order = sorted(range(t.ndim), key=lambda i: -strides[i])
    shape = [total if i == axis else size for i, size in enumerate(t.shape)]
    return torch.empty_permuted(shape, order, dtype=t.dtype, device=t.device)


class Dropout(nn.Dropout):
    """Dropout whose noise is that of the whole batch."""

    def forward(self, x: Tensor) -> Tensor:
        if _here.shard is None or not self.training:
            return super().forward(x)
        return x * draw(x, lambda t: F.dropout(t.fill_(1.0), self.p))


def whole_mask(mask: Tensor) -> Tensor:
    """The mask of all rows of a batch, given that of the rows at hand."""
    return mask if _here.shard is None else _here.shard.mask


def hide(batch: Views, hidden: Tensor) -> Views:
    """Without views `hidden` in this step, (B, L) for all rows of the batch."""
    here = _here.shard
    if here is None:
        return batch.hide(hidden)
    _here.shard = replace(here, mask=here.mask & ~hidden)
    return batch.hide(hidden[here.rows])


def number_with(mask: Tensor) -> Tensor:
    """How many rows have each view, at least 1, (L,), given the mask of the rows at hand; of the
    whole batch, as a share of which these rows count."""
    here = _here.shard
    if here is None:
        return mask.sum(0).clamp(min=1)
    return here.mask.sum(0).clamp(min=1) * (len(mask) / len(here.mask))
