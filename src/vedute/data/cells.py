"""Columns as people write them, in frames and in files: text that means numbers or truth values,
limits of detection, marks for missing values, and the messages for time spans and other words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pandas as pd

from vedute.data import dates
from vedute.data.escaping import listed

MISSING = ("", "NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "-", "?", ".",
           "#N/A", "<NA>")  # fmt: skip
INTEGER = r"[+-]?[0-9]+"
COMMA = r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?"  # a number with a decimal comma
WITH_COMMAS = f"{COMMA}|{INTEGER}(?:[eE][+-]?[0-9]+)?"  # a cell of a column of such numbers
OTHERS = (bytes, dict, list, np.ndarray, set)  # objects in cells of parquet and Python
EXACT_DECIMALS = Context(prec=1000)  # digits; the largest float has 309
MOST_LEVELS = 50  # more texts in a column are names, or notes
CONVERSIONS = {  # advice on objects that are not numbers
    "period": ", such as days since the first one",
    **dict.fromkeys(("timedelta", "timedelta64"), ", such as seconds"),
    **dict.fromkeys(("time", "interval", "complex", *(x.__name__ for x in OTHERS)), ""),
}
TRUTH_PAIRS = (("true", "false"), ("yes", "no"), ("y", "n"))
TRUTHS = {word: word == pair[0] for pair in TRUTH_PAIRS for word in pair}
LIMIT = re.compile(r"(<=?|>=?|≤|≥)\s*([+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?)")


def check_kind(where: str, column: pd.Series, drop: str = "drop the column") -> None:
    """Reject what would pass for numbers or text: time spans, intervals, complex numbers, lists and
    bytes. drop: how to leave a column out."""
    if dates.are_in(column):
        return
    dtype: Any = column.dtype
    kind = pd.api.types.infer_dtype(column, skipna=True) if dtype.kind in "OmM" else ""
    if dtype.kind == "O":
        kind = next((type(x).__name__ for x in column if isinstance(x, OTHERS)), kind)
    if kind in CONVERSIONS or dtype.kind in "mMc":
        advice = f"or convert it to numbers{CONVERSIONS.get(kind, '')}"
        held = f"{kind} objects" if pd.api.types.is_object_dtype(dtype) else dtype
        raise ValueError(f"{where} holds {held}, not numbers; {drop}, {advice}")


def is_text(column: pd.Series) -> bool:
    """Whether all cells are text, if any."""
    objects = column.astype(object) if column.dtype.kind in "OU" else ()
    return pd.api.types.infer_dtype(objects, skipna=True) == "string"


def stripped(column: pd.Series) -> pd.Series:
    """Strip text; None where the cell is a mark for a missing value."""
    text = column.astype(object).where(column.notna(), None)
    text = text.map(lambda x: x.strip() if isinstance(x, str) else x)
    return text.mask(text.isin(MISSING), None)


def numbers(cells: pd.Series) -> pd.Series | None:
    """Parse cells as numbers, the nearest doubles, or truth values; None if one is neither."""
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    filled = cells.dropna()
    if kind == "boolean":
        return cells.astype("boolean")
    if kind == "string" and len(filled) and filled.str.lower().isin(TRUTHS).all():
        return cells.str.lower().map(TRUTHS).astype("boolean")
    try:
        number = pd.to_numeric(cells)  # which rounds, before pandas 3.1
        number = cells.astype(np.float64) if number.dtype.kind in "Of" else number
    except (TypeError, ValueError):
        return None
    plain = number.isna().any() and len(filled) and all_match(cells, INTEGER)
    return number.astype("Int64") if plain and number.abs().max() < 2**53 else number


def without_limits(cells: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Replace limits of detection, such as <0.3 or ≥ 100, by their numbers; return those cells,
    too. None are where nothing else is in the column and some are below, others above: those are
    categories, <65 and >=65."""
    mask = cells.map(lambda x: isinstance(x, str) and LIMIT.fullmatch(x) is not None).astype(bool)
    limits = cells[mask]
    both = {x[0] in "<≤" for x in limits} == {True, False}
    if limits.empty or (both and len(limits) == cells.count()):
        return cells, limits[:0]
    return cells.mask(mask, limits.str.lstrip("<>=≤≥").str.strip()), limits


def limits_note(where: str, taken: Mapping[Any, pd.Series]) -> str:
    """Compose the note on limits in a table; taken: by column, the cells that are limits."""
    many, example = sum(map(len, taken.values())), next(iter(taken.values())).iloc[0]
    place = f"in column{'s' * (len(taken) > 1)} {listed(taken)}"
    if many == 1:
        return f"{where}: the cell {example!r} {place} is a limit, taken as its number"
    return f"{where}: {many} cells like {example!r} {place} are limits, taken as their numbers"


def all_match(cells: pd.Series, pattern: str) -> bool:
    return all(isinstance(x, str) and re.fullmatch(pattern, x) for x in cells.dropna())


def first_word(where: str, cells: pd.Series) -> tuple[str, str, list[str]]:
    """Find the row and the text of the first word in a column that is not all numbers, and all its
    different texts. A few words among numbers, limits or dates are rejected."""
    filled = cells.dropna().astype(str)
    valid, advice = dates.majority(filled), "dates; write it as the others are"
    if not valid.any():
        plain, _ = without_limits(filled)
        numeric = pd.to_numeric(plain, errors="coerce").notna()
        commas = plain.map(lambda x: re.fullmatch(f"{COMMA}|{INTEGER}", x) is not None).astype(bool)
        numeric = commas if commas.mean() > numeric.mean() else numeric
        valid, advice = numeric.to_numpy() & (not numeric.all()), "numbers; correct it"
    rows, text = [str(i) for i in filled.index[~valid]], filled[~valid].iloc[0]
    if valid.mean() > 0.5:
        also = f" (also row{'s' * (len(rows) > 2)} {listed(rows[1:])})" if len(rows) > 1 else ""
        fix = f"{advice}, or leave the cell empty{also}"
        raise ValueError(f"{where}, row {rows[0]!r} holds {text!r} among {fix}")
    return rows[0], text, sorted(filled.unique())


def decimals(numbers: Iterable[Any], places: int, digits: int | None = None) -> list[Decimal]:
    """Round numbers to decimals of so many places, bounded by what `digits` can hold."""
    unit = Decimal(1).scaleb(-places)
    exact = [x if isinstance(x, Decimal) else Decimal(repr(float(x))) for x in numbers]
    if digits is not None:
        most = EXACT_DECIMALS.subtract(Decimal(1).scaleb(digits - places, EXACT_DECIMALS), unit)
        exact = [min(max(x, most.copy_negate()), most) for x in exact]
    return [x.quantize(unit, context=EXACT_DECIMALS) for x in exact]


def as_text(cells: Iterable[Any], decimal: str = ".", truth: str = "") -> list[str]:
    """Format values as text; truth values in the words and the case of `truth`."""
    cells = cells.tolist() if isinstance(cells, np.ndarray) else cells  # much faster
    values = [x.item() if isinstance(x, np.generic) else x for x in cells]
    text = [repr(x) if isinstance(x, float) else str(x) for x in values]
    if values and all(isinstance(x, bool) for x in values):
        pair = next((p for p in TRUTH_PAIRS if truth.lower() in p), TRUTH_PAIRS[0])
        upper, lower = truth.isupper(), truth.islower()
        text = [pair[not x] for x in values]
        return [t.upper() if upper else t if lower else t.capitalize() for t in text]
    if decimal == "," and all(isinstance(x, (int, float)) for x in values):
        return [t.replace(".", ",") for t in text]
    return text
