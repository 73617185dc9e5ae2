"""Views and arrays that are larger than memory: their rows are read from files when they are asked
for, and written to temporary files. TMPDIR selects the disk of the latter."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from mmap import mmap
from pathlib import Path
from tempfile import mkstemp
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.lock import Shared
from vedute.data.rows import slices

Array = NDArray[Any]
READ_ROWS, READ_NUMBERS = 2**14, 2**21  # largest block of a pass over all rows
SCATTERED = 2**10  # rows per random access: each loads the pages around it


@dataclass(frozen=True, eq=False)
class Lazy:
    """A view (n, *shape_v) whose rows are read when they are asked for. read: rows, as tensors are
    indexed, -> tensor, always a new one. origin: checksum of the source file."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[Any], Tensor]
    origin: str = ""
    device: str | torch.device = "cpu"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Tensor:
        return self.read(rows.cpu() if isinstance(rows, Tensor) else rows).to(self.device)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def then(
        self, f: Callable[[Tensor, Any], Tensor], dtype: torch.dtype | None = None, *shape: int
    ) -> Lazy:
        """Apply f after reading: (values of the rows, their indices) -> new values."""
        whole = (len(self), *shape) if shape else self.shape
        return replace(self, shape=whole, dtype=dtype or self.dtype, read=_Then(self.read, f))

    def to(self, device: str | torch.device) -> Lazy:
        return replace(self, device=device)


@dataclass(frozen=True, eq=False)
class _Then:
    read: Callable[[Any], Tensor]
    f: Callable[[Tensor, Any], Tensor]

    def __call__(self, rows: Any) -> Tensor:
        return self.f(self.read(rows), rows)


class Version(NamedTuple):
    """Identity of a file, which changes when it is replaced or written to."""

    size: int
    inode: int
    time: int

    @classmethod
    def of(cls, about: os.stat_result) -> Version:
        return cls(about.st_size, about.st_ino, about.st_mtime_ns)


class File(NamedTuple):
    """An array on the disk. It is mapped anew for each reading, so that pages which were read
    take no memory afterwards. shape: of the whole array; part: slice of its rows; version: the
    only one to be read; lock: held as long as rows may be read."""

    file: os.PathLike[str]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0
    part: slice = slice(None)
    version: Version | None = None
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
        try:
            with Path(self.file).open("rb") as file:
                if self.version in (None, Version.of(os.fstat(file.fileno()))):
                    whole = np.memmap(file, self.dtype, "r", self.offset, self.shape)
                    return np.asarray(whole)[self.part]
        except FileNotFoundError:
            pass
        raise ValueError(f"{os.fspath(self.file)} has changed since it was opened; open it again")

    def array(self) -> Array:
        """Read all rows into memory."""
        return np.array(self._mapped())

    def lazy(self, origin: str = "") -> Lazy:
        n = len(range(self.shape[0])[self.part])
        kind = torch.from_numpy(np.zeros(0, self.dtype)).dtype
        return Lazy((n, *self.shape[1:]), kind, self.read, origin)


def array_pieces(a: Array) -> Iterator[Array]:
    """Iterate over blocks of rows; a memory-mapped array is mapped anew for each."""
    file = None
    if isinstance(a, np.memmap) and isinstance(a.base, mmap) and a.filename is not None:
        path = Path(a.filename)  # the whole file, not a slice
        file = File(path, a.dtype, a.shape, a.offset, version=Version.of(path.stat()))
    for rows in stretches(len(a), math.prod(a.shape[1:])):
        yield np.ascontiguousarray(a[rows]) if file is None else file.read(rows).numpy()


def pieces(x: Any) -> Iterator[slice]:
    """Slices of rows of a view: blocks where they are lazy, else all at once."""
    if not isinstance(x, Lazy):
        yield slice(None)
        return
    yield from stretches(len(x), math.prod(x.shape[1:]))


def stretches(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows of so many numbers that fit into memory; at least one."""
    size = max(1, min(READ_ROWS, READ_NUMBERS // max(1, width)))
    return slices(max(n, 1), size)


class Temporary(os.PathLike[str]):
    """A file that is removed with this object."""

    def __init__(self) -> None:
        handle, self.path = mkstemp(prefix="vedute-")
        os.close(handle)
        finalize(self, Path(self.path).unlink, missing_ok=True)

    def __fspath__(self) -> str:
        return self.path


class Spool:
    """An array (n, *shape) in a temporary file that grows by rows."""

    def __init__(self) -> None:
        self.file, self.n, self.like = Temporary(), 0, np.zeros((0,))

    def add(self, rows: Array) -> None:
        self.n, self.like = self.n + len(rows), rows[:0]
        with Path(self.file).open("ab") as file:
            file.write(np.ascontiguousarray(rows).data)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n, *self.like.shape[1:])

    def array(self) -> Array:
        """Map the array."""
        array = np.memmap(self.file.path, self.like.dtype, "r", 0, self.shape)
        finalize(array, os.fspath, self.file)  # keeps the file as long as the array
        return array

    def lazy(self) -> Lazy:
        """Return a lazy view of the array."""
        return File(self.file, self.like.dtype, self.shape).lazy()


def spooled(parts: Iterable[Array]) -> Array:
    """Concatenate parts (n_i, *shape) of an array in a temporary file."""
    spool = Spool()
    for part in parts:
        spool.add(part)
    return spool.array()


def npy_pieces(a: Array) -> Iterator[bytes]:
    """Yield the content of an .npy file of `a`, which may be memory-mapped, in blocks."""
    head = BytesIO()
    descr = np.lib.format.dtype_to_descr(a.dtype)
    header = {"descr": descr, "fortran_order": False, "shape": a.shape}
    np.lib.format.write_array_header_1_0(head, header)
    yield head.getvalue()
    for rows in array_pieces(a):
        yield rows.tobytes()


class Stack:
    """An array (n, *shape) in memory that is filled by rows; the first ones determine shape and
    dtype, and are used without a copy if they are all."""

    def __init__(self, n: int) -> None:
        self.n, self.written = n, 0
        self._array: Array | None = None

    def add(self, rows: Array) -> None:
        """Append rows."""
        start, self.written = self.written, self.written + len(rows)
        if self._array is None and len(rows) == self.n:
            self._array = rows
            return
        if self._array is None:
            self._array = np.empty((self.n, *rows.shape[1:]), rows.dtype)
        self._array[start : self.written] = rows

    @property
    def array(self) -> Array:
        """The array, after all rows were added."""
        assert self._array is not None
        return self._array


def stacked(n: int, parts: Iterable[Array]) -> Array:
    """Concatenate parts (n_i, *shape) of an array of n rows; at least one."""
    whole = Stack(n)
    for part in parts:
        whole.add(part)
    return whole.array
