"""Columns of a table: numbers, truth values, dates, categories; messages for all others."""

from __future__ import annotations

import warnings
from datetime import date
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vedute.data import dates
from vedute.data.cells import (
    INTEGER,
    MOST_LEVELS,
    all_match,
    check_kind,
    have_commas,
    limits,
    limits_note,
    numbers,
    stripped,
    without_limits,
    words,
    words_of_truth,
)
from vedute.data.problems import noted
from vedute.io.data import Reading

FEW_NAMES = 10  # texts that differ in all rows: names or notes where there are more
THOUSANDS = r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+"  # or one with thousands separators


def typed(
    raw: pd.DataFrame, path: Path, how: Reading, whole: frozenset[Any] = frozenset()
) -> pd.DataFrame:
    """Every column as numbers, truth values, dates or categories; the label column as it is.

    whole: columns of whole numbers that pandas holds as floats because some are missing.
    """
    if not whole and all(d.kind in "biuf" for d in raw.dtypes):
        return raw
    done: dict[Any, Any] = {}
    text: dict[Any, _Text] = {}
    for name, column in raw.items():
        if name == how.label or isinstance(column.dtype, pd.CategoricalDtype):
            done[name] = column
        elif column.dtype.kind in "biuf":
            done[name] = _nullable(column) if name in whole else column
        elif dates.are_in(column):
            done[name] = column
        else:
            with noted():
                text[name] = _read(f"{path}, column {name!r}", name, column, how)
                done[name] = text[name].values
    with noted(part=False):
        _check_commas(raw, text, path, how)
    taken = {name: found.limits for name, found in text.items() if len(found.limits)}
    if taken:
        warnings.warn(limits_note(str(path), taken), stacklevel=2)
    kept = raw.columns if len(done) == raw.shape[1] else raw.columns[raw.columns.isin([*done])]
    return pd.DataFrame(done, index=raw.index, columns=kept)


class _Text(NamedTuple):
    """What was made of a column of text; limits: the cells that are; cells: what numbers are read
    from, limits as their numbers; commas: whether some have a decimal comma."""

    values: pd.Series
    limits: pd.Series
    cells: pd.Series
    commas: bool = False


def _read(where: str, name: Any, column: pd.Series, how: Reading) -> _Text:
    """A column that is neither of numbers nor of dates by its dtype."""
    check_kind(where, column, f"drop the column (--drop {quote(str(name))})")
    given = stripped(column)
    cells = without_limits(given)
    found = given[limits(given)] if cells is not given else given[:0]
    number = numbers(cells)
    if number is not None:
        pair = words_of_truth(cells)
        return _Text(number if pair is None else _two(number, pair), found, cells)
    if have_commas(cells):
        number = numbers(cells.str.replace(",", "."))
        if number is not None:
            return _Text(number, found, cells, commas=True)
    words = given.map(lambda x: str(x) if isinstance(x, date) else x)  # of spreadsheets
    days = dates.of_text(where, words, f"or leave them out: --drop {quote(str(name))}")
    made = _categories(name, words, where, how) if days is None else days
    return _Text(made, given[:0], given[:0])


def _nullable(column: pd.Series) -> Any:
    """Whole numbers out of floats with NaN; for thousands of columns, so not by astype."""
    values = column.to_numpy(np.float64)
    missing = np.isnan(values)
    return pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int64), missing)


def _two(truth: pd.Series, pair: tuple[str, str]) -> pd.Series:
    """Truth values as two categories, the words for no and yes."""
    words = truth.astype(object).map({False: pair[0], True: pair[1]})
    return words.astype(pd.CategoricalDtype([*pair]))


def _categories(name: Any, cells: pd.Series, where: str, how: Reading) -> pd.Series:
    """Text as categories, with --one-hot and up to MOST_LEVELS of them; else a message."""
    row, text, levels = words(where, cells)
    word = quote(str(name))
    where, drop = f"{where}, row {row!r} holds {text!r}", f"--drop {word} leaves it out"
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"{where}, one of {len(levels)} different texts; --one-hot takes up to {MOST_LEVELS}: "
            f"{drop}"
        )
    if not how.one_hot and FEW_NAMES < len(levels) == cells.notna().sum():
        raise ValueError(f"{where}, and another text in every row; {drop}")
    if not how.one_hot:
        raise ValueError(
            f"{where}, not a number; --one-hot makes categories of it, --label {word} takes it "
            f"for labels, {drop}"
        )
    return cells.astype(pd.CategoricalDtype(levels))


def _check_commas(raw: pd.DataFrame, text: dict[Any, _Text], path: Path, how: Reading) -> None:
    """Decimal commas must be the only decimal marks, and not look like thousands."""
    commas = {name: found.cells for name, found in text.items() if found.commas}
    if not commas:
        return
    first, cells = next(iter(commas.items()))
    example = next(x for x in cells.dropna() if "," in x)
    floats = raw.select_dtypes("float64")
    pointed = [c for c in floats if bool((floats[c].dropna() % 1 != 0).any())]
    pointed += [c for c, found in text.items() if len(found.limits) and _points(found)]
    if pointed:
        raise ValueError(
            f"{path} has decimal commas in column {first!r} ({example!r}) and decimal points in "
            f"column {pointed[0]!r}; use one of them"
        )
    thousands = all(all_match(c, f"{THOUSANDS}|{INTEGER}") for c in commas.values())
    if thousands and how.decimal != ",":
        raise ValueError(
            f"{path}, column {first!r} holds {example!r}: a decimal comma or thousands; "
            "pass --decimal , for decimal commas, or remove the thousands separators"
        )


def _points(found: _Text) -> bool:
    """Whether some numbers have a decimal point."""
    return not found.commas and any(isinstance(x, str) and "." in x for x in found.cells)
