"""Many tasks in a few processes: outcomes come as they finish, and a task that fails ends no
other. Ctrl-C ends all at once (inside a fit it would only end the training, early)."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Generic, NamedTuple, NoReturn, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Lane(NamedTuple, Generic[T]):
    """Tasks that share a few processes, which have so many threads each."""

    tasks: Sequence[T]
    jobs: int
    threads: int


def outcomes(
    work: Callable[[T], R], lanes: Sequence[Lane[T]]
) -> Iterator[tuple[T, R | BaseException]]:
    """Each task with what `work` made of it, or with the exception it raised.

    All lanes at once, in new processes; `work` must be a function of a module.
    """
    pools: list[ProcessPoolExecutor] = []
    tasks: dict[Future[R], T] = {}
    try:
        for lane in (lane for lane in lanes if lane.tasks):
            jobs = min(lane.jobs, len(lane.tasks))
            pool = ProcessPoolExecutor(jobs, get_context("spawn"), begin, (lane.threads,))
            pools.append(pool)
            tasks |= {pool.submit(work, task): task for task in lane.tasks}
        for future in as_completed(tasks):
            error = future.exception()
            yield tasks[future], future.result() if error is None else error
    finally:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)


def outcomes_here(
    work: Callable[[T], R], tasks: Sequence[T]
) -> Iterator[tuple[T, R | BaseException]]:
    """The same in this process, one after the other."""
    for task in tasks:
        outcome: R | BaseException
        try:
            with _ends_at_once():
                outcome = work(task)
        except Exception as error:
            outcome = error
        yield task, outcome


def cores() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on a Mac
        return os.cpu_count() or 1


@cache
def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def begin(threads: int) -> None:
    """In a new process: as many threads as it may have; it ends when its parent does."""
    for kind in ("OMP", "OPENBLAS", "MKL"):  # for libraries that are loaded later
        os.environ[f"{kind}_NUM_THREADS"] = str(threads)
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    threadpool_limits(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


@contextmanager
def _ends_at_once() -> Iterator[None]:
    """Ctrl-C is SystemExit inside, which training does not catch."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _exit(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(130)
