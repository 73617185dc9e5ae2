"""Limits of files, checked before they are read: they are regular ones, as a pipe or a device may
block forever, and take at most VEDUTE_MAX_BYTES of memory, by default three quarters of it, by
their headers; compressed data are decompressed up to the limit and no further."""

from __future__ import annotations

import gzip
import io
import os
from math import prod
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

LIMIT_VARIABLE = "VEDUTE_MAX_BYTES"
UNKNOWN_MEMORY = 16 * 2**30  # where the system does not report its memory


class TooLargeError(ValueError):
    """A file that takes more memory than the limit."""


def most_bytes() -> int:
    """Return the memory that one file may take."""
    setting = os.environ.get(LIMIT_VARIABLE, "")
    if setting and not (setting.isdecimal() and int(setting)):
        raise ValueError(f"{LIMIT_VARIABLE} is a whole number of bytes, got {setting!r}")
    if setting:
        return int(setting)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, ValueError, OSError):  # Windows
        return UNKNOWN_MEMORY


def check(size: int, what: object) -> None:
    """Reject what would take more memory than the limit."""
    if size > most_bytes():
        reject(what, shown(size), str(size))


def reject(what: object, size: str, enough: str) -> NoReturn:
    problem = f"{what} takes {size} of memory, more than the {shown(most_bytes())} it may"
    fix = f"take fewer samples or features, or allow it: {LIMIT_VARIABLE}={enough}"
    raise TooLargeError(f"{problem}; {fix}")


def shown(size: int) -> str:
    """Format a size: 1234567 -> 1.2 MB."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def is_special(path: Path) -> bool:
    """Whether a path exists, and is neither a file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


def plain_file(path: str | Path) -> Path:
    """Return the path of a file to read; reject pipes and devices."""
    path = Path(path)
    if is_special(path):
        raise ValueError(f"{path} is a pipe or a device; write it to a file, and name that")
    return path


def npy_bytes(file: IO[bytes]) -> int:
    """Memory of an array according to the header of its .npy file; 0 without one."""
    try:
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        return prod(shape) * dtype.itemsize
    except Exception:  # the reader reports the error
        return 0


def unpacked(path: Path) -> io.BufferedReader:
    """Open a .gz file; reading fails beyond the limit."""
    return io.BufferedReader(_Limited(path), 1 << 16)


class _Limited(gzip.GzipFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path, self.left = path, most_bytes()

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        self.left -= count
        if self.left < 0:
            limit = most_bytes()
            reject(self.path, f"more than {shown(limit)}", f"{10 * limit}, say")
        return count
