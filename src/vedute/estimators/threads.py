"""Use of the machine in training: threads, and the precision of products."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import torch

from vedute.data.views import Views
from vedute.training.model import Model

SMALL_STEP = 1e9  # weights times batch size, below which one thread is as fast as several
ARM = platform.machine().lower() in ("aarch64", "arm64")


@contextmanager
def thread_settings(model: Model, data: Views, batch_size: int) -> Iterator[None]:
    """Set TF32 on a GPU, and one thread if steps are so small that synchronisation would dominate.
    On ARM, disable oneDNN: its products of small matrices take up to seven times as long as those
    of OpenBLAS."""
    exact, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    images = any(len(shape) > 1 for shape in data.shapes)
    work = sum(p.numel() for p in model.parameters()) * min(batch_size or len(data), len(data))
    torch.set_float32_matmul_precision("high")
    _set_threads(1 if work < SMALL_STEP and not images else threads, threads)
    before = _one_dnn(False) if ARM and not images else None
    try:
        yield
    finally:
        if before is not None:
            _one_dnn(before)
        torch.set_float32_matmul_precision(exact)
        _set_threads(threads, threads)


def _set_threads(number: int, others: int) -> None:
    """Set the number of threads for this thread; threads that start later use `others`."""
    torch.set_num_threads(number)
    if number != others:
        new = Thread(target=torch.set_num_threads, args=(others,))
        new.start()
        new.join()


def _one_dnn(enabled: bool) -> bool:
    """Enable or disable oneDNN; return whether it was enabled."""
    return bool(torch.backends.mkldnn.set_flags(enabled)[0])  # type: ignore[no-untyped-call]
