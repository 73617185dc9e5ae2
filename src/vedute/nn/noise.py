"""Noise of draws: of each row by itself, or common to all rows.

Draws that are given to users are independent from row to row. Draws that only measure a spread take
the same noise for every row of a call: then the spread of a row depends on that row alone, and not
on where it stands and which rows are beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from vedute.nn import shards

_COMMON = ContextVar("common", default=False)


@contextmanager
def common_to_rows() -> Iterator[None]:
    """Inside, noise (draws, B, ...) is the same for all B rows, and the same every time; the
    generators of the caller stay where they are."""
    before = _COMMON.set(True)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            yield
    finally:
        _COMMON.reset(before)


def is_common() -> bool:
    return _COMMON.get()


def normal(t: Tensor) -> Tensor:
    """Standard normal noise in the shape of t. Common noise has no mean and unit covariance over
    the draws, in blocks of dimensions: what it has by chance, every row would have."""
    noise = like(t, torch.randn_like)
    return _whitened(noise) if is_common() else noise


def uniform(*shape: int, device: torch.device) -> Tensor:
    """Between 0 and 1, for rows that are the first axis."""
    return shards.draw(torch.empty(shape, device=device), torch.rand_like)


def like(t: Tensor, draw: Callable[[Tensor], Tensor], rows: int = 0) -> Tensor:
    """Noise in the shape of t by a function like torch.randn_like; `rows`: their axis, the second
    where noise is common to them."""
    if not is_common():
        return shards.draw(t, draw, rows)
    return draw(t.new_empty(len(t), 1, *t.shape[2:])).expand_as(t)


def _whitened(noise: Tensor) -> Tensor:
    """Noise (draws, B, ...) that is common to the rows, made orthogonal to ones and to each other
    in blocks of draws - 1 dimensions."""
    freedom, ones = len(noise) - 1, torch.ones_like(noise[:, 0].flatten(1)[:, :1])
    blocks = noise[:, 0].flatten(1).split(freedom, 1)  # type: ignore[no-untyped-call]
    unit = [torch.linalg.qr(torch.cat([ones, block], 1)).Q[:, 1:] for block in blocks]
    white: Tensor = freedom**0.5 * torch.cat(unit, 1)
    return white.view_as(noise[:, :1]).expand_as(noise)
