"""The groups of samples: a column of the one table that the data are, or a file of its own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vedute.data.frames import listed
from vedute.io import onefile
from vedute.io.data import Data, Reading


def read(word: str, data: Data) -> pd.Series:
    """Groups by the ids of samples, as text; `word` is a file of ids and groups, or a column."""
    path = Path(word)
    if path.is_file():
        return _of_file(path, data)
    if data.path is None or data.how.views is None:
        raise ValueError(f"no file {word!r} of ids and groups; DATA has no columns beside views")
    how = data.how._replace(label=word)
    known = _columns(data.path, how)
    if word not in known:
        raise ValueError(f"{data.path} has no column {word!r} for --groups; it has {listed(known)}")
    return onefile.read(data.path, how, lambda _: [word])[word]


def _of_file(path: Path, data: Data) -> pd.Series:
    if onefile.ending(path) not in onefile.KINDS:
        raise ValueError(f"{path}: files of groups end in {', '.join(onefile.KINDS)}")
    if data.ids is None:
        raise ValueError(f"DATA has no ids, which {path} goes by; add ids to it")
    columns = _columns(path, Reading())
    if len(columns) != 1:
        raise ValueError(f"{path} has {len(columns)} columns beside the ids; give one, the groups")
    return onefile.read(path, Reading(label=columns[0]))[columns[0]]


def _columns(path: Path, how: Reading) -> list[str]:
    """All but the ids."""
    found: list[str] = []

    def none(columns: list[str]) -> list[str]:
        found.extend(columns)
        return []

    onefile.read(path, how, none)
    return found
