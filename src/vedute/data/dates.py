"""Columns of dates (by dtype, objects or text, all written in one way) as days since the earliest
one, and as dates again. Hours are kept; times with a zone are those of its clocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Stamps = NDArray[np.datetime64]
Floats = NDArray[np.float64]
Wording = tuple[str, list[str]]  # template for `str.format` of a datetime and the month's name
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
NUMBERS = {name[:k].lower(): str(i) for i, name in enumerate(MONTHS, 1) for k in (3, None)}
TIME = (
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:\.(?P<microsecond>\d{1,9}))?)?Z?)?"
)
DAY, MONTH = r"(?P<day>\d{1,2})", r"(?P<month>\d{1,2})"
MONTH_NAME, YEAR = r"(?P<name>[A-Za-z]{3,9})", r"(?P<year>\d{4})"
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
DATE_ONLY = "{0.year:04}-{0.month:02}-{0.day:02}"
TIME_TOO = " {0.hour:02}:{0.minute:02}:{0.second:02}"


def are_in(column: pd.Series) -> bool:
    """Whether a column holds dates by its dtype, or by its objects."""
    dtype: Any = column.dtype
    if isinstance(dtype, (pd.CategoricalDtype, pd.PeriodDtype)):
        return False
    if dtype.kind == "M" or str(dtype).startswith(("date32", "date64")):
        return True
    kinds = ("date", "datetime", "datetime64")
    return dtype.kind == "O" and pd.api.types.infer_dtype(column, skipna=True) in kinds


def stamps(column: pd.Series) -> Stamps:
    """Convert to dates (n,) by their local clock; NaT where empty."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_localize(None)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "M":
        return column.to_numpy("datetime64[us]")
    cells = column.astype(object).where(column.notna(), None)
    local = [x.replace(tzinfo=None) if isinstance(x, datetime) else x for x in cells]
    return np.array(local, "datetime64[us]")


def as_days(column: pd.Series, origin: str | None) -> tuple[Floats, str]:
    """Count days (n,) since an origin, by default the earliest day; NaN without a date."""
    dates = stamps(column)
    if origin is None:
        known = dates[~np.isnat(dates)]
        origin = str(known.min().astype("datetime64[D]")) if len(known) else DEFAULT_ORIGIN
    days: Floats = (dates - np.datetime64(origin, "us")) / np.timedelta64(1, "D")
    return days, origin


def since(value: Floats, origin: str, like: pd.Series | None) -> Stamps:
    """Add days to the origin; whole days where the dates of a column are, or without one."""
    value = np.nan_to_num(np.rint(value) if like is None or _whole(stamps(like)) else value)
    first = np.datetime64(origin, "us")
    low, high = ((end - first) / np.timedelta64(1, "D") for end in (EARLIEST, LATEST))
    seconds = np.rint(value.clip(min(low, 0.0), max(high, 0.0)) * 86_400)
    return np.asarray(first + seconds.astype(np.int64).astype("timedelta64[s]"))


def _whole(dates: Stamps) -> bool:
    """Whether all dates are without a time."""
    return bool((np.isnat(dates) | (dates == dates.astype("datetime64[D]"))).all())


def like_column(dates: Stamps, column: pd.Series) -> Any:
    """Convert dates to the dtype of a column and the class of its objects; plain ones where it
    holds none."""
    dtype: Any = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return dates.astype(dtype)
    if not (pd.api.types.is_object_dtype(dtype) or are_in(column)):
        return dates
    first = next(iter(column.dropna().astype(object)), None)
    zone = getattr(dtype, "tz", getattr(first, "tzinfo", None))
    cells: Any
    if isinstance(first, pd.Timestamp) or isinstance(dtype, pd.DatetimeTZDtype):
        winter = np.zeros(len(dates), bool)  # where a clock shows an hour twice
        local = pd.Series(dates).dt.tz_localize(zone, winter, nonexistent="shift_forward")
        cells = local.astype(object)
    elif isinstance(first, np.datetime64):
        cells = list(dates)
    elif isinstance(first, date) and not isinstance(first, datetime):
        cells = [x.date() for x in dates.tolist()]
    else:
        cells = [x.replace(tzinfo=zone) for x in dates.tolist()]
    new = pd.Series(cells, dtype=dtype)
    return new.to_numpy(copy=True) if new.dtype == object else new.array


def of_text(where: str, cells: pd.Series, drop: str = "or drop the column") -> pd.Series | None:
    """Parse text as dates; None if a cell is no date, or not written as the others are. Raise
    where day and month are ambiguous. drop: how to leave a column out."""
    texts = list(dict.fromkeys(cells.dropna()))
    forms = _forms(texts)
    if len(forms) > 1:
        problem = f"dates like {texts[0]!r}, whose order of day and month is ambiguous"
        raise ValueError(f"{where} holds {problem}; write them as in 2024-12-31, {drop}")
    if not forms:
        return None
    parsed = {text: _read(forms[0], text) for text in texts}
    dates = np.array([parsed.get(x) for x in cells], "datetime64[us]")
    return pd.Series(dates, cells.index, name=cells.name)


def majority(texts: Iterable[str]) -> NDArray[np.bool_]:
    """Mask of the texts that are dates of one form, where most are but not all; else of none."""
    masks = [np.array([_read(form, text) is not None for text in texts]) for form in FORMS]
    return next((mask for mask in masks if 0.5 < mask.mean() < 1), masks[0] & False)


def wording(cells: Iterable[Any]) -> Wording | None:
    """Detect how the text of a column of dates is written; None if it holds none."""
    texts = sorted({x for x in cells if isinstance(x, str)})
    forms = _forms(texts)
    if not forms:
        return None
    matches = [match for text in texts if (match := forms[0].fullmatch(text))]
    longest = max(matches, key=lambda m: len(m[0]))
    template, months = longest[0], list(MONTHS)
    for part in reversed([k for k, x in longest.groupdict().items() if x]):
        start, end = longest.span(part)
        written = [m[part] for m in matches if m[part]]
        widths = {len(x) for x in written}
        new = f"{{0.{part}:0{min(widths)}}}"
        if part == "microsecond":
            new = "0" * (end - start)
        elif part == "name":
            cases = (case for case in (str.upper, str.lower) if case(written[0]) == written[0])
            case = next(cases, str.capitalize)
            new, months = "{1}", [case(x[:3] if widths == {3} else x) for x in MONTHS]
        template = template[:start] + new + template[end:]
    return template, months


def written(dates: Stamps, like: Wording | None = None) -> list[str]:
    """Format dates as text."""
    template, months = like or (DATE_ONLY if _whole(dates) else DATE_ONLY + TIME_TOO, [*MONTHS])
    days = dates.astype("datetime64[us]").tolist()
    return [template.format(day, months[day.month - 1]) for day in days]


def _forms(texts: Sequence[Any]) -> list[re.Pattern[str]]:
    """Forms that all texts have; none without any."""
    return [form for form in FORMS if texts and all(_read(form, text) for text in texts)]


def _read(form: re.Pattern[str], text: Any) -> datetime | None:
    """Parse a date of this form; None if it is not one, or no such day exists."""
    match = form.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    parts = {k: x for k, x in match.groupdict().items() if x}
    if "name" in parts:
        parts["month"] = NUMBERS.get(parts.pop("name").lower(), "0")
    if "microsecond" in parts:
        parts["microsecond"] = parts["microsecond"].ljust(6, "0")[:6]
    numbers: Any = {k: int(x) for k, x in parts.items()}
    try:
        return datetime(**numbers)
    except ValueError:
        return None
