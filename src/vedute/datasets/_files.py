"""Dataset files: the folder they are in, download, and checks of content."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar
from urllib.request import urlopen
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vedute.data.store import digest
from vedute.data.views import Views
from vedute.io.contents import errors_as
from vedute.io.files import replace

T = TypeVar("T")
Arrays = list[NDArray[np.generic]]
Content = tuple[Arrays, NDArray[Any]]  # views, labels
REMEDY = "delete it and load again"


class Facts(NamedTuple):
    """Expected properties of a dataset."""

    name: str
    views: dict[str, int]  # name and width of each
    n: int
    classes: int
    counts: tuple[int, ...] = ()  # samples per class in ascending order; () if unknown
    sha256: str = ""  # of the npz file; "" if unknown


def folder() -> Path:
    """VEDUTE_DATA, or vedute in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("VEDUTE_DATA") or Path(cache) / "vedute").expanduser()


def find_npz(name: str) -> Path | None:
    """The file <name>.npz in the data folder, or None."""
    path = folder() / f"{name}.npz"
    return path if path.is_file() else None


def from_folder(name: str) -> Views | None:
    """The user's dataset <name>.npz in the data folder, or None; rows of NaN are missing views."""
    path = find_npz(name)
    if path is None:
        return None
    remedy = "it has to hold view0, view1, ..., view_names and y"
    with errors_as(f"{path} is not a dataset", remedy), np.load(path, allow_pickle=False) as file:
        names = [str(n) for n in file["view_names"]]
        return Views.of({n: file[f"view{v}"] for v, n in enumerate(names)}, y=file["y"])


def load_files(facts: Facts, read: Callable[..., Content], *addresses: str) -> Views:
    """The dataset from <name>.npz in the data folder, else from its own files by `read`."""
    if path := find_npz(facts.name):
        return from_npz(path, facts)
    return fetch(lambda *paths: checked(*read(*paths), facts, paths[0]), *addresses)


def fetch(read: Callable[..., T], *addresses: str, sha256: str = "") -> T:
    """The content that `read` returns for the files of these addresses, downloaded at first use;
    kept only if `read` accepts them (else it raises ValueError) and `sha256` matches."""
    paths = [folder() / address.rsplit("/", 1)[1] for address in addresses]
    absent = {p: a for p, a in zip(paths, addresses, strict=True) if not p.is_file()}
    if not absent:
        return read(*paths)
    names, source = " or ".join(p.name for p in absent), " and ".join(absent.values())
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".download-", dir=folder()) as scratch:
            new = {path: Path(scratch) / path.name for path in absent}
            for path, address in absent.items():
                with urlopen(address, timeout=60) as response:
                    new[path].write_bytes(response.read())
                if sha256 and digest(new[path]) != sha256:
                    raise ValueError(f"checksum mismatch in {new[path]}")
            content = read(*(new.get(path, path) for path in paths))
            for path, part in new.items():
                replace(part, path)
            return content
    except (OSError, HTTPException) as e:
        raise FileNotFoundError(
            f"{names} is not in {folder()} and could not be downloaded ({e}); fetch {source} and "
            "put it there, or point VEDUTE_DATA to the folder that has it"
        ) from None
    except ValueError as e:
        problem = str(e).replace(f"{scratch}{os.sep}", "").removesuffix(f"; {REMEDY}")
        raise ValueError(
            f"the download from {source} is damaged or another file, and was not kept: {problem}"
        ) from None


def from_npz(path: Path, facts: Facts) -> Views:
    """Read a file with view0, view1, ... and y; verify its checksum."""
    if facts.sha256 and digest(path) != facts.sha256:
        raise ValueError(f"{path} is not {facts.name}: checksum mismatch; {REMEDY}")
    keys = [*(f"view{v}" for v in range(len(facts.views))), "y"]
    *arrays, y = read_npz(path, keys, f"{keys[0]} to {keys[-2]} and y")
    return checked(arrays, y, facts, path)


def read_npz(path: Path, keys: Sequence[str], words: str) -> Arrays:
    """Read arrays of an npz file, which are called so in the error."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[key] for key in keys]
    except (BadZipFile, EOFError, KeyError, IndexError, ValueError):
        raise ValueError(f"{path} lacks {words}; {REMEDY}") from None


def read_cell(path: Path, x: str, y: str) -> Content:
    """Read a MATLAB file with a cell `x` of arrays (n, d_v), and labels `y`."""
    cells, labels = read_mat(path, [x, y])
    if cells.dtype != object:
        raise ValueError(f"{x} in {path} is not a cell of views; {REMEDY}")
    return list(cells.ravel()), labels


def read_mat(path: Path, keys: Sequence[str]) -> Arrays:
    """Read variables of a MATLAB file."""
    from scipy.io import loadmat

    with errors_as(f"{path} is not a MATLAB file with {', '.join(keys)}", REMEDY):
        variables = loadmat(path, variable_names=list(keys))
        return [np.asarray(variables[k]) for k in keys]


def checked(arrays: Arrays, y: NDArray[np.generic], facts: Facts, path: Path) -> Views:
    """Views with labels 0, 1, ...; raises unless shapes and classes match `facts`."""
    shapes = [a.shape for a in arrays]
    expected = [(facts.n, width) for width in facts.views.values()]
    if shapes != expected or y.size != facts.n:
        differ = f"{shapes} and {y.size} labels; {facts.name} has {expected}"
        raise ValueError(f"{path} has views of shapes {differ}; {REMEDY}")
    labels = np.unique(y.ravel(), return_inverse=True)[1].astype(np.int64)
    counts = tuple(sorted(int(c) for c in np.bincount(labels)))
    if len(counts) != facts.classes or (facts.counts and counts != facts.counts):
        differ = f"{counts} samples; {facts.name} has {facts.counts or facts.classes}"
        raise ValueError(f"{path} has classes of {differ}; {REMEDY}")
    x = {k: a.astype(np.float32) for k, a in zip(facts.views, arrays, strict=True)}
    return Views.of(x, y=labels)
