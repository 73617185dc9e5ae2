"""Arrays that are larger than memory: their rows are read from files when they are asked for, and
written to temporary files. TMPDIR selects the disk of the latter."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.lock import Shared
from vedute.data.rows import Rows, stretches

Array = NDArray[Any]
SCATTERED = 2**10  # rows per random access: each loads the pages around it
Version = tuple[int, int, int]  # of a file: changes when it is replaced or written to


def version_of(about: os.stat_result) -> Version:
    return about.st_size, about.st_ino, about.st_mtime_ns


class Opened:
    """A file that is opened once, and closed with this object; without a path a temporary one,
    which has no name. A copy in another process opens it again."""

    def __init__(self, path: os.PathLike[str] | str = "", version: Version | None = None) -> None:
        file = Path(path).open("rb") if path else TemporaryFile()  # noqa: SIM115
        finalize(self, file.close)
        self.file, self.version = file, version
        self.path = path or f"/proc/{os.getpid()}/fd/{file.fileno()}"

    def mapped(self) -> mmap.mmap:
        """Map the file; raise if another version was opened, or it was written to."""
        if self.version in (None, version_of(os.fstat(self.file.fileno()))):
            return mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        raise ValueError(f"{os.fspath(self.path)} has changed since it was opened; open it again")

    def __reduce__(self) -> tuple[Any, ...]:
        return Opened, (self.path, self.version)


class File(NamedTuple):
    """An array on the disk, mapped anew for each reading, so that pages which were read take no
    memory afterwards. shape: of the whole array; part: slice of its rows; lock: held meanwhile."""

    file: Opened
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0
    part: slice = slice(None)
    lock: Shared | None = None

    def read(self, rows: Any) -> Tensor:
        rows = rows.numpy() if isinstance(rows, Tensor) else rows
        if isinstance(rows, slice) or np.ndim(rows) == 0:
            return torch.from_numpy(np.array(self._mapped()[rows]))
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        values = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for start in range(0, len(rows), SCATTERED):
            block = slice(start, start + SCATTERED)
            values[block] = self._mapped()[rows[block]]
        return torch.from_numpy(values)

    def _mapped(self) -> Array:
        whole = np.ndarray(self.shape, self.dtype, self.file.mapped(), self.offset)
        return whole[self.part]

    def array(self) -> Array:
        """Read all rows into memory."""
        return np.array(self._mapped())

    def rows(self, origin: str = "") -> Rows:
        """Return a view whose rows are read from the file."""
        n = len(range(self.shape[0])[self.part])
        kind = torch.from_numpy(np.zeros(0, self.dtype)).dtype
        return Rows((n, *self.shape[1:]), kind, self.read, origin=origin)


class Scratch:
    """An array (n, *shape) in a temporary file that grows by rows."""

    def __init__(self) -> None:
        self.opened, self.n, self.like = Opened(), 0, np.zeros((0,))

    def add(self, rows: Array) -> None:
        """Append rows."""
        self.n, self.like = self.n + len(rows), rows[:0]
        self.opened.file.write(np.ascontiguousarray(rows).data)
        self.opened.file.flush()

    def array(self) -> Array:
        """Map the array."""
        shape = (self.n, *self.like.shape[1:])
        return np.memmap(self.opened.file, self.like.dtype, "r", 0, shape)

    def rows(self) -> Rows:
        """Return a view whose rows are read from the file."""
        return File(self.opened, self.like.dtype, (self.n, *self.like.shape[1:])).rows()


def array_pieces(a: Array) -> Iterator[Array]:
    """Iterate over blocks of rows; those of a memory-mapped array leave memory after their turn."""
    for rows in stretches(len(a), math.prod(a.shape[1:])):
        yield np.ascontiguousarray(a[rows])
        if isinstance(a.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            a.base.madvise(mmap.MADV_DONTNEED)


def npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Format the header of an .npy file."""
    head, descr = BytesIO(), np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, header)
    return head.getvalue()


def npy_pieces(a: Array) -> Iterator[bytes]:
    """Yield the content of an .npy file of `a`, which may be memory-mapped, in blocks."""
    yield npy_header(a.shape, a.dtype)
    for rows in array_pieces(a):
        yield rows.tobytes()


class Stack:
    """An array (n, *shape) in memory that is filled by rows; the first ones determine shape and
    dtype, and are used without a copy if they are all."""

    array: Array  # after all rows were added

    def __init__(self, n: int) -> None:
        self.n, self.written = n, 0

    def add(self, rows: Array) -> None:
        """Append rows."""
        start, self.written = self.written, self.written + len(rows)
        if not start:
            shape = (self.n, *rows.shape[1:])
            self.array = rows if len(rows) == self.n else np.empty(shape, rows.dtype)
        if self.array is not rows:
            self.array[start : self.written] = rows
