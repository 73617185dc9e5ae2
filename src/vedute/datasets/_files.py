"""Dataset files: the folder they are in, download, and checks of content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vedute.data.views import Views

Arrays = list[NDArray[np.generic]]


class Facts(NamedTuple):
    """What is known of a dataset before reading it.

    views: name and width of each; n, classes: how many; counts: samples per class in ascending
    order, () if unknown; sha256: of the npz file, "" if unknown.
    """

    name: str
    views: dict[str, int]
    n: int
    classes: int
    counts: tuple[int, ...] = ()
    sha256: str = ""


def folder() -> Path:
    """VEDUTE_DATA, or vedute in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("VEDUTE_DATA") or Path(cache) / "vedute").expanduser()


def find_npz(name: str) -> Path | None:
    """The file <name>.npz in the folder, if it is there."""
    path = folder() / f"{name}.npz"
    return path if path.is_file() else None


def stored(facts: Facts) -> Views | None:
    """The dataset from <name>.npz in the folder, if it is there."""
    path = find_npz(facts.name)
    return None if path is None else from_npz(path, facts)


def fetch(address: str) -> Path:
    """The file of this address in the folder, downloaded at first use."""
    path = folder() / address.rsplit("/", 1)[1]
    if path.is_file():
        return path
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with urlopen(address, timeout=60) as response:
            part.write_bytes(response.read())
        part.replace(path)  # the file is complete or does not exist
    except (OSError, HTTPException) as e:
        part.unlink(missing_ok=True)
        raise FileNotFoundError(
            f"{path.name} is not in {path.parent} and could not be downloaded ({e}); fetch "
            f"{address} and put it there, or point VEDUTE_DATA to the folder that has it"
        ) from None
    return path


def from_npz(path: Path, facts: Facts) -> Views:
    """A file with view0, view1, ... and y, compared with its checksum."""
    if facts.sha256 and hashlib.sha256(path.read_bytes()).hexdigest() != facts.sha256:
        raise ValueError(f"{path} has another checksum than {facts.name}; delete it and load again")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays: Arrays = [file[f"view{v}"] for v in range(len(facts.views))]
            y = file["y"]
    except (BadZipFile, EOFError, KeyError, IndexError, ValueError):
        raise ValueError(
            f"{path} lacks view0 to view{len(facts.views) - 1} and y; delete it and load again"
        ) from None
    return checked(arrays, y, facts, path)


def from_mat(path: Path, x: str, y: str, facts: Facts) -> Views:
    """A MATLAB file with a cell `x` of arrays (n, d_v), and labels `y`."""
    cells, labels = read_mat(path, [x, y])
    if cells.dtype != object:
        raise ValueError(f"{x} in {path} is not a cell of views; delete the file and load again")
    return checked(list(cells.ravel()), labels, facts, path)


def read_mat(path: Path, keys: Sequence[str]) -> Arrays:
    """Some variables of a MATLAB file."""
    from scipy.io import loadmat

    try:
        variables = loadmat(path, variable_names=list(keys))
        return [np.asarray(variables[k]) for k in keys]
    except Exception:  # damaged files raise anything, from IndexError to zlib.error
        raise ValueError(
            f"{path} is not a MATLAB file with {', '.join(keys)}; delete it and load again"
        ) from None


def checked(arrays: Arrays, y: NDArray[np.generic], facts: Facts, path: Path) -> Views:
    """Views with labels 0, 1, ..., if shapes and classes are those in `facts`."""
    shapes = [a.shape for a in arrays]
    expected = [(facts.n, width) for width in facts.views.values()]
    if shapes != expected or y.size != facts.n:
        raise ValueError(
            f"{path} has views of shapes {shapes} and {y.size} labels; {facts.name} has "
            f"{expected}: delete the file and load again"
        )
    labels = np.unique(y.ravel(), return_inverse=True)[1].astype(np.int64)
    counts = tuple(sorted(int(c) for c in np.bincount(labels)))
    if len(counts) != facts.classes or (facts.counts and counts != facts.counts):
        raise ValueError(
            f"{path} has classes of {counts} samples; {facts.name} has {facts.classes} classes"
            f"{f' of {facts.counts}' if facts.counts else ''}: delete the file and load again"
        )
    x = {k: a.astype(np.float32) for k, a in zip(facts.views, arrays, strict=True)}
    return Views.of(x, y=labels)
