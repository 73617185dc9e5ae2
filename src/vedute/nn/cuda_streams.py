"""Work on several views at once: on a GPU each view has a CUDA stream, so that small kernels of
several views overlap, also in a captured step and in its backward pass. On a CPU, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T", bound=Tensor | tuple[Tensor, ...])
MOST_STREAMS = 8  # streams


def parallel_streams(tasks: Sequence[Callable[[], T]], given: Sequence[Tensor]) -> list[T]:
    """The results of the tasks, in order. `given`: the tensors from outside that they read."""
    if len(tasks) < 2 or not given[0].is_cuda:
        return [task() for task in tasks]
    here, results = torch.cuda.current_stream(), []
    used = _streams(given[0].device.index)[: len(tasks)]
    for stream in used:
        stream.wait_stream(here)
        _share(given, stream)
    for i, task in enumerate(tasks):
        with torch.cuda.stream(used[i % len(used)]):
            results.append(task())
    for stream in used:
        here.wait_stream(stream)
    for result in results:
        _share([result] if isinstance(result, Tensor) else result, here)
    return results


def _share(tensors: Iterable[Tensor], stream: torch.cuda.Stream) -> None:
    """Keep the memory of these tensors reserved while `stream` may still use it."""
    for t in tensors:
        t.record_stream(stream)


@cache
def _streams(device: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(MOST_STREAMS)]  # type: ignore[no-untyped-call]
