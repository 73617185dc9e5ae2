"""Many tasks in a few processes, with outcomes in the order in which they finish.

A task that fails does not affect the others. Ctrl-C ends all tasks at once (inside a fit it would
only stop the training early), and so does a signal to the parent process.
"""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread, current_thread, main_thread
from time import sleep
from typing import Generic, NamedTuple, NoReturn, TypeVar

from vedute.scale.backends import cores as cores

T = TypeVar("T")
R = TypeVar("R")
ENDING = (signal.SIGINT, signal.SIGTERM)
GRACE = 5.0  # seconds for code that cannot be interrupted


class Lane(NamedTuple, Generic[T]):
    """Tasks that share `jobs` processes with `threads` threads each."""

    tasks: Sequence[T]
    jobs: int
    threads: int


def outcomes(
    work: Callable[[T], R], lanes: Sequence[Lane[T]]
) -> Iterator[tuple[T, R | BaseException]]:
    """Yield each task with the result of `work`, or with the exception that it raised.

    All lanes run in parallel, in new processes; `work` must be picklable.
    """
    pools: list[ProcessPoolExecutor] = []
    tasks: dict[Future[R], T] = {}
    processes = get_context("spawn")
    theirs, ours = processes.Pipe(duplex=False)  # nothing is sent; workers end when it is closed
    try:
        for lane in (lane for lane in lanes if lane.tasks):
            jobs = min(lane.jobs, len(lane.tasks))
            pool = ProcessPoolExecutor(jobs, processes, begin, (lane.threads, theirs))
            pools.append(pool)
            tasks |= {pool.submit(_or_end, work, task): task for task in lane.tasks}
        for future in as_completed(tasks):
            error = future.exception()
            yield tasks[future], future.result() if error is None else error
        for pool in pools:
            pool.shutdown()
    finally:
        ours.close()
        theirs.close()
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)


def outcomes_here(
    work: Callable[[T], R], tasks: Sequence[T]
) -> Iterator[tuple[T, R | BaseException]]:
    """Yield the same outcomes, computed sequentially in this process."""
    for task in tasks:
        outcome: R | BaseException
        try:
            with _ends_at_once():
                outcome = work(task)
        except Exception as error:
            outcome = error
        yield task, outcome


@cache
def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def begin(threads: int, parent_pipe: Connection | None = None) -> None:
    """Set up a worker: limit its threads, and end it with its parent.

    It also ends when the other end of `parent_pipe` is closed.
    """
    for kind in ("OMP", "OPENBLAS", "MKL"):  # for libraries that are loaded later
        os.environ[f"{kind}_NUM_THREADS"] = str(threads)
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    threadpool_limits(threads)
    for number in ENDING:
        signal.signal(number, _exit_once)
    Thread(target=_end_with_parent, args=(parent_pipe,), daemon=True).start()


def _end_with_parent(parent_pipe: Connection | None) -> None:
    parent = parent_process()
    ends = [None if parent is None else parent.sentinel, parent_pipe]
    connection.wait([end for end in ends if end is not None])
    os.kill(os.getpid(), signal.SIGTERM)  # a run releases its claim
    sleep(GRACE)
    os._exit(1)


class _EndedError(SystemExit):
    """A signal ended this worker."""


def _or_end(work: Callable[[T], R], task: T) -> R:
    """Do a task, or end this worker after a signal, so that it does not begin the next task."""
    try:
        return work(task)
    except _EndedError:
        os._exit(1)


@contextmanager
def _ends_at_once() -> Iterator[None]:
    """Make Ctrl-C raise SystemExit, which training does not catch."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _exit(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _exit_once(number: int, _frame: object) -> NoReturn:
    """End this worker, and ignore further signals, which would interrupt its cleanup."""
    for ending in ENDING:
        signal.signal(ending, signal.SIG_IGN)
    raise _EndedError(128 + number)
