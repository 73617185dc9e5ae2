"""Large folders and tables as views whose rows are read when they are asked for.

Arrays (.npy) are memory-mapped; numbers in text and parquet are written to temporary files, in
chunks. Other types are not supported: categories are known only once all rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vedute.data import checks
from vedute.data.frames import ViewSpec, from_frame
from vedute.data.ids import warn_of_look_alikes
from vedute.data.mapped import File, Opened, Scratch, version_of
from vedute.data.rows import Rows, by_row, pieces, rounds_too_much
from vedute.data.views import Views
from vedute.io import arrays, contents, csv, folder, table
from vedute.io.contents import Bools, Reading, Unwanted

STREAMED_BYTES = 2**28  # smaller files are read into memory
TABLE_CHUNK_ROWS = 2**16
Dtypes = Mapping[Any, Any]


class NotPlainError(Exception):
    """Reason why data have to be read as a whole."""


class Table(NamedTuple):
    """One file: x (n, *shape) with NaN where values are missing, the ids of its rows, if any,
    and the dtype of each column; that of the array, where columns have no names."""

    x: Rows
    ids: Any
    dtypes: Dtypes


def opened(path: Path, how: Reading) -> tuple[Views, str | None] | None:
    """Open the views in a folder or table, and the name of ids; None if small or of other kinds."""
    is_table = table.ending(path) in table.TABLE_FORMATS
    files = folder.files(path) if path.is_dir() else {"": path} if is_table else {}
    size = sum(file.stat().st_size for file in files.values())
    if not files or size < STREAMED_BYTES or not all(file.is_file() for file in files.values()):
        return None
    if how.label is not None:
        raise NotPlainError("labels are taken out of it")
    unwanted = Unwanted(how)
    tables = {name: _table(file, how, unwanted) for name, file in files.items()}
    unwanted.check(path)
    indices, ids = {name: t.ids for name, t in tables.items() if t.ids is not None}, None
    if indices and len(indices) < len(tables):
        raise NotPlainError("some views have no ids")
    if indices:
        warn_of_look_alikes(indices)
        ids = contents.joined(indices.values())
    elif len({len(t.x) for t in tables.values()}) > 1:
        raise NotPlainError("views differ in length")
    views = tables if path.is_dir() else _cut(tables[""], how, path)
    pairs = [_aligned(name, t, ids) for name, t in views.items()]
    parts, specs = zip(*pairs, strict=True)
    x, holes, present = zip(*map(_split, parts, views), strict=True)
    observed = checks.observed(torch.stack(present, dim=1).numpy(), None, tuple(views), ids)
    mask, index = torch.from_numpy(observed), torch.arange(len(observed))
    whole = Views(x, mask, index, holes, tuple(views), ids, specs=specs)
    return whole, contents.name_of(indices.values())


def _table(path: Path, how: Reading, unwanted: Unwanted) -> Table:
    if path.suffix.lower() == ".npy":
        return _array(path)
    form = table.form(path)
    scratch, ids, dtypes, seen = Scratch(), list[pd.Index](), list[Dtypes](), list[Bools]()
    with closing(form.chunks(path, how, TABLE_CHUNK_ROWS)) as chunks:
        for rows in chunks:
            chunk = rows[unwanted.rest(rows.columns)]
            if bool((chunk.index == "").any()) or "" in chunk.columns:
                raise NotPlainError("a row or column has no name")
            for name, dtype in chunk.dtypes.items():
                if dtype.kind not in "biuf":
                    raise NotPlainError(f"column {name!r} holds other things than numbers")
            values = chunk.to_numpy(np.float64, na_value=np.nan)
            scratch.add(values)
            ids.append(chunk.index)
            dtypes.append(dict(chunk.dtypes))
            seen.append(csv.flags(values))
    if not ids or not dtypes[0]:
        raise NotPlainError(f"{path} has no rows, or no column")
    index = contents.checked_ids(ids[0].append(ids[1:]).to_series(), path).rename(ids[0].name)
    common: dict[Any, Any] = dict(dtypes[0])  # the dtypes of columns that are read at once
    for c in common:
        kinds = {str(d[c]): d[c] for d in dtypes}
        if len(kinds) > 1:
            common[c] = np.dtype(np.float64)
            if "float64" not in kinds or any(d.kind not in "iuf" for d in kinds.values()):
                raise NotPlainError(f"column {str(c)!r} changes its type")
    if form is csv:
        csv.check_ids(index, path)
        common |= dict.fromkeys(csv.whole_numbers(path, common, seen), pd.Int64Dtype())
    return Table(scratch.rows(), index, common)


def _array(path: Path) -> Table:
    try:
        version = version_of(path.stat())
        a: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # the reader of whole files reports the error
        raise NotPlainError(f"{path} is no array of numbers") from None
    plain_array = isinstance(a, np.memmap) and a.flags.c_contiguous and 0 not in a.shape
    if not plain_array or a.ndim < 2 or a.dtype.kind not in "biuf" or not a.dtype.isnative:
        raise NotPlainError(f"{path} is no plain array")
    ids = arrays.ids_of(path)
    if ids is not None and len(ids) != len(a):
        raise NotPlainError("ids and rows differ")
    if (a.dtype.kind == "u" and a.dtype.itemsize > 1) or a.dtype == np.float16:
        raise NotPlainError(f"{path} holds {a.dtype}")
    x = File(Opened(path, version), a.dtype, a.shape, a.offset).rows()
    if x.dtype == torch.uint8 and checks.have_channels_last(path.stem, a.shape):
        shape = (a.shape[3], *a.shape[1:3])
        x = x.then(lambda x, _: x.movedim(-1, -3).contiguous(), None, *shape)
    kept = x.dtype.is_floating_point or (x.dtype == torch.uint8 and len(x.shape) > 2)
    x = x if kept else x.then(lambda x, _: x.double(), torch.float64)
    return Table(x, ids, {None: a.dtype})


def _cut(whole: Table, how: Reading, path: Path) -> dict[str, Table]:
    """Split one wide table into views."""
    if how.views is None:
        raise NotPlainError("no view is chosen")
    columns = list(whole.dtypes)

    def view(part: list[Any]) -> Table:
        at = torch.tensor([columns.index(c) for c in part])
        x = whole.x.then(lambda x, _: x[:, at], None, len(part))
        return Table(x, whole.ids, {c: whole.dtypes[c] for c in part})

    return {k: view(part) for k, part in table.chosen(how.views, columns, path).items()}


def _aligned(name: str, t: Table, ids: Any) -> tuple[Rows, ViewSpec]:
    """Rows aligned to ids, NaN where the file has none (images must be complete); and the spec of
    the view read at once, taken from a frame of one row."""
    x, text_ids = t.x, pd.Index([] if ids is None else ids.astype(str))
    moved = t.ids is not None and not t.ids.equals(text_ids)
    if moved:
        if not x.dtype.is_floating_point:
            raise NotPlainError("some samples have no image")
        at = torch.from_numpy(t.ids.get_indexer(text_ids))

        def read(rows: Any) -> Tensor:
            source_rows = at[rows]
            values = t.x[source_rows.clamp(min=0)]
            values[source_rows < 0] = torch.nan
            return values

        x = Rows((len(at), *x.shape[1:]), x.dtype, read)
    if None in t.dtypes:
        return x, ViewSpec(name, x.shape[1:], dtypes=(str(t.dtypes[None]),))
    dtypes = {c: contents.nullable(d) if moved else d for c, d in t.dtypes.items()}
    frame = pd.DataFrame({c: pd.Series([0], [ids[0]], dtype=d) for c, d in dtypes.items()})
    return x, from_frame(name, frame, frame.index, None)[1]


def _split(x: Rows, name: str) -> tuple[Rows, Rows | None, Tensor]:
    """Split values with NaN into values with zeros, in float32 unless that rounds too much, holes
    if there are any, and the mask of rows that are present (n,)."""
    if not x.dtype.is_floating_point:
        return x, None, torch.ones(len(x), dtype=torch.bool)
    present, any_holes = torch.empty(len(x), dtype=torch.bool), False  # lists scatter memory
    # minus the smallest value, the largest, and the rounding error of float32, per feature
    ends = torch.full((3, *x.shape[1:]), -torch.inf, dtype=x.dtype)
    for rows in pieces(x):
        a = x[rows]
        missing = a.isnan()
        if bool(a.isinf().any()):
            raise NotPlainError(f"view {name!r} holds infinite values")
        present[rows] = ~missing.flatten(1).all(1)
        any_holes = any_holes or bool(missing[present[rows]].any())
        low, high = (sign * a.masked_fill(missing, -sign * torch.inf) for sign in (-1, 1))
        rounding = (a.float().to(a.dtype) - a).abs().masked_fill(missing, 0)
        block = torch.stack([x.amax(0) for x in (low, high, rounding)])
        torch.maximum(ends, block, out=ends)
    wide = x.dtype == torch.float64 and rounds_too_much(ends[2], ends[0] + ends[1])
    dtype, row = torch.float64 if wide else torch.float32, by_row(present, x)
    filled = x.then(lambda a, _: a.masked_fill(a.isnan(), 0.0).to(dtype), dtype)
    holes = x.then(lambda a, rows: a.isnan() & row[rows], torch.bool)
    return filled, holes if any_holes else None, present
