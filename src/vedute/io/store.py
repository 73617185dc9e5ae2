"""Stores, folders of arrays (`vedute.data.store`): written block by block, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data import store
from vedute.data.frames import ViewSpec
from vedute.data.lock import try_lock
from vedute.data.mapped import Spool
from vedute.data.sparse_view import dense, on_demand
from vedute.data.store import is_store as is_store
from vedute.data.views import Views
from vedute.io.contents import Array, Data
from vedute.io.files import atomic_folder

ROWS = 4096  # at a time, fewer where samples are wide
NUMBERS = 2**22  # at a time
MANY, BUCKET = 2**19, 2**25  # rows and numbers of a bucket
Arrays = dict[str, Array]  # of some rows, by file
ENDS = ("lower", "upper")  # of intervals: stores inside the store


def read(path: Path) -> Data:
    """A store as data that commands take; its sums are compared."""
    found = store.read(path)
    return Data(
        {},
        found.mask,
        found.ids,
        found.y,
        tuple(s.name for s in found.specs),
        path,
        id_name=found.id_name,
        whole=Views.stored(found),
        order=found.order,
    )


@contextmanager
def new_store(out: Path, force: bool) -> Iterator[Path]:
    """A folder to write that becomes `out`; `force` replaces a store, and nothing else."""
    if force and out.is_dir() and any(out.iterdir()) and not is_store(out):
        raise FileExistsError(f"{out} is a folder, but no store; choose another name")
    old = [file for end in (".", *ENDS) for file in (out / end).glob("*.npy")]
    old += [out / end / store.MANIFEST for end in ENDS]
    stale = [str(file.relative_to(out)) for file in old]
    with atomic_folder(out, force, stale=stale) as part, _unread(out):
        yield part


@contextmanager
def _unread(out: Path) -> Iterator[None]:
    """Inside, nobody reads the store `out`, or those in it; it is refused where somebody does."""
    with ExitStack() as locks:
        for manifest in [out / end / store.MANIFEST for end in (".", *ENDS)]:
            if manifest.is_file() and locks.enter_context(try_lock(manifest)) is False:
                raise FileExistsError(
                    f"{out} is open, and its rows are still read; wait for who reads it, or "
                    "choose another name"
                )
        yield


def write(
    folder: Path,
    views: Views,
    seed: int | None,
    id_name: str | None = None,
    written: Callable[[int], object] = lambda rows: None,
) -> None:
    """All rows of `views`, shuffled by the seed; None: in their order. written: is told how many
    rows were."""
    n = len(views)
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    with Writer(folder, n) as writer:
        jumps = views.on_disk and seed is not None
        for block in _from_buckets(views, order) if jumps else _in_order(views, order):
            writer.add(block)
            written(len(block["mask.npy"]))
        about = {"seed": seed, "id_name": id_name}
        writer.finish(views.specs or (), None if seed is None else order, about)


def _in_order(views: Views, order: Array) -> Iterator[Arrays]:
    """Some rows at a time."""
    for start in range(0, len(order), rows_of(views)):
        yield arrays(views[order[start : start + rows_of(views)]])


def _from_buckets(views: Views, order: Array) -> Iterator[Arrays]:
    """The same of views on the disk, without jumping about there: rows are read as they lie and put
    into buckets of those that will lie together, temporary files that fit into memory."""
    place, start = np.argsort(order), 0
    size = rows_of(views, MANY, BUCKET)
    buckets = [defaultdict[str, Spool](Spool) for _ in range(0, len(order), size)]
    for block in views.pieces():
        at = place[start : start + len(block)]
        start += len(block)
        for name, a in (arrays(block) | {"": at}).items():
            for b in np.unique(at // size):
                buckets[b][name].add(a[at // size == b])
    for bucket in buckets:
        back = np.argsort(bucket.pop("").array())
        yield {name: spool.array()[back] for name, spool in bucket.items()}
        bucket.clear()  # and its files


def rows_of(views: Views, most: int = 0, numbers: int = 0) -> int:
    """How many rows are read and written at a time."""
    width = sum(int(np.prod(s)) for s in views.shapes)
    return max(1, min(most or ROWS, (numbers or NUMBERS) // max(1, width)))


def blocks(whole: Views, like: Sequence[ViewSpec]) -> Iterator[Views]:
    """A store from its first row to its last, with the views that a model was fitted on."""
    return arranged(whole, like).batches(rows_of(whole))


def arranged(views: Views, like: Sequence[ViewSpec]) -> Views:
    """The views that a model was fitted on, in its order; those that nobody has are missing."""
    at = {name: v for v, name in enumerate(views.names)}
    names = tuple(s.name for s in like)
    unknown = [name for name in at if name not in names]
    if unknown:
        raise ValueError(f"unknown view {unknown[0]!r}; fitted views are {', '.join(names)}")
    if views.names == names:
        return views
    n, own = len(views), views.specs or ()
    absent = torch.zeros(n, dtype=torch.bool)
    return replace(
        views,
        x=on_demand([views.parts[at[k]] if k in at else torch.zeros(n, 0) for k in names]),
        mask=torch.stack([views.mask[:, at[k]] if k in at else absent for k in names], 1),
        holes=on_demand([views.hole_parts[at[k]] if k in at else None for k in names]),
        names=names,
        specs=tuple(own[at[s.name]] if s.name in at else s for s in like),
    )


def in_order(columns: dict[str, Array], order: Array | None) -> dict[str, Array]:
    """Results with one row per row of the store -> in the order of the data it was made of."""
    if order is None:
        return columns
    back = np.argsort(order)
    return {name: a[back] for name, a in columns.items()}


class Writer:
    """Blocks of rows become a store of n samples in `folder`, which exists."""

    def __init__(self, folder: Path, n: int) -> None:
        self.folder, self.n = folder, n
        self.files: dict[str, _File] = {}

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self.files.values():
            file.handle.close()

    def add(self, block: Arrays) -> None:
        """The next rows, as `arrays` has them."""
        for name, a in block.items():
            self._write(name, a)

    def finish(
        self, specs: Sequence[ViewSpec], order: Array | None, about: Mapping[str, Any]
    ) -> None:
        """Write what is known once all rows are there; about: seed and id_name, also among others
        in the manifest of another store."""
        if order is not None:
            self._write("order.npy", order.astype(np.int64))
        facts = {"format": store.FORMAT, "samples": self.n}
        facts |= {word: about[word] for word in ("seed", "id_name")}
        views = [_described(spec) for spec in specs]
        files = {name: file.facts() for name, file in self.files.items()}
        text = json.dumps(facts | {"views": views, "files": files}, indent=1)
        (self.folder / store.MANIFEST).write_text(text, encoding="utf-8")

    def _write(self, name: str, a: Array) -> None:
        if name not in self.files:
            self.files[name] = _File(self.folder / name, (self.n, *a.shape[1:]), a.dtype)
        self.files[name].write(a)


class _File:
    """An .npy file of known shape, written row by row; its sum is made on the way."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype, self.sum = shape, dtype, hashlib.sha256()
        self.handle: IO[bytes] = path.open("wb+")
        descr = np.lib.format.dtype_to_descr(dtype)
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.handle, header)
        self.handle.seek(0)
        self.sum.update(self.handle.read())

    def write(self, a: Array) -> None:
        content = np.ascontiguousarray(a, self.dtype).tobytes()
        self.handle.write(content)
        self.sum.update(content)

    def facts(self) -> dict[str, Any]:
        self.handle.flush()
        return {"shape": self.shape, "dtype": self.dtype.str, "sha256": self.sum.hexdigest()}


def arrays(block: Views) -> Arrays:
    """What a store holds of these rows, by file."""
    found = {f"view{v}.npy": dense(x).numpy() for v, x in enumerate(block.parts)}
    found["mask.npy"] = block.mask.numpy()
    found |= {f"holes{v}.npy": h.numpy() for v, h in enumerate(block.holes) if h is not None}
    rows = {"ids.npy": block.ids, "y.npy": block.y}
    return found | {name: _plain(a) for name, a in rows.items() if a is not None}


def _plain(a: NDArray[Any]) -> Array:
    """Numbers or text."""
    return a.astype(np.str_) if a.dtype.kind == "O" else a


def _described(spec: ViewSpec) -> dict[str, Any]:
    """A view as JSON has it; names that it does not know become text."""
    levels = spec.levels
    return {
        "name": spec.name,
        "shape": spec.shape,
        "columns": None if spec.columns is None else [_word(c) for c in spec.columns],
        "levels": None
        if levels is None
        else [None if k is None else [_word(c) for c in k] for k in levels],
        "dtypes": spec.dtypes,
        **({"origins": spec.origins} if spec.origins else {}),
    }


def _word(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool)) else str(value)
