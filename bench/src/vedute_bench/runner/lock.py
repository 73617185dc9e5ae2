"""Blocking file locks: only one process or thread writes a file of records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from vedute.data.lock import try_lock

PAUSE = 0.02  # seconds


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of `path`, a file that is created if absent.

    The lock is not reentrant: a thread that already holds it waits forever.
    """
    while True:
        with try_lock(path) as acquired:
            if acquired is None:
                raise OSError(f"{path} is on a file system without locks; choose another place")
            if acquired:
                yield
                return
        sleep(PAUSE)
