"""Rows on their way to training; of data on the disk a few batches are read at a time, by a thread
while the batches before are learned from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from vedute.data.views import Views

BLOCK, BLOCKS = 64, 256  # consecutive rows on the disk; how many blocks are shuffled in memory
WINDOW_NUMBERS = 2**25  # that are read at a time, at most


def shuffled(rows: Tensor) -> Tensor:
    """Rows (k,) in the order of an epoch over data on the disk: blocks of consecutive rows at
    random, and the rows of BLOCKS such blocks at random. One draw for all who share a batch."""
    block = torch.arange(len(rows)) // BLOCK
    place = torch.randperm(math.ceil(len(rows) / BLOCK))
    fetch = place[block] // BLOCKS
    return rows[(fetch + torch.rand(len(rows), dtype=torch.float64)).argsort()]


class Feed:
    """Batches of rows of `data` as rows of `window`, which a step takes them from: data in memory
    themselves, else tensors that are filled again and again."""

    def __init__(self, data: Views, batch_size: int) -> None:
        """batch_size: 0 for all rows at once."""
        self.data, self.streams = data, data.on_disk and bool(batch_size)
        size, width = min(batch_size, len(data)), sum(map(math.prod, data.shapes))
        most = min(BLOCK * BLOCKS, WINDOW_NUMBERS // max(1, width), len(data))
        self.batches = max(1, most // max(1, size))  # read at a time
        some = torch.arange(self.batches * size if self.streams else 0)
        self.window = data[some] if self.streams else data.in_memory()

    def __call__(self, batches: Sequence[Tensor]) -> Iterator[Tensor]:
        """Each batch, when what it names is in the window."""
        if not self.streams:
            yield from batches
            return
        starts = range(0, len(batches), self.batches)
        fetches = [batches[start : start + self.batches] for start in starts]
        host = self.data.to("cpu")
        with ThreadPoolExecutor(1) as thread:
            ahead = thread.submit(_read, host, fetches[0])
            for fetch, following in zip(fetches, [*fetches[1:], []], strict=True):
                found, places = ahead.result()
                if following:
                    ahead = thread.submit(_read, host, following)
                self._fill(found)
                yield from torch.split(places.to(fetch[0].device), [*map(len, fetch)])

    def _fill(self, found: Views) -> None:
        for place, new in zip(_tensors(self.window), _tensors(found), strict=True):
            new = new.pin_memory() if place.is_cuda else new
            place[: len(new)].copy_(new, non_blocking=True)


def _read(data: Views, fetch: Sequence[Tensor]) -> tuple[Views, Tensor]:
    """The rows of some batches in the order of the disk, and where each of them is."""
    rows, order = torch.cat([*fetch]).cpu().sort()
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order))
    return data[rows], places


def _tensors(views: Views) -> list[Tensor]:
    found = [*views.x, views.mask, views.index, *views.holes, *views.sizes]
    return [t for t in found if t is not None]
