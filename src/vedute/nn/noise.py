"""Random noise, independent per row or common to all rows, and the generators it is drawn from.

Training draws from torch's global generators, since explicit generators break the compilation of
its steps; `alone` serialises the threads that do. Everything else draws from generators of the
current thread, in `seeded`, whatever other threads do.

Draws that users receive are independent per row. Draws that only measure a spread use the same
noise for every row of a call, so that the spread of a row depends on that row alone.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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


def like(t: Tensor, fill: Callable[..., Tensor] = Tensor.normal_, rows: int = 0) -> Tensor:
    """Draw noise in the shape of t by a tensor's method; `rows`: the axis of the rows, which is the
    second for common noise. Common normal noise has zero mean and unit covariance over the draws,
    in blocks of draws - 1 dimensions: deviations by chance would affect every row."""
    source = generator(t.device)
    if not _local.common:
        return shards.draw(t, partial(fill, generator=source), rows)
    noise = fill(t.new_empty(len(t), 1, *t.shape[2:]), generator=source)
    if fill is Tensor.normal_:
        freedom, flat, unit = len(noise) - 1, noise.flatten(1), []
        for block in flat.split(freedom, 1):  # type: ignore[no-untyped-call]
            ones = torch.ones_like(block[:, :1])
            unit.append(torch.linalg.qr(torch.cat([ones, block], 1)).Q[:, 1:])
        noise = (freedom**0.5 * torch.cat(unit, 1)).view_as(noise)
    return noise.expand_as(t)


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
