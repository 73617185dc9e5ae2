"""The shard of a batch that this process computes, if several processes share the batch.

Each process computes the loss of its shard. Whatever concerns the whole batch is the same for all:
noise is drawn for all rows, from generators in the same state, and each process uses that of its
rows; a mean over the rows that have a view divides by their number in the whole batch. So the
losses, weighted by their numbers of rows, add up to the loss of the whole batch in one process.

A thread trains a single model, so the current shard is thread-local, which, unlike a context
variable, can be compiled.
"""

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
    """One process's rows of a batch.

    rows           the rows of the batch in this shard
    mask           (B, L), the views of all rows of the batch, without those hidden in this step
    start, total   position of the first row, and the number of rows, in the order noise is drawn
    """

    rows: slice
    mask: Tensor
    start: int
    total: int


class _Local(threading.local):
    shard: Shard | None = None


_local = _Local()


@contextmanager
def of_batch(rows: slice, mask: Tensor) -> Iterator[None]:
    """Treat a batch as these rows of a larger one with this mask (B, L)."""
    _local.shard = Shard(rows, mask, rows.start, len(mask))
    try:
        yield
    finally:
        _local.shard = None


@contextmanager
def present(v: int | None = None) -> Iterator[None]:
    """Draw noise only for the rows that have view v, or, without v, for all pairs of a row and an
    observed view. On a GPU, whose shapes are fixed, noise is drawn for missing views as well."""
    shard = _local.shard
    if shard is not None:
        seen = shard.mask if v is None else shard.mask[:, v]
        parts = seen[: shard.rows.start], seen
        start, total = (t.numel() if t.is_cuda else int(t.sum()) for t in parts)
        _local.shard = replace(shard, start=start, total=total)
    try:
        yield
    finally:
        _local.shard = shard


def draw(t: Tensor, fill: Callable[[Tensor], Tensor], axis: int = 0) -> Tensor:
    """Draw noise in the shape of t, with rows along `axis`, by a function that fills a tensor."""
    shard = _local.shard
    if shard is None:
        return fill(torch.empty_like(t))
    strides = torch.empty_like(t).stride()
    order = sorted(range(t.ndim), key=lambda i: -strides[i])  # noise is drawn in that of memory
    shape = [*t.shape]
    shape[axis] = shard.total
    whole = torch.empty_permuted(shape, order, dtype=t.dtype, device=t.device)
    return fill(whole).narrow(axis, shard.start, t.shape[axis])


class Dropout(nn.Dropout):
    """Dropout with noise drawn for the whole batch."""

    def forward(self, x: Tensor) -> Tensor:
        if _local.shard is None or not self.training:
            return super().forward(x)
        return x * draw(x, lambda t: F.dropout(t.fill_(1.0), self.p))


def hide(batch: Views, share: float) -> Views:
    """Hide views of a batch for one step: each with this probability, never all of a row."""
    shard = _local.shard
    if not share:
        return batch
    mask = batch.mask if shard is None else shard.mask  # (B, L) of all rows of the batch
    score = torch.rand(mask.shape, device=mask.device).masked_fill(~mask, -1.0)
    hidden = (score < share) & (score < score.amax(1, keepdim=True))
    if shard is None:
        return batch.hide(hidden)
    _local.shard = replace(shard, mask=mask & ~hidden)
    return batch.hide(hidden[shard.rows])


def number_with(mask: Tensor) -> Tensor:
    """Return the number of rows that have each view, at least 1, (L,): that of the whole batch,
    scaled to the size of the shard, whose mask is passed."""
    shard = _local.shard
    if shard is None:
        return mask.sum(0).clamp(min=1)
    return shard.mask.sum(0).clamp(min=1) * (len(mask) / len(shard.mask))
