"""A view that is mostly zeros: a scipy.sparse matrix until it is needed as an array.

Scaling keeps it sparse: zeros become one number per column, which is stored once for all rows:

    x_ij = own_ij where it is stored, else rest_j

Rows that are missing are zero, like those of any view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from vedute.data.mapped import Lazy

Array = NDArray[Any]
Bools = NDArray[np.bool_]
STORED = 1 / 3  # largest share of stored entries: each takes 12 bytes, not 4 or 8


@dataclass(frozen=True, eq=False)
class Sparse:
    """A view (n, width) without holes.

    own      (n, width) csr array, the stored entries; none in rows that are missing
    rest     (width,) the value of all others
    present  (n,) bool, False where a row is missing
    """

    own: Any
    rest: Array
    present: Bools

    @classmethod
    def of(cls, view: Any) -> Sparse | None:
        """Convert a scipy.sparse matrix; None where it has to be an array: it holds no real
        numbers or single NaN, or an array is hardly larger."""
        if view.ndim != 2 or view.dtype.kind not in "biuf":
            return None
        stored = sparse.csr_array(view)
        if not stored.has_canonical_format:  # duplicates are summed, in a copy of the user's
            stored = stored.copy()
            stored.sum_duplicates()
        if stored.dtype not in (np.float32, np.float64):
            stored = stored.astype(np.float64)
        whole = cls(stored, np.zeros(stored.shape[1], stored.dtype), np.ones(stored.shape[0], bool))
        unknown = whole.count(np.isnan(stored.data))
        missing = unknown == stored.shape[1]
        if (unknown[~missing] > 0).any():
            return None
        converted = whole.only(~missing)
        return converted if converted.own.nnz <= STORED * math.prod(stored.shape) else None

    @classmethod
    def missing(cls, n: int, width: int) -> Sparse:
        """Return a view that no sample has."""
        return cls(sparse.csr_array((n, width)), np.zeros(width), np.zeros(n, bool))

    def __len__(self) -> int:
        return len(self.present)

    def __getitem__(self, rows: Any) -> Sparse:
        if isinstance(rows, slice) and rows == slice(None):
            return self
        rows = rows.cpu().numpy() if isinstance(rows, Tensor) else rows
        return replace(self, own=self.own[rows], present=self.present[rows])

    @property
    def shape(self) -> tuple[int, int]:
        return self.own.shape[0], self.own.shape[1]

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.own.dtype == np.float32 else torch.float64

    @property
    def stored(self) -> Tensor:
        """Stored values, row by row."""
        return torch.from_numpy(self.own.data)

    @property
    def columns(self) -> Array:
        """Columns of the stored entries."""
        return np.asarray(self.own.indices)

    @property
    def rows(self) -> Array:
        """Rows of the stored entries."""
        return np.repeat(np.arange(len(self)), np.diff(self.own.indptr))

    def count(self, flags: Bools) -> NDArray[np.intp]:
        """Count the stored entries of each row whose flag is True, (n,)."""
        return np.bincount(self.rows[flags], minlength=len(self))

    def others(self) -> NDArray[np.intp]:
        """Count the entries of each column that are `rest`, (width,)."""
        stored = np.bincount(self.columns, minlength=self.shape[1])
        return np.asarray(self.present.sum() - stored)

    def each(self, values: Array) -> Tensor:
        """Take the values of columns (width,) for each stored entry."""
        return torch.from_numpy(values[self.columns])

    def only(self, rows: Bools) -> Sparse:
        """Mark rows as missing that are False in `rows` (n,)."""
        present, lengths = self.present & rows, np.diff(self.own.indptr)
        if present.all():
            return self
        kept = np.repeat(present, lengths)
        ends = np.append(0, np.cumsum(np.where(present, lengths, 0)))
        parts = self.own.data[kept], self.own.indices[kept], ends
        return replace(self, own=sparse.csr_array(parts, shape=self.shape), present=present)

    def valued(self, stored: Any, rest: Any) -> Sparse:
        """Replace the values of the same entries."""
        parts = np.asarray(stored), self.own.indices, self.own.indptr
        entries = sparse.csr_array(parts, shape=self.shape)
        return replace(self, own=entries, rest=np.asarray(rest, entries.dtype))

    def to(self, dtype: torch.dtype) -> Sparse:
        return self if dtype == self.dtype else self.valued(self.stored.to(dtype), self.rest)

    def sums(self, axis: int, power: int = 1) -> Tensor:
        """Sum powers of the stored values over rows (0) or columns (1), in float64."""
        n, at = self.shape[1 - axis], self.rows if axis else self.columns
        return torch.from_numpy(np.bincount(at, self.stored.double().pow(power), n))

    def centered(self, at: Array) -> Sparse:
        """Subtract `at` (width,) from the rows that are present."""
        return self.valued(self.stored - self.each(at), self.rest - at)

    def mean(self) -> Array:
        """Means of the columns over rows that are present, (width,)."""
        total = self.sums(0).numpy() + self.others() * self.rest
        return np.asarray(total / self.present.sum(), self.own.dtype)

    def times(self, b: Array) -> Array:
        """x b, (n, k)"""
        return np.asarray(self._deviations() @ b + np.outer(self.present, self.rest @ b))

    def across(self, u: Array) -> Array:
        """x' u, (width, k)"""
        return np.asarray(self._deviations().T @ u + np.outer(self.rest, u[self.present].sum(0)))

    def _deviations(self) -> Any:
        """Stored values less `rest`, a csr array (n, width): x, but for a multiple of 1 rest'."""
        return self.valued(self.own.data - self.rest[self.columns], self.rest).own

    def dense(self) -> Tensor:
        """Return the array (n, width)."""
        x = np.zeros(self.shape, self.own.dtype)
        x[self.present] = self.rest
        x[self.rows, self.columns] = self.own.data
        return torch.from_numpy(x)


Part = Tensor | Sparse | Lazy


class OnDemand(Sequence[Any]):
    """Views, or their holes, as tensors: those that are sparse, or on the disk, are made at each
    access."""

    def __init__(self, parts: Sequence[Part | None]) -> None:
        self.parts: tuple[Any, ...] = tuple(parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, v: Any) -> Any:
        if isinstance(v, slice):
            return tuple(self[u] for u in range(len(self))[v])
        part = self.parts[v]
        return None if part is None else dense(part)


def dense(part: Part) -> Tensor:
    if isinstance(part, Lazy):
        return part[:]
    return part.dense() if isinstance(part, Sparse) else part


def on_demand(parts: Sequence[Part | None]) -> Any:
    """Return the tensors, or a sequence that makes them."""
    kept = [part for part in parts if isinstance(part, (Sparse, Lazy))]
    return OnDemand(parts) if kept else tuple(parts)
