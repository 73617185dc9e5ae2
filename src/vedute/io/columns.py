"""Columns of a table: numbers, truth values, categories; messages for all others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vedute.io.data import Reading

MISSING = ("", "NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "-", "?", ".",
           "#N/A", "<NA>")  # fmt: skip
COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"  # a number with a decimal comma
WHOLE = r"[+-]?\d+"
THOUSANDS = r"[+-]?[1-9]\d{0,2}(?:,\d{3})+"  # or one with thousands separators
MOST_LEVELS = 50


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
        elif column.dtype.kind in "mMc":
            raise ValueError(
                f"{path}, column {name!r} holds {column.dtype}, not numbers; drop the column, or "
                "convert it to numbers"
            )
        else:
            cells = _cells(column)
            number = _numbers(cells)
            if number is None and _all_match(cells, f"{COMMA}|{WHOLE}(?:[eE][+-]?\\d+)?"):
                commas[name] = cells
                number = pd.to_numeric(cells.str.replace(",", "."))
            done[name] = _categories(name, cells, path, how) if number is None else number
    if commas:
        _check_commas(raw, commas, path, how)
    return pd.DataFrame(done, index=raw.index, columns=raw.columns)


def as_text(cells: Iterable[Any], decimal: str, truth: str = "") -> list[str]:
    """Values for a text file; truth values in the case of the `truth` that the file has."""
    cells = cells.tolist() if isinstance(cells, np.ndarray) else cells  # much faster
    values = [x.item() if isinstance(x, np.generic) else x for x in cells]
    text = [repr(x) if isinstance(x, float) else str(x) for x in values]
    if values and all(isinstance(x, bool) for x in values):
        upper, lower = truth.isupper(), truth.islower()
        return [t.upper() if upper else t.lower() if lower else t for t in text]
    if decimal == "," and all(isinstance(x, (int, float)) for x in values):
        return [t.replace(".", ",") for t in text]
    return text


def _nullable(column: pd.Series) -> Any:
    """Whole numbers out of floats with NaN; for thousands of columns, so not by astype."""
    values = column.to_numpy(np.float64)
    missing = np.isnan(values)
    return pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int64), missing)


def _all_match(cells: pd.Series, pattern: str) -> bool:
    return all(isinstance(x, str) and re.fullmatch(pattern, x) for x in cells.dropna())


def _cells(column: pd.Series) -> pd.Series:
    """Stripped text; None where the cell is a mark for a missing value."""
    text = column.where(column.notna(), None).astype(object)
    text = text.map(lambda x: x.strip() if isinstance(x, str) else x)
    return text.mask(text.isin(MISSING), None)


def _numbers(cells: pd.Series) -> pd.Series | None:
    """Cells as numbers or truth values; None if one of them is neither."""
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    words = {"true": True, "false": False}
    there = cells.dropna()
    if kind == "boolean":
        return cells.astype("boolean")
    if kind == "string" and len(there) and there.str.lower().isin(words).all():
        return cells.str.lower().map(words).astype("boolean")
    try:
        number = pd.to_numeric(cells)
    except (TypeError, ValueError):
        return None
    number = number.astype(np.float64) if number.dtype.kind == "O" else number
    plain = number.isna().any() and len(there) and _all_match(cells, WHOLE)
    return number.astype("Int64") if plain and number.abs().max() < 2**53 else number


def _categories(name: Any, cells: pd.Series, path: Path, how: Reading) -> pd.Series:
    """Text as categories, with --one-hot and up to MOST_LEVELS of them; else a message."""
    there = cells.dropna().astype(str)
    numeric = pd.to_numeric(there, errors="coerce").notna()
    odd = there[~numeric]
    where = f"{path}, column {name!r}, row {str(odd.index[0])!r} holds {odd.iloc[0]!r}"
    if numeric.mean() > 0.5:
        raise ValueError(f"{where} among numbers; correct it, or leave the cell empty")
    levels = sorted(there.unique())
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
    thousands = all(_all_match(c, f"{THOUSANDS}|{WHOLE}") for c in commas.values())
    if thousands and how.decimal != ",":
        raise ValueError(
            f"{path}, column {first!r} holds {example!r}: a decimal comma or thousands; "
            "pass --decimal , for decimal commas, or remove the thousands separators"
        )
