"""Processes that end at a step on the disk, as if they were killed, or the power failed, there.

A step is whatever changes files: opening one to write, making, renaming or removing files and
folders, locks, fsync. They are counted by an audit hook of Python, in a process forked for it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR
STEPS = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "fcntl.flock")
DIED, FAILED = 9, 70


def dies_at(point: int, work: Callable[[], Any], after: int | None = None) -> bool:
    """Call `work` in a process that ends at its step number `point`; whether there is such a step.

    after: it ends so many bytes into the next write instead, which leaves a file cut off.
    """
    child = os.fork()
    if not child:
        _die(point, work, after)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == FAILED:
        raise AssertionError(f"it failed on its own before step {point}; its traceback is above")
    return code != 0


def _die(point: int, work: Callable[[], Any], after: int | None) -> None:
    """Count steps, and end the child process."""
    left = point

    def step(path: Any = None) -> None:
        nonlocal left
        left -= 1
        if left == 0 and after is None:
            os._exit(DIED)
        if left == 0:
            _limit_files(path, after)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in STEPS:
            step()
        elif event == "open" and (args[2] & WRITING) and args[0] != os.devnull:
            step(args[0])

    def fsync(handle: int) -> None:
        step()
        whole(handle)

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    whole, os.fsync = os.fsync, fsync
    sys.addaudithook(hook)
    try:
        work()
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
        os._exit(FAILED)
    os._exit(0 if left > 0 else DIED)


def _limit_files(path: Any, size: int | None) -> None:
    """Make the kernel end the process at a write of more than `size` bytes beyond the opened file.

    This also ends it when a library writes.
    """
    present = Path(path).stat().st_size if isinstance(path, str) and Path(path).is_file() else 0
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (present + (size or 0),) * 2)
