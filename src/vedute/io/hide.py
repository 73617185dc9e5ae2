"""Files like those that were read, with some views removed and the rest unchanged."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vedute import io
from vedute.data.views import Views
from vedute.io import folder, images, npy, onefile
from vedute.io.contents import id_column, known_labels
from vedute.io.csv import escaped_id, opened, sniff, unescaped_id
from vedute.io.files import literal

Bools = NDArray[np.bool_]
Change = Callable[[str, list[str]], list[str] | None]  # (id, line) -> line; None drops it


def numbers(views: Views) -> dict[str, Any]:
    """Convert views to arrays by name, NaN where nothing is observed."""
    arrays: dict[str, Any] = dict(zip(views.names, views.arrays(), strict=True))
    return arrays | _extras(views.mask.numpy(), views.ids, views.y)


def write(part: Path, data: io.Data, mask: Bools) -> None:
    """Write the views of `data` that mask (n, L) leaves, in the format of `part`."""
    if part.suffix.lower() == ".npz":
        io.write_npz(part, _npz(data, mask))
    elif part.is_dir():
        _folder(part, data, mask)
    elif part.suffix.lower() == ".mat":
        views = zip(data.views.items(), mask.T, strict=True)
        io.write_views(part, data, {k: _with_rows_of_nan(a, seen) for (k, a), seen in views})
    else:
        _table(part, data, mask)


def _npz(data: io.Data, mask: Bools) -> dict[str, Any]:
    """Arrays under the keys of `data`; zero where a view of whole numbers is hidden."""
    keys, arrays = data.keys or tuple(data.views), dict[str, Any]()
    for key, (name, view), seen in zip(keys, data.views.items(), mask.T, strict=True):
        a = _array(name, view)
        blank = a.dtype.type(np.nan if a.dtype.kind == "f" else 0)
        arrays[key] = np.where(seen.reshape(-1, *[1] * (a.ndim - 1)), a, blank)
    if keys != tuple(data.views):
        arrays["view_names"] = np.array(list(data.views))
    return arrays | _extras(mask, data.ids, data.y)


def _extras(mask: Bools, ids: Any, y: Any) -> dict[str, Any]:
    return {k: a for k, a in {"mask": mask, "ids": ids, "y": y}.items() if a is not None}


def _array(name: str, view: Any) -> Any:
    if not isinstance(view, pd.DataFrame):
        return view.toarray() if sparse.issparse(view) else np.asarray(view)
    text = [c for c, d in view.dtypes.items() if d.kind not in "biuf"]
    if text:
        held = "dates" if dict(view.dtypes.items())[text[0]].kind == "M" else "categories"
        raise ValueError(
            f"view {name!r}, column {text[0]!r} holds {held}, which an .npz file cannot; "
            "write OUT in the format of DATA"
        )
    return view.to_numpy(np.float64, na_value=np.nan)


def _with_rows_of_nan(view: Any, seen: Bools) -> Any:
    a = _array("", view)
    return np.where(seen.reshape(-1, *[1] * (a.ndim - 1)), a, np.nan)


def _folder(part: Path, data: io.Data, mask: Bools) -> None:
    """Write one file per view, with the samples that have it, and one with all labels."""
    assert data.path is not None
    sources = folder.files(data.path)
    ids = np.arange(len(mask)) if data.ids is None else data.ids
    for (name, view), seen in zip(data.views.items(), mask.T, strict=True):
        source, names = sources[name], ids[seen].astype(np.str_)
        if isinstance(view, pd.DataFrame):
            _keep_rows(io.below(part, source.name), source, data.how, set(names.tolist()))
        elif source.is_dir():
            images.write(io.below(part, name), source, view[seen], names)
        elif data.ids is not None:
            npy.write(io.below(part, source.name), view[seen], ids[seen])
        else:
            npy.write(io.below(part, source.name), _with_rows_of_nan(view, seen), None)
    if data.how.label is not None and data.y is not None:
        home = next(k for k in ("labels", "labels_", "labels__") if k not in data.views)
        onefile.write_new(io.below(part, home, ".csv"), _labels(data.how.label, data.y, ids))


def _labels(name: str, y: io.Array, ids: io.Array) -> pd.DataFrame:
    """Frame of the known labels; integers even where missing ones made floats of them."""
    known = known_labels(y)
    cells = [int(x) if isinstance(x, float) and x % 1 == 0 else x for x in y[known].tolist()]
    return pd.DataFrame({name: pd.Series(cells, dtype=object)}).set_axis(ids[known])


def _keep_rows(out: Path, source: Path, how: io.Reading, kept: set[str]) -> None:
    """Copy the lines of a table whose ids are in `kept`."""
    if onefile.ending(source) == ".parquet":
        from pyarrow import array, parquet

        index = onefile.read(source, how, lambda _: []).index
        table = parquet.read_table(literal(source)).filter(array(index.isin(list(kept))))
        parquet.write_table(table, literal(out))
    else:
        _rewrite(out, source, how, lambda name, line: line if name in kept else None)


def _table(out: Path, data: io.Data, mask: Bools) -> None:
    """Write one wide table with blanks for the hidden views."""
    assert data.path is not None
    source, ids = data.path, [str(i) for i in np.asarray(data.ids)]
    if onefile.ending(source) == ".parquet":
        from pyarrow import array, compute, parquet

        whole = parquet.read_table(literal(source))
        for view, seen in zip(data.views.values(), mask.T, strict=True):
            for name in map(str, view.columns):
                cells = compute.if_else(array(seen), whole[name], None)
                whole = whole.set_column(whole.schema.get_field_index(name), name, cells)
        parquet.write_table(whole, literal(out))
        return
    at = {c: j for j, c in enumerate(sniff(source).columns)}
    cells = [[at[c] for c in view.columns] for view in data.views.values()]
    rows = dict(zip(ids, mask, strict=True))

    def blanked(name: str, line: list[str]) -> list[str]:
        for columns, seen in zip(cells, rows[name], strict=True):
            for j in columns if not seen else ():
                line[j] = ""
        return line

    _rewrite(out, source, data.how, blanked)


def _rewrite(out: Path, source: Path, how: io.Reading, change: Change) -> None:
    """Copy a text table line by line; unchanged cells stay as they were written."""
    d = sniff(source)
    key = id_column(d.columns, how.id, source)
    with opened(source, "r", d.encoding) as old, opened(out, "w", d.encoding) as new:
        lines = csv.reader(old, delimiter=d.separator, skipinitialspace=True)
        writer = csv.writer(new, delimiter=d.separator, lineterminator=d.end)
        writer.writerow(next(line for line in lines if line))
        for line in lines:
            if any(cell.strip() for cell in line):
                changed = change(unescaped_id(line[key].strip()), line)
                if changed is not None:
                    changed[key] = escaped_id(changed[key])
                    writer.writerow(changed)
