"""Parallel fits on the workers of a joblib backend, if one is set; else in sequence.

    with joblib.parallel_config("dask"):
        BestPair(DCCA()).fit(X)

Workers are processes with a single fit each: fits use the random state of their process, so two
threads would disturb each other. What tasks share is pickled once into an array, which joblib
memory-maps (loky) or scatters (Dask) for all tasks.
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

_fit_lock = threading.Lock()


def elsewhere() -> bool:
    """Return whether the active backend has other processes."""
    backend, n_jobs = get_active_backend()
    jobs = backend.default_n_jobs if n_jobs is None else n_jobs
    return jobs != 1 and not getattr(backend, "supports_sharedmem", False)


def cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on a Mac
        return os.cpu_count() or 1


def size() -> int:
    """Return the number of tasks that run in parallel."""
    return int(effective_n_jobs(get_active_backend()[1])) if elsewhere() else 1


def outcomes(
    work: Callable[[S, T], R], shared: S, tasks: Sequence[T], here: bool = False
) -> Iterator[R | BrokenExecutor]:
    """Yield `work(shared, task)` for each task, in order, or an exception if its worker was killed.
    `work` must be a function of a module. here: work in this process, whatever the backend.

    If a worker is killed, joblib abandons all remaining tasks. The next task is then run alone; if
    its worker is killed again, that task is the cause. Afterwards the others continue.
    """
    if here or not elsewhere():
        yield from (work(shared, task) for task in tasks)
        return
    packed = np.frombuffer(pickle.dumps(shared, protocol=5), np.uint8)
    backend, _ = get_active_backend()
    how = "generator" if backend.supports_return_generator else "list"
    rest, alone = list(tasks), False
    while rest:
        now, alone = rest[:1] if alone else rest, False
        parallel = Parallel(return_as=how, batch_size=1, pre_dispatch="all")
        try:
            for outcome in parallel(delayed(_done)(work, packed, task) for task in now):
                rest = rest[1:]
                yield outcome
        except BrokenExecutor as error:
            alone = len(now) > 1
            if not alone:
                rest = rest[1:]
                yield error


def _done(work: Callable[[S, T], R], packed: NDArray[Any], task: T) -> R:
    with _fit_lock, ignore_sigint(), parallel_config(backend="sequential"):
        return work(pickle.loads(packed.data), task)


@contextmanager
def ignore_sigint() -> Iterator[None]:
    """Ignore Ctrl-C, which reaches every process of a terminal: the first process decides. Threads
    other than the main one receive no signals."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
