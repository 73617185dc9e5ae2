"""A MATLAB file (up to v7): a cell array of views, or view1, view2, ...; labels Y, gt, ...

Samples are in rows or in columns: detected from the number of labels or from the size that all
views share, or set by the user. Other variables are copied unchanged.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat, savemat, whosmat

from vedute.data import limits
from vedute.data.escaping import listed
from vedute.io.contents import Array, Data, Ends, Filled, Reading, errors_as, no_label

OPTIONS: tuple[str, ...] = ("label", "samples")
CELL_NAMES = ("x", "data", "views", "fea", "features")
LABEL_NAMES = ("y", "gt", "gnd", "label", "labels", "truth", "truelabel", "truelabels", "target")
NUMBERED = re.compile(r"(view|x|v|data|fea)_?\d+", re.IGNORECASE)

ORDERS = {b"IM": "<", b"MI": ">"}  # of bytes, by the mark in the header
MATRIX, COMPRESSED = 14, 15  # elements with elements inside
NUMERIC = (*range(1, 8), 9, 12, 13, *range(16, 19))
NESTED, SPARSE = (1, 2, 3, 16, 17), 5  # classes of arrays; nested: cells, structures, objects
ITEM_BYTES = {"logical": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
              "single": 4, "char": 4, "int64": 8, "uint64": 8, "double": 8, "cell": 8}  # fmt: skip
Elements = Iterable[tuple[int, memoryview]]  # kind and content
Places = dict[str, tuple[str, int | None]]  # by view: the variable and, in a cell, the position


def read(path: Path, how: Reading) -> Data:
    """Read the views, samples in rows."""
    stored, _, y, turned = _contents(path, how, _variables(path))
    views = {k: v.T if turned else v for k, v in stored.items()}
    return Data(views, None, None, y, tuple(views), path, how)


def write(out: Path, data: Data, views: Filled, ends: Ends) -> None:
    """Write the variables of the file, views complete; <name>_lower and <name>_upper beside."""
    assert data.path is not None
    variables = _variables(data.path)
    _, places, _, turned = _contents(data.path, data.how, variables)
    for end, group in {"": views, **ends}.items():
        for name, view in group.items():
            value = view.T if turned else view
            key, place = places.get(name, (name, None))
            target = f"{key}_{end}" if end else key
            if place is None:
                variables[target] = value
            else:
                variables.setdefault(target, np.empty_like(variables[key])).flat[place] = value
    savemat(out, variables, do_compression=True)


def _variables(path: Path) -> dict[str, Any]:
    """Read all variables, after checks of their memory and of what scipy would crash on."""
    limits.check(path.stat().st_size, path)
    with errors_as(f"{path} is not a MATLAB file", "save it again"):
        _check_file(path)
        declared = 0
        with suppress(Exception):  # the reader reports the error; cells declare no numbers
            for _, shape, kind in whosmat(path):
                declared += prod(shape) * ITEM_BYTES.get(kind, 0)
        limits.check(declared, path)
        with suppress(NotImplementedError):
            return {k: v for k, v in loadmat(path).items() if not k.startswith("__")}
    raise ValueError(f"{path} is a MATLAB v7.3 file; save it with -v7")


def _check_file(path: Path) -> None:
    """Reject files that are too large unpacked, and those that make scipy read beyond memory."""
    content = memoryview(path.read_bytes())
    order, total = ORDERS.get(bytes(content[126:128]), ""), 0
    for kind, inside in _elements(content[128:], order, (*NUMERIC, MATRIX, COMPRESSED)):
        elements = [(kind, inside)]
        if kind == COMPRESSED:
            stream = zlib.decompressobj()
            most = limits.most_bytes() + 2**20  # enough to report how much more it takes
            inside = memoryview(stream.decompress(inside, most))
            elements = [*_elements(inside, order, (*NUMERIC, MATRIX))] if stream.eof else []
        total += len(inside)
        limits.check(total, path)
        if not elements:
            raise ValueError("a variable is cut off")
        _check_matrices(elements, order)


def _elements(content: memoryview, order: str, allowed: Sequence[int]) -> Elements:
    """Yield kind and content of elements; reject unknown ones, or larger than their container."""
    at = 0
    while order and at + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        small = kind >> 16  # up to four bytes are in the tag itself
        kind, size, start = (kind & 0xFFFF, small, at + 4) if small else (kind, size, at + 8)
        if kind not in allowed or start + size > len(content) or small > 4:
            raise ValueError("an element is of no known kind or size")
        yield kind, content[start : start + size]
        at = at + 8 if small else start + size + (-size % 8 if kind != COMPRESSED else 0)


def _check_matrices(elements: Elements, order: str) -> None:
    """Require flags, dimensions, a name and the content of a matrix: two more lists if it is
    sparse, one more if it is complex."""
    for content in [inside for kind, inside in elements if kind == MATRIX and len(inside)]:
        flags = struct.unpack_from(f"{order}I", content, 8)[0] if len(content) >= 16 else 0
        kind, is_complex = flags & 0xFF, bool(flags & 0x800)
        if kind in NESTED:
            _check_matrices(_elements(content, order, (*NUMERIC, MATRIX)), order)
        elif len([*_elements(content, order, NUMERIC)]) < 4 + 2 * (kind == SPARSE) + is_complex:
            raise ValueError("a matrix lacks its numbers")


def _contents(
    path: Path, how: Reading, variables: dict[str, Any]
) -> tuple[dict[str, Any], Places, Array | None, bool]:
    """Find views as stored, their places, the labels, and whether samples are in columns."""
    key, y = _labels(path, how, variables)
    n = None if y is None else y.size
    places = _places({k: v for k, v in variables.items() if k != key}, n)
    if not places:
        held = [f"{k} {np.shape(v)}" for k, v in variables.items()]
        raise ValueError(f"{path} has no views like view1; it has {listed(held, form=str)}")
    views = {}
    for name, (variable, place) in places.items():
        a = variables[variable] if place is None else variables[variable].flat[place]
        if sparse.issparse(a):
            limits.check(prod(a.shape) * a.dtype.itemsize, f"{name} in {path}")
        views[name] = a.tocsr() if sparse.issparse(a) else a
        if a.dtype.kind not in "biuf" or a.ndim != 2 or 0 in a.shape:
            raise ValueError(f"{path}: {name} is {a.dtype} {a.shape}, not a matrix of numbers")
    shapes = {k: v.shape for k, v in views.items()}
    counts = [{s[axis] for s in shapes.values()} for axis in (0, 1)]
    fits = [len(axis) == 1 and (not n or n in axis) for axis in counts]
    sizes, turned = ", ".join(f"{k} {s[0]} x {s[1]}" for k, s in shapes.items()), fits[1]
    if how.samples is not None and not fits[how.samples == "columns"]:
        raise ValueError(f"{path}: views do not share the number of {how.samples}: {sizes}")
    if how.samples is not None or (len(shapes) == 1 and n is None):
        turned = how.samples == "columns"
    elif all(fits):
        raise ValueError(f"{path}: samples may be rows or columns ({sizes}); pass --samples")
    elif not any(fits):
        who = f"the {n} labels" if n else "each other"
        raise ValueError(f"{path}: views do not fit {who}: {sizes}; save one row per sample")
    return views, places, y, turned


def _flat(value: Any) -> bool:
    """Whether a variable may be labels: a vector, or a cell of vectors."""
    value = value.flat[0] if _is_cell(value) and value.size else value
    return isinstance(value, np.ndarray) and value.size == max(value.shape, default=0)


def _labels(
    path: Path, how: Reading, variables: Mapping[str, Any]
) -> tuple[str | None, Array | None]:
    """Find the labels: the name of their variable, and their values (n,)."""
    names = {k.lower(): k for k in variables}
    key = next((names[k] for k in LABEL_NAMES if k in names and _flat(variables[names[k]])), None)
    if how.label is not None and how.label in variables:
        key = how.label
    elif how.label is not None and not how.lenient:
        raise no_label(how.label, path, variables)
    if key is None:
        return None, None
    value = variables[key]
    if _is_cell(value) and all(v.size == 1 for v in value.flat):  # a cell of words
        return key, np.array([str(v.flat[0]) for v in value.flat])
    a: Array = np.asarray(value.flat[0] if _is_cell(value) else value).ravel()
    if not _flat(value) or a.dtype.kind not in "biufU":
        raise ValueError(f"{path}: {key} has shape {np.shape(value)}; labels are a vector")
    return key, a.astype(np.int64) if a.dtype.kind == "f" and bool((a % 1 == 0).all()) else a


def _is_cell(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _places(variables: Mapping[str, Any], n: int | None) -> Places:
    """Locate the views: in a cell array, else in numbered variables, else in all that fit."""
    cells = [k for k, v in variables.items() if _is_cell(v) and v.size and _matrices([*v.flat])]
    cells = [k for name in CELL_NAMES for k in cells if k.lower() == name] or cells
    if cells:
        return {f"view{v + 1}": (cells[0], v) for v in range(variables[cells[0]].size)}
    loose = {k: v for k, v in variables.items() if _matrices([v])}
    numbered = [k for k in loose if NUMBERED.fullmatch(k)]
    numbered.sort(key=lambda k: int(re.sub(r"\D", "", k)))
    fit = [k for k, v in loose.items() if (min(v.shape) > 1 if n is None else n in v.shape)]
    return {k: (k, None) for k in numbered or fit}


def _matrices(values: list[Any]) -> bool:
    matrices = [getattr(v, "ndim", 0) == 2 and v.dtype.kind in "biufU" for v in values]
    return all(matrices) and any(v.dtype.kind in "biuf" for v in values)
