"""Work on several views in parallel: on a GPU each view has a CUDA stream, so that small kernels
of several views overlap, also in a captured step and in its backward pass. On a CPU they run in
sequence."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

S = TypeVar("S")
T = TypeVar("T", bound=Tensor | tuple[Tensor, ...])
MAX_STREAMS = 8


def in_parallel(task: Callable[[S], T], items: Sequence[S], inputs: Sequence[Tensor]) -> list[T]:
    """Return task(item) of all items, in order. `inputs`: the outside tensors that it reads;
    without them, it runs in sequence."""
    if len(items) < 2 or not inputs or not inputs[0].is_cuda:
        return list(map(task, items))
    current, results = torch.cuda.current_stream(), []
    used = _streams(inputs[0].device.index)[: len(items)]
    for stream in used:
        stream.wait_stream(current)
        for t in inputs:
            t.record_stream(stream)  # keep their memory while the stream may use it
    for i, item in enumerate(items):
        with torch.cuda.stream(used[i % len(used)]):
            results.append(task(item))
    for stream in used:
        current.wait_stream(stream)
    for result in results:
        for t in (result,) if isinstance(result, Tensor) else result:
            t.record_stream(current)
    return results


@cache
def _streams(device: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(MAX_STREAMS)]  # type: ignore[no-untyped-call]
