"""Training on several ranks, the processes of a `torch.distributed` group.

Every rank does the same from the same data and seed, except in the steps of training: it computes
the loss of its share of a batch (see `nn.shards`), and gradients are summed. A process outside a
group is the only rank.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import mul
from threading import Timer
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

T = TypeVar("T")
LONG_WAIT = 30.0  # seconds to wait for other ranks before a message


class LostError(ConnectionError):
    """Another rank has ended or cannot be reached."""


def size() -> int:
    """Return the number of ranks."""
    grouped = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if grouped else 1


def rank() -> int:
    return distributed.get_rank() if size() > 1 else 0


def capturable() -> bool:
    """Return whether a step that sums gradients over ranks can be captured on a GPU."""
    return size() == 1 or "nccl" in distributed.get_backend_config()


def share(n: int) -> slice:
    """Return this rank's share of n rows, which may be empty."""
    return slice(n * rank() // size(), n * (rank() + 1) // size())


def add_up(t: Tensor) -> Tensor:
    """Sum over all of several ranks in place, with the same bits on each."""
    with waiting():
        distributed.all_reduce(t)
    return t


def add_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Sum all gradients over several ranks in one operation. Within a stage the same parameters
    have gradients on every rank."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = add_up(torch.cat([g.flatten() for g in gradients]))
    parts = flat.split([g.numel() for g in gradients])  # type: ignore[no-untyped-call]
    for g, part in zip(gradients, parts, strict=True):
        g.copy_(part.view(g.shape))


def by_first(work: Callable[[], T]) -> T:
    """Run `work` on the first rank; return its result, or raise its error, on all ranks."""
    if size() == 1:
        return work()
    outcome: list[Any] = [None]  # result or error
    if rank() == 0:
        try:
            outcome[0] = work()
        except Exception as error:
            outcome[0] = error
    with waiting():
        distributed.broadcast_object_list(outcome, 0)
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    result: T = outcome[0]
    return result


def gathered(value: T) -> list[T]:
    """Return the values of all ranks, in order."""
    values = [value] * size()
    if len(values) > 1:
        with waiting():
            distributed.all_gather_object(values, value)
    return values


def all_have(value: object) -> bool:
    """Return whether a value is equal on all ranks."""
    return gathered(value) == [value] * size()


def means(values: Sequence[float], weight: int) -> list[float]:
    """Return the mean of each value over the ranks, by their weights."""
    *parts, weights = zip(*gathered((*values, weight)), strict=True)
    return [sum(map(mul, part, weights)) / sum(weights) for part in parts]


@contextmanager
def waiting() -> Iterator[None]:
    """Watch a wait for the other ranks: print a message after LONG_WAIT, raise if one is lost."""
    # Only the first rank has its own stderr, and may be the one that was stopped.
    message = (
        f"vedute: rank {rank()} has waited {LONG_WAIT:.0f} s for the other ranks; one of them was "
        "stopped, is busy, or cannot be reached"
    )
    timer = Timer(LONG_WAIT, print, [message], {"file": sys.__stderr__, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    except RuntimeError as error:
        raise LostError(
            "another rank has ended or cannot be reached, which ends the fit; torchrun "
            "--max-restarts=1 resumes from the last checkpoint"
        ) from error
    finally:
        timer.cancel()
