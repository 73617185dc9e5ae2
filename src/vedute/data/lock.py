"""Locks on files, which the system frees if their holder dies: exclusive ones, for one process or
thread, and shared ones, for any number."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import randrange
from weakref import finalize

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP)  # errors of file systems without locks

if sys.platform == "win32":
    import msvcrt

    AT = 1 << 40  # beyond the end of every file, so that its content stays readable
    SHARES = 1 << 20  # bytes of an exclusive lock; a shared one takes one of them

    def _lock(file: int, shared: bool = False) -> bool | None:
        at, count = (AT + randrange(SHARES), 1) if shared else (AT, SHARES)
        os.lseek(file, at, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, count)
        except OSError:
            return False
        return True

    def _unlock(file: int) -> None:
        os.lseek(file, AT, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, SHARES)

else:
    import fcntl

    def _lock(file: int, shared: bool = False) -> bool | None:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return None
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def try_lock(path: Path) -> Iterator[bool | None]:
    """Try to take the lock of `path`, a file that is created if absent; yield whether it was free,
    or None on a file system without locks."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("ab")
        except FileNotFoundError:  # the folder was removed meanwhile
            if path.parent.exists():
                raise
            continue
        with file:
            free = _lock(file.fileno())
            try:  # until it is locked, another process may remove it with its folder
                stands = os.path.samestat(path.stat(), os.fstat(file.fileno()))
            except FileNotFoundError:
                stands = False
            if free and not stands:
                continue
            if not free:
                file.close()
            try:
                yield free
            finally:
                if free:
                    _unlock(file.fileno())
            return


class Shared:
    """A shared lock on a file, held until this object is deleted; a copy has another lock.
    `held` is False where another process has the exclusive one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file = os.open(path, os.O_RDONLY)
        finalize(self, os.close, file)
        self.held = _lock(file, shared=True) is not False

    def __reduce__(self) -> tuple[type[Shared], tuple[Path]]:
        return Shared, (self.path,)
