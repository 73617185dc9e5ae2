"""Columns of a table: numbers, truth values, categories; messages for all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.data.cells import (
    MOST_LEVELS,
    WHOLE,
    all_match,
    check_kind,
    have_commas,
    numbers,
    stripped,
    words,
)
from vedute.io.data import Reading

THOUSANDS = r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+"  # or one with thousands separators


def typed(
    raw: pd.DataFrame, path: Path, how: Reading, whole: frozenset[Any] = frozenset()
) -> pd.DataFrame:
    """Every column as numbers, truth values or categories; the label column as it is.

    whole: columns of whole numbers that pandas holds as floats because some are missing.
    """
    if not whole and all(d.kind in "biuf" for d in raw.dtypes):
        return raw
    done: dict[Any, Any] = {}
    commas: dict[Any, pd.Series] = {}
    for name, column in raw.items():
        if name == how.label or isinstance(column.dtype, pd.CategoricalDtype):
            done[name] = column
        elif column.dtype.kind in "biuf":
            done[name] = _nullable(column) if name in whole else column
        else:
            check_kind(f"{path}, column {name!r}", column)
            cells = stripped(column)
            number = numbers(cells)
            if number is None and have_commas(cells):
                commas[name] = cells
                number = numbers(cells.str.replace(",", "."))
            done[name] = _categories(name, cells, path, how) if number is None else number
    if commas:
        _check_commas(raw, commas, path, how)
    return pd.DataFrame(done, index=raw.index, columns=raw.columns)


def _nullable(column: pd.Series) -> Any:
    """Whole numbers out of floats with NaN; for thousands of columns, so not by astype."""
    values = column.to_numpy(np.float64)
    missing = np.isnan(values)
    return pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int64), missing)


def _categories(name: Any, cells: pd.Series, path: Path, how: Reading) -> pd.Series:
    """Text as categories, with --one-hot and up to MOST_LEVELS of them; else a message."""
    where = f"{path}, column {name!r}"
    row, text, levels = words(where, cells)
    where = f"{where}, row {row!r} holds {text!r}"
    if not how.one_hot:
        also = f", --label {name} takes it for labels" if len(levels) <= MOST_LEVELS else ""
        raise ValueError(
            f"{where}, not a number; --one-hot makes categories of it{also}, or drop the column"
        )
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"{where}, one of {len(levels)} different texts; --one-hot takes up to {MOST_LEVELS}: "
            "drop the column"
        )
    return cells.astype(pd.CategoricalDtype(levels))


def _check_commas(
    raw: pd.DataFrame, commas: dict[Any, pd.Series], path: Path, how: Reading
) -> None:
    """Decimal commas must be the only decimal marks, and not look like thousands."""
    first, cells = next(iter(commas.items()))
    example = next(x for x in cells.dropna() if "," in x)
    floats = raw.select_dtypes("float64")
    pointed = [c for c in floats if c not in commas and bool((floats[c].dropna() % 1 != 0).any())]
    if pointed:
        raise ValueError(
            f"{path} has decimal commas in column {first!r} ({example!r}) and decimal points in "
            f"column {pointed[0]!r}; use one of them"
        )
    thousands = all(all_match(c, f"{THOUSANDS}|{WHOLE}") for c in commas.values())
    if thousands and how.decimal != ",":
        raise ValueError(
            f"{path}, column {first!r} holds {example!r}: a decimal comma or thousands; "
            "pass --decimal , for decimal commas, or remove the thousands separators"
        )
