"""Files of views, and results that are written whole or not at all.

An .npz file of views (`numpy.savez`; never pickled) holds one row per sample in

    any name     a view, (n, features...); NaN = missing, zeros are data
    view_names   optional: names for view0, view1, ...
    mask         optional (n, L): False = this view of this sample is missing
    ids          optional (n,): what the samples are called
    y            optional (n,): labels, for evaluation; no method sees them
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import is_zipfile

import numpy as np
import torch
from numpy.typing import NDArray

from vedute import layout, scaling
from vedute.frames import ViewSpec
from vedute.views import Views

Array = NDArray[Any]
EXTRAS = ("view_names", "mask", "ids", "y")


class Data(NamedTuple):
    """Views as the user wrote them: names -> (n, ...) in their own dtypes; keys: in the file."""

    views: dict[str, Array]
    mask: NDArray[np.bool_] | None = None
    ids: Array | None = None
    y: Array | None = None
    keys: tuple[str, ...] = ()


# Reading.


def read(path: str | Path) -> Data:
    """The views in a file; its ending says how to read it."""
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {what}; give a file of views ({', '.join(READERS)})")
    if path.suffix.lower() not in READERS:
        raise ValueError(
            f"{path} ends in {path.suffix!r}; files of views end in {', '.join(READERS)}"
        )
    return READERS[path.suffix.lower()](path)


def read_npz(path: Path) -> Data:
    """Views from an npz file, as the top of this module tells."""
    arrays = _arrays(path)
    extras = {k: arrays.pop(k, None) for k in EXTRAS}
    for key, a in arrays.items():
        if a.ndim < 2:
            raise ValueError(
                f"{key!r} in {path} has shape {a.shape}; a view is (samples, features): reshape it "
                f"to (n, 1), or leave it out (other keys: {', '.join(EXTRAS)})"
            )
    if not arrays:
        raise ValueError(f"{path} has no view; save arrays (samples, features) by name")
    arrays = _ordered(arrays)
    names = _names(extras["view_names"], list(arrays), path)
    views = dict(zip(names, arrays.values(), strict=True))
    n = len(next(iter(views.values())))
    ids = _one_per_row("ids", extras["ids"], n, path)
    if ids is not None and len(np.unique(ids)) < n:
        raise ValueError(f"ids in {path} name a sample twice; keep one row per sample")
    y = _one_per_row("y", extras["y"], n, path)
    mask = _mask(extras["mask"], (n, len(views)), path)
    return Data(views, mask, ids, y, tuple(arrays))


READERS: Mapping[str, Callable[[Path], Data]] = {".npz": read_npz}


def of_views(views: Views) -> Data:
    """A dataset of the library, as if it came from a file."""
    arrays = {k: x.numpy() for k, x in zip(views.names, views.x, strict=True)}
    for v, holes in enumerate(views.holes):
        if holes is not None:
            arrays[views.names[v]] = np.where(holes.numpy(), np.nan, views.x[v].numpy())
    return Data(arrays, views.mask.numpy(), views.ids, views.y, views.names)


def as_views(data: Data, like: Sequence[ViewSpec] | None = None) -> Views:
    """Through the door, in double precision; `like`: the views a model was fitted on."""
    mask = data.mask
    if mask is not None and like is not None:  # its columns follow the file, views the model
        at = {name: v for v, name in enumerate(data.views)}
        absent = np.zeros(len(mask), bool)
        mask = np.stack([mask[:, at[s.name]] if s.name in at else absent for s in like], axis=1)
    views = Views.of(data.views, mask, y=data.y, like=like, dtype=torch.float64)
    return replace(views, ids=data.ids)


def filled(data: Data, seen: Views, values: Views, like: Sequence[ViewSpec]) -> dict[str, Array]:
    """The user's arrays with `values` where they have none, in their own dtypes.

    seen: what `as_views` made of them; values: the same, imputed.
    """
    absent = [~scaling.entries_seen(seen, v).numpy() for v in range(len(seen.x))]
    arrays = [x.numpy() for x in values.x]
    views: dict[str, Array] = layout.fill(data.views, arrays, absent, like, None)
    return views


def _arrays(path: Path) -> dict[str, Array]:
    """Everything in an npz file."""
    with path.open("rb") as handle:
        if not is_zipfile(handle) or handle.seek(0) or handle.read(2) != b"PK":
            raise ValueError(f"{path} is not an .npz file; write it with numpy.savez")
        handle.seek(0)
        with np.load(handle, allow_pickle=False) as file:
            return {key: _array(file, key, path) for key in file.files}


def _array(file: Mapping[str, Any], key: str, path: Path) -> Array:
    try:
        a = file[key]
    except Exception as e:  # damaged zips raise anything, from zlib.error to EOFError
        told = "holds Python objects, which are never unpickled; save numbers or text"
        if "allow_pickle" not in str(e):
            told = f"is damaged ({e}); write it again"
        raise ValueError(f"{key!r} in {path} {told}") from None
    if not isinstance(a, np.ndarray):
        raise ValueError(f"{key!r} in {path} is not an array; leave it out")
    return a


def _ordered(arrays: dict[str, Array]) -> dict[str, Array]:
    """As in the file, but view2 before view10."""
    numbers = [re.fullmatch(r"view(\d+)", key) for key in arrays]
    if not all(numbers):
        return arrays
    return dict(sorted(arrays.items(), key=lambda item: int(item[0].removeprefix("view"))))


def _names(given: Array | None, keys: list[str], path: Path) -> list[str]:
    if given is None:
        return keys
    names = [str(k) for k in np.ravel(given)]
    if len(set(names)) != len(keys):
        raise ValueError(
            f"view_names in {path} has {len(names)} names ({', '.join(names)}) for {len(keys)} "
            "views; give each view one name of its own"
        )
    return keys if set(names) == set(keys) else names


def _one_per_row(key: str, a: Array | None, n: int, path: Path) -> Array | None:
    if a is None:
        return None
    if a.size != n or max(a.shape) != n:
        raise ValueError(f"{key} in {path} has shape {a.shape}; expected one per sample, ({n},)")
    return a.reshape(n)


def _mask(a: Array | None, shape: tuple[int, int], path: Path) -> NDArray[np.bool_] | None:
    if a is None:
        return None
    if a.shape != shape:
        raise ValueError(f"mask in {path} has shape {a.shape}; expected (samples, views) = {shape}")
    if a.dtype != bool and not np.isin(a, (0, 1)).all():
        raise ValueError(f"mask in {path} must hold True (observed) and False (missing) only")
    return a.astype(bool)


# Writing.


def write_views(
    path: Path,
    data: Data,
    views: Mapping[str, Array],
    ends: Mapping[str, Mapping[str, Array]] | None = None,
) -> None:
    """Complete `views` to an npz file with the keys of `data`; what it had beside them stays.

    ends: more views under longer keys, {"lower": ...} -> view0_lower
    """
    keys = dict(zip(data.views, data.keys or data.views, strict=True))
    arrays = {keys.get(name, name): a for name, a in views.items()}
    for end, others in (ends or {}).items():
        arrays |= {f"{keys.get(name, name)}_{end}": a for name, a in others.items()}
    if any(key != name for name, key in keys.items()):
        arrays["view_names"] = np.array(list(views))
    if data.mask is not None:
        arrays["mask"] = np.ones((len(data.mask), len(views)), bool)
    extras = {"ids": data.ids, "y": data.y}
    write_npz(path, arrays | {k: a for k, a in extras.items() if a is not None})


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def write_csv(path: Path, columns: Mapping[str, Array]) -> None:
    """One column per name, (n,) each; a 2-D array takes one column per feature: name0, name1."""
    heads, cells = [], []
    for name, a in columns.items():
        heads += [name] if a.ndim == 1 else [f"{name}{d}" for d in range(a.shape[1])]
        cells += [a] if a.ndim == 1 else list(a.T)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        writer.writerows(zip(*(c.tolist() for c in cells), strict=True))


TABLES: Mapping[str, Callable[[Path, Mapping[str, Array]], None]] = {
    ".npz": write_npz,
    ".csv": write_csv,
}


@contextmanager
def atomic_file(out: str | Path, force: bool = False) -> Iterator[Path]:
    """Where to write a file that becomes `out` when all went well, and is gone otherwise."""
    with _scratch(Path(out), force, folder=False) as (part, target):
        yield part
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)


@contextmanager
def atomic_folder(out: str | Path, force: bool = False) -> Iterator[Path]:
    """The same for a folder. In one that exists, `force` replaces files of the same names."""
    with _scratch(Path(out), force, folder=True) as (part, target):
        part.mkdir()
        yield part
        target.mkdir(parents=True, exist_ok=True)
        for file in part.iterdir():
            file.replace(target / file.name)


@contextmanager
def _scratch(out: Path, force: bool, folder: bool) -> Iterator[tuple[Path, Path]]:
    """A path beside `out`, whose name it has, in a folder that goes away; and `out` in full."""
    target = out.resolve()
    if target.exists() and target.is_dir() != folder:
        raise FileExistsError(f"{out} is a {'file' if folder else 'folder'}; choose another name")
    if target.exists() and not force:
        raise FileExistsError(f"{out} exists; choose another name, or --force to replace it")
    home = next(p for p in target.parents if p.exists())
    with TemporaryDirectory(prefix=f".{target.name}.", dir=home, ignore_cleanup_errors=True) as d:
        yield Path(d) / target.name, target
