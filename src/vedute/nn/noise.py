"""Random noise, independent per row or common to all rows, and the generators it is drawn from.

Training draws from torch's global generators, since explicit generators break the compilation of
its steps; `alone` serialises the threads that do. Everything else draws from generators of the
current thread, in `seeded`, whatever other threads do.

Draws that users receive are independent per row. Draws that only measure a spread use the same
noise for every row of a call, so that the spread of a row depends on that row alone, and not on
its position or on the other rows.
"""

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


class _Local(threading.local):
    """The state of the current thread; unlike a context variable, it can be compiled."""

    seed: int | None = None  # None: draw from the global generators
    common = False
    generators: dict[torch.device, torch.Generator] = {}  # noqa: RUF012


_local, _global_lock = _Local(), threading.RLock()


@contextmanager
def alone() -> Iterator[None]:
    """Reserve torch's global generators for this thread: other threads wait. Their state is
    restored on exit."""
    with _global_lock, torch.random.fork_rng():
        yield


@contextmanager
def seeded(seed: int, common: bool = False) -> Iterator[None]:
    """Draw from new generators with this seed, in this thread only. common: use the same noise
    (draws, B, ...) for all B rows, and the same in every call."""
    before = _local.seed, _local.common, _local.generators
    _local.seed, _local.common, _local.generators = seed, common, {}
    try:
        yield
    finally:
        _local.seed, _local.common, _local.generators = before


class WeightsFrom(TorchFunctionMode):
    """A context that draws initial weights of networks from this generator, not the global one."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        extra = {"generator": self.generator} if func in RANDOM_FILLS else {}
        return func(*args, **(kwargs or {}) | extra)


def normal(t: Tensor) -> Tensor:
    """Draw standard normal noise in the shape of t. Common noise has zero mean and unit covariance
    over the draws, in blocks of draws - 1 dimensions: deviations by chance would affect every row.
    """
    noise = like(t, standard)
    if not _local.common:
        return noise
    freedom, ones = len(noise) - 1, torch.ones_like(noise[:, 0].flatten(1)[:, :1])
    blocks = noise[:, 0].flatten(1).split(freedom, 1)  # type: ignore[no-untyped-call]
    unit = [torch.linalg.qr(torch.cat([ones, block], 1)).Q[:, 1:] for block in blocks]
    white: Tensor = freedom**0.5 * torch.cat(unit, 1)
    return white.view_as(noise[:, :1]).expand_as(noise)


def like(t: Tensor, draw: Callable[[Tensor], Tensor], rows: int = 0) -> Tensor:
    """Draw noise in the shape of t by a function like `standard`; `rows`: the axis of the rows,
    which is the second for common noise."""
    if not _local.common:
        return shards.draw(t, draw, rows)
    return draw(t.new_empty(len(t), 1, *t.shape[2:])).expand_as(t)


def standard(t: Tensor) -> Tensor:
    """Return standard normal draws in the shape of t."""
    return torch.empty_like(t).normal_(generator=generator(t.device))


def even(t: Tensor) -> Tensor:
    """Return uniform draws between 0 and 1 in the shape of t."""
    return torch.empty_like(t).uniform_(generator=generator(t.device))


def exponential(t: Tensor) -> Tensor:
    """Return exponential draws of mean 1 in the shape of t."""
    return torch.empty_like(t).exponential_(generator=generator(t.device))


def generator(device: torch.device) -> torch.Generator | None:
    """Return the generator of this thread on a device; None: the global one."""
    if _local.seed is None:
        return None
    if device not in _local.generators:
        _local.generators[device] = torch.Generator(device).manual_seed(_local.seed)
    return _local.generators[device]


def seed() -> int:
    """Draw a seed for numpy and scikit-learn."""
    return int(torch.randint(2**31 - 1, (), generator=generator(torch.device("cpu"))))
