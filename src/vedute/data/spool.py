"""Arrays that are too large for memory: rows are appended to a temporary file, which goes when
nobody uses it any more. TMPDIR says on which disk it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from vedute.data.lazy_view import File, Lazy, array_pieces

Array = NDArray[Any]


class Temporary(os.PathLike[str]):
    """A file that is removed when this object is."""

    def __init__(self) -> None:
        handle, self.path = mkstemp(prefix="vedute-")
        os.close(handle)
        finalize(self, Path(self.path).unlink, missing_ok=True)

    def __fspath__(self) -> str:
        return self.path


class Spool:
    """An array (n, *shape) that grows by rows."""

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
        """What was added, mapped."""
        found = np.memmap(self.file.path, self.like.dtype, "r", 0, self.shape)
        finalize(found, os.fspath, self.file)  # which lives as long
        return found

    def lazy(self) -> Lazy:
        """What was added, read when it is asked for."""
        return File(self.file, self.like.dtype, self.shape).lazy()


def spooled(parts: Iterable[Array]) -> Array:
    """Parts (n_i, *shape) of an array, one below the other."""
    spool = Spool()
    for part in parts:
        spool.add(part)
    return spool.array()


def npy_pieces(a: Array) -> Iterator[bytes]:
    """The content of an .npy file of `a`, which may be on the disk, some rows at a time."""
    head = BytesIO()
    descr = np.lib.format.dtype_to_descr(a.dtype)
    header = {"descr": descr, "fortran_order": False, "shape": a.shape}
    np.lib.format.write_array_header_1_0(head, header)
    yield head.getvalue()
    for rows in array_pieces(a):
        yield rows.tobytes()
