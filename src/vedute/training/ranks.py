"""One training on several ranks, the processes of a `torch.distributed` group.

Every rank does the same from the same data and seed, but for the steps of training: of a batch it
computes the loss of some rows (see `nn.shards`), and gradients are added up. Outside a group, all
of this is as for one rank.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Thread
from time import monotonic, sleep
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from vedute.training.model import load_state

T = TypeVar("T")
LONG_WAIT = 30.0  # seconds to wait for other ranks before this is said


class LostError(ConnectionError):
    """Another rank has ended, or cannot be reached."""


def together() -> bool:
    """Whether this process is in a group."""
    return distributed.is_available() and distributed.is_initialized()


def rank() -> int:
    return distributed.get_rank() if together() else 0


def size() -> int:
    return distributed.get_world_size() if together() else 1


def capturable() -> bool:
    """Whether a step that adds up gradients can be captured on a GPU."""
    return not together() or "nccl" in distributed.get_backend_config()


def share(n: int) -> slice:
    """Which of n rows are this rank's; of fewer rows than ranks, some ranks have none."""
    return slice(n * rank() // size(), n * (rank() + 1) // size())


def add_up(t: Tensor) -> Tensor:
    """The sum over all ranks, in place, and the same bits on each."""
    if together():
        _with_others(lambda: distributed.all_reduce(t))
    return t


def add_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """The sum over all ranks, of all gradients at once. Within a stage the same parameters have
    one on every rank."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not together() or not gradients:
        return
    flat = add_up(torch.cat([g.flatten() for g in gradients]))
    parts = flat.split([g.numel() for g in gradients])  # type: ignore[no-untyped-call]
    for g, part in zip(gradients, parts, strict=True):
        g.copy_(part.view(g.shape))


def by_first(work: Callable[[], T]) -> T:
    """What the first rank finds, or its error, on all ranks."""
    if not together():
        return work()
    found: list[Any] = [None, None]
    if rank() == 0:
        try:
            found[0] = work()
        except Exception as error:
            found[1] = error
    _with_others(lambda: distributed.broadcast_object_list(found, 0))
    if found[1] is not None:
        raise found[1]
    result: T = found[0]
    return result


def copy_first(model: nn.Module) -> None:
    """Give all ranks the weights of the first."""
    if size() > 1:
        load_state(model, by_first(lambda: {k: v.cpu() for k, v in model.state_dict().items()}))


def all_have(value: object) -> bool:
    """Whether this is the same on all ranks."""
    found = [value] * size()
    if together():
        _with_others(lambda: distributed.all_gather_object(found, value))
    return all(other == value for other in found)


def mean(value: float, weight: int, device: torch.device) -> float:
    """The mean of the values that the ranks have, each with its weight."""
    if size() == 1:
        return value
    found = torch.tensor([value * weight, weight], dtype=torch.float64, device=device)
    with waiting():
        total, weights = add_up(found).tolist()
    return float(total / weights)


def largest(number: int, device: torch.device) -> int:
    """The largest of the numbers that the ranks have."""
    if not together():
        return number
    found = torch.tensor(number, device=device)
    _with_others(lambda: distributed.all_reduce(found, distributed.ReduceOp.MAX))
    with waiting():
        return int(found)


def _with_others(collective: Callable[[], Any]) -> None:
    try:
        with waiting():
            collective()
    except RuntimeError as error:
        raise LostError(
            "another rank has ended, or cannot be reached, and with it ends the fit; torchrun "
            "--max-restarts=1 goes on from the last checkpoint"
        ) from error


@contextmanager
def waiting() -> Iterator[None]:
    """Inside, this rank waits for the others: after a while it says so, once."""
    watch = _watch() if together() else None
    if watch is None or watch.since < math.inf:  # a wait inside another
        yield
        return
    watch.since = monotonic()
    try:
        yield
    finally:
        watch.since = math.inf


class _Watch(Thread):
    """Looks every second for how long this rank has waited."""

    since = math.inf

    def run(self) -> None:
        while True:
            sleep(1.0)
            if monotonic() - self.since > LONG_WAIT:
                self.since = math.inf
                # Only the first rank has a stderr of its own; it may be the one that was stopped.
                print(
                    f"vedute: rank {rank()} has waited {LONG_WAIT:.0f} s for the other ranks; one "
                    "of them was stopped, is busy, or cannot be reached",
                    file=sys.__stderr__,
                    flush=True,
                )


@cache
def _watch() -> _Watch:
    watch = _Watch(daemon=True)
    watch.start()
    return watch
