"""A view whose rows become a tensor when they are asked for: those of a large file, or of a large
sparse matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

Bools = NDArray[np.bool_]
READ_ROWS, READ_NUMBERS = 2**14, 2**21  # largest block of a pass over all rows
Flags = TypeVar("Flags", Tensor, NDArray[Any])
Step = Callable[[Tensor, Any], Tensor]  # (values of rows, their indices) -> new values
CACHED_NUMBERS = 2**19  # of a block made from a sparse matrix: it stays in the processor's cache


@dataclass(frozen=True, eq=False)
class Rows:
    """A view (n, *shape_v)."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[Any], Tensor]  # rows, as tensors are indexed -> tensor, always a new one
    origin: str = ""  # checksum of the source file
    device: str | torch.device = "cpu"
    is_sparse: bool = False  # whether rows are made from a sparse matrix, not read from the disk

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Tensor:
        return self.read(rows.cpu() if isinstance(rows, Tensor) else rows).to(self.device)

    def then(self, f: Step, dtype: torch.dtype | None = None, *shape: int) -> Rows:
        """Apply f after reading."""
        whole, read = (len(self), *(shape or self.shape[1:])), partial(_read_then, self.read, f)
        return replace(self, shape=whole, dtype=dtype or self.dtype, read=read)

    def to(self, device: str | torch.device) -> Part:
        """Read rows of the disk onto a device, later; move those of a sparse matrix now."""
        return self[:].to(device) if self.is_sparse else replace(self, device=device)


Part = Tensor | Rows


def _read_then(read: Callable[[Any], Tensor], f: Step, rows: Any) -> Tensor:
    return f(read(rows), rows)


def _read_at(read: Callable[[Any], Tensor], index: Tensor, rows: Any) -> Tensor:
    return read(index[rows])


def then(part: Part, f: Step, dtype: torch.dtype | None = None) -> Part:
    """Apply f to a tensor, or to rows when they are read."""
    return part.then(f, dtype) if isinstance(part, Rows) else f(part, slice(None))


def in_file(part: Part | None) -> bool:
    """Whether the rows are read from the disk."""
    return isinstance(part, Rows) and not part.is_sparse


def from_csr(a: Any, dtype: torch.dtype) -> Rows:
    """A csr array as a view, whose rows are made dense when they are read."""
    a = a.astype(np.float64 if dtype == torch.float64 else np.float32)
    return Rows(a.shape, dtype, partial(_dense_rows, a), is_sparse=True)


def _dense_rows(a: Any, rows: Any) -> Tensor:
    rows = rows.numpy() if isinstance(rows, Tensor) else rows
    if np.ndim(rows) == 0 and not isinstance(rows, slice):
        return _dense_rows(a, [int(rows)])[0]
    return torch.from_numpy(a[rows].toarray())


def whole(view: Any) -> Any:
    """Read all rows of a view; other objects are unchanged."""
    return view[:] if isinstance(view, Rows) else view


def select(part: Any, rows: Any) -> Any:
    """Select rows by slice, integers or booleans; those of a sparse matrix stay as they are."""
    if not part.is_sparse:
        return part[rows]
    index = torch.arange(len(part))[rows]
    read = partial(_read_at, part.read, index)
    return replace(part, shape=(len(index), *part.shape[1:]), read=read)


def by_row(flags: Flags, a: Any) -> Flags:
    """Reshape an array or tensor (n,) to the axes of `a` (n, ...)."""
    return flags.reshape(-1, *[1] * (len(a.shape) - 1))


class Tensors(Sequence[Any]):
    """Views, or their holes, as tensors: those that are `Rows` are read at each access."""

    def __init__(self, parts: Sequence[Part | None]) -> None:
        self.parts: tuple[Any, ...] = tuple(parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, v: Any) -> Any:
        if isinstance(v, slice):
            return tuple(self[u] for u in range(len(self))[v])
        part = self.parts[v]
        return None if part is None else part[:]


def rounds_too_much(lost: Any, spread: Any) -> bool:
    """Whether float32 cannot hold a number, or rounds by a thousandth of the range of a feature:
    time stamps, say. Rounding errors and ranges (*shape,), arrays or tensors."""
    return bool(((lost > 1e-3 * spread) & (spread > 0) | ~(abs(lost) < math.inf)).any())


def as_part(a: Any, mask: Bools, holes: Bools | None, dtype: torch.dtype | None, own: bool) -> Part:
    """Convert checked numbers to a view; dtype None: float32, unless that rounds too much."""
    if sparse.issparse(a):
        seen = a[mask]
        if dtype is None and not own and seen.nnz:
            error = abs(seen - seen.astype(np.float32)).max(0).toarray()
            own = rounds_too_much(error, seen.max(0).toarray() - seen.min(0).toarray())
        return from_csr(a, torch.float64 if own else dtype or torch.float32)
    a = np.ascontiguousarray(a)
    t = torch.from_numpy(a if a.flags.writeable else a.copy())
    if own or not t.is_floating_point():
        return t
    small = t.to(dtype or torch.float32)
    if dtype is not None or t.dtype == torch.float32 or not len(t):
        return small
    seen = by_row(torch.from_numpy(mask), t).expand_as(t)
    seen = seen if holes is None else seen & ~torch.from_numpy(holes)
    lost = (small.double() - t).abs().amax(0)  # nothing where t is missing, and zero
    spread = torch.where(seen, t, -torch.inf).amax(0) - torch.where(seen, t, torch.inf).amin(0)
    return t if rounds_too_much(lost, spread) else small


def pieces(part: Part) -> Iterator[slice]:
    """Slices of rows of a view: blocks where they are read, else all at once."""
    if not isinstance(part, Rows):
        yield slice(None)
        return
    numbers = CACHED_NUMBERS if part.is_sparse else READ_NUMBERS
    yield from stretches(len(part), math.prod(part.shape[1:]), numbers)


def stretches(n: int, width: int, numbers: int = READ_NUMBERS) -> Iterator[slice]:
    """Slices of n rows of so many numbers that fit into memory; at least one."""
    return slices(max(n, 1), max(1, min(READ_ROWS, numbers // max(1, width))))


def slices(n: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` rows that cover n rows, in order."""
    for start in range(0, n, size):
        yield slice(start, start + size)
