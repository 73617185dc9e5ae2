"""Locks on files, which the system frees if their holder dies: exclusive ones, for one process or
thread, and shared ones, for any number."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import randrange
from typing import IO, Any
from weakref import finalize

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP)  # errors of file systems without locks

if sys.platform == "win32":
    import msvcrt

    AT = 1 << 40  # beyond the end of every file, so that its content stays readable
    SHARES = 1 << 20  # bytes of an exclusive lock; a shared one takes one of them

    def _lock(file: int, shared: bool = False) -> bool:
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

    def _lock(file: int, shared: bool = False) -> bool:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def try_lock(path: Path) -> Iterator[bool | None]:
    """Try to take the lock of `path`, a file that is created if absent; yield whether it was free,
    or None on a file system without locks."""
    try:
        file = _locked(path)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        yield None
        return
    if file is None:
        yield False
        return
    with file:
        try:
            yield True
        finally:
            _unlock(file.fileno())


class Shared:
    """A shared lock on a file, held until this object is deleted; a copy has another lock.
    `held` is False where another process has the exclusive one."""

    def __init__(self, path: Path) -> None:
        self.path, self.held = path, True
        file = os.open(path, os.O_RDONLY)
        finalize(self, os.close, file)
        try:
            self.held = _lock(file, shared=True)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise

    def __reduce__(self) -> tuple[type[Shared], tuple[Path]]:
        return Shared, (self.path,)


def _locked(path: Path) -> IO[Any] | None:
    """Open and lock the file; None if another holds the lock. Until it is locked, another
    process may remove it with its folder: then it is created again."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("ab")
        except FileNotFoundError:
            if path.parent.exists():
                raise
            continue
        try:
            if not _lock(file.fileno()):
                file.close()
                return None
            with suppress(FileNotFoundError):  # removed meanwhile
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()
