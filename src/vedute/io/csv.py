"""One table as text: .csv or .tsv, sample ids in the first column.

Separators and byte-order marks are detected, blanks and empty lines ignored; the words in MISSING
mark missing values. `write` writes the file that was read, with missing values filled.
"""

from __future__ import annotations

import csv
import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import date
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data import dates, limits
from vedute.data.cells import (
    INTEGER,
    MISSING,
    MOST_LEVELS,
    TRUTHS,
    all_match,
    as_text,
    check_kind,
    have_commas,
    limits_note,
    numbers,
    stripped,
    without_limits,
    words,
    words_of_truth,
)
from vedute.data.cells import (
    limits as are_limits,
)
from vedute.data.dates import Wording, wording, written
from vedute.data.frames import is_number, listed
from vedute.data.problems import noted
from vedute.io.contents import Only, Reading, checked_ids, every, id_column, own_first
from vedute.io.files import literal

CELL_END = "\0"  # joins the cells of a line that waits to be written
SEPARATORS = ("\t", ";", ",", "|")
SNIFFED_LINES = 20
FORMULA_STARTS = ("=", "+", "@", "\t")
# pandas rounds unless it is asked not to, before 3.1
PANDAS = tuple(int(x) for x in pd.__version__.split(".")[:2])
NEAREST: Mapping[str, Any] = {"float_precision": "round_trip"} if PANDAS < (3, 1) else {}
CELLS_PER_BLOCK = 2_000_000  # in memory as text
FEW_NAMES = 10  # more texts than this, all different, are names or notes
THOUSANDS = r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+"  # a number with thousands separators


def read(path: Path, how: Reading, only: Only = every) -> pd.DataFrame:
    """Columns as numbers, categories or labels; the index is ids, as text."""
    d = sniff(path)
    at = id_column(d.columns, how.id, path)
    raw, ids = _raw(path, d, at)
    index = checked_ids(ids.str.strip().map(unescaped_id), path)
    with noted():
        check_ids(index, d.columns[at], path)
    names = {j: name for j, name in enumerate(d.columns) if j != at}
    for j, name in names.items():
        with noted():
            if not name and raw[j].notna().any():
                raise ValueError(f"{path}: column {j + 1} has no name; name it in the first line")
    wanted = set(only([name for name in names.values() if name]))
    names = {j: name for j, name in names.items() if name in wanted}
    raw = raw[list(names)]
    whole = frozenset(names[j] for j in _whole_columns(path, d, raw))
    raw = raw.set_axis(list(names.values()), axis=1)
    return typed(raw.set_axis(index.rename(d.columns[at])), path, how, whole)


def write(
    out: Path,
    source: Path,
    filled: pd.DataFrame,
    missing: NDArray[np.bool_],
    how: Reading,
    ends: Mapping[str, pd.DataFrame] | None = None,
) -> None:
    """`source` with the rows of `filled`, and its values where `missing`, (n, columns).

    Rows that `source` has keep their order; others follow.
    ends: more columns after those, lower_a, lower_b, ...
    """
    d = sniff(source)
    key = id_column(d.columns, how.id, source)
    own, blank = _lines_by_id(source, d, key), [""] * len(d.columns)
    order = own_first(filled.index, own)
    filled, missing = filled.iloc[order], missing[order]
    ids = filled.index.astype(str)
    lines = [own.get(i) or CELL_END.join([*blank[:key], i, *blank[key + 1 :]]) for i in ids]
    into = _Cells.of(lines, filled, missing, d)
    place = {c: j for j, c in enumerate(d.columns)}
    beside = [
        (place[str(c)], a)
        for frame in (ends or {}).values()
        for c, a in zip(frame.columns, _column_arrays(frame.iloc[order]), strict=True)
    ]
    more = [f"{end}_{c}" for end, frame in (ends or {}).items() for c in frame.columns]
    step = max(1, CELLS_PER_BLOCK // (len(d.columns) + len(more)))
    with opened(out, "w", d.encoding) as file:
        writer = csv.writer(file, delimiter=d.separator, lineterminator=d.end)
        writer.writerow([*d.columns[d.unnamed :], *more])
        for part in (slice(i, i + step) for i in range(0, len(ids), step)):
            rows = [line.split(CELL_END) for line in lines[part]]
            into.fill(rows, part)
            added = [into.text(at, a[part]) for at, a in beside]
            for i, row in enumerate(rows):
                row[key] = escaped_id(row[key])
                row += [column[i] for column in added]
            writer.writerows(rows)


class _Cells(NamedTuple):
    """What goes into the empty cells of a file.

    values   (n, k) of some columns, beside the positions of these (k,): numbers of one dtype at
             once, there may be fifty thousand columns, others one by one
    missing  (n, columns): where they go; at (columns,): the columns in the file
    decimal  mark, and truths and days: how truth values and dates are written, by column, all as
             in the file
    """

    values: list[tuple[list[int], NDArray[Any]]]
    missing: NDArray[np.bool_]
    at: NDArray[np.intp]
    decimal: str
    truths: dict[int, str]
    days: dict[int, Wording | None]

    @classmethod
    def of(
        cls, lines: list[str], filled: pd.DataFrame, missing: NDArray[np.bool_], d: Dialect
    ) -> _Cells:
        place: dict[Any, int] = {c: j for j, c in enumerate(d.columns)}
        kinds = {place[c]: t.kind for c, t in filled.dtypes.items()}
        decimal = _decimal(lines, [j for j, kind in kinds.items() if kind in "iuf"])
        truths = _truths(lines, [j for j, kind in kinds.items() if kind == "b"])
        days = {j: wording(_cells_of(lines, j)) for j, kind in kinds.items() if kind == "M"}
        return cls(_alike(filled), missing, np.array(list(kinds)), decimal, truths, days)

    def text(self, at: int, values: NDArray[Any]) -> list[str]:
        """Values of a column as they are written."""
        if values.dtype.kind == "M":
            return written(values, self.days.get(at))
        if values.dtype.kind == "O":  # categories; an interval of them has no ends
            values = np.where(pd.isna(values), "", values)
        return as_text(values, self.decimal, self.truths.get(at, ""))

    def fill(self, rows: list[list[str]], part: slice) -> None:
        for which, values in self.values:
            i, c = self.missing[part, which].nonzero()
            at = self.at[which][c].tolist()
            text = self.text(at[0], values[part][i, c]) if at else []
            for row, j, cell in zip(i.tolist(), at, text, strict=True):
                rows[row][j] = cell


def write_new(out: Path, frame: pd.DataFrame) -> None:
    """A table that no file was read for."""
    ids = [escaped_id(i) if isinstance(i, str) else i for i in frame.index.tolist()]
    with opened(out, "w", "utf-8") as file:
        label = str(frame.index.name or "id")
        frame.set_axis(ids).to_csv(file, index_label=label, lineterminator="\n")


def _alike(frame: pd.DataFrame) -> list[tuple[list[int], NDArray[Any]]]:
    """Positions and values (n, k): of all numbers of one dtype, of any other column alone."""
    which: dict[Any, list[int]] = {}
    for c, dtype in enumerate(frame.dtypes):
        numbers = isinstance(dtype, np.dtype) and dtype.kind in "iuf"
        which.setdefault(dtype if numbers else c, []).append(c)
    return [(at, frame.iloc[:, at].to_numpy()) for at in which.values()]


def _column_arrays(frame: pd.DataFrame) -> list[NDArray[Any]]:
    found = {c: a for at, values in _alike(frame) for c, a in zip(at, values.T, strict=True)}
    return [found[c] for c in range(frame.shape[1])]


def _lines_by_id(path: Path, d: Dialect, key: int) -> dict[str, str]:
    """The cells of every row by its id, joined by CELL_END: cells of their own would take ten times
    as much memory."""
    found = {}
    for line in _lines(path, d):
        found[unescaped_id(line[key].strip())] = text = CELL_END.join(line)
        if text.count(CELL_END) != len(line) - 1:
            raise ValueError(f"{path} holds zero bytes, so it is not text; export it as CSV")
    return found


def _decimal(lines: list[str], numeric: list[int]) -> str:
    """The decimal mark of the cells in these columns."""
    for cells in (line.split(CELL_END) for line in lines if "," in line):
        if any("," in cells[j] for j in numeric):
            return ","
    return "."


def _truths(lines: list[str], columns: list[int]) -> dict[int, str]:
    """The first truth value in each of these columns, as it is written."""
    found: dict[int, str] = {}
    for line in lines:
        if len(found) == len(columns):
            break
        cells = [cell.strip() for cell in line.split(CELL_END)]
        found |= {j: cells[j] for j in columns if j not in found and cells[j].lower() in TRUTHS}
    return found


def _cells_of(lines: list[str], j: int) -> list[str | None]:
    """The cells of one column, None where they are empty."""
    cells = (line.split(CELL_END)[j].strip() for line in lines)
    return [None if cell in MISSING else cell for cell in cells]


def _lines(path: Path, d: Dialect) -> Iterator[list[str]]:
    """The cells of every row, as they are; rows without any are left out."""
    with opened(path, "r", d.encoding) as file:
        lines = csv.reader(file, delimiter=d.separator, skipinitialspace=True)
        head = next(line for line in lines if line)
        assert head
        for line in lines:
            if any(cell.strip() for cell in line):
                yield line


def chunks(path: Path, how: Reading, rows: int) -> Generator[pd.DataFrame]:
    """The same some rows at a time, columns as pandas takes them."""
    d = sniff(path)
    at = id_column(d.columns, how.id, path)
    names = [name for j, name in enumerate(d.columns) if j != at]
    last, short = len(d.columns) - 1, at == len(d.columns) - 1
    with _table(path, d, na_values=list(MISSING), dtype={at: str}, chunksize=rows) as parts, parts:
        for frame in parts:
            short = short or bool(frame[last].isna().any())
            ids = frame.pop(at).fillna("").str.strip().map(unescaped_id)
            yield frame.set_axis(names, axis=1).set_axis(pd.Index(ids, name=d.columns[at]))
    if short:
        _check_short(path, d)


def whole_numbers(path: Path, how: Reading, names: Sequence[Any]) -> list[Any]:
    """Of columns that are whole but for empty cells, those that are written so."""
    d = sniff(path)
    like = {d.columns.index(name): [np.nan, 1.0] for name in names}
    return [d.columns[j] for j in _whole_columns(path, d, pd.DataFrame(like))]


def _raw(path: Path, d: Dialect, at: int) -> tuple[pd.DataFrame, pd.Series]:
    """Numbered columns as pandas takes them, and the ids; rows without any cell are left out."""
    width = len(d.columns)
    frame = _parsed(path, d, na_values=list(MISSING), dtype={at: str})
    ids = frame[at]
    if ids.isna().any():  # an id may be NA
        ids = _parsed(path, d, usecols=[at], dtype=str, na_filter=False)[at]
    frame = frame.drop(columns=at)
    blank = ids.str.strip().eq("") & frame.isna().all(axis=1)
    if blank.any():
        frame, ids = frame[~blank], ids[~blank]
    if not len(frame):
        raise ValueError(f"{path} has no rows, only a header; leave it out")
    if at == width - 1 or frame[width - 1].isna().any():
        _check_short(path, d)
    return frame, ids


def _parsed(path: Path, d: Dialect, **options: Any) -> pd.DataFrame:
    with _table(path, d, **options) as frame:
        whole: pd.DataFrame = frame.copy()  # one block of numbers in place of one per column
        return whole


@contextmanager
def _table(path: Path, d: Dialect, **options: Any) -> Iterator[Any]:
    """What pandas makes of a file: a frame, or with a `chunksize` several."""
    packed = path.suffix.lower() == ".gz"
    with (
        _clear_errors(path, len(d.columns)),
        warnings.catch_warnings(),
        limits.unpacked(path) if packed else nullcontext(literal(path)) as content,
    ):
        warnings.simplefilter("error", pd.errors.ParserWarning)
        yield pd.read_csv(
            content,
            sep=d.separator,
            encoding=d.encoding,
            names=list(range(len(d.columns))),
            header=0,
            index_col=False,
            keep_default_na=False,
            skipinitialspace=True,
            low_memory=False,
            **NEAREST,
            **options,
        )


@contextmanager
def _clear_errors(path: Path, width: int) -> Iterator[None]:
    """Errors of the parser as messages that name the file and the line."""
    try:
        yield
    except pd.errors.ParserWarning:
        raise ValueError(
            f"{path}: rows have more fields than the header, which has {width}; name every column"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise ValueError(f"{path} is damaged ({e}); write it again") from None
    except UnicodeError as e:
        raise ValueError(f"{path} is not UTF-8 text ({e}); save it as UTF-8") from None
    except pd.errors.ParserError as e:
        long = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(e))
        quote = re.search(r"EOF inside string starting at row (\d+)", str(e))
        problem = f"{path} is not a text table ({' '.join(str(e).split())})"
        if long:
            fields = f"{long[3]} fields, the header {width}"
            problem = f"{path}, line {long[2]} has {fields}; correct the line"
        elif quote:
            line = int(quote[1]) + 1
            problem = f"{path}: a quote that opens in line {line} is never closed; close it"
        raise ValueError(problem) from None


def _check_short(path: Path, d: Dialect) -> None:
    """Refuse lines with fewer fields than the header has, as in a file cut short."""
    width = len(d.columns)
    with opened(path, "r", d.encoding) as file:
        if all(line.count(d.separator) >= width - 1 for line in file if line.strip()):
            return
    with opened(path, "r", d.encoding) as file:
        lines = csv.reader(file, delimiter=d.separator, skipinitialspace=True)
        for k, line in enumerate(line for line in lines if line):
            if k and len(line) < width:
                raise ValueError(
                    f"{path}, line {lines.line_num} has {len(line)} fields, the header {width}; "
                    "correct the line"
                )


def check_ids(index: pd.Index, name: str, path: Path) -> None:
    """Refuse a first column of measurements."""
    like_ids = re.search(r"id|sample|patient|subject|name|barcode|cell|index|key|^$", name, re.I)
    if not like_ids and index.str.fullmatch(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?").all():
        raise ValueError(
            f"{path}: the first column, {name!r}, holds values like {index[0]!r}, not sample "
            "ids; put ids there, or name the column 'id' if these are ids"
        )


def _whole_columns(path: Path, d: Dialect, raw: pd.DataFrame) -> list[int]:
    """Columns of whole numbers with missing values, which pandas reads as floats."""
    floats = raw.select_dtypes("float64")
    values = floats.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        missing = pd.isna(values)
        whole = (values % 1 == 0) & (abs(values) < 2**53)
        maybe = missing.any(0) & ~missing.all(0) & (whole | missing).all(0)
    at = [int(j) for j, yes in zip(floats.columns, maybe, strict=True) if yes]
    if not at:
        return []
    text = _parsed(path, d, dtype=object, usecols=at, na_filter=False, nrows=1000)
    return [j for j in at if not re.search(r"\.\d|\d\.|[eE]", " ".join(text[j].tolist()))]


class Dialect(NamedTuple):
    """columns: that of the ids first; unnamed: 1 if the header leaves it out, as R does."""

    separator: str
    encoding: str
    end: str
    columns: list[str]
    unnamed: int


def opened(path: Path, mode: str, encoding: str) -> IO[str]:
    """A text file, compressed or not; ends of lines as they are."""
    if path.suffix.lower() == ".gz" and mode == "r":
        return TextIOWrapper(limits.unpacked(path), encoding=encoding, newline="")
    if path.suffix.lower() == ".gz":
        return cast(IO[str], gzip.open(path, f"{mode}t", encoding=encoding, newline=""))
    return path.open(mode, encoding=encoding, newline="")


def sniff(path: Path) -> Dialect:
    """Separator, encoding, ends of lines and header."""
    limits.file_size(path)
    encoding = _encoding(path)
    try:
        with opened(path, "r", encoding) as file:
            lines = [line for line in islice(file, SNIFFED_LINES) if line.strip()]
        if not lines:
            raise ValueError(f"{path} is empty; leave it out")
        separator, rows = _split_lines(lines)
    except UnicodeError as e:
        raise ValueError(f"{path} is not UTF-8 text ({e}); save it as UTF-8") from None
    except csv.Error as e:
        raise ValueError(f"{path} is not a text table ({e}); export it as CSV") from None
    header = [name.strip() for name in rows[0]]
    unnamed = 0
    if len(rows) > 1 and all(len(r) == len(header) + 1 for r in rows[1:]):
        unnamed = int(any(r[-1].strip() for r in rows[1:]))  # else commas at the ends of lines
        header = ["", *header] if unnamed else [*header, ""]
    if len(header) < 2:
        raise ValueError(
            f"{path} has one column, {header[0]!r}; expected sample ids and at least one more, "
            "separated by comma, semicolon or tab"
        )
    _check_header(header, path)
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    return Dialect(separator, encoding, end, header, unnamed)


def _encoding(path: Path) -> str:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            start = file.read(4096)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{path} is not a gzip file; write it again") from None
    if start.startswith(b"PK\x03\x04"):
        raise ValueError(f"{path} is a zip or Excel file, not text; export it as CSV")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in start:
        raise ValueError(f"{path} holds zero bytes, so it is not text; export it as CSV")
    return "utf-8-sig" if start.startswith(b"\xef\xbb\xbf") else "utf-8"


def _split_lines(lines: list[str]) -> tuple[str, list[list[str]]]:
    """The separator that cuts lines into as many fields as the header, and more than others."""
    best, score = (",", [[line.strip()] for line in lines]), (False, 1)
    problem: csv.Error | None = None
    for separator in (*SEPARATORS, " "):
        if separator == " " and score[1] > 1:  # names may have blanks
            break
        try:
            rows = [r for r in csv.reader(lines, delimiter=separator, skipinitialspace=True) if r]
        except csv.Error as e:  # a long line is one cell to the wrong separator
            problem = e
            continue
        width = len(rows[0])
        fits = sum(len(r) in (width, width + 1) for r in rows[1:]) >= len(rows[1:]) / 2
        if max(map(len, rows)) > 1 and (fits, width) > score:
            best, score = (separator, rows), (fits, width)
    if problem is not None and score[1] == 1:
        raise problem
    return best


def _check_header(header: list[str], path: Path) -> None:
    named = [name for name in header[1:] if name]
    twice = [name for name, k in Counter(filter(None, header)).items() if k > 1]
    if twice:
        raise ValueError(f"{path} has duplicated columns {listed(twice)}; rename them")
    if named and all(map(is_number, named)) and not all(name.isdigit() for name in named):
        raise ValueError(
            f"{path} has no header: its first line holds values like {named[0]!r}; begin with "
            "a line of column names"
        )


class _Guard(NamedTuple):
    """safe: write an apostrophe before formulas; found: those that were written as they are."""

    safe: bool
    found: list[str]


_guard: ContextVar[_Guard | None] = ContextVar("guard", default=None)


@contextmanager
def formula_guard(safe: bool) -> Iterator[list[str]]:
    """How ids are written inside; the formulas among them, unless `safe`."""
    guard = _Guard(safe, [])
    before = _guard.set(guard)
    try:
        yield guard.found
    finally:
        _guard.reset(before)


def is_formula(text: str) -> bool:
    return text.startswith(FORMULA_STARTS) and not is_number(text)


def escaped_id(text: str) -> str:
    """An id as it is written into a .csv file."""
    guard = _guard.get()
    if guard is None or not is_formula(text):
        return text
    if guard.safe:
        return f"'{text}"
    guard.found.append(text)
    return text


def unescaped_id(text: str) -> str:
    """An id without the apostrophe that makes it text."""
    return text[1:] if text.startswith("'") and is_formula(text[1:]) else text


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
                text[name] = _parsed_text(f"{path}, column {name!r}", name, column, how)
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


def _parsed_text(where: str, name: Any, column: pd.Series, how: Reading) -> _Text:
    """A column that is neither of numbers nor of dates by its dtype."""
    check_kind(where, column, f"drop the column (--drop {quote(str(name))})")
    given = stripped(column)
    cells = without_limits(given)
    found = given[are_limits(given)] if cells is not given else given[:0]
    number = numbers(cells)
    if number is not None:
        pair = words_of_truth(cells)
        return _Text(number if pair is None else _two_categories(number, pair), found, cells)
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


def _two_categories(truth: pd.Series, pair: tuple[str, str]) -> pd.Series:
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
