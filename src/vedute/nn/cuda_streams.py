"""Views side by side: on a GPU each has a stream of its own, so that the small kernels of several
views run at once, also in a captured step and in its backward pass. Elsewhere one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T", bound=Tensor | tuple[Tensor, ...])
MOST = 8  # streams


def side_by_side(tasks: Sequence[Callable[[], T]], given: Sequence[Tensor]) -> list[T]:
    """What the tasks return. `given`: the tensors from outside that they read."""
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
    """Their memory is not given to others while this stream may still use it."""
    for t in tensors:
        t.record_stream(stream)


@cache
def _streams(device: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(MOST)]  # type: ignore[no-untyped-call]
