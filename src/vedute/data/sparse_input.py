"""Matrices of scipy.sparse at the door: small ones become arrays, rows of large ones are made dense
when they are read."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from vedute.data.rows import Part, Rows, rounds_too_much

Array = NDArray[Any]
Bools = NDArray[np.bool_]
SMALL = 2**22  # numbers of a matrix that becomes an array
STORED = 1 / 3  # largest share of stored entries: each takes 12 bytes, not 4 or 8


def large(view: Any) -> Any:
    """Convert a large matrix to csr; None where it becomes an array: it is small, holds no real
    numbers or single NaN, or an array is hardly larger."""
    size = int(np.prod(view.shape))
    if size <= SMALL or view.ndim != 2 or view.dtype.kind not in "biuf":
        return None
    a = sparse.csr_array(view)
    if not a.has_canonical_format:  # duplicates are summed, in a copy of the user's
        a = a.copy()
        a.sum_duplicates()
    if a.dtype not in (np.float32, np.float64):
        a = a.astype(np.float64)
    unknown, missing = _count(a, np.isnan(a.data)), ~present_rows(a)
    few = a.nnz - int(unknown.sum()) <= STORED * size
    return a if few and not (unknown[~missing] > 0).any() else None


def present_rows(a: Any) -> Bools:
    """Mask of rows that are not NaN throughout, (n,)."""
    return np.asarray(_count(a, np.isnan(a.data)) < a.shape[1])


def infinite_rows(a: Any) -> Bools:
    """Mask of rows with infinite values, (n,)."""
    return np.asarray(_count(a, np.isinf(a.data)) > 0)


def _count(a: Any, flags: Bools) -> NDArray[np.intp]:
    """Count the stored entries of each row whose flag is True, (n,)."""
    ends = np.append(0, np.cumsum(flags))
    return np.asarray(ends[a.indptr[1:]] - ends[a.indptr[:-1]])


def only(a: Any, rows: Bools) -> Any:
    """Drop the entries of rows that are False."""
    if rows.all():
        return a
    lengths = np.diff(a.indptr)
    kept = np.repeat(rows, lengths)
    ends = np.append(0, np.cumsum(np.where(rows, lengths, 0)))
    return sparse.csr_array((a.data[kept], a.indices[kept], ends), shape=a.shape)


def part_of(a: Any, seen: Bools, dtype: torch.dtype | None) -> Part:
    """Convert to a view with zeros where a row is not seen; dtype None: float32, unless it rounds
    too much."""
    dtype = dtype or (torch.float64 if _rounding_matters(a, seen) else torch.float32)
    a = a.astype(np.float64 if dtype == torch.float64 else np.float32)
    if np.prod(a.shape) <= SMALL:
        return torch.from_numpy(a.toarray()).to(dtype)
    return Rows(a.shape, dtype, partial(dense_rows, a), in_file=False)


def _rounding_matters(a: Any, seen: Bools) -> bool:
    observed = a[seen]
    if a.dtype == np.float32 or not observed.nnz:
        return False
    error = abs(observed - observed.astype(np.float32).astype(np.float64)).max(0).toarray()
    return rounds_too_much(error, observed.max(0).toarray() - observed.min(0).toarray())


def dense_rows(a: Any, rows: Any) -> Tensor:
    """Read rows of a csr array as a tensor."""
    rows = rows.numpy() if isinstance(rows, Tensor) else rows
    if np.ndim(rows) == 0 and not isinstance(rows, slice):
        return dense_rows(a, [int(rows)])[0]
    return torch.from_numpy(a[rows].toarray())
