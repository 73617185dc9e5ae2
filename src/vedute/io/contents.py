"""The content of any file: views with one row per sample, all in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data.escaping import close_to, listed
from vedute.data.frames import check_forms
from vedute.data.limits import TooLargeError
from vedute.data.problems import noted
from vedute.data.views import Views

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Filled = Mapping[str, Any]  # by view: an array or a frame, complete
Ends = Mapping[str, Filled]  # lower and upper ends of intervals, if any


class Reading(NamedTuple):
    """Options for reading a file, as on the command line."""

    views: dict[str, list[str]] | None = None  # of one table: names, prefixes or patterns
    id: str | None = None  # column of sample ids in that table; the first one if None
    label: str | None = None  # column, variable or key of the labels, which no method sees
    one_hot: bool = False  # read text columns as categories
    samples: str | None = None  # "rows" or "columns" of a .mat file; None: detect it
    decimal: str | None = None  # "," for numbers like 1,234 that could have been thousands
    lenient: bool = False  # allow missing columns, of labels and of views (files of new samples)
    drop: Sequence[str] | None = None  # columns to leave out; a string may name several: a,b

    def given(self) -> dict[str, Any]:
        """The options that the user has set, by name."""
        return {k: v for k, v in self._asdict().items() if v}


DEFAULT_READING = Reading()


@dataclass(frozen=True, eq=False)
class Data:
    """Views as the user wrote them: names -> arrays (n, ...) or DataFrames of n rows. NaN, and
    False in the mask (n, L), mark missing values."""

    views: dict[str, Any]
    mask: Bools | None = None
    ids: Array | None = None
    y: Array | None = None
    keys: tuple[str, ...] = ()  # names of the views in the file
    path: Path | None = None
    how: Reading = DEFAULT_READING  # what it was read with, for writing another one like it
    id_name: str | None = None  # of the column
    whole: Views | None = None  # a store, whose `views` here are empty
    order: Array | None = None  # rows of the data that a shuffled store was made of

    def unknown(self, names: Sequence[str]) -> Data:
        """Mark nothing as observed in these views, so that all their cells are written."""
        frames = {k: v for k, v in self.views.items() if isinstance(v, pd.DataFrame) and k in names}
        blank = {k: pd.DataFrame(np.nan, v.index, v.columns) for k, v in frames.items()}
        return replace(self, views={**self.views, **blank})


@contextmanager
def errors_as(problem: str, fix: str = "write it again", *kinds: type[Exception]) -> Iterator[None]:
    """Raise errors of a reader, of these kinds or of any, as one sentence."""
    kinds = kinds or (Exception,)
    try:
        yield
    except (MemoryError, TooLargeError):
        raise
    except kinds as e:
        raise ValueError(f"{problem} ({' '.join(str(e).split())}); {fix}") from None


def joined(indices: Iterable[pd.Index]) -> Array:
    """Outer join of text ids in order of first appearance; as integers if all of them are."""
    ids, *others = indices
    if not all(index.equals(ids) for index in others):
        ids = ids.append(others).unique()
    check_forms(ids)
    whole = len(ids) and ids.str.fullmatch(r"0|-?[1-9][0-9]{0,17}").all()
    return ids.to_numpy(object).astype(np.int64 if whole else np.str_)


def name_of(indices: Iterable[pd.Index]) -> str | None:
    """Return the name of the ids in the first file that has one."""
    return next((str(index.name) for index in indices if index.name), None)


def aligned(frame: pd.DataFrame, ids: Array) -> pd.DataFrame:
    """Reindex to one row per id, NaN where the frame has none; keep integers and booleans."""
    text_ids = pd.Index(ids.astype(str))
    if frame.index.equals(text_ids):
        return frame.set_axis(ids)
    dtypes = {c: nullable(d) for c, d in frame.dtypes.items() if d.kind in "biu"}
    frame = frame.astype(dtypes) if dtypes else frame  # for thousands of columns: only if needed
    return frame.reindex(text_ids).set_axis(ids)


def own_first(ids: pd.Index, file_ids: Iterable[str]) -> Any:
    """Positions in `ids` of the rows of a file, then of the others; a slice if nothing moves."""
    at = pd.Index(ids.astype(str)).get_indexer(pd.Index(list(file_ids)))
    order = np.concatenate([at[at >= 0], np.setdiff1d(np.arange(len(ids)), at)])
    return slice(None) if (order == np.arange(len(ids))).all() else order


def nullable(dtype: Any) -> Any:
    """Map int64 -> Int64, bool -> boolean: the pandas dtypes with missing values."""
    plain = isinstance(dtype, np.dtype) and dtype.kind in "biu"
    return pd.array(np.zeros(0, dtype)).dtype if plain else dtype


def flat(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Split 2-D arrays into a column per feature: name0, name1."""
    one_each: dict[str, Array] = {}
    for name, a in columns.items():
        one_each |= {name: a} if a.ndim == 1 else {f"{name}{d}": c for d, c in enumerate(a.T)}
    return one_each


def id_column(columns: Sequence[Any], name: str | None, path: Path) -> int:
    """Return the position of the id column; the first if `name` is None."""
    if name is not None and name not in columns:
        raise ValueError(f"{path} has no column {name!r} of ids; it has {listed(columns)}")
    return 0 if name is None else columns.index(name)


def checked_ids(ids: pd.Series, path: Path) -> pd.Index:
    """Strip text ids; reject missing and repeated ones."""
    index = pd.Index(ids.str.strip())
    blank = np.asarray(index == "")
    twice = index.duplicated() & ~blank
    with noted():
        if blank.any():
            row = int(blank.argmax())
            after = f" (after {index[row - 1]!r})" if row else ""
            raise ValueError(f"{path}: row {row + 1}{after} has no sample id; add it, or drop it")
    with noted():
        if twice.any():
            names = listed(index[twice].unique())
            raise ValueError(f"{path}: id {names} occurs twice; keep one row per sample")
    if twice.any() or blank.any():
        rows = pd.Index([f"row {i + 1}" for i in range(len(index))])
        index = index.where(~(twice | blank), rows)
    return index


def labels(column: pd.Series) -> Array:
    """Convert labels to integers, floats or text; '' (or NaN) where a sample has none."""
    column = column.astype(object).where(column.notna(), None)
    number = pd.to_numeric(column, errors="coerce")
    if not number.notna().equals(column.notna()):
        return np.array(["" if x is None else str(x) for x in column])
    a = number.to_numpy(np.float64, na_value=np.nan)
    whole = bool((a == np.rint(a)).all())
    return a.astype(np.int64) if whole else a


def known_labels(y: Array) -> Bools:
    """Mask of the labels y (n,) that are neither empty nor NaN."""
    return np.array([x == x and x != "" for x in y.tolist()], bool)


def no_label(label: str, path: Path, known: Iterable[Any]) -> ValueError:
    return ValueError(f"{path} has no column {label!r} for --label; {close_to(label, known)}")


class Unwanted:
    """Columns to leave out, in whatever table they are; `known` are all columns so far."""

    def __init__(self, how: Reading) -> None:
        self.how = how
        self.known: dict[str, None] = {}

    def rest(self, columns: Iterable[Any]) -> list[Any]:
        """Filter out the dropped columns of a table."""
        names = [str(c) for c in columns]
        self.known |= dict.fromkeys(names)
        dropped = {name for word in self.how.drop or () for name in _dropped(word, names)}
        return [c for c in columns if str(c) not in dropped]

    def check(self, path: Path) -> None:
        """Reject a name that no table has."""
        with noted(part=False):
            for word in () if self.how.lenient else self.how.drop or ():
                if word == self.how.label:
                    raise ValueError(f"--label and --drop both name {word!r}; leave out one")
                for name in _dropped(word, [*self.known]):
                    if name not in self.known:
                        close = close_to(name, self.known)
                        raise ValueError(f"{path} has no column {name!r} for --drop; {close}")


def _dropped(word: str, known: list[str]) -> list[str]:
    """Split several names at commas, where the whole is not one name."""
    return [word] if word in known else [name.strip() for name in word.split(",")]
