"""Files of views, and files like them with nothing missing. One module per format:

npz       .npz: arrays by name
folder    one file per view (.csv, .tsv, .parquet, .npy, a folder of images), joined by id
table     one wide table (.csv, .tsv, .parquet), and which columns make which view
mat       .mat: a cell array of views, or view1, view2, ...
mudata    .h5mu, .h5ad: modalities
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from vedute.data import fill, scaling
from vedute.data.frames import ViewSpec, from_frame, is_frame
from vedute.data.views import Views, read_views
from vedute.io import folder, mat, mudata, npz, onefile, table
from vedute.io.atomic import atomic_file as atomic_file
from vedute.io.atomic import atomic_folder as atomic_folder
from vedute.io.data import Array as Array
from vedute.io.data import Data as Data
from vedute.io.data import Filled, Format
from vedute.io.data import Reading as Reading
from vedute.io.mudata import ENDINGS
from vedute.io.mudata import annotate as annotate
from vedute.io.paths import below as below
from vedute.io.rows import TABLES as TABLES
from vedute.io.rows import write_csv as write_csv
from vedute.io.rows import write_npz as write_npz
from vedute.io.table import read_spec as read_spec

FORMATS: Mapping[str, Format] = {
    ".npz": npz,
    **dict.fromkeys(onefile.KINDS, table),
    ".mat": mat,
    **dict.fromkeys(ENDINGS, mudata),
}
ANNOTATED = ENDINGS  # files that take results beside the data
AS_IT_IS = Reading()
FLAGS = {"views": "--views", "label": "--label", "one_hot": "--one-hot", "samples": "--samples",
         "decimal": "--decimal"}  # fmt: skip


def ending(path: str | Path) -> str:
    """.csv, .csv.gz, ...; '' for a folder."""
    return "" if Path(path).is_dir() else onefile.ending(Path(path))


def format_of(path: str | Path) -> Format:
    """The module that reads this path; its ending says which."""
    path = Path(path)
    if path.is_dir():
        return folder
    last = ending(path)
    if not path.exists():
        known = last if last in FORMATS else f"{', '.join(FORMATS)}, or a folder"
        raise FileNotFoundError(f"{path} does not exist; give a file of views ({known})")
    if last not in FORMATS:
        raise ValueError(f"{path} ends in {last!r}; files of views end in {', '.join(FORMATS)}")
    return FORMATS[last]


def read(path: str | Path, how: Reading = AS_IT_IS) -> Data:
    """The views in a file or folder."""
    form = format_of(path)
    check_options(how, form.OPTIONS, path)
    return form.read(Path(path), how)


def check_options(how: Reading, heeded: Sequence[str], source: str | Path) -> None:
    """Refuse what a user says in vain."""
    given = how._asdict()
    for option, flag in FLAGS.items():
        if option not in heeded and given[option] and not how.lenient:
            raise ValueError(f"{flag} is not for {source}; leave it out")


def of_views(views: Views) -> Data:
    """A dataset of the library, as if it came from a file."""
    arrays = {k: x.numpy() for k, x in zip(views.names, views.x, strict=True)}
    for v, holes in enumerate(views.holes):
        if holes is not None:
            arrays[views.names[v]] = np.where(holes.numpy(), np.nan, views.x[v].numpy())
    return Data(arrays, views.mask.numpy(), views.ids, views.y, views.names)


def as_views(data: Data, like: Sequence[ViewSpec] | None = None) -> Views:
    """Through the door, in double precision; `like`: the views a model was fitted on."""
    return enter(data, like)[0]


def enter(data: Data, like: Sequence[ViewSpec] | None = None) -> tuple[Views, list[ViewSpec]]:
    """`as_views`, and what the views looked like: columns, categories, dtypes."""
    fitted = {s.name: s for s in like or ()}
    X, specs = data.views, dict[str, ViewSpec]()
    if len({is_frame(v) for v in X.values()}) > 1:  # the door takes all frames or all arrays
        for name, view in data.views.items():
            if isinstance(view, pd.DataFrame):
                a, specs[name] = from_frame(name, view, view.index, fitted.get(name))
                X = X | {name: a}
    mask = data.mask
    if mask is not None and like is not None:  # its columns follow the file, views the model
        at = {name: v for v, name in enumerate(data.views)}
        absent = np.zeros(len(mask), bool)
        mask = np.stack([mask[:, at[s.name]] if s.name in at else absent for s in like], axis=1)
    views, found = read_views(X, mask, like=like, dtype=torch.float64)
    if data.y is not None and len(data.y) != len(views):
        raise ValueError(f"{len(data.y)} labels for {len(views)} samples; give one each")
    told = [specs.get(s.name, s) for s in found]
    return replace(views, ids=data.ids, y=data.y, specs=tuple(told)), told


def filled(data: Data, seen: Views, values: Views, like: Sequence[ViewSpec]) -> dict[str, Any]:
    """The user's arrays and frames with `values` where they have none, in their own dtypes.

    seen: what `as_views` made of them; values: the same, imputed.
    """
    frames = [is_frame(data.views[s.name]) if s.name in data.views else None for s in like]
    told: dict[str, Any] = {}
    for kind in (True, False):
        own = [v for v, f in enumerate(frames) if f is kind or (f is None and kind in frames)]
        own = [v for v in own if like[v].name not in told]
        if not own:
            continue
        absent = [~scaling.entries_seen(seen, v).numpy() for v in own]
        specs = [like[v] for v in own]
        X = {s.name: data.views[s.name] for s in specs if s.name in data.views}
        told |= fill.fill(X, [values.x[v].numpy() for v in own], absent, specs, None)
    order = [*data.views, *(s.name for s in like if s.name not in data.views)]
    return {name: told[name] for name in order}


def write_views(
    path: Path, data: Data, views: Filled, ends: Mapping[str, Filled] | None = None
) -> None:
    """Complete `views` in the format that `data` came in, or .npz; what it had beside them stays.

    ends: {"lower": ..., "upper": ...}, views that go beside them
    """
    plain = path.suffix == ".npz" or data.path is None
    form: Format = npz if plain else format_of(data.path or path)
    form.write(path, data, views, ends or {})


def write_new(out: Path, views: Filled) -> None:
    """A folder with one .csv file per view, or .npy where a sample is more than a row."""
    for name, view in views.items():
        if view.ndim > 2:
            np.save(below(out, name, ".npy"), view)
        else:
            onefile.write_new(below(out, name, ".csv"), pd.DataFrame(view))
