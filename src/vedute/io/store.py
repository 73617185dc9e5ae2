"""Writing stores, folders of arrays (`vedute.data.store`), block by block, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from vedute.data import store
from vedute.data.frames import ViewSpec
from vedute.data.lock import try_lock
from vedute.data.mapped import Scratch, npy_header
from vedute.data.store import is_store as is_store
from vedute.data.views import Views
from vedute.io.contents import Array, Data
from vedute.io.files import atomic_folder

BLOCK_ROWS, BLOCK_VALUES = 4096, 2**22  # largest block
BUCKET_ROWS, BUCKET_VALUES = 2**19, 2**25  # largest bucket
Arrays = dict[str, Array]  # rows by file
INTERVAL_ENDS = ("lower", "upper")  # stores of their own inside the store


def read(path: Path) -> Data:
    """Read a store as the data that commands take; checksums are compared."""
    fields, order, id_name = store.read(path)
    whole = Views(**fields)
    data = Data({}, whole.mask.numpy(), whole.ids, whole.y, whole.names, path, whole=whole)
    return replace(data, order=order, id_name=id_name)


@contextmanager
def new_store(out: Path, force: bool) -> Iterator[Path]:
    """Yield a folder to write that becomes `out`; `force` replaces a store, and nothing else. The
    stores in it are locked against readers; raise if one has it open."""
    if force and out.is_dir() and any(out.iterdir()) and not is_store(out):
        raise FileExistsError(f"{out} is a folder, but no store; choose another name")
    folders = [out / end for end in (".", *INTERVAL_ENDS)]
    manifests = [folder / store.MANIFEST for folder in folders]
    old = [*(file for folder in folders for file in folder.glob("*.npy")), *manifests[1:]]
    stale = [str(file.relative_to(out)) for file in old]
    with atomic_folder(out, force, stale=stale) as part, ExitStack() as locks:
        for manifest in manifests:
            if manifest.is_file() and locks.enter_context(try_lock(manifest)) is False:
                raise FileExistsError(f"{out} is open, and its rows are still read; close it")
        yield part


def write(
    folder: Path,
    views: Views,
    seed: int | None,
    id_name: str | None = None,
    progress: Callable[[int], object] = lambda rows: None,
) -> None:
    """Write all rows, shuffled by the seed if not None; progress gets the rows of each block."""
    n = len(views)
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    jumps, size = views.on_disk and seed is not None, rows_of(views)
    blocks = (arrays(views[order[i : i + size]]) for i in range(0, n, size))
    with Writer(folder, n) as writer:
        for block in _from_buckets(views, order) if jumps else blocks:
            writer.append(block)
            progress(len(block["mask.npy"]))
        writer.specs = [*(views.specs or ())]
        writer.finish(None if seed is None else order, {"seed": seed, "id_name": id_name})


def _from_buckets(views: Views, order: Array) -> Iterator[Arrays]:
    """Read shuffled blocks of views on the disk without random access: rows are read in their order
    into buckets of neighbors in the new order, temporary files that fit into memory."""
    position, start = np.argsort(order), 0
    size = rows_of(views, BUCKET_ROWS, BUCKET_VALUES)
    buckets = [defaultdict[str, Scratch](Scratch) for _ in range(0, len(order), size)]
    for block in views.pieces():
        at = position[start : start + len(block)]
        start += len(block)
        for name, a in (arrays(block) | {"": at}).items():
            for b in np.unique(at // size):
                buckets[b][name].add(a[at // size == b])
    for bucket in buckets:
        back = np.argsort(bucket.pop("").array())
        yield {name: file.array()[back] for name, file in bucket.items()}
        bucket.clear()  # and its files


def rows_of(views: Views, rows: int = 0, values: int = 0) -> int:
    """Rows per block."""
    width = max(1, sum(map(prod, views.shapes)))
    return max(1, min(rows or BLOCK_ROWS, (values or BLOCK_VALUES) // width))


def arranged(views: Views, like: Sequence[ViewSpec]) -> Views:
    """Reorder views to those of a fitted model; others are missing."""
    at = {name: v for v, name in enumerate(views.names)}
    names = tuple(s.name for s in like)
    unknown = [name for name in at if name not in names]
    if unknown:
        raise ValueError(f"unknown view {unknown[0]!r}; fitted views are {', '.join(names)}")
    if views.names == names:
        return views
    n, specs = len(views), views.specs or ()
    absent = torch.zeros(n, dtype=torch.bool)
    return replace(
        views,
        x=[views.parts[at[k]] if k in at else torch.zeros(n, 0) for k in names],
        mask=torch.stack([views.mask[:, at[k]] if k in at else absent for k in names], 1),
        holes=[views.hole_parts[at[k]] if k in at else None for k in names],
        names=names,
        specs=tuple(specs[at[s.name]] if s.name in at else s for s in like),
    )


class Writer(AbstractContextManager["Writer"]):
    """Writes blocks of rows as a store of n samples in `folder`, which exists."""

    def __init__(self, folder: Path, n: int) -> None:
        self.folder, self.n, self.specs = folder, n, list[ViewSpec]()
        self.files: dict[str, _File] = {}

    def __exit__(self, *error: object) -> None:
        for file in self.files.values():
            file.handle.close()

    def add(self, views: Views, ids: Array) -> None:
        """Append rows of views, whose ids are in them."""
        self.specs = [*(views.specs or ())]
        self.append(arrays(views))

    def append(self, block: Arrays) -> None:
        """Append rows, as `arrays` has them."""
        for name, a in block.items():
            if name not in self.files:
                self.files[name] = _File(self.folder / name, (self.n, *a.shape[1:]), a.dtype)
            self.files[name].write(np.ascontiguousarray(a, self.files[name].dtype).tobytes())

    def finish(self, order: Array | None, about: Mapping[str, Any]) -> None:
        """Write the manifest after all rows; about: seed and id_name, as in a manifest."""
        if order is not None:
            self.append({"order.npy": order.astype(np.int64)})
        facts = {"format": store.MANIFEST_FORMAT, "samples": self.n}
        facts |= {word: about[word] for word in ("seed", "id_name")}
        views = [_described(spec) for spec in self.specs]
        files = {name: file.facts() for name, file in self.files.items()}
        text = json.dumps(facts | {"views": views, "files": files}, indent=1)
        (self.folder / store.MANIFEST).write_text(text, encoding="utf-8")


class _File:
    """An .npy file of known shape, written row by row; its checksum is computed on the way."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype, self.checksum = shape, dtype, hashlib.sha256()
        self.handle: IO[bytes] = path.open("wb")
        self.write(npy_header(shape, dtype))

    def write(self, content: bytes) -> None:
        self.handle.write(content)
        self.checksum.update(content)

    def facts(self) -> dict[str, Any]:
        self.handle.flush()
        return {"shape": self.shape, "dtype": self.dtype.str, "sha256": self.checksum.hexdigest()}


def arrays(block: Views) -> Arrays:
    """Convert views to the arrays of a store, by file."""
    files = {f"view{v}.npy": x[:].numpy() for v, x in enumerate(block.parts)}
    files["mask.npy"] = block.mask.numpy()
    files |= {f"holes{v}.npy": h.numpy() for v, h in enumerate(block.holes) if h is not None}
    rows = {"ids.npy": block.ids, "y.npy": block.y}
    known = {name: a for name, a in rows.items() if a is not None}
    return files | {k: a.astype(np.str_) if a.dtype.kind == "O" else a for k, a in known.items()}


def _described(spec: ViewSpec) -> dict[str, Any]:
    """Describe a view in JSON; names of other types become text."""

    def words(names: Sequence[Any] | None) -> list[Any] | None:
        items = [x.item() if isinstance(x, np.generic) else x for x in names or ()]
        texts = [x if isinstance(x, (str, int, float, bool)) else str(x) for x in items]
        return None if names is None else texts

    levels = None if spec.levels is None else [words(k) for k in spec.levels]
    about = {"name": spec.name, "shape": spec.shape, "columns": words(spec.columns)}
    origins = {"origins": spec.origins} if spec.origins else {}
    return {**about, "levels": levels, "dtypes": spec.dtypes, **origins}
