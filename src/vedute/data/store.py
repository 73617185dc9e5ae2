"""A store: views on the disk, one array each, of which rows are read when they are asked for.

manifest.json       format, number of samples, seed of the shuffling, what each view looks like, and
                    shape, dtype and SHA-256 of each file
view0.npy, ...      (n, *shape), zero where the view is missing
mask.npy            (n, L) bool, True where a view was observed
holes0.npy, ...     (n, *shape) bool, True at single missing entries, of views that have some
ids.npy, y.npy      (n,) where there are some
order.npy           (n,) the row that each row was in the data, where rows were shuffled

Arrays are mapped into memory, never unpickled; what is written into them stays in memory.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedute.data.frames import ViewSpec

Array = NDArray[Any]
MANIFEST, FORMAT = "manifest.json", 1
MEND = "convert the data again"


class Stored(NamedTuple):
    """The content of a store, or some of its rows."""

    x: list[Array]
    mask: Array
    holes: list[Array | None]
    specs: tuple[ViewSpec, ...]
    ids: Array | None
    y: Array | None
    order: Array | None
    id_name: str | None


def is_store(folder: str | Path) -> bool:
    return (Path(folder) / MANIFEST).is_file()


def read(folder: str | Path, rows: slice = slice(None), check: bool = True) -> Stored:
    """Its arrays, mapped; with `check` the sums of all files are compared, which reads them."""
    folder = Path(folder)
    facts = manifest(folder)
    try:
        files, n = facts["files"], int(facts["samples"])
        specs = tuple(map(_spec, facts["views"]))
        found = {name: _mapped(folder / name, about, check) for name, about in files.items()
                 if name in _names(len(specs))}  # fmt: skip
        x = [_shaped(found, f"view{v}.npy", (n, *s.shape)) for v, s in enumerate(specs)]
        mask = _shaped(found, "mask.npy", (n, len(specs)))
        sized = {f"holes{v}.npy": (n, *s.shape) for v, s in enumerate(specs)}
        sized |= dict.fromkeys(("ids.npy", "y.npy", "order.npy"), (n,))
        rest = {k: _shaped(found, k, s)[rows] for k, s in sized.items() if k in found}
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"{folder / MANIFEST} is damaged ({e!r}); {MEND}") from None
    holes = [rest.get(f"holes{v}.npy") for v in range(len(specs))]
    ids, y, order = (rest.get(f"{k}.npy") for k in ("ids", "y", "order"))
    return Stored([a[rows] for a in x], mask[rows], holes, specs, ids, y, order, facts["id_name"])


def manifest(folder: Path) -> dict[str, Any]:
    """What manifest.json says."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is no store: it has no {MANIFEST}; see vedute convert")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        found = facts["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise ValueError(f"{path} is damaged ({e}); {MEND}") from None
    if found != FORMAT:
        raise ValueError(f"{path} has format {found}, this version reads {FORMAT}; {MEND}")
    return {"id_name": None} | dict(facts)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _names(n_views: int) -> set[str]:
    """Files that may belong to a store: no other is ever opened."""
    views = {f"{word}{v}.npy" for word in ("view", "holes") for v in range(n_views)}
    return views | {f"{word}.npy" for word in ("mask", "ids", "y", "order")}


def _mapped(path: Path, about: dict[str, Any], check: bool) -> Array:
    """An array that is read when asked, as the manifest describes it."""
    try:
        a = np.load(path, mmap_mode="c", allow_pickle=False)
        there = (list(a.shape), a.dtype.str) == (about["shape"], about["dtype"])
        problem = "" if there else "shape or dtype is another"
    except PermissionError:
        raise
    except (OSError, ValueError, EOFError, SyntaxError) as e:
        problem = "it is gone" if isinstance(e, FileNotFoundError) else str(e)
    if not problem and check and digest(path) != about["sha256"]:
        problem = "its content has changed"
    if problem:
        raise ValueError(f"{path} is damaged ({problem}); {MEND}")
    return np.asarray(a)


def _shaped(found: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    a = found[name]
    if a.shape != shape:
        raise ValueError(f"{name} in the store has shape {a.shape}, expected {shape}; {MEND}")
    return a


def _spec(about: dict[str, Any]) -> ViewSpec:
    columns, levels = about["columns"], about["levels"]
    return ViewSpec(
        about["name"],
        tuple(about["shape"]),
        None if columns is None else tuple(columns),
        None if levels is None else tuple(None if k is None else tuple(k) for k in levels),
        tuple(about["dtypes"]),
    )
