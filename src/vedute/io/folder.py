"""A folder with one view per file, joined by sample id; a view has the name of its file.

rna.csv, .tsv, .parquet        ids in the first column (or the stored index)
images.npy, images.ids.txt     an array (n, ...), and one id per line
front/p1.png, front/p2.png     images of one size, named by their ids
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.data.ids import warn_of_look_alikes
from vedute.data.problems import EnoughError, incomplete, noted, noted_errors
from vedute.io import arrays, contents, csv, npz, table
from vedute.io.arrays import Keyed
from vedute.io.contents import Bools, Data, Ends, Filled, Reading, Unwanted
from vedute.io.files import below

OPTIONS: tuple[str, ...] = ("label", "one_hot", "decimal", "drop")
FOLDERS = (*table.TABLE_FORMATS, ".npy", ".zarr")  # names of folders that look like views
View = pd.DataFrame | Keyed
READ = "(.csv, .tsv, .parquet, .npy with .ids.txt, or a folder of images)"


def read(path: Path, how: Reading) -> Data:
    """Read the views in a folder; samples may lack any of them."""
    sources = files(path)

    def view(name: str) -> Any:
        file = sources[name]
        if file.is_dir():
            return arrays.read_images(file)
        if file.suffix.lower() == ".npy":
            return arrays.read_npy(file)
        return table.form(file).raw(file, how)

    return joined(sources, view, path, how)


def joined(sources: dict[str, Path], load: Callable[[str], Any], path: Path, how: Reading) -> Data:
    """Read views, join them by id, and split off the labels."""
    views, unwanted = dict[str, View](), Unwanted(how)
    for name, source in sources.items():
        with noted():
            view = load(name)
            if isinstance(view, pd.DataFrame):
                view = csv.typed(view[unwanted.rest(view.columns)], source, how)
            views[name] = view
    if len(views) == len(sources):
        unwanted.check(path)
    else:  # which may have the columns that are asked for
        how = how._replace(lenient=True)
    y: pd.Series | None = None
    with noted(part=False):
        y = _take_labels(views, path, how)
    views = {k: v for k, v in views.items() if isinstance(v, Keyed) or v.shape[1]}
    if not views:
        if noted_errors():
            raise EnoughError
        rest = "no column left; --drop fewer of them"
        rest = rest if y is None else f"labels and nothing else; add one file per view {READ}"
        raise ValueError(f"{path} has {rest}")
    nameless = [k for k, v in views.items() if v.index is None]
    if len(nameless) == len(views):
        return Data({k: v.values for k, v in views.items()}, keys=tuple(views), path=path, how=how)
    if nameless:
        name = nameless[0]
        raise ValueError(f"{path / name}.npy has no ids; add {name}.ids.txt, one id per line")
    return _aligned(views, y, path, how)


def _aligned(views: Mapping[str, View], y: pd.Series | None, path: Path, how: Reading) -> Data:
    """Give all views the same rows, one per id."""
    indices = {name: view.index for name, view in views.items()}
    if not incomplete():
        warn_of_look_alikes(indices)
    ids = contents.joined(indices.values())
    aligned: dict[str, Any] = {}
    mask = np.ones((len(ids), len(views)), bool)
    for v, (name, view) in enumerate(views.items()):
        if isinstance(view, Keyed):
            aligned[name], mask[:, v] = view.spread(ids)
        else:
            aligned[name] = contents.aligned(view, ids)
            mask[:, v] = aligned[name].notna().any(axis=1)
    y_all = None if y is None else contents.labels(y.reindex(ids.astype(str)))
    observed = None if all(isinstance(v, pd.DataFrame) for v in views.values()) else mask
    id_name = contents.name_of(indices.values())
    return Data(aligned, observed, ids, y_all, tuple(views), path, how, id_name)


def write(out: Path, data: Data, views: Filled, ends: Ends) -> None:
    """Write one file per view like those that were read; interval ends in folders of their own."""
    assert data.path is not None
    sources = files(data.path)
    for part, group in {".": views, **ends}.items():
        (out / part).mkdir(exist_ok=True)
        for name, view in group.items():
            write_view(out / part, name, sources.get(name), view, data)


def files(path: Path) -> dict[str, Path]:
    """Map names of views to their file or folder."""
    if (path / "model.json").is_file():
        raise ValueError(f"{path} is a RUN of `vedute fit`, not data; name the data")
    views: dict[str, Path] = {}
    for file in sorted(path.iterdir(), key=lambda p: p.name):
        with noted():
            if _is_view(file):
                name = file.name[: -len(table.ending(file))] if file.is_file() else file.name
                if name in views:
                    twice = f"{file} and {views[name].name} are both view {name!r}"
                    raise ValueError(f"{twice}; keep one")
                views[name] = file
    if not views and not incomplete():
        raise FileNotFoundError(f"{path} is a folder without views; put one file per view {READ}")
    return views


def _is_view(file: Path) -> bool:
    """Whether a file or folder is a view. Reject what is named like one, such as a pipe."""
    if file.suffix.lower() in (".xlsx", ".xls", ".ods"):
        raise ValueError(f"{file} is a spreadsheet; export it as CSV")
    if not file.exists():
        raise FileNotFoundError(f"{file} is a broken link; repair or remove it")
    if file.name.startswith("."):
        return False
    if file.is_file():
        return table.ending(file) in (*table.TABLE_FORMATS, ".npy")
    if arrays.images(file) or table.ending(file) not in FOLDERS:
        return bool(arrays.images(file))
    if not file.is_dir():
        raise ValueError(f"{file} is a pipe or a device; write the view as a file {READ}")
    raise ValueError(f"{file} is a folder without images; write the view as one file {READ}")


def _take_labels(views: Mapping[str, View], path: Path, how: Reading) -> pd.Series | None:
    """Split the labels off the tables that have them."""
    if how.label is None:
        return None
    tables = {k: v for k, v in views.items() if isinstance(v, pd.DataFrame)}
    sources = [k for k, v in tables.items() if how.label in v.columns]
    if not sources and not how.lenient:
        raise contents.no_label(how.label, path, {c: 0 for v in tables.values() for c in v.columns})
    columns = {name: tables[name].pop(how.label).dropna() for name in sources}
    y: pd.Series | None = None
    for name, more in columns.items():
        y = more if y is None else y
        both = y.index.intersection(more.index)
        differ = both[(y[both].astype(str) != more[both].astype(str)).to_numpy()]
        if len(differ):
            pair = f"{y[differ[0]]} in {sources[0]} and {more[differ[0]]} in {name}"
            raise ValueError(f"{path}: id {differ[0]!r} has the label {pair}; correct one")
        y = pd.concat([y, more[more.index.difference(y.index, sort=False)]])
    return y


def write_view(
    out: Path, name: str, source: Path | None, view: Any, data: Data, missing: Any = None
) -> None:
    """Write rows of a view like its source: by default the cells that `data` lack."""
    if isinstance(view, pd.DataFrame):
        if source is None:
            csv.write_new(below(out, name, ".csv"), view.rename_axis(data.id_name))
        else:
            missing = data.views[name].isna().to_numpy() if missing is None else missing
            table.form(source).write(below(out, source.name), source, view, missing, data.how, {})
    elif source is not None and source.is_dir():
        arrays.write_images(below(out, name), source, view, np.asarray(data.ids).astype(np.str_))
    else:
        arrays.write_npy(below(out, name, ".npy"), view, data.ids, source)


def write_hidden(out: Path, data: Data, mask: Bools) -> None:
    """Write one file per view with the samples it has in mask (n, L), and one with all labels."""
    assert data.path is not None
    sources = files(data.path)
    ids = np.arange(len(mask)) if data.ids is None else data.ids
    for (name, view), seen in zip(data.views.items(), mask.T, strict=True):
        if data.ids is None:
            arrays.write_npy(below(out, name, ".npy"), npz.hidden(name, view, seen), None)
        else:
            left, none = view[seen], np.zeros(view[seen].shape, bool)
            write_view(out, name, sources[name], left, replace(data, ids=ids[seen]), none)
    if data.how.label is not None and data.y is not None:
        home = next(k for k in ("labels", "labels_", "labels__") if k not in data.views)
        known = contents.known_labels(data.y)  # integers even where missing ones made them floats
        y = [int(x) if isinstance(x, float) and x % 1 == 0 else x for x in data.y[known].tolist()]
        labels = pd.DataFrame({data.how.label: pd.Series(y, dtype=object)}).set_axis(ids[known])
        csv.write_new(below(out, home, ".csv"), labels)
