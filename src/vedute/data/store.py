"""A store: views on the disk, one array each, of which rows are read when they are asked for.

manifest.json       format, number of samples, seed of the shuffling, description of each view, and
                    shape, dtype and SHA-256 of each file
view0.npy, ...      (n, *shape), zero where the view is missing
mask.npy            (n, L) bool, True where a view was observed
holes0.npy, ...     (n, *shape) bool, True at single missing entries, of views that have some
ids.npy, y.npy      (n,), optional
order.npy           (n,) position of each row in the data, where rows were shuffled

Arrays are never unpickled. Those of views and holes are memory-mapped.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data.frames import ViewSpec
from vedute.data.limits import plain_file
from vedute.data.lock import Shared
from vedute.data.mapped import File, Opened, Version, version_of
from vedute.data.rows import Rows

Array = NDArray[Any]
MANIFEST, MANIFEST_FORMAT = "manifest.json", 1
REMEDY = "convert the data again"


def is_store(folder: str | Path) -> bool:
    return (Path(folder) / MANIFEST).is_file()


def read(
    folder: str | Path, rows: slice = slice(None), check: bool = True
) -> tuple[dict[str, Any], Array | None, str | None]:
    """Open a store, or a slice of its rows: the fields of a Views, the order of its rows in the
    data, and the name of their ids; with `check` the checksums of all files are compared, which
    reads them."""
    folder = Path(folder)
    facts = manifest(folder)
    lock = Shared(folder / MANIFEST)
    _check_kept(folder, facts, lock)
    try:
        files, n = facts["files"], int(facts["samples"])
        specs = tuple(map(_spec, facts["views"]))

        def file(name: str, *shape: int) -> File:
            version, a = _mapped(folder / name, files[name], (n, *shape), check)
            return File(Opened(folder / name, version), a.dtype, a.shape, a.offset, rows, lock)

        def view(name: str, spec: ViewSpec) -> Rows:
            return file(name, *spec.shape).rows(f"{files[name]['sha256']} {rows}")

        x = [view(f"view{v}.npy", spec) for v, spec in enumerate(specs)]
        mask = file("mask.npy", len(specs))
        names = [f"holes{v}.npy" for v in range(len(specs))]
        holes = [view(k, s) if k in files else None for k, s in zip(names, specs, strict=True)]
        columns = [file(f"{k}.npy") if f"{k}.npy" in files else None for k in ("ids", "y", "order")]
        ids, y, order = (None if column is None else column.array() for column in columns)
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"{folder / MANIFEST} is damaged ({e!r}); {REMEDY}") from None
    _check_kept(folder, facts, lock)
    seen = torch.from_numpy(mask.array())
    fields = {"x": x, "mask": seen, "index": torch.arange(len(seen))}
    fields |= {"holes": holes, "names": tuple(s.name for s in specs), "specs": specs}
    return fields | {"ids": ids, "y": y}, order, facts["id_name"]


def _check_kept(folder: Path, facts: dict[str, Any], lock: Shared) -> None:
    """Reject a store that is replaced while it is opened."""
    if not lock.held or manifest(folder) != facts:
        raise ValueError(f"{folder} is being replaced by another process; open it after that")


def manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is no store: it has no {MANIFEST}; see vedute convert")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        version = facts["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise ValueError(f"{path} is damaged ({e}); {REMEDY}") from None
    if version != MANIFEST_FORMAT:
        raise ValueError(
            f"{path} has format {version}, this version reads {MANIFEST_FORMAT}; {REMEDY}"
        )
    return {"id_name": None} | dict(facts)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mapped(path: Path, about: Any, shape: tuple[int, ...], check: bool) -> tuple[Version, Any]:
    """Map an array of this shape, as the manifest describes it; and identify its file."""
    try:
        version = version_of(path.stat())
        a: Any = np.load(plain_file(path), mmap_mode="r", allow_pickle=False)
        matches = (list(a.shape), a.dtype.str) == (about["shape"], about["dtype"])
        problem = "" if matches else "shape or dtype is another"
    except PermissionError:
        raise
    except (OSError, ValueError, EOFError, SyntaxError) as e:
        problem = "it is gone" if isinstance(e, FileNotFoundError) else str(e)
    if not problem and check and digest(path) != about["sha256"]:
        problem = "its content has changed"
    if problem:
        raise ValueError(f"{path} is damaged ({problem}); {REMEDY}")
    if a.shape != shape:
        raise ValueError(
            f"{path.name} in the store has shape {a.shape}, expected {shape}; {REMEDY}"
        )
    return version, a


def _spec(about: dict[str, Any]) -> ViewSpec:
    columns, levels = about["columns"], about["levels"]
    return ViewSpec(
        about["name"],
        tuple(about["shape"]),
        None if columns is None else tuple(columns),
        None if levels is None else tuple(None if k is None else tuple(k) for k in levels),
        tuple(about["dtypes"]),
        origins=tuple(about.get("origins", ())),
    )
