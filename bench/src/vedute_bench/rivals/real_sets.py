"""Real multi-view sets by name: <name>.npz in VEDUTE_DATA, with view0, view1, ..., y, view_names.

They are not shipped with the package. Values are those of the source, and a row of NaN is a view
that was never measured.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np

from vedute.data.views import Views
from vedute.datasets import _files
from vedute.datasets._files import folder

RENAMED = {"reuters1200": "reuters1200_dim10"}  # its name in vedute.datasets
OTHER = ("mnist",)  # files with one view


def available() -> list[str]:
    """Names of the sets in the data folder."""
    stems = {path.stem for path in folder().glob("*.npz")} - {*OTHER, *RENAMED.values()}
    return sorted(stems | {name for name, stem in RENAMED.items() if _path(stem).is_file()})


def load(name: str) -> Views:
    """Load a set with its labels; rows of NaN are missing views. `name:500`: 500 of its rows."""
    if ":" in name:
        name, _, rows = name.partition(":")
        whole = load(name)
        return whole[np.sort(np.random.default_rng(0).permutation(len(whole))[: int(rows)])]
    _file(name)  # raises if there is none
    views = _files.from_folder(RENAMED.get(name, name))
    assert views is not None
    return views


def digest(name: str) -> str:
    """Sixteen hex digits of the file's checksum."""
    return sha256(_file(name).read_bytes()).hexdigest()[:16]


def _file(name: str) -> Path:
    path = _path(RENAMED.get(name, name))
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; point VEDUTE_DATA to the folder with it")
    return path


def _path(stem: str) -> Path:
    return folder() / f"{stem}.npz"
