"""Columns of dates: as days since the earliest one, and as dates again.

A column holds dates if its dtype or its objects are dates, or if all its text is written in one way
that can be read in one order of day and month. Hours are kept; times with a zone are those of its
clocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Stamps = NDArray[np.datetime64]
Floats = NDArray[np.float64]
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
TIME = r"(?:[T ](?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.(?P<f>\d{1,9}))?)?Z?)?"
DAY, MONTH = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})"
MONTH_NAME, YEAR = r"(?P<b>[A-Za-z]{3,9})", r"(?P<y>\d{4})"
ORDERS = (
    *(rf"{YEAR}{s}{MONTH}{s}{DAY}" for s in ("-", "/", r"\.")),
    *(rf"{DAY}{s}{MONTH}{s}{YEAR}" for s in (r"\.", "/", "-")),
    *(rf"{MONTH}{s}{DAY}{s}{YEAR}" for s in ("/", "-")),
    *(rf"{DAY}{s}{MONTH_NAME}{s}{YEAR}" for s in ("", " ", "-")),
    *(rf"{MONTH_NAME} {DAY}{s} {YEAR}" for s in (",", "")),
)
FORMS = tuple(re.compile(order + TIME) for order in ORDERS)
EARLIEST, LATEST = (np.datetime64(day, "us") for day in ("1678-01-01", "2261-12-31"))
DEFAULT_ORIGIN = "1970-01-01"  # of a column without any date


class Wording(NamedTuple):
    """Spelling of the dates in a column of text; template: for `str.format`, with the names of
    months in this `case`, cut to `letters`."""

    template: str
    letters: int | None = None
    case: str = ""

    def write(self, day: datetime) -> str:
        name = MONTHS[day.month - 1][: self.letters]
        name = name.upper() if self.case == "upper" else name
        name = name if self.case in ("upper", "lower") else name.capitalize()
        parts = {"y": day.year, "m": day.month, "d": day.day, "b": name}
        times = {"H": day.hour, "M": day.minute, "S": day.second, "f": day.microsecond}
        return self.template.format(**parts, **times)


DATE_ONLY, TIME_TOO = "{y:04}-{m:02}-{d:02}", " {H:02}:{M:02}:{S:02}"


def are_in(column: pd.Series) -> bool:
    """Whether a column holds dates by its dtype, or by its objects."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or dtype.kind == "m":
        return False
    if dtype.kind == "M" or str(dtype).startswith(("date32", "date64")):
        return True
    if dtype.kind != "O" or isinstance(dtype, pd.PeriodDtype):
        return False
    return pd.api.types.infer_dtype(column, skipna=True) in ("date", "datetime", "datetime64")


def stamps(column: pd.Series) -> Stamps:
    """Convert to dates (n,) by their local clock; NaT where empty."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_localize(None)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "M":
        return np.asarray(column.to_numpy().astype("datetime64[us]"))
    cells = column.astype(object).where(column.notna(), "NaT")
    local = (x.replace(tzinfo=None) if isinstance(x, datetime) else x for x in cells)
    return np.array([np.datetime64(x, "us") for x in local], "datetime64[us]")


def earliest(dates: Stamps) -> str:
    """Return the day that days are counted from."""
    known = dates[~np.isnat(dates)]
    return str(known.min().astype("datetime64[D]")) if len(known) else DEFAULT_ORIGIN


def days(dates: Stamps, origin: str) -> Floats:
    """Count days since the origin (n,); NaN without a date."""
    return np.asarray((dates - np.datetime64(origin, "us")) / np.timedelta64(1, "D"))


def since(value: Floats, origin: str, like: pd.Series | None) -> Stamps:
    """Add days to the origin; whole days where the dates of a column are, or without one."""
    known = np.array([], "datetime64[us]") if like is None else stamps(like.dropna())
    whole = bool((known == known.astype("datetime64[D]")).all())
    value = np.nan_to_num(np.rint(value) if whole else value)
    first = np.datetime64(origin, "us")
    low, high = ((end - first) / np.timedelta64(1, "D") for end in (EARLIEST, LATEST))
    seconds = np.rint(value.clip(min(low, 0.0), max(high, 0.0)) * 86_400)
    return np.asarray(first + seconds.astype(np.int64).astype("timedelta64[s]"))


def like_objects(dates: Stamps, column: pd.Series) -> NDArray[Any]:
    """Convert dates to objects of the class that a column has."""
    first = next(iter(column.dropna()), None)
    zone, cells = getattr(first, "tzinfo", None), np.empty(len(dates), dtype=object)
    if isinstance(first, pd.Timestamp):
        cells[:] = [pd.Timestamp(x).tz_localize(zone) for x in dates]
    elif isinstance(first, np.datetime64):
        cells[:] = list(dates)
    elif isinstance(first, date) and not isinstance(first, datetime):
        cells[:] = [x.date() for x in dates.tolist()]
    else:
        cells[:] = [x.replace(tzinfo=zone) for x in dates.tolist()]
    return cells


def like_column(dates: Stamps, column: pd.Series) -> Any:
    """Convert dates to the dtype of a column; plain ones where that holds none."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        plain = pd.Series(dates).dt
        ambiguous = np.zeros(len(dates), bool)
        local = plain.tz_localize(dtype.tz, ambiguous=ambiguous, nonexistent="shift_forward")
        return local.astype(dtype).array
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return dates.astype(dtype)
    if pd.api.types.is_object_dtype(dtype):
        return like_objects(dates, column)
    if not are_in(column):
        return dates
    return pd.array(like_objects(dates, column.astype(object)).tolist(), dtype=dtype)


def of_text(where: str, cells: pd.Series, drop: str = "or drop the column") -> pd.Series | None:
    """Parse text as dates; None if a cell is no date, or not written as the others are. Raise
    where day and month are ambiguous. drop: how to leave a column out."""
    texts = list(dict.fromkeys(x for x in cells if x is not None and x == x))
    fits = _forms(texts)
    if len(fits) > 1:
        example = next(iter(texts))
        raise ValueError(
            f"{where} holds dates like {example!r}, whose order of day and month is ambiguous; "
            f"write them as in 2024-12-31, {drop}"
        )
    if not fits:
        return None
    parsed = {text: _read(fits[0], text) for text in texts}
    dates = [parsed.get(x, np.datetime64("NaT", "us")) for x in cells]
    return pd.Series(np.array(dates, "datetime64[us]"), cells.index, name=cells.name)


def odd_ones(cells: pd.Series) -> list[Any]:
    """Rows of cells that are no dates, where most are."""
    filled = cells.dropna()
    for form in FORMS:
        valid = np.array([isinstance(x, str) and _read(form, x) is not None for x in filled], bool)
        if len(valid) and valid.mean() > 0.5:
            return filled.index[~valid].tolist()
    return []


def wording(cells: Iterable[Any]) -> Wording | None:
    """Detect how the text of a column of dates is written; None if it holds none."""
    texts = sorted({x for x in cells if isinstance(x, str)})
    forms = _forms(texts)
    if not forms:
        return None
    form, matches = forms[0], [m for text in texts if (m := forms[0].fullmatch(text))]
    match = max(matches, key=lambda m: len(m[0]))
    template = match[0]
    for part, (start, end) in sorted(
        ((k, match.span(k)) for k in match.groupdict() if match[k] is not None),
        key=lambda item: -item[1][0],
    ):
        padded = part in "yMS" or all(len(m[part] or "00") == 2 for m in matches)
        spec = {"y": ":04", "b": "", "f": ""}.get(part, ":02" if padded else "")
        written = "0" * (end - start) if part == "f" else f"{{{part}{spec}}}"
        template = template[:start] + written + template[end:]
    names = [m["b"] for m in matches if "b" in form.groupindex]
    short = all(len(name) == 3 for name in names)
    upper, lower = (bool(names) and case(names[0]) for case in (str.isupper, str.islower))
    return Wording(template, 3 if short else None, "upper" if upper else "lower" if lower else "")


def written(dates: Stamps, like: Wording | None = None) -> list[str]:
    """Format dates as text."""
    if like is None:
        whole = bool((dates == dates.astype("datetime64[D]")).all())
        like = Wording(DATE_ONLY if whole else DATE_ONLY + TIME_TOO)
    return [like.write(x) for x in dates.astype("datetime64[us]").tolist()]


def _forms(texts: Sequence[Any]) -> list[re.Pattern[str]]:
    """Forms that all cells have; none where there is no cell, or one that is no text."""
    if not texts or not all(isinstance(x, str) for x in texts):
        return []
    return [form for form in FORMS if all(_read(form, text) is not None for text in texts)]


def _read(form: re.Pattern[str], text: str) -> Any:
    """Parse a date of this form; None if it is not one, or no such day exists."""
    match = form.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    name = (part.get("b") or "").lower()
    named = [i for i, month in enumerate(MONTHS, 1) if name in (month, month[:3])]
    month = named[0] if named else int(part.get("m") or 0)
    hour, minute, second = (int(part[k] or 0) for k in "HMS")
    rest = int((part["f"] or "0").ljust(6, "0")[:6])
    try:
        day: Any = datetime(int(part["y"]), month, int(part["d"]), hour, minute, second, rest)
    except ValueError:
        return None
    return np.datetime64(day, "us")
