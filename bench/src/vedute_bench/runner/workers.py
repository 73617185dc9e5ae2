"""Many tasks in a few processes: outcomes come as they finish, and a task that fails ends no
other. Ctrl-C ends all at once (inside a fit it would only end the training, early), and so does a
signal to the first process alone."""

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
GRACE = 5.0  # seconds for what cannot be interrupted


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
    processes = get_context("spawn")
    theirs, ours = processes.Pipe(duplex=False)  # nothing is sent: closed, workers end
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
    """The same in this process, one after the other."""
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


def begin(threads: int, told: Connection | None = None) -> None:
    """In a new process: as many threads as it may have; it ends when its parent does, or when the
    other end of `told` is closed."""
    for kind in ("OMP", "OPENBLAS", "MKL"):  # for libraries that are loaded later
        os.environ[f"{kind}_NUM_THREADS"] = str(threads)
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    threadpool_limits(threads)
    for number in ENDING:
        signal.signal(number, _exit_once)
    Thread(target=_follow, args=(told,), daemon=True).start()


def _follow(told: Connection | None) -> None:
    parent = parent_process()
    ends = [None if parent is None else parent.sentinel, told]
    connection.wait([end for end in ends if end is not None])
    os.kill(os.getpid(), signal.SIGTERM)  # a run lets go of its claim
    sleep(GRACE)
    os._exit(1)


class _EndedError(SystemExit):
    """A signal ended this worker."""


def _or_end(work: Callable[[T], R], task: T) -> R:
    """In a worker: a signal is no outcome of a task, after which the next would begin."""
    try:
        return work(task)
    except _EndedError:
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


def _exit(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _exit_once(number: int, _frame: object) -> NoReturn:
    """In a worker: what is put in order after a signal is not interrupted by the next."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise _EndedError(128 + number)
