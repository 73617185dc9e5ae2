"""One process at a time: an exclusive lock on a file, which the system frees if its holder dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    AT = 1 << 40  # a byte behind the end of every file: others may read what is before it

    def _lock(file: int) -> None:
        while True:
            os.lseek(file, AT, os.SEEK_SET)
            try:
                return msvcrt.locking(file, msvcrt.LK_LOCK, 1)
            except OSError:  # it was held for ten seconds
                continue

    def _unlock(file: int) -> None:
        os.lseek(file, AT, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Inside, no other process or thread holds the lock of `path`, a file that is made if absent.

    A thread that asks for a lock it holds waits forever.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        _lock(file.fileno())
        try:
            yield
        finally:
            _unlock(file.fileno())
