"""DataFrames as numeric views: joined by their index, categorical columns as numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data import cells, dates, limits
from vedute.data.escaping import listed
from vedute.data.ids import warn_of_look_alikes
from vedute.data.problems import EnoughError, noted

Levels = tuple[Any, ...] | None
Frame = pd.DataFrame | pd.Series
# A column as numbers (n, k), its levels if it is categorical, the day that its dates are counted
# from, and the cells that are limits.
Column = tuple[NDArray[np.float64], Levels, str | None, pd.Series]


@dataclass(frozen=True)
class ViewSpec:
    """Description of a view, and of the columns of a frame."""

    name: str
    shape: tuple[int, ...]  # of one sample; of images, the channels are first
    columns: tuple[Hashable, ...] | None = None
    levels: tuple[Levels, ...] | None = None  # categories; more than two take one-hot columns
    dtypes: tuple[str, ...] = ()  # of each column, or of the array; empty where unknown
    channels_last: bool = False  # of the user's images
    origins: tuple[str | None, ...] = ()  # days from which the dates of columns are counted


Fitted = Sequence[ViewSpec] | None  # the views that an estimator was fitted on


def check_same(mine: ViewSpec, fitted: ViewSpec) -> None:
    """Reject columns or categories that differ from those fitted on."""
    if mine.columns is None or fitted.columns is None:
        return
    names = tuple(fitted_names(mine.columns, fitted.columns))
    for what, current, expected in (
        ("columns", names, fitted.columns),
        ("categories", mine.levels, fitted.levels),
        ("dates since", mine.origins, fitted.origins),
    ):
        if current != expected:
            problem = f"{what} {listed(current or ())}, fitted on {listed(expected or ())}"
            fix = f"pass the DataFrames themselves, or the {what} as then"
            raise ValueError(f"view {mine.name!r} has {problem}; {fix}")


def join_ids(frames: Mapping[str, Frame]) -> pd.Index:
    """Join the ids of all frames, in order of first appearance."""
    for name, frame in frames.items():
        twice = frame.index[frame.index.duplicated()]
        if len(twice):
            ids = listed(twice.unique())
            raise ValueError(f"view {name!r} has duplicated ids {ids}; keep one row per sample")
        if not isinstance(frame.index, pd.MultiIndex) and frame.index.hasnans:
            raise ValueError(f"view {name!r} has a row without an id; give it one, or drop it")
    (name, first), *others = frames.items()
    joined = first.index
    for other, frame in others:
        if set(first.index).isdisjoint(frame.index):
            written = {str(i): i for i in first.index}
            same = next((i for i in frame.index if str(i) in written), None)
            if same is not None:
                problem = f"{written[str(same)]!r} is not {same!r}"
                fix = f"{problem}; give both the same type (index.astype(str))"
                raise ValueError(f"ids of views {name!r} and {other!r} never meet: {fix}")
        joined = joined.append(frame.index.difference(joined, sort=False))
    if not len(joined):
        raise ValueError("X has no samples; every frame is empty: Found array with 0 sample(s)")
    check_forms(joined)
    warn_of_look_alikes({name: frame.index for name, frame in frames.items()})
    return joined


def check_forms(ids: Iterable[Hashable]) -> None:
    """Reject ids that look equal: one text in two forms of Unicode, as names of files on a Mac."""
    forms: dict[str, str] = {}
    for text in ids:
        if not isinstance(text, str) or text.isascii():
            continue
        other = forms.setdefault(normalize("NFC", text), text)
        if other != text:
            problem = f"ids {other!a} and {text!a} are both {text!r}, in two forms of Unicode"
            raise ValueError(f"{problem}; write it in one (unicodedata.normalize('NFC', ...))")


def from_frame(
    name: str, frame: pd.DataFrame, ids: pd.Index, fitted: ViewSpec | None
) -> tuple[NDArray[np.float64], ViewSpec]:
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()]
        raise ValueError(f"view {name!r} has duplicated columns {listed(twice)}; rename them")
    if not isinstance(frame.columns, pd.MultiIndex) and frame.columns.hasnans:
        raise ValueError(f"view {name!r} has a column without a name; name it, or drop it")
    if fitted is not None and fitted.columns is not None:
        frame = _fitted_columns(name, frame, fitted.columns)
    columns: tuple[Hashable, ...] = tuple(frame.columns)
    values, levels, origins = _values(name, frame, fitted)
    if fitted is not None and fitted.shape != values.shape[1:]:
        counts = f"{values.shape[1]} features, fitted on {prod(fitted.shape)}"
        raise ValueError(f"view {name!r} has {counts}; pass the same columns")
    out = np.full((len(ids), values.shape[1]), np.nan)
    out[ids.get_indexer(frame.index)] = values
    dtypes = tuple(str(getattr(d, "subtype", d)) for d in frame.dtypes)
    spec = ViewSpec(name, values.shape[1:], columns, levels, dtypes, origins=origins)
    return out, fitted or spec


def _fitted_columns(name: str, frame: pd.DataFrame, fitted: tuple[Hashable, ...]) -> pd.DataFrame:
    """Select the fitted columns, in their order; those that the frame lacks are gaps."""
    names = fitted_names(frame.columns, fitted)
    current, expected = set(names), set(fitted)
    lost = [c for c in fitted if c not in current]
    new = [c for c in names if c not in expected]
    if new or len(lost) == len(fitted):
        lists = {"lacks": lost, "has unknown": new}
        problems = [f"{what} {listed(columns)}" for what, columns in lists.items() if columns]
        fix = f"pass the {len(fitted)} columns it was fitted on"
        raise ValueError(f"view {name!r} {' and '.join(problems)}; {fix}")
    if lost:
        note = f"view {name!r} lacks {listed(lost)}, which it had when it was fitted"
        warnings.warn(f"{note}: they are taken as missing in all rows", stacklevel=2)
    frame = frame if names == [*frame.columns] else frame.set_axis(names, axis=1)
    return frame if names == [*fitted] else frame.reindex(columns=list(fitted))


def fitted_names(columns: Iterable[Hashable], fitted: Sequence[Hashable]) -> list[Hashable]:
    """Map columns to the names that they were fitted with: 0 may have been "0"."""
    columns = list(columns)
    known, texts = {str(c): c for c in fitted}, [str(c) for c in columns]
    if len(known) < len(fitted) or len(set(texts)) < len(texts):
        return columns
    return [known.get(text, c) for text, c in zip(texts, columns, strict=True)]


def _values(
    name: str, frame: pd.DataFrame, fitted: ViewSpec | None
) -> tuple[NDArray[np.float64], tuple[Levels, ...], tuple[str | None, ...]]:
    """Convert a frame to numbers (n, k), with the levels of each column, and the origins of its
    dates. Columns of numbers are converted together, since there may be fifty thousand."""
    labels, none = frame.columns.tolist(), (None,) * frame.shape[1]
    known, since = (fitted and fitted.levels) or none, (fitted and fitted.origins) or none
    facts = zip(known, since, frame.dtypes, strict=True)
    plain = np.array([k is None and day is None and is_plain(d) for k, day, d in facts])
    levels, origins = list[Levels](none), list[str | None](none)
    blocks, limit_cells = {}, {}
    for c in np.flatnonzero(~plain).tolist():
        with noted():
            column = _column(name, frame.iloc[:, c], known[c], since[c], fitted is not None)
            blocks[c], levels[c], origins[c], limit_cells[labels[c]] = column
    if len(blocks) < (~plain).sum():
        raise EnoughError
    limit_cells = {label: x for label, x in limit_cells.items() if len(x)}
    if limit_cells:
        warnings.warn(cells.limits_note(f"view {name!r}", limit_cells), stacklevel=2)
    days = [f"{labels[c]!r} since {day}" for c, day in enumerate(origins) if day is not None]
    if days and fitted is None:
        note = f"view {name!r} has dates, which are taken as days: {listed(days, form=str)}"
        warnings.warn(note, stacklevel=2)
    ends = np.cumsum([numbers(level) for level in levels])
    values = np.empty((len(frame), ends[-1]))
    table = frame if plain.all() else frame.loc[:, plain]
    values[:, ends[plain] - 1] = table.to_numpy(np.float64, na_value=np.nan)
    for c, block in blocks.items():
        values[:, ends[c] - block.shape[1] : ends[c]] = block
    return values, tuple(levels), tuple(origins) if any(origins) else ()


def is_plain(dtype: Any) -> bool:
    """Whether a column holds numbers or truth values, of numpy or nullable ones of pandas."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    return re.fullmatch(r"U?Int\d+|Float\d+|boolean", str(dtype)) is not None


def _column(name: str, s: pd.Series, known: Levels, since: str | None, fitted: bool) -> Column:
    """Convert one column to numbers (n, k); reject another kind of column than was fitted."""
    where = f"view {name!r}, column {s.name!r}"
    cells.check_kind(where, s)
    categorical = isinstance(s.dtype, pd.CategoricalDtype)
    if known is not None or (categorical and not fitted):
        return _categories(where, s, known)
    dated, plain = dates.are_in(s), is_plain(s.dtype)
    held = "is categorical" if categorical else "is numeric" if plain else "holds dates" * dated
    fits, then = ("is numeric", "numbers") if since is None else ("holds dates", "dates")
    if fitted and held not in ("", fits) and s.notna().any():
        raise ValueError(f"{where} {held}, fitted on {then}; pass it as it was then")
    limit_cells = s[:0]
    if s.dtype.kind in "OU" and not dated:
        s, limit_cells = _of_text(where, s)
    if dates.are_in(s):
        days, origin = dates.as_days(s, since)
        return days[:, None], None, origin, limit_cells
    return s.to_numpy(np.float64, na_value=np.nan)[:, None], None, since, limit_cells


def _categories(where: str, s: pd.Series, known: Levels) -> Column:
    if known is not None:
        levels, truths = known, cells.TRUTHS
        meant = {truths.get(k.lower()): k for k in levels if isinstance(k, str)}
        if len(levels) == 2 and {*meant} == {True, False}:  # other words for yes and no
            words = {x: meant.get(truths.get(str(x).lower()), x) for x in s.dropna().unique()}
            s = s if all(k == x for k, x in words.items()) else s.astype(object).map(words)
    else:  # of many that are declared for other samples only, those that occur
        many = len(s.cat.categories) > cells.MOST_LEVELS
        levels = tuple((s.cat.remove_unused_categories() if many else s).cat.categories)
    if not levels:
        raise ValueError(f"{where} has no category; drop the column")
    strange = s[~s.isin(levels) & s.notna()]
    if len(strange):
        new = f"{where} has the new category {listed(strange[:1])}"
        raise ValueError(f"{new}; fitted on {listed(levels)}")
    if isinstance(s.dtype, pd.CategoricalDtype):  # which may declare others
        s = s.cat.set_categories(list(levels))
    codes, k = np.asarray(pd.Categorical(s, categories=list(levels)).codes), numbers(levels)
    limits.check(8 * len(codes) * k, f"{where} of {k} categories")
    block = (codes[:, None] == np.arange(k) if k > 1 else codes[:, None]).astype(float)
    block[codes < 0] = np.nan
    return block, levels, None, s[:0]


def _of_text(where: str, s: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Read text that means numbers, truth values or dates, as in files; and its limits, if any."""
    text = cells.stripped(s)
    number_text, limit_cells = cells.without_limits(text)
    number = cells.numbers(number_text)
    if number is not None:
        return number, limit_cells
    if cells.all_match(number_text, cells.WITH_COMMAS):
        example = next(x for x in number_text.dropna() if "," in x)
        problem = f"{where} holds {example!r}, a number with a comma, as text"
        fix = "read the file with pd.read_csv(..., decimal=','), or convert the column"
        code = f"pd.to_numeric(frame[{s.name!r}].str.replace(',', '.'), errors='coerce')"
        raise ValueError(f"{problem}; {fix}: {code}")
    days = dates.of_text(where, text)
    if days is not None:
        return days, text[:0]
    _, word, levels = cells.first_word(where, text)
    few = " or categorical (astype('category'))" * (len(levels) <= cells.MOST_LEVELS)
    fix = f"drop the column, or make it numeric{few}"
    raise ValueError(f"{where} holds {word!r}, which is not a number; {fix}")


def numbers(levels: Levels) -> int:
    """Count the numbers of a column: one, or an indicator per category of more than two."""
    return 1 if levels is None or len(levels) <= 2 else len(levels)


def is_number(x: Any) -> bool:
    try:
        float(x)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
