"""One view as an array: name.npy, and the ids of its rows in name.ids.txt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data import limits
from vedute.io.contents import Array, checked_ids, errors_as, own_first


class Keyed(NamedTuple):
    """Values (n, ...), and the ids of their rows, as text; None if unknown."""

    values: Array
    ids: pd.Index | None

    def known(self) -> pd.Index:
        assert self.ids is not None
        return self.ids

    def spread(self, ids: pd.Index) -> tuple[Array, NDArray[np.bool_]]:
        """Place rows by id: values (m, ...), zero for ids without a row; and a mask of ids with
        one, (m,)."""
        positions = self.known().get_indexer(ids.astype(str))
        observed = positions >= 0
        out = np.zeros((len(ids), *self.values.shape[1:]), self.values.dtype)
        out[observed] = self.values[positions[observed]]
        flat = out.reshape(len(out), -1)
        if out.dtype.kind == "f":
            observed &= ~np.isnan(flat).all(1)
        return out, observed


def read(path: Path) -> Keyed:
    """Read an array of numbers; never unpickle."""
    with path.open("rb") as file:
        limits.check(limits.npy_bytes(file), path)
    values = unpickled(lambda: np.load(path, allow_pickle=False), path)
    if not isinstance(values, np.ndarray) or values.ndim < 2 or values.dtype.kind not in "biuf":
        what = (
            f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "npz"
        )
        raise ValueError(f"{path} holds {what}; a view is numbers (samples, features)")
    ids = ids_of(path)
    if ids is not None and len(ids) != len(values):
        raise ValueError(
            f"{_ids_file(path)} has {len(ids)} ids, {path.name} {len(values)} rows; give one each"
        )
    return Keyed(values, ids)


def unpickled(load: Callable[[], Any], what: object) -> Any:
    """Read an array with numpy; reject one of objects, which would have to be unpickled."""
    try:
        with errors_as(f"{what} is damaged"):
            return load()
    except ValueError as e:
        if "allow_pickle" not in str(e):
            raise
        problem = "holds Python objects, which are never read; save numbers or text"
        raise ValueError(f"{what} {problem}") from None


def ids_of(path: Path) -> pd.Index | None:
    """Read the ids of the rows of an array, in their order, if a file has them."""
    names = _ids_file(path)
    if not names.is_file():
        return None
    limits.file_size(names)
    with errors_as(f"{names} is not UTF-8 text", "save it as UTF-8", UnicodeError):
        lines = names.read_text(encoding="utf-8-sig").splitlines()
    ids = [line for line in lines if line.strip()]
    return checked_ids(pd.Series(ids, dtype=str), names)


def write(out: Path, values: Array, ids: Array | None, source: Path | None = None) -> None:
    """Write an array and its ids; rows of `source` keep their order, others follow."""
    source_ids = None if source is None or ids is None else ids_of(source)
    if source_ids is not None and ids is not None:
        order = own_first(pd.Index(ids), source_ids)
        values, ids = values[order], ids[order]
    with out.open("wb") as file:
        np.save(file, np.asarray(values), allow_pickle=False)
    if ids is not None:
        broken = [str(i) for i in ids if len(str(i).splitlines()) != 1]
        if broken:
            raise ValueError(f"id {broken[0]!r} is not one line of text; rename the sample")
        text = "".join(f"{i}\n" for i in ids)
        _ids_file(out).write_text(text, encoding="utf-8")


def _ids_file(path: Path) -> Path:
    return path.with_name(f"{path.stem}.ids.txt")
