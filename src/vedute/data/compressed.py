"""Concatenated views, most of whose entries equal one number per column: a matrix represented by
its products.

    x_ij = rest_j + off_ij where row i has the view of column j, else 0

off is sparse: scaling turns the zeros of a sparse view into `rest`, and keeps them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from vedute.data.rows import Part, pieces

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Compressed:
    """L views (n, width_v), concatenated to (n, p)."""

    off: Any  # (n, p) csr array; no entries in rows that lack the view
    rest: Array  # (p,)
    mask: Array  # (n, L) bool
    widths: tuple[int, ...]  # L

    @classmethod
    def of(cls, parts: Sequence[Part], rests: Sequence[Array], mask: Tensor) -> Compressed:
        """Compress views (n, width_v), given the most frequent value (width_v,) of each column."""
        views = list[Any]()  # deviations from `rest`, block by block
        for part, rest, seen in zip(parts, rests, mask.T, strict=True):
            blocks = ((part[rows].numpy(), seen[rows, None].numpy()) for rows in pieces(part))
            rows_off = (np.where(has, x - rest.astype(x.dtype), 0) for x, has in blocks)
            views.append(sparse.vstack([*map(sparse.csr_array, rows_off)], format="csr"))
        off = sparse.hstack(views, format="csr")
        rest = np.concatenate(rests).astype(off.dtype)
        return cls(off, rest, mask.numpy(), tuple(part.shape[1] for part in parts))

    @property
    def shape(self) -> tuple[int, int]:
        return self.off.shape[0], self.off.shape[1]

    @property
    def dtype(self) -> Any:
        return self.off.dtype

    def astype(self, dtype: Any) -> Compressed:
        return replace(self, off=self.off.astype(dtype), rest=self.rest.astype(dtype))

    def affine(self, shift: Array, factor: Array) -> Compressed:
        """Compute (x - shift) * factor in rows that have the view; shift, factor (p,)."""
        data = self.off.data * factor[self.off.indices]
        off = sparse.csr_array((data, self.off.indices, self.off.indptr), shape=self.shape)
        return replace(self, off=off, rest=(self.rest - shift) * factor)

    @property
    def T(self) -> LinearOperator:  # noqa: N802
        x, across = self.__matmul__, self.across
        return LinearOperator(self.shape[::-1], across, matmat=across, rmatmat=x, dtype=self.dtype)

    def __matmul__(self, b: Array) -> Array:
        """x b, (n, k)"""
        rest = np.stack([self.rest[at] @ b[at] for at in self._places])
        return np.asarray(self.off @ b + self.mask.astype(rest.dtype) @ rest)

    def across(self, u: Array) -> Array:
        """x' u, (p, k)"""
        sums = self.mask.T.astype(u.dtype) @ u
        return np.asarray(self.off.T @ u + self.rest[:, None] * np.repeat(sums, self.widths, 0))

    def __getitem__(self, rows: Any) -> Compressed:
        return replace(self, off=self.off[rows], mask=self.mask[rows])

    def view(self, v: int) -> Compressed:
        """Select view v."""
        at = self._places[v]
        return Compressed(self.off[:, at], self.rest[at], self.mask[:, [v]], self.widths[v : v + 1])

    def only(self, mask: Array) -> Compressed:
        """Return a copy that is zero where mask (n, L) is False, too."""
        mask = self.mask & mask
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.off.indptr))
        view = np.repeat(np.arange(len(self.widths)), self.widths)[self.off.indices]
        off = self.off.copy()
        off.data[~mask[rows, view]] = 0
        off.eliminate_zeros()
        return replace(self, off=off, mask=mask)

    def mean(self) -> Array:
        """Return the mean of each column over the rows that have the view, (p,)."""
        count = np.repeat(np.maximum(self.mask.sum(0), 1), self.widths)
        total = np.asarray(self.off.sum(0, dtype=np.float64)).ravel()
        return np.asarray(self.rest + total / count, self.dtype)

    def dense(self) -> Array:
        """Return the array (n, p)."""
        x = self.off.toarray()
        x += np.where(np.repeat(self.mask, self.widths, axis=1), self.rest, 0)
        return np.asarray(x)

    def power(self) -> float:
        """Return the sum of squares."""
        stored = self.rest[self.off.indices]
        others = np.repeat(self.mask.sum(0), self.widths) @ self.rest**2 - stored @ stored
        return float(np.sum((self.off.data + stored) ** 2) + others)

    @property
    def _places(self) -> list[slice]:
        """The columns of each view."""
        ends = np.cumsum(self.widths)
        return [slice(end - width, end) for end, width in zip(ends, self.widths, strict=True)]
