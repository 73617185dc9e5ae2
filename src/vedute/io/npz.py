"""An .npz file of views (`numpy.savez`; never pickled) holds one row per sample in

any name     a view, (n, features...); NaN = missing, zeros are data
view_names   optional: names for view0, view1, ...
mask         optional (n, L): False = this view of this sample is missing
ids          optional (n,): names of the samples
y            optional (n,): labels, for evaluation; no method sees them

Beside a view a, a_lower and a_upper of its shape are ends of intervals, not views.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np
import pandas as pd
from scipy import sparse

from vedute.data import limits
from vedute.io.arrays import unpickled
from vedute.io.contents import Array, Bools, Data, Ends, Filled, Reading, errors_as, no_label

OPTIONS: tuple[str, ...] = ("label",)
MAGIC = (b"PK\3\4", b"PK\5\6")  # a zip file, and an empty one
EXTRAS, BOTH = ("view_names", "mask", "ids", "y"), ("lower", "upper")


def read(path: Path, how: Reading) -> Data:
    """Views from an npz file with the keys listed at the top of this module."""
    arrays = _arrays(path)
    if how.label is not None and how.label in arrays:
        arrays["y"] = arrays.pop(how.label)
    elif how.label is not None and not how.lenient:
        raise no_label(how.label, path, arrays)
    extras = {k: arrays.pop(k, None) for k in EXTRAS}
    for key, a in arrays.items():
        if a.ndim < 2:
            fix = f"reshape it to (n, 1), or leave it out (other keys: {', '.join(EXTRAS)})"
            what = f"{key!r} in {path} has shape {a.shape}"
            raise ValueError(f"{what}; a view is (samples, features): {fix}")
    if not arrays:
        raise ValueError(f"{path} has no view; save arrays (samples, features) by name")
    arrays = _views(arrays)
    names = _names(extras["view_names"], list(arrays), path)
    views = dict(zip(names, arrays.values(), strict=True))
    n = len(next(iter(views.values())))
    for key in ("ids", "y"):
        rows = extras[key]
        if rows is not None and (rows.size != n or max(rows.shape) != n):
            want = f"expected one per sample, ({n},)"
            raise ValueError(f"{key} in {path} has shape {rows.shape}; {want}")
        extras[key] = None if rows is None else rows.reshape(n)
    ids, mask, shape = extras["ids"], extras["mask"], (n, len(views))
    if ids is not None and len(np.unique(ids)) < n:
        raise ValueError(f"ids in {path} name a sample twice; keep one row per sample")
    if mask is not None and mask.shape != shape:
        raise ValueError(f"mask in {path} has shape {mask.shape}; expected one per view, {shape}")
    if mask is not None and mask.dtype != bool and not np.isin(mask, (0, 1)).all():
        raise ValueError(f"mask in {path} must hold True (observed) and False (missing) only")
    mask = None if mask is None else mask.astype(bool)
    return Data(views, mask, ids, extras["y"], tuple(arrays), path, how)


def write(out: Path, data: Data, views: Filled, ends: Ends, mask: Bools | None = None) -> None:
    """Write views under the keys of `data`, lower and upper ends under longer ones; ids, labels and
    a mask where `data` has them, all True unless it is given."""
    keys = dict(zip(data.views, data.keys or data.views, strict=True))
    arrays = {keys.get(name, name): numbers(name, a) for name, a in views.items()}
    for end, others in ends.items():
        arrays |= {f"{keys.get(k, k)}_{end}": numbers(k, a) for k, a in others.items()}
    if any(key != name for name, key in keys.items()):
        arrays["view_names"] = np.array(list(views))
    if mask is None and data.mask is not None:
        mask = np.ones((len(data.mask), len(views)), bool)
    write_npz(out, arrays | {"mask": mask, "ids": data.ids, "y": data.y})


def write_npz(path: Path, arrays: Mapping[str, Array | None]) -> None:
    """Write arrays by name; None are left out."""
    kept: Any = {k: a for k, a in arrays.items() if a is not None}
    with path.open("wb") as file:
        np.savez_compressed(file, **kept)


def numbers(
    name: str, view: Any, hint: str = "write OUT in the format of DATA", dtype: Any = None
) -> Array:
    """Convert a view to one array; frames to the dtype that their columns share, or to `dtype`,
    which may have NaN. Reject columns that an array of numbers cannot hold."""
    if not isinstance(view, pd.DataFrame):
        return np.asarray(view)
    for column, kind in view.dtypes.items():
        if kind.kind not in "biuf":
            held = "dates" if kind.kind == "M" else "categories"
            raise ValueError(f"view {name!r}, column {column!r} holds {held}; {hint}")
    if dtype is not None:
        return view.to_numpy(dtype, na_value=np.nan)
    return view.to_numpy(np.result_type(*(getattr(d, "numpy_dtype", d) for d in view.dtypes)))


def hidden(name: str, view: Any, seen: Bools, whole: bool = False) -> Array:
    """Convert to an array, NaN in rows not seen (n,). whole: keep whole numbers, zero there."""
    a = numbers(name, view.toarray() if sparse.issparse(view) else view, dtype=np.float64)
    blank = a.dtype.type(0) if whole and a.dtype.kind != "f" else np.nan
    return np.where(seen.reshape(-1, *[1] * (a.ndim - 1)), a, blank)


def _arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of an npz file."""
    with path.open("rb") as handle:
        if not is_zipfile(handle) or handle.seek(0) or handle.read(4) not in MAGIC:
            raise ValueError(f"{path} is not an .npz file; write it with numpy.savez")
        total = 0  # memory of all arrays according to the zip file and their headers
        with errors_as(f"{path} is damaged"), ZipFile(handle) as archive:
            for info in archive.infolist():
                size = info.file_size
                with suppress(Exception), archive.open(info) as member:  # `get` reports the error
                    size = max(size, limits.npy_bytes(member))
                total += size
        limits.check(total, path)
        handle.seek(0)
        with np.load(handle, allow_pickle=False) as file:
            arrays = {k: unpickled(partial(file.get, k), f"{k!r} in {path}") for k in file.files}
    for key, a in arrays.items():
        if not isinstance(a, np.ndarray):
            raise ValueError(f"{key!r} in {path} is not an array; leave it out")
    return arrays


def _views(arrays: dict[str, Array]) -> dict[str, Array]:
    """Drop a_lower and a_upper, ends of intervals of a view a; put view2 before view10."""
    shapes = {key: a.shape for key, a in arrays.items()}
    same = [k for k in shapes if {shapes.get(f"{k}_{end}") for end in BOTH} == {shapes[k]}]
    ends = [f"{k}_{end}" for k in same for end in BOTH]
    views = {key: a for key, a in arrays.items() if key not in ends}
    if not all(re.fullmatch(r"view(\d+)", key) for key in views):
        return views
    return dict(sorted(views.items(), key=lambda item: int(item[0].removeprefix("view"))))


def _names(stored: Array | None, keys: list[str], path: Path) -> list[str]:
    if stored is None:
        return keys
    names = [str(k) for k in np.ravel(stored)]
    if len(set(names)) != len(keys):
        counts = f"{len(names)} names ({', '.join(names)}) for {len(keys)} views"
        raise ValueError(f"view_names in {path} has {counts}; give one each")
    return keys if set(names) == set(keys) else names
