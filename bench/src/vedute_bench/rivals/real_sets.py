"""Real multi-view sets by name: <name>.npz in VEDUTE_DATA, with view0, view1, ..., y, view_names.

Not shipped with the package; values are as in the source, and a row of NaN is a view that was
never measured.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np

from vedute.data.views import Views
from vedute.datasets import _files
from vedute.datasets._files import folder

RENAMED = {"reuters1200": "reuters1200_dim10"}  # as vedute.datasets calls it
OTHER = ("mnist",)  # files that hold one view


def available() -> list[str]:
    """The sets that are there."""
    stems = {path.stem for path in folder().glob("*.npz")} - {*OTHER, *RENAMED.values()}
    return sorted(stems | {name for name, stem in RENAMED.items() if _path(stem).is_file()})


def load(name: str) -> Views:
    """A set with its labels; rows of NaN are missing views. `name:500`: so many of its rows."""
    if ":" in name:
        name, _, rows = name.partition(":")
        every = load(name)
        return every[np.sort(np.random.default_rng(0).permutation(len(every))[: int(rows)])]
    _file(name)  # or says that it is not there
    found = _files.from_folder(RENAMED.get(name, name))
    assert found is not None
    return found


def digest(name: str) -> str:
    """Sixteen hex digits of the file."""
    return sha256(_file(name).read_bytes()).hexdigest()[:16]


def _file(name: str) -> Path:
    path = _path(RENAMED.get(name, name))
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; point VEDUTE_DATA to the folder that has it")
    return path


def _path(stem: str) -> Path:
    return folder() / f"{stem}.npz"
