"""One process at a time: an exclusive lock on a file, which the system frees if its holder dies."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP)  # what file systems without locks answer

if sys.platform == "win32":
    import msvcrt

    AT = 1 << 40  # a byte behind the end of every file: others may read what is before it

    def _lock(file: int, wait: bool) -> bool:
        while True:
            os.lseek(file, AT, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError:  # it was held for ten seconds
                if not wait:
                    return False

    def _unlock(file: int) -> None:
        os.lseek(file, AT, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int, wait: bool) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Inside, no other process or thread holds the lock of `path`, a file that is made if absent.

    A thread that asks for a lock it holds waits forever.
    """
    file = _held(path, wait=True)
    assert file is not None
    with file:
        try:
            yield
        finally:
            _unlock(file.fileno())


@contextmanager
def try_lock(path: Path) -> Iterator[bool | None]:
    """The same without waiting: whether the lock could be had; None if nobody can know, on a file
    system without locks."""
    try:
        file = _held(path, wait=False)
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


def _held(path: Path, wait: bool) -> IO[Any] | None:
    """The file, open and locked; None if another holds the lock. Until it is locked, another
    process may remove it with its folder: then it is made again."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("ab")
        except FileNotFoundError:
            if path.parent.exists():
                raise
            continue
        try:
            if not _lock(file.fileno(), wait):
                file.close()
                return None
            if _is(path, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _is(path: Path, file: IO[Any]) -> bool:
    """Whether a path still leads to an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
