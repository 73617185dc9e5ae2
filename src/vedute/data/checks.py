"""Input of all supported types becomes checked numpy arrays, a mask and holes.

NaN means "missing" here and nowhere further in. A row of NaN is a missing view, single NaN are
holes, zeros are data. Input that cannot be read is rejected here, in one sentence with the fix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from vedute.data.escaping import listed
from vedute.data.frames import Fitted, Frame, ViewSpec, from_frame, is_number, join_ids
from vedute.data.problems import EnoughError, incomplete, noted
from vedute.data.rows import as_part, by_row
from vedute.data.tables import Columns, as_array, as_table, split, top_levels

Array = NDArray[Any]
Bools = NDArray[np.bool_]
SMALL = 2**22  # numbers of a sparse matrix that becomes an array
STORED = 1 / 3  # largest share of stored entries of others: each takes 12 bytes, not 4 or 8
CHANNELS = (1, 3, 4)  # of images: gray, colors, colors and opacity


class Parts(NamedTuple):
    """X taken apart."""

    X: Any
    columns: Columns | None  # of the views that one table was cut into
    views: dict[str, Any]  # as the user has them; None: no sample has it
    rows: pd.Index | None  # ids of all samples
    specs: list[ViewSpec]


def read(
    X: Any,
    mask: Any,
    columns: Columns | None,
    like: Fitted,
    dtype: torch.dtype | None,
    aligned: bool,
    own: bool,
) -> tuple[Parts, list[Any], Tensor, list[Tensor | None]]:
    """Check X and take it apart: L views (n, *shape_v), zero where missing; mask (n, L); holes.
    `like`: specs of a fitted estimator. aligned: row i is sample i in frames, too, and frames may
    stand beside arrays. dtype, own: see `as_part`."""
    X = as_table(X)
    if columns is None and isinstance(getattr(X, "columns", None), pd.MultiIndex):
        columns = top_levels(X.columns)
    fitted = dict(zip(map(attrgetter("name"), like or ()), like or (), strict=True))
    views = named(X, columns, [*fitted])
    n, index = _rows(views, aligned)
    names, arrays, specs, missing, present = [], [], [], [], []
    for name in fitted or views:
        row_ids = getattr(views[name], "index", None) if aligned else index
        with noted():
            array, spec = _array(name, views[name], n, row_ids, fitted.get(name))
            names.append(name)
            arrays.append(array)
            specs.append(spec)
            missing.append(_count(array, np.isnan))
            known = missing[-1] < prod(array.shape[1:])
            present.append(known & (views[name] is not None))
    if not arrays:
        raise EnoughError
    ids = None if index is None else np.asarray(index)
    seen = observed(np.stack(present, axis=1), mask, names, ids)
    x, holes = list[Any](), list[Tensor | None]()
    for v, (a, known) in enumerate(zip(arrays, seen.T, strict=True)):
        infinite = known & (_count(a, np.isinf) > 0)
        with noted(part=False):
            if infinite.any():
                where = rows((np.arange(n) if ids is None else ids)[infinite])
                fix = "replace them by NaN or drop the rows"
                raise ValueError(f"view {names[v]!r}: {where} infinite values (infinity); {fix}")
        holed = (known & (missing[v] > 0)).any()
        gaps = np.isnan(a) & by_row(known, a) if holed else None
        x.append(as_part(_zeroed(a, known, gaps), known, gaps, dtype, own))
        holes.append(None if gaps is None else torch.from_numpy(gaps))
    return Parts(X, columns, views, index, specs), x, torch.from_numpy(seen), holes


def observed(present: Bools, mask: Any, names: Sequence[str], ids: Array | None) -> Bools:
    """Mask (n, L) of the views to use: those that are present, less those that a mask hides.
    Raise where the mask shows a view that is missing, or a row has none."""
    labels, seen = np.arange(len(present)) if ids is None else ids, present
    if mask is not None:
        mask = np.asarray(_joined_mask(mask, ids, names))
        if mask.shape != present.shape:
            expected = f"expected (n_samples, n_views) = {present.shape}"
            fix = "one row per sample, one column per view"
            raise ValueError(f"mask has shape {mask.shape}; {expected}: {fix}")
        strange = mask[~np.isin(mask, (0, 1))]
        if len(strange):
            raise ValueError(f"mask holds {listed(strange[:1])}; it must hold True or False only")
        seen = mask.astype(bool)
        wrong = seen & ~present
        if wrong.any():
            v = int(wrong.any(0).argmax())
            problem = f"the mask marks view {names[v]!r} as observed where X has none"
            fix = f"{rows(labels[wrong[:, v]])} no value there; correct the mask or the data"
            raise ValueError(f"{problem}: {fix}")
    blank = ~seen.any(1)
    with noted(part=False):
        if blank.any() and not incomplete():
            raise ValueError(f"{rows(labels[blank])} no observed view; drop such rows")
    return seen


def named(X: Any, columns: Columns | None, names: Sequence[str]) -> dict[str, Any]:
    """Convert a table or container X to a dict of views in their order, which is that of the
    samples of frames. names: of fitted views; those that X lacks are None."""
    if columns is not None:
        X = split(X, columns, lenient=bool(names))
    elif isinstance(X, np.ndarray) and X.ndim != 2:
        fix = "(n_samples, n_features), or pass a list with one array per view"
        rank = f"X is one array of rank {X.ndim}. Expected 2D array"
        raise ValueError(f"{rank}; Reshape your data to {fix}")
    elif isinstance(X, np.ndarray | Frame) or sparse.issparse(X):
        X = {"view0": X}
    if isinstance(X, Mapping):
        views = {str(k): v for k, v in X.items()}
        if len(views) < len(X):
            twice = next(k for k in map(str, X) if [str(j) for j in X].count(k) > 1)
            raise ValueError(f"two views are named {twice!r}; rename one")
        unknown = [k for k in views if names and k not in names]
        if unknown:
            raise ValueError(f"unknown view {unknown[0]!r}; fitted views are {', '.join(names)}")
        views |= {k: None for k in names if k not in views}
    elif isinstance(X, (list, tuple)):
        if names and len(X) != len(names):
            problem = f"X has {len(X)} views, fitted on {len(names)} ({', '.join(names)})"
            raise ValueError(f"{problem}; pass None for a view that no sample has")
        views = dict(zip(names or [f"view{v}" for v in range(len(X))], X, strict=True))
    else:
        fix = "pass a list or dict of arrays or DataFrames, one 2-D table, or a Views"
        raise TypeError(f"cannot read views from {type(X).__name__}; {fix}")
    if not views:
        raise ValueError("X has no views; pass at least one")
    for name in names:
        if isinstance(views[name], Frame) and not len(views[name]):  # like None
            views[name] = None
    return views


def _rows(views: Mapping[str, Any], aligned: bool) -> tuple[int, pd.Index | None]:
    """Count the samples, and join the ids of frames."""
    frames, sizes = dict[str, Frame](), dict[str, int]()
    for name, view in views.items():
        if view is None:
            continue
        if isinstance(view, Frame):
            frames[name] = view
        try:
            shape = view.shape if sparse.issparse(view) else np.shape(view)
        except ValueError:
            raise ValueError(f"view {name!r}: rows of different lengths; pass an array") from None
        if not shape:
            raise ValueError(f"view {name!r} is a single number; pass (n_samples, n_features)")
        sizes[name] = int(shape[0])
    if not sizes:
        raise ValueError("every view is None; pass at least one view with data")
    if frames and not aligned:
        if len(frames) < len(sizes):
            other = next(k for k in sizes if k not in frames)
            mixed = f"view {other!r} is an array while view {next(iter(frames))!r} is a frame"
            fix = "pass all views as frames (joined by index) or all as arrays (aligned by row)"
            raise TypeError(f"{mixed}; {fix}")
        index = join_ids(frames)
        return len(index), index
    if len(set(sizes.values())) > 1:
        lengths = ", ".join(f"{k!r} {n}" for k, n in sizes.items())
        problem = f"views differ in length (inconsistent numbers of samples): {lengths}"
        raise ValueError(f"{problem}; align their rows, or pass DataFrames to join them by index")
    n = next(iter(sizes.values()))
    if n == 0:
        raise ValueError("X has no samples: Found array with 0 sample(s), a minimum of 1 is needed")
    return n, next(iter(frames.values())).index if frames else None


def _array(
    name: str, view: Any, n: int, ids: pd.Index | None, fitted: ViewSpec | None
) -> tuple[Any, ViewSpec]:
    """Convert one view to numbers (n, *shape), NaN where missing, or to csr; and its spec."""
    if view is None:
        spec = fitted or ViewSpec(name, (0,))
        if fitted is not None and len(spec.shape) == 1 and n * spec.shape[0] > SMALL:
            return sparse.csr_array((n, *spec.shape)), spec
        return np.full((n, *spec.shape), np.nan), spec
    if isinstance(view, Frame):
        assert ids is not None
        frame = view.to_frame() if isinstance(view, pd.Series) else view
        if not frame.shape[1]:
            raise ValueError(f"view {name!r} has no columns; leave it out")
        return from_frame(name, frame, ids, fitted)
    csr = large_sparse(view) if sparse.issparse(view) else None
    if csr is not None:
        if fitted is not None:
            same_shape(csr.shape[1:], fitted)
        return csr, fitted or ViewSpec(name, csr.shape[1:], dtypes=(str(view.dtype),))
    a: Array = view.toarray() if sparse.issparse(view) else as_array(view)
    dtype = str(a.dtype) if a.dtype.kind in "biuf" else "float64"
    if np.ma.is_masked(view) and a.dtype.kind in "biuf":
        a = np.ma.filled(view.astype(np.float64), np.nan)
    a = a[:, None] if a.ndim == 1 else a
    if 0 in a.shape[1:]:
        count = f"0 feature(s) (shape={a.shape}) while a minimum of 1 is required"
        raise ValueError(f"view {name!r} has no columns: {count}; leave it out")
    is_bytes = dtype == "uint8" if fitted is None else fitted.dtypes == ("uint8",)
    last = is_bytes and have_channels_last(name, a.shape, fitted)
    a = np.moveaxis(a, -1, -3) if last else a
    images = is_bytes and a.dtype == np.uint8 and a.ndim > 2
    if not images and a.dtype not in (np.float32, np.float64):
        a = _numbers(name, a)
    if fitted is not None:
        same_shape(a.shape[1:], fitted)
    return a, fitted or ViewSpec(name, a.shape[1:], dtypes=(dtype,), channels_last=last)


def large_sparse(view: Any) -> Any:
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
    unknown = _count(a, np.isnan)
    few = a.nnz - int(unknown.sum()) <= STORED * size
    return a if few and not ((unknown > 0) & (unknown < a.shape[1])).any() else None


def _count(a: Any, test: np.ufunc) -> NDArray[np.intp]:
    """Count the entries of each row of an array or csr that pass a test, which zeros fail, (n,)."""
    if sparse.issparse(a):
        ends = np.append(0, np.cumsum(test(a.data)))
        return np.asarray(ends[a.indptr[1:]] - ends[a.indptr[:-1]])
    if a.dtype.kind != "f":
        return np.zeros(len(a), np.intp)
    return np.asarray(test(a).reshape(len(a), -1).sum(1))


def have_channels_last(name: str, shape: tuple[int, ...], fitted: ViewSpec | None = None) -> bool:
    """Whether these bytes are images (n, height, width, channels), which networks see as (n,
    channels, height, width). Axis 1 holds the channels if its length is one of CHANNELS, else the
    last axis if its length is; where some images were fitted, their size decides."""
    if len(shape) != 4:
        return False
    if fitted is not None:
        return shape[1:] != fitted.shape and (shape[3], *shape[1:3]) == fitted.shape
    if shape[1] in CHANNELS or shape[3] in CHANNELS:
        return shape[1] not in CHANNELS
    problem = f"view {name!r} holds bytes of shape {shape}"
    rule = "neither axis 1 nor the last has 1, 3 or 4 channels of images"
    fix = "pass numbers that are no images as floats (x.astype('float32'))"
    raise ValueError(f"{problem}, and {rule}; {fix}")


def same_shape(shape: tuple[int, ...], fitted: ViewSpec) -> None:
    """Reject samples of another shape than those fitted on."""
    if shape == fitted.shape:
        return
    problem = f"view {fitted.name!r} has samples of shape {shape}, fitted on {fitted.shape}"
    if prod(shape) == prod(fitted.shape):
        raise ValueError(f"{problem}; bring the axes into that order")
    counts = f"X has {prod(shape)} features, but it is expecting {prod(fitted.shape)} features"
    raise ValueError(f"{problem}: {counts} as input; pass the same columns")


def _numbers(name: str, a: Array) -> Array:
    if np.issubdtype(a.dtype, np.complexfloating):
        fix = "pass real and imaginary parts"
        raise ValueError(f"Complex data not supported: view {name!r}; {fix}")
    try:
        if a.dtype.kind in "mM":
            raise ValueError(f"it is {a.dtype}")
        return a.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as e:
        strange = ((i, x) for i, r in enumerate(a) for x in np.ravel(r) if not is_number(x))
        row, text = next(strange, (0, a.flat[0]))
        shown = str(text) if len(str(text)) <= 40 else f"{str(text)[:40]}..."
        kind = TypeError if isinstance(e, TypeError) else ValueError
        problem = f"view {name!r} holds {shown!r} in row {row}, which is not a number ({e})"
        fix = "encode text as numbers, or pass DataFrames with categorical columns"
        raise kind(f"{problem}; {fix}") from None


def _zeroed(a: Any, seen: Bools, holes: Bools | None) -> Any:
    """Zero rows that are not observed, and holes."""
    if holes is None and seen.all():
        return a
    if sparse.issparse(a):
        lengths = np.diff(a.indptr)
        kept, ends = np.repeat(seen, lengths), np.append(0, np.cumsum(np.where(seen, lengths, 0)))
        return sparse.csr_array((a.data[kept], a.indices[kept], ends), shape=a.shape)
    kept = by_row(seen, a) if holes is None else by_row(seen, a) & ~holes
    return np.where(kept, a, a.dtype.type(0))


def _joined_mask(mask: Any, ids: Any, names: Sequence[str]) -> Any:
    """Order the rows of a mask in a frame by sample ids, and its columns by views."""
    if not isinstance(mask, pd.DataFrame):
        return mask
    if ids is None:  # rows and views may have no names
        return mask[list(names)] if set(mask.columns) == set(names) else mask
    ids = pd.Index(ids)
    lost = ids.difference(mask.index)
    if len(lost) or len(mask) != len(ids):
        problem = f"lacks {listed(lost)}" if len(lost) else f"has {len(mask)} rows for {len(ids)}"
        raise ValueError(f"mask {problem}; give it one row per sample, by the ids of the views")
    numbered = mask.columns.equals(pd.RangeIndex(len(names)))
    if not numbered and set(mask.columns) != set(names):
        raise ValueError(f"mask has columns {listed(mask.columns)}; name them {', '.join(names)}")
    return mask.loc[ids] if numbered else mask.loc[ids, list(names)]


def rows(ids: Array) -> str:
    """Name samples by their ids: "row 3 has", "rows 3, 5 have"."""
    return f"row {listed(ids)} has" if len(ids) == 1 else f"rows {listed(ids)} have"
