"""Noise of draws: of each row by itself, or common to all rows; and the generators it comes from.

Training draws from torch's global generators, since generators of one's own break the compilation
of its steps; one thread at a time, in `alone`. All else draws from generators of its own, in
`seeded`, whichever thread it runs in and whatever other threads do.

Draws that are given to users are independent from row to row. Draws that only measure a spread take
the same noise for every row of a call: then the spread of a row depends on that row alone, and not
on where it stands and which rows are beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import init
from torch.overrides import TorchFunctionMode

from vedute.nn import shards

RANDOM_FILLS = (Tensor.uniform_, Tensor.normal_, init.uniform_, init.normal_, init.kaiming_uniform_)


class Generators:
    """Of one seed, one on each device that is drawn on."""

    def __init__(self, seed: int) -> None:
        self.seed, self._by_device = seed, dict[torch.device, torch.Generator]()

    def on(self, device: torch.device) -> torch.Generator:
        if device not in self._by_device:
            self._by_device[device] = torch.Generator(device).manual_seed(self.seed)
        return self._by_device[device]


class _Here(threading.local):
    """Of this thread; unlike a context variable, it can be compiled."""

    common = False
    generators: Generators | None = None


_here, _alone = _Here(), threading.RLock()


@contextmanager
def alone() -> Iterator[None]:
    """Inside, torch's global generators are this thread's: other threads wait. They are put back
    in the end."""
    with _alone, torch.random.fork_rng():
        yield


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, this thread draws from generators of its own that start at the seed."""
    before, _here.generators = _here.generators, Generators(seed)
    try:
        yield
    finally:
        _here.generators = before


@contextmanager
def common_to_rows() -> Iterator[None]:
    """Inside, noise (draws, B, ...) is the same for all B rows, and the same every time."""
    before, _here.common = _here.common, True
    try:
        with seeded(0):
            yield
    finally:
        _here.common = before


class WeightsFrom(TorchFunctionMode):
    """Inside, networks are built with weights from this generator; the global one stays."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = {"generator": self.generator} if func in RANDOM_FILLS else {}
        return func(*args, **(kwargs or {}) | given)


def is_common() -> bool:
    return _here.common


def normal(t: Tensor) -> Tensor:
    """Standard normal noise in the shape of t. Common noise has no mean and unit covariance over
    the draws, in blocks of dimensions: what it has by chance, every row would have."""
    noise = like(t, standard)
    return _whitened(noise) if is_common() else noise


def uniform(*shape: int, device: torch.device) -> Tensor:
    """Between 0 and 1, for rows that are the first axis."""
    return shards.draw(torch.empty(shape, device=device), even)


def like(t: Tensor, draw: Callable[[Tensor], Tensor], rows: int = 0) -> Tensor:
    """Noise in the shape of t by a function like `standard`; `rows`: their axis, the second where
    noise is common to them."""
    if not is_common():
        return shards.draw(t, draw, rows)
    return draw(t.new_empty(len(t), 1, *t.shape[2:])).expand_as(t)


def standard(t: Tensor) -> Tensor:
    """Standard normal draws in the shape of t."""
    own = generator(t.device)
    return torch.randn_like(t) if own is None else torch.empty_like(t).normal_(generator=own)


def even(t: Tensor) -> Tensor:
    """Draws between 0 and 1 in the shape of t."""
    own = generator(t.device)
    return torch.rand_like(t) if own is None else torch.empty_like(t).uniform_(generator=own)


def exponential(t: Tensor) -> Tensor:
    """Exponential draws of mean 1 in the shape of t."""
    return torch.empty_like(t).exponential_(generator=generator(t.device))


def generator(device: torch.device) -> torch.Generator | None:
    """Of this thread; None: the global one."""
    return None if _here.generators is None else _here.generators.on(device)


def seed() -> int:
    """For numpy and scikit-learn."""
    cpu = torch.device("cpu")
    return int(torch.randint(2**31 - 1, (), generator=generator(cpu)))


def _whitened(noise: Tensor) -> Tensor:
    """Noise (draws, B, ...) that is common to the rows, made orthogonal to ones and to each other
    in blocks of draws - 1 dimensions."""
    freedom, ones = len(noise) - 1, torch.ones_like(noise[:, 0].flatten(1)[:, :1])
    blocks = noise[:, 0].flatten(1).split(freedom, 1)  # type: ignore[no-untyped-call]
    unit = [torch.linalg.qr(torch.cat([ones, block], 1)).Q[:, 1:] for block in blocks]
    white: Tensor = freedom**0.5 * torch.cat(unit, 1)
    return white.view_as(noise[:, :1]).expand_as(noise)
