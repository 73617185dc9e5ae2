"""A MATLAB file (up to v7): a cell array of views, or view1, view2, ...; labels Y, gt, ...

Samples are in rows or in columns: detected from the number of labels or from the size that all
views share, or given by the user. Other variables are written unchanged.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.io import loadmat, savemat, whosmat

from vedute.data import limits
from vedute.io.contents import Array, Data, Filled, Reading, no_label

OPTIONS: tuple[str, ...] = ("label", "samples")
CELLS = ("x", "data", "views", "fea", "features")
LABELS = ("y", "gt", "gnd", "label", "labels", "truth", "truelabel", "truelabels", "target")
NUMBERED = re.compile(r"(view|x|v|data|fea)_?\d+", re.IGNORECASE)

MATRIX, PACKED = 14, 15  # elements that hold others
NUMBERS = (*range(1, 8), 9, 12, 13, *range(16, 19))  # elements that hold numbers or text
NESTED, SPARSE = (1, 2, 3, 16, 17), 5  # matrices that hold others: cells, structures, objects
BYTES = {"logical": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
         "single": 4, "char": 4, "int64": 8, "uint64": 8, "double": 8, "cell": 8}  # fmt: skip


class Found(NamedTuple):
    """Views as they lie in the file: by name, with the variable and, in a cell, the place."""

    views: dict[str, Any]
    places: dict[str, tuple[str, int | None]]
    y: Array | None
    turned: bool


def read(path: Path, how: Reading) -> Data:
    """The views, samples in rows."""
    found = _found(path, how, _variables(path))
    views = {k: v.T if found.turned else v for k, v in found.views.items()}
    return Data(views, None, None, found.y, tuple(views), path, how)


def write(out: Path, data: Data, views: Filled, ends: Mapping[str, Filled]) -> None:
    """The variables of the file, its views complete; <name>_lower and <name>_upper beside them."""
    assert data.path is not None
    variables = _variables(data.path)
    found = _found(data.path, data.how, variables)
    for end, group in {"": views, **ends}.items():
        for name, view in group.items():
            value = view.T if found.turned else view
            key, place = found.places.get(name, (name, None))
            target = f"{key}_{end}" if end else key
            if place is None:
                variables[target] = value
            else:
                variables.setdefault(target, np.empty_like(variables[key])).flat[place] = value
    savemat(out, variables, do_compression=True)


def _variables(path: Path) -> dict[str, Any]:
    limits.check(_unpacked(path), path)
    try:
        _check_file(path.read_bytes())
        limits.check(_declared(path), path)
        return {k: v for k, v in loadmat(path).items() if not k.startswith("__")}
    except NotImplementedError:
        raise ValueError(f"{path} is a MATLAB v7.3 file; save it with -v7") from None
    except MemoryError:
        raise
    except Exception as e:  # damaged files raise anything, from IndexError to zlib.error
        raise ValueError(f"{path} is not a MATLAB file ({e}); save it again") from None


def _check_file(content: bytes) -> None:
    """Refuse elements of no known kind, and those that reach out of what holds them: scipy would
    look for them anywhere in memory (v5 to v7)."""
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is not None:
        _check_elements(memoryview(content)[128:], order, (*NUMBERS, MATRIX, PACKED))


def _check_elements(content: memoryview, order: str, allowed: Sequence[int]) -> int:
    """allowed: the kinds that may be there; how many there are."""
    at = count = 0
    while at + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        small = kind >> 16  # up to four bytes lie in the tag itself
        kind, size, start = (kind & 0xFFFF, small, at + 4) if small else (kind, size, at + 8)
        if kind not in allowed or start + size > len(content) or small > 4:
            raise ValueError("an element is of no known kind or size")
        inside = content[start : start + size]
        if kind == PACKED:
            _check_elements(memoryview(zlib.decompress(inside)), order, (*NUMBERS, MATRIX))
        elif kind == MATRIX and size:
            _check_matrix(inside, order)
        at = at + 8 if small else start + size + (-size % 8 if kind != PACKED else 0)
        count += 1
    return count


def _check_matrix(content: memoryview, order: str) -> None:
    """Flags, dimensions and a name, and then what it holds: two more lists where it is sparse, one
    more where it is complex."""
    flags = struct.unpack_from(f"{order}I", content, 8)[0] if len(content) >= 16 else 0
    kind, is_complex = flags & 0xFF, bool(flags & 0x800)
    if kind in NESTED:
        _check_elements(content, order, (*NUMBERS, MATRIX))
    elif _check_elements(content, order, NUMBERS) < 4 + 2 * (kind == SPARSE) + is_complex:
        raise ValueError("a matrix lacks its numbers")


def _declared(path: Path) -> int:
    """What its matrices take, as their headers say; what cells hold has no header."""
    try:
        return sum(prod(shape) * BYTES.get(kind, 0) for _, shape, kind in whosmat(path))
    except Exception:  # whoever reads it says what is wrong
        return 0


def _unpacked(path: Path) -> int:
    """Bytes of all variables, those that are packed unpacked, as far as the limit (v5 to v7)."""
    total, limit = 0, limits.most_bytes()
    with path.open("rb") as file:
        order = {b"IM": "<", b"MI": ">"}.get(file.read(128)[126:])
        while order and total <= limit and len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            if kind == PACKED:
                total += _inflated(file.read(size), limit - total)
            else:
                total += size
                file.seek(size, 1)
    return total


def _inflated(packed: bytes, limit: int) -> int:
    """The length of what is packed, counted until it is over the limit."""
    total, stream = 0, zlib.decompressobj()
    try:
        while packed and total <= limit:
            total += len(stream.decompress(packed, 1 << 20))
            packed = stream.unconsumed_tail
    except zlib.error:  # whoever reads it says what is wrong
        pass
    return total


def _found(path: Path, how: Reading, variables: dict[str, Any]) -> Found:
    key = _label_key(path, how, variables)
    y = None if key is None else _labels(path, key, variables[key])
    places = _places(
        {k: v for k, v in variables.items() if k != key}, None if y is None else y.size
    )
    if not places:
        held = [f"{k} {np.shape(v)}" for k, v in variables.items()]
        raise ValueError(
            f"{path} has no views; give a cell array X of matrices, or view1, view2, ... "
            f"(it has {', '.join(held) or 'nothing'})"
        )
    views = {}
    for name, (variable, place) in places.items():
        a = variables[variable] if place is None else variables[variable].flat[place]
        if sparse.issparse(a):
            limits.check(prod(a.shape) * a.dtype.itemsize, f"{name} in {path}")
        views[name] = a.tocsr() if sparse.issparse(a) else a
        if a.dtype.kind not in "biuf" or a.ndim != 2 or 0 in a.shape:
            raise ValueError(
                f"{path}: {name} is {a.dtype} of shape {a.shape}; a view is a matrix of numbers"
            )
    n = None if y is None else y.size
    return Found(views, places, y, _turned(path, how.samples, views, n))


def _label_key(path: Path, how: Reading, variables: Mapping[str, Any]) -> str | None:
    if how.label is not None and how.label in variables:
        return how.label
    if how.label is not None and not how.lenient:
        raise no_label(how.label, path, variables)
    known = {k.lower(): k for k in variables}
    return next((known[k] for k in LABELS if k in known and _flat(variables[known[k]])), None)


def _flat(value: Any) -> bool:
    """Whether it may be labels: a vector, or a cell of vectors."""
    value = value.flat[0] if _is_cell(value) and value.size else value
    return isinstance(value, np.ndarray) and value.size == max(value.shape, default=0)


def _labels(path: Path, key: str, value: Any) -> Array:
    if _is_cell(value) and all(v.size == 1 for v in value.flat):  # a cell of words
        return np.array([str(v.flat[0]) for v in value.flat])
    a: Array = np.asarray(value.flat[0] if _is_cell(value) else value).ravel()
    if not _flat(value) or a.dtype.kind not in "biufU":
        raise ValueError(f"{path}: {key} has shape {np.shape(value)}; labels are a vector")
    return a.astype(np.int64) if a.dtype.kind == "f" and bool((a % 1 == 0).all()) else a


def _is_cell(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _places(variables: Mapping[str, Any], n: int | None) -> dict[str, tuple[str, int | None]]:
    """Where each view is: in a cell array, else in numbered variables, else in all that fit."""
    cells = [k for k, v in variables.items() if _is_cell(v) and v.size and _matrices(v)]
    cells.sort(key=lambda k: CELLS.index(k.lower()) if k.lower() in CELLS else len(CELLS))
    if cells:
        count = variables[cells[0]].size
        return {f"view{v + 1}": (cells[0], v) for v in range(count)}
    loose = {k: v for k, v in variables.items() if _matrices([v])}
    numbered = [k for k in loose if NUMBERED.fullmatch(k)]
    if numbered:
        numbered.sort(key=lambda k: int(re.sub(r"\D", "", k)))
        return {k: (k, None) for k in numbered}
    fit = [k for k, v in loose.items() if (min(v.shape) > 1 if n is None else n in v.shape)]
    return {k: (k, None) for k in fit}


def _matrices(values: Any) -> bool:
    items = list(values.flat) if isinstance(values, np.ndarray) else values
    return all(
        sparse.issparse(v)
        or (isinstance(v, np.ndarray) and v.ndim == 2 and v.dtype.kind in "biufU")
        for v in items
    ) and any(v.dtype.kind in "biuf" for v in items)


def _turned(path: Path, samples: str | None, views: Mapping[str, Any], n: int | None) -> bool:
    """Whether samples are in columns."""
    shapes = {k: v.shape for k, v in views.items()}
    fits = [
        all(s[axis] == (n or next(iter(shapes.values()))[axis]) for s in shapes.values())
        for axis in (0, 1)
    ]
    listed = ", ".join(f"{k} {s[0]} x {s[1]}" for k, s in shapes.items())
    if samples is not None:
        if not fits[samples == "columns"]:
            raise ValueError(f"{path}: views do not share the number of {samples}: {listed}")
        return samples == "columns"
    if len(shapes) == 1 and n is None:
        return False
    if all(fits):
        raise ValueError(
            f"{path}: samples may be rows or columns ({listed}); pass --samples rows or "
            "--samples columns"
        )
    if not any(fits):
        who = f"the {n} labels" if n else "each other"
        raise ValueError(f"{path}: views do not fit {who}: {listed}; save one row per sample")
    return fits[1]
