"""One wide table (.csv, .tsv, .parquet) and a TOML file that lists the columns of each view:

id = "patient"                      # optional; else the first column
[views]
rna = "rna_*"                       # a pattern, a prefix, a name, or a list of them
clinical = ["age", "sex", "lab_"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.data.escaping import close_to, listed
from vedute.data.limits import plain_file
from vedute.data.problems import EnoughError, noted
from vedute.io import contents, csv, parquet
from vedute.io.contents import Bools, Data, Ends, Filled, Reading, Unwanted

OPTIONS: tuple[str, ...] = ("views", "id", "label", "one_hot", "decimal", "drop")
TABLE_FORMATS = dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), csv) | {".parquet": parquet}
TOML_ERRORS = (tomllib.TOMLDecodeError, UnicodeError, RecursionError)
Columns = Mapping[str, list[Any]]  # by view: names, or patterns of them
VIEWS_EXAMPLE = 'a TOML file of lines like rna = "rna_*" under [views]'


def ending(path: Path) -> str:
    """Return .csv, .csv.gz, ...; in small letters."""
    last = path.suffix.lower()
    return "".join(path.suffixes[-2:]).lower() if last == ".gz" else last


def form(path: Path) -> Any:
    """Choose the module that reads and writes one table in one file."""
    return TABLE_FORMATS[ending(path)]


def read(path: Path, how: Reading) -> Data:
    """Read the views of a table; a row of blanks is a missing view."""
    if how.views is None:
        raise ValueError(f"{path} is one table; pass --views, {VIEWS_EXAMPLE}")
    raw, unwanted = form(path).raw(path, how), Unwanted(how)
    with noted(part=False):
        if how.label is not None and how.label not in raw.columns and not how.lenient:
            raise contents.no_label(how.label, path, raw.columns)
    features = [c for c in raw.columns if c != how.label]
    kept = set(unwanted.rest(features))
    unwanted.check(path)
    wanted = chosen(how.views, features, path, how.lenient)
    used = {how.label, *(c for part in wanted.values() for c in part if c in kept)}
    frame = csv.typed(raw.loc[:, [c in used for c in raw.columns]], path, how)
    id_name = contents.name_of([frame.index])
    ids = contents.joined([frame.index])
    frame = contents.aligned(frame, ids)
    y = contents.labels(frame[how.label]) if how.label in frame.columns else None
    left = set(frame.columns)  # without those whose problems were noted
    parts = {name: [c for c in part if c in left] for name, part in wanted.items()}
    views = {name: frame[part] for name, part in parts.items() if part}
    if not views:
        raise EnoughError(f"{path} has no column left; --drop fewer of them")
    return Data(views, None, ids, y, tuple(views), path, how, id_name)


def write(out: Path, data: Data, views: Filled, ends: Ends) -> None:
    """Write the table with missing values filled; columns in no view are copied unchanged."""
    assert data.path is not None
    parts = {end: pd.concat(list(part.values()), axis=1) for end, part in ends.items()}
    filled, source = (pd.concat([x[k] for k in data.views], axis=1) for x in (views, data.views))
    form(data.path).write(out, data.path, filled, source.isna().to_numpy(), data.how, parts)


def write_hidden(out: Path, data: Data, mask: Bools) -> None:
    """Write the table with the cells of hidden views, False in mask (n, L), empty."""
    assert data.path is not None
    views = [*data.views.values()]
    hidden = np.repeat(~mask, [v.shape[1] for v in views], axis=1)
    left = pd.concat(views, axis=1).astype(object).mask(hidden)
    form(data.path).write(out, data.path, left, hidden, data.how, {})


def read_spec(path: Path) -> tuple[dict[str, list[str]], str | None]:
    """Read the columns of each view, and the id column, from a TOML file."""
    plain_file(path)
    with contents.errors_as(f"{path} is not TOML", f"write {VIEWS_EXAMPLE}", *TOML_ERRORS):
        spec = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    views: Any = spec.get("views")
    if not isinstance(views, dict) or not views:
        raise ValueError(f"{path} names no views; write {VIEWS_EXAMPLE}")
    wanted = {k: [v] if isinstance(v, str) else v for k, v in views.items()}
    for name, patterns in wanted.items():
        if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
            raise ValueError(f"{path}: view {name!r} takes a name, a pattern or a list of them")
    column = spec.get("id")
    if column is not None and not isinstance(column, str):
        raise ValueError(f"{path}: id takes the name of a column, got {column!r}")
    return wanted, column


def chosen(wanted: Columns, columns: list[Any], path: Path, lenient: bool = False) -> Columns:
    """Select the columns of each view in the order of the table; each in one view only. They match
    a name, else a pattern, else a prefix. lenient: allow missing ones."""
    view_of: dict[Any, str] = {}
    for name, pattern in [(name, one) for name, several in wanted.items() for one in several]:
        with noted():
            matches = [c for c in columns if c == pattern]
            matches = matches or [c for c in columns if fnmatchcase(str(c), pattern)]
            matches = matches or [c for c in columns if str(c).startswith(pattern)]
            if not matches and not lenient:
                close = close_to(pattern, columns)
                raise ValueError(f"{path} has no column {pattern!r} for view {name!r}; {close}")
            for column in matches:
                if view_of.setdefault(column, name) != name:
                    both = f"{view_of[column]!r} and {name!r}"
                    raise ValueError(f"{path}: column {column!r} is in the views {both}; keep one")
    selected = {name: [c for c in columns if view_of.get(c) == name] for name in wanted}
    return {name: part for name, part in selected.items() if part}


def read_groups(word: str, data: Data) -> pd.Series:
    """Read groups by sample id from a file of ids and groups, or from a column of the data."""
    path = Path(word)
    if path.is_file():
        if ending(path) not in TABLE_FORMATS:
            raise ValueError(f"{path}: files of groups end in {', '.join(TABLE_FORMATS)}")
        if data.ids is None:
            raise ValueError(f"DATA has no ids, which {path} goes by; add ids to it")
        raw: pd.DataFrame = form(path).raw(path, Reading())
        if raw.shape[1] != 1:
            raise ValueError(f"{path} has {raw.shape[1]} columns beside the ids; give one")
        return raw.iloc[:, 0]
    if data.path is None or data.how.views is None:
        raise ValueError(f"no file {word!r} of ids and groups; DATA has only views")
    raw = form(data.path).raw(data.path, data.how)
    if word not in raw.columns:
        raise ValueError(f"{data.path} has no column {word!r} for --groups; it has {listed(raw)}")
    return raw[word]
