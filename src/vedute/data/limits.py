"""Memory: what a file would take, known before it is taken, compared with what it may take.

Sizes come from headers; what is packed is unpacked as far as the limit and no further. The limit
is VEDUTE_MAX_BYTES, by default three quarters of the machine's memory.
"""

from __future__ import annotations

import gzip
import io
import os
from math import prod
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

NAME = "VEDUTE_MAX_BYTES"
UNKNOWN_MEMORY = 16 * 2**30  # where the system does not say how much memory there is


def most_bytes() -> int:
    """What one file may take."""
    given = os.environ.get(NAME, "")
    if given and not (given.isdecimal() and int(given)):
        raise ValueError(f"{NAME} is a whole number of bytes, got {given!r}")
    if given:
        return int(given)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, ValueError, OSError):  # Windows
        return UNKNOWN_MEMORY


def check(size: int, what: object) -> None:
    """Refuse what would take more memory than it may."""
    if size > most_bytes():
        refuse(what, shown(size), str(size))


def refuse(what: object, size: str, enough: str) -> NoReturn:
    raise ValueError(
        f"{what} takes {size} of memory, more than the {shown(most_bytes())} it may; take fewer "
        f"samples or features, or allow it: {NAME}={enough}"
    )


def shown(size: int) -> str:
    """1234567 -> 1.2 MB"""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def file_size(path: Path) -> None:
    """Refuse a file that is itself too large; for those that are read as they are."""
    check(path.stat().st_size, path)


def npy_bytes(file: IO[bytes]) -> int:
    """What an array takes, as the header of its .npy file says; 0 where it has none."""
    try:
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        return prod(shape) * dtype.itemsize
    except Exception:  # whoever reads it says what is wrong
        return 0


def dense(matrix: Any, what: object) -> Any:
    """A sparse matrix as an array, if it may take so much."""
    check(prod(matrix.shape) * matrix.dtype.itemsize, what)
    return matrix.toarray()


def unpacked(path: Path) -> io.BufferedReader:
    """The content of a .gz file, which ends in a refusal where it is more than it may be."""
    return io.BufferedReader(_Limited(path), 1 << 16)


class _Limited(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self.path, self.inside, self.left = path, gzip.GzipFile(path), most_bytes()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.inside.readinto(buffer)
        self.left -= count
        if self.left < 0:
            least = most_bytes()
            refuse(self.path, f"more than {shown(least)}", f"{10 * least}, say")
        return count

    def close(self) -> None:
        self.inside.close()
        super().close()
