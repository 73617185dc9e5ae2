"""Many fits on the workers of a joblib backend, where one is set; else here, one after the other.

    with joblib.parallel_config("dask"):
        BestPair(DCCA()).fit(X)

Workers are processes, and each does one fit at a time: fits draw from the random numbers of their
process, so that two in threads would disturb each other. What tasks share is pickled once, into
an array, which joblib maps into memory (loky) or scatters (Dask) once for all tasks.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

_one_at_a_time = threading.Lock()


def elsewhere() -> bool:
    """Whether a backend is set that has other processes."""
    backend, n_jobs = get_active_backend()
    jobs = backend.default_n_jobs if n_jobs is None else n_jobs
    return jobs != 1 and not getattr(backend, "supports_sharedmem", False)


def cores() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on a Mac
        return os.cpu_count() or 1


def size() -> int:
    """How many tasks there are at once."""
    return int(effective_n_jobs(get_active_backend()[1])) if elsewhere() else 1


def outcomes(
    work: Callable[[S, T], R], shared: S, tasks: Sequence[T]
) -> Iterator[R | BrokenExecutor]:
    """What `work(shared, task)` gives for each task, in their order; an exception for one whose
    worker was killed. `work` must be a function of a module.

    Where joblib gives up on all that is left since one worker was killed, the next task has the
    workers to itself: if they are killed again, it is the one. Then the others go on.
    """
    if not elsewhere():
        yield from (work(shared, task) for task in tasks)
        return
    packed = np.frombuffer(pickle.dumps(shared, protocol=5), np.uint8)
    rest, alone = list(tasks), False
    while rest:
        now, alone = rest[:1] if alone else rest, False
        try:
            for outcome in _submitted(work, packed, now):
                rest = rest[1:]
                yield outcome
        except BrokenExecutor as error:
            alone = len(now) > 1
            if not alone:
                rest = rest[1:]
                yield error


def _submitted(work: Callable[[S, T], R], packed: NDArray[Any], tasks: Sequence[T]) -> Iterator[R]:
    backend, _ = get_active_backend()
    how = "generator" if backend.supports_return_generator else "list"
    parallel = Parallel(return_as=how, batch_size=1, pre_dispatch="all")
    yield from parallel(delayed(_done)(work, packed, task) for task in tasks)


def _done(work: Callable[[S, T], R], packed: NDArray[Any], task: T) -> R:
    with _one_at_a_time, deaf(), parallel_config(backend="sequential"):
        return work(pickle.loads(packed.data), task)


@contextmanager
def deaf() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; what it means is decided by the first. A thread
    of its own, where joblib may start no process, hears nothing anyway."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
