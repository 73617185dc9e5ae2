"""Work on several views in parallel: on a GPU each view has a CUDA stream, so that small kernels
of several views overlap, also in a captured step and in its backward pass. On a CPU they run in
sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T", bound=Tensor | tuple[Tensor, ...])
MAX_STREAMS = 8


def parallel_streams(tasks: Sequence[Callable[[], T]], inputs: Sequence[Tensor]) -> list[T]:
    """Return the results of the tasks, in order. `inputs`: the outside tensors that they read."""
    if len(tasks) < 2 or not inputs[0].is_cuda:
        return [task() for task in tasks]
    current, results = torch.cuda.current_stream(), []
    used = _streams(inputs[0].device.index)[: len(tasks)]
    for stream in used:
        stream.wait_stream(current)
        for t in inputs:
            t.record_stream(stream)  # keep their memory while the stream may use it
    for i, task in enumerate(tasks):
        with torch.cuda.stream(used[i % len(used)]):
            results.append(task())
    for stream in used:
        current.wait_stream(stream)
    for result in results:
        for t in (result,) if isinstance(result, Tensor) else result:
            t.record_stream(current)
    return results


@cache
def _streams(device: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(MAX_STREAMS)]  # type: ignore[no-untyped-call]
