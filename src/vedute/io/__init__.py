"""File formats of views, one module each. All but `store`, a folder of memory-mapped arrays, have

OPTIONS     the fields of `Reading` that they support
read        (path, how) -> Data
write       (out, data, views, ends): a complete file like the one that `data` came from
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from vedute.data.entry import Entry
from vedute.data.frames import Fitted
from vedute.data.limits import plain_file
from vedute.data.views import Views
from vedute.io import contents, csv, excel, folder, mat, mudata, npz, parquet, store, table
from vedute.io.contents import Array, Ends, Filled
from vedute.io.contents import Data as Data
from vedute.io.contents import Reading as Reading
from vedute.io.files import atomic_file as atomic_file
from vedute.io.files import atomic_folder as atomic_folder
from vedute.io.files import below as below

FORMATS: dict[str, Any] = {".npz": npz, **dict.fromkeys(table.TABLE_FORMATS, table)}
FORMATS |= {excel.ENDING: excel, ".mat": mat, **dict.fromkeys(mudata.OMICS_ENDINGS, mudata)}
ANNOTATED = mudata.OMICS_ENDINGS  # files that take results beside the data
RESULT_FORMATS = {".npz": npz.write_npz, ".csv": csv.write_csv, ".parquet": parquet.write_parquet}
NOT_HIDDEN = (*mudata.OMICS_ENDINGS, excel.ENDING)  # files in which `ampute` hides nothing
FLAGS = ("views", "label", "one_hot", "samples", "decimal", "drop")  # --views, --label, ...


def ending(path: str | Path) -> str:
    """Return .csv, .csv.gz, ...; '' for a folder."""
    return "" if Path(path).is_dir() else table.ending(Path(path))


def format_of(path: Path) -> Any:
    """Choose the module that reads this path, by its ending."""
    if mudata.is_zarr(path):
        raise ValueError(f"{path} is kept in zarr; make a store: vedute convert {path} -o store")
    if path.is_dir():
        return folder
    suffix = ending(path)
    if not path.exists():
        expected = suffix if suffix in FORMATS else f"{', '.join(FORMATS)}, or a folder"
        raise FileNotFoundError(f"{path} does not exist; give a file of views ({expected})")
    plain_file(path)
    if suffix not in FORMATS:
        raise ValueError(f"{path} ends in {suffix!r}; files of views end in {', '.join(FORMATS)}")
    return FORMATS[suffix]


def read(path: str | Path, how: Reading = contents.DEFAULT_READING) -> Data:
    """Read the views in a file or folder."""
    path = Path(path)
    if store.is_store(path):
        check_options(how, (), path)
        return store.read(path)
    form = format_of(path)
    check_options(how, form.OPTIONS, path)
    data: Data = form.read(path, how)
    return data


def check_options(how: Reading, supported: Sequence[str], source: str | Path) -> None:
    """Reject options that this format ignores."""
    for option in FLAGS:
        if option not in supported and option in how.given() and not how.lenient:
            raise ValueError(f"--{option.replace('_', '-')} is not for {source}; leave it out")


def of_views(views: Views) -> Data:
    """Wrap views of the library as if they were read from a file."""
    arrays = dict(zip(views.names, views.arrays(), strict=True))
    return Data(arrays, views.mask.numpy(), views.ids, views.y, views.names)


def enter(data: Data, like: Fitted = None, dtype: torch.dtype | None = torch.float64) -> Entry:
    """Check what a file holds, in double precision; `like`: the views of a fitted model. A store
    stays memory-mapped."""
    if data.whole is not None:
        views = data.whole if like is None else store.arranged(data.whole, like)
        return Entry.of(views, like=like)
    mask = data.mask
    if mask is not None and like is not None:  # its columns follow the file, views the model
        by_view, absent = dict(zip(data.views, mask.T, strict=True)), np.zeros(len(mask), bool)
        mask = np.stack([by_view.get(s.name, absent) for s in like], axis=1)
    entry = Entry.of(data.views, mask, like=like, dtype=dtype, aligned=True)
    if data.y is not None and len(data.y) != len(entry.views):
        raise ValueError(f"{len(data.y)} labels for {len(entry.views)} samples; give one each")
    return replace(entry, views=replace(entry.views, ids=data.ids, y=data.y))


def write_views(path: Path, data: Data, views: Filled, ends: Ends | None = None) -> None:
    """Write complete `views` in the format of `data`, or .npz; other content of the file stays.

    ends: {"lower": ..., "upper": ...}, views that go beside them
    """
    columns = {k: v.columns for k, v in data.views.items() if isinstance(v, pd.DataFrame)}
    groups = {  # without columns of fitting that the data lack
        end: {k: v[columns[k]] if k in columns else v for k, v in group.items()}
        for end, group in {"": views, **(ends or {})}.items()
    }
    plain = path.suffix.lower() == ".npz" or data.path is None
    form = npz if plain else format_of(data.path or path)
    form.write(path, data, groups.pop(""), groups)


def write_hidden(out: Path, data: Data, mask: contents.Bools) -> None:
    """Write the views that mask (n, L) leaves like `data`, to a folder or file; the rest stays."""
    suffix, views = out.suffix.lower(), zip(data.views.items(), mask.T, strict=True)
    if out.is_dir():
        folder.write_hidden(out, data, mask)
    elif suffix == ".npz":
        npz.write(out, data, {k: npz.hidden(k, a, seen, True) for (k, a), seen in views}, {}, mask)
    elif suffix == ".mat":
        write_views(out, data, {k: npz.hidden(k, a, seen) for (k, a), seen in views})
    else:
        table.write_hidden(out, data, mask)


def write_new(out: Path, views: Filled) -> None:
    """Write a folder with one .csv file per view, or .npy where a sample is more than a row."""
    for name, view in views.items():
        rows = view if view.ndim > 2 else pd.DataFrame(view)
        folder.write_view(out, name, None, rows, Data({}))


def write_rows(path: Path, ids: Array, id_name: str | None, columns: Mapping[str, Array]) -> None:
    """Write results, one row per sample. The id column comes first, under its name; as `ids` in
    .npz, or if that name is taken."""
    ending = path.suffix.lower()
    if id_name is None or ending == ".npz" or id_name in contents.flat(columns):
        id_name = "ids"
    RESULT_FORMATS[ending](path, {id_name: ids, **columns})
