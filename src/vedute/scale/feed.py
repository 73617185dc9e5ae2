"""Batches for training; data on the disk are prefetched, a few batches per read, by a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from vedute.data.views import Views

BLOCK, BLOCKS = 64, 256  # consecutive rows on the disk; blocks that are shuffled in memory
WINDOW_NUMBERS = 2**25  # most numbers per read


def shuffled(rows: Tensor) -> Tensor:
    """Return rows (k,) in the order of an epoch over data on the disk: blocks of consecutive rows
    in random order, and the rows of BLOCKS such blocks shuffled. All ranks make the same draw."""
    block = torch.arange(len(rows)) // BLOCK
    place = torch.randperm(math.ceil(len(rows) / BLOCK))
    fetch = place[block] // BLOCKS
    return rows[(fetch + torch.rand(len(rows), dtype=torch.float64)).argsort()]


class Feed:
    """An iterator over batches, as row numbers of `window`: the data if they are in memory, else a
    buffer that is refilled."""

    def __init__(self, data: Views, batch_size: int) -> None:
        """Allocate the window; `batch_size` is 0 for full batches."""
        self.data, self.streams = data, data.on_disk and bool(batch_size)
        size, width = min(batch_size, len(data)), sum(map(math.prod, data.shapes))
        most = min(BLOCK * BLOCKS, WINDOW_NUMBERS // max(1, width), len(data))
        self.batches = max(1, most // max(1, size))  # per read
        first = torch.arange(self.batches * size if self.streams else 0)
        self.window = data[first] if self.streams else data.in_memory()

    def __call__(self, batches: Sequence[Tensor]) -> Iterator[Tensor]:
        """Yield each batch once its rows are in the window."""
        if not self.streams:
            yield from batches
            return
        starts = range(0, len(batches), self.batches)
        fetches = [batches[start : start + self.batches] for start in starts]
        host = self.data.to("cpu")
        with ThreadPoolExecutor(1) as thread:
            ahead = thread.submit(_read, host, fetches[0])
            for fetch, following in zip(fetches, [*fetches[1:], []], strict=True):
                views, places = ahead.result()
                if following:
                    ahead = thread.submit(_read, host, following)
                for buffer, new in zip(_tensors(self.window), _tensors(views), strict=True):
                    new = new.pin_memory() if buffer.is_cuda else new
                    buffer[: len(new)].copy_(new, non_blocking=True)
                yield from torch.split(places.to(fetch[0].device), [*map(len, fetch)])


def _read(data: Views, fetch: Sequence[Tensor]) -> tuple[Views, Tensor]:
    """Read the rows of some batches in the order of the disk; also return their positions."""
    rows, order = torch.cat([*fetch]).cpu().sort()
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order))
    return data[rows], places


def _tensors(views: Views) -> list[Tensor]:
    rest = (*views.holes, *views.sizes, *views.context.values())
    tensors = [*views.x, views.mask, views.index, *rest]
    return [t for t in tensors if t is not None]
