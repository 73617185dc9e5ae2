"""One table as text: .csv or .tsv, sample ids in the first column.

Separators and byte-order marks are detected, blanks and empty lines ignored. Ids that a spreadsheet
would run as formulas may follow an apostrophe, which makes them text: '=x is the id =x.
"""

from __future__ import annotations

import csv
import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import date
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data import cells, dates, limits
from vedute.data.cells import INTEGER, MISSING, MOST_LEVELS
from vedute.data.escaping import listed
from vedute.data.frames import is_number
from vedute.data.problems import noted
from vedute.io import contents
from vedute.io.contents import Array, Bools, Filled, Reading, errors_as

SEPARATORS = ("\t", ";", ",", "|", " ")
SNIFFED_LINES = 20
GZIP_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)
FORMULA_STARTS = ("=", "+", "@", "\t")
PANDAS = tuple(int(x) for x in pd.__version__.split(".")[:2])
PRECISION = "round_trip" if PANDAS < (3, 1) else None  # before, pandas rounds by default
CELLS_PER_BLOCK = 2_000_000  # in memory as text
FEW_NAMES = 10  # more texts than this, all different, are names or notes
# Whether to escape formulas among ids that are written, and a list of those that were not.
formula_guard: ContextVar[tuple[bool, list[str]] | None] = ContextVar("guard", default=None)
THOUSANDS = r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+"  # a number with thousands separators


def raw(path: Path, how: Reading) -> pd.DataFrame:
    """Read columns of numbers and of text; the index is ids, as text."""
    frame = next(chunks(path, how), None)
    if frame is None or not len(frame):
        raise ValueError(f"{path} has no rows, only a header; leave it out")
    index = contents.checked_ids(frame.index.to_series(), path).rename(frame.index.name)
    with noted():
        check_ids(index, path)
    for j, name in enumerate(frame.columns):
        with noted():
            if not name and frame.iloc[:, j].notna().any():
                j += 1 + (j >= contents.id_column(sniff(path).columns, how.id, path))
                raise ValueError(f"{path}: column {j} has no name; name it in the first line")
    frame = frame.set_axis(index)
    frame = frame if frame.columns.all() else frame.loc[:, frame.columns != ""]  # without a copy
    floats = frame.select_dtypes("float64")
    columns: dict[Any, Any] = {}
    for name in whole_numbers(path, floats.columns, [flags(floats.to_numpy())]):
        values = floats[name].to_numpy()  # faster than astype for thousands of columns
        integers = np.where(np.isnan(values), 0, values).astype(np.int64)
        columns[name] = pd.arrays.IntegerArray(integers, np.isnan(values))
    return pd.DataFrame({**frame, **columns}, index) if columns else frame


def write(
    out: Path, source: Path, filled: pd.DataFrame, missing: Bools, how: Reading, ends: Filled
) -> None:
    """Write `source`, then other rows of `filled`, with its values where `missing` (n, columns).
    ends: further columns after those, lower_a, lower_b, ..."""
    d = sniff(source)
    key = contents.id_column(d.columns, how.id, source)
    at: dict[Any, int] = {c: j for j, c in enumerate(d.columns)}
    spelling = _Spelling(source, d, key, {at[c]: k.kind for c, k in filled.dtypes.items()})
    order = contents.own_first(filled.index, spelling.ids)
    filled, missing = filled.iloc[order], missing[order]
    ids, columns = filled.index.astype(str), zip(filled.items(), missing.T, strict=True)
    gaps = [(at[c], x.to_numpy(), absent) for (c, x), absent in columns if absent.any()]
    beside = [(f"{end}_", frame.iloc[order].items()) for end, frame in ends.items()]
    more = {f"{end}{c}": (at[str(c)], x.to_numpy()) for end, frame in beside for c, x in frame}
    step = max(1, CELLS_PER_BLOCK // (len(d.columns) + len(more)))
    rows = _rows(source, d, key, ids)
    with opened(out, d.encoding, "w") as file:
        writer = csv.writer(file, delimiter=d.separator, lineterminator=d.end)
        writer.writerow([*d.columns[d.unnamed :], *more])
        for part in (slice(i, i + step) for i in range(0, len(ids), step)):
            lines = [*islice(rows, step)]
            for j, values, absent in gaps:
                at_rows = absent[part].nonzero()[0]
                text = spelling.text(j, values[part][at_rows])
                for i, cell in zip(at_rows.tolist(), text, strict=True):
                    lines[i][j] = cell
            added = [spelling.text(j, a[part]) for j, a in more.values()]
            for line, *cells in zip(lines, *added, strict=True):
                line[key] = escaped_id(line[key])
                line += cells
            writer.writerows(lines)


class _Spelling:
    """The ids of a file, and how it writes numbers (its decimal mark), truth values and dates."""

    def __init__(self, path: Path, d: Dialect, key: int, kinds: Mapping[int, str]) -> None:
        self.ids, self.decimal = list[str](), "."
        words: dict[int, list[str]] = {j: [] for j, kind in kinds.items() if kind in "bM"}
        numeric = [j for j, kind in kinds.items() if kind in "iuf"]
        for line in _lines(path, d):
            self.ids.append(unescaped_id(line[key].strip()))
            if "," in "".join(line) and any("," in line[j] for j in numeric):
                self.decimal = ","
            for j, texts in words.items():
                texts.append(line[j].strip())
        known = {j: [x for x in texts if x not in MISSING] for j, texts in words.items()}
        self.days = {j: dates.wording(x) for j, x in known.items() if kinds[j] == "M"}
        self.truths = {j: x[0] for j, x in known.items() if kinds[j] == "b" and x}

    def text(self, at: int, values: NDArray[Any]) -> list[str]:
        """Format values as the column has them."""
        if values.dtype.kind == "M":
            return dates.written(values, self.days.get(at))
        if values.dtype.kind == "O":  # categories; an interval of them has no ends
            values = np.where(pd.isna(values), "", values)
        return cells.as_text(values, self.decimal, self.truths.get(at, ""))


def _rows(path: Path, d: Dialect, key: int, ids: pd.Index) -> Iterator[list[str]]:
    """Cells of the rows of these ids: those in the file, in its order, then new ones."""
    new = dict.fromkeys(ids)
    for line in _lines(path, d):
        if new.pop(unescaped_id(line[key].strip()), "") is None:
            yield line
    for name in new:
        yield ["" if j != key else name for j in range(len(d.columns))]


def write_new(out: Path, frame: pd.DataFrame) -> None:
    """Write a table that has no source file."""
    ids, label = frame.index.map(escaped_id), str(frame.index.name or "id")
    with opened(out, "utf-8", "w") as file:
        frame.set_axis(ids).to_csv(file, index_label=label, lineterminator="\n")


def write_csv(path: Path, columns: Mapping[str, Array]) -> None:
    """Write a column per name, (n,) each; a 2-D array takes one per feature."""
    table = {k: [*map(escaped_id, a.tolist())] for k, a in contents.flat(columns).items()}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def _lines(path: Path, d: Dialect) -> Iterator[list[str]]:
    """Cells of every row, unchanged, but for blank rows. Reject one that is cut off."""
    width = len(d.columns)
    with opened(path, d.encoding) as file:
        lines = csv.reader(file, delimiter=d.separator, skipinitialspace=True)
        next(line for line in lines if line)
        for line in lines:
            if not any(cell.strip() for cell in line):
                continue
            if len(line) < width:
                fields = f"{len(line)} fields, the header {width}"
                raise ValueError(f"{path}, line {lines.line_num} has {fields}; correct the line")
            yield line


def chunks(path: Path, how: Reading, rows: int | None = None) -> Generator[pd.DataFrame]:
    """Read `rows` rows per chunk, or all at once, in the dtypes that pandas infers; the index is
    ids, as text. Rows without any cell are left out."""
    d = sniff(path)
    at, last = contents.id_column(d.columns, how.id, path), len(d.columns) - 1
    names, checked = [name for j, name in enumerate(d.columns) if j != at], False
    with _parser(path, d, na_values=list(MISSING), dtype={at: str}, chunksize=rows) as parts:
        for frame in parts:
            ids = frame.pop(at)
            if rows is None and ids.isna().any():  # an id may be NA
                with _parser(path, d, usecols=[at], dtype=str, na_filter=False) as texts:
                    ids = next(texts)[at]
            ids = ids.fillna("").str.strip().map(unescaped_id)
            whole = frame.copy()  # one block of numbers in place of one per column
            if ids.eq("").any():
                filled = ids.ne("") | whole.notna().any(axis=1)
                whole, ids = whole[filled], ids[filled]
            if not checked and (at == last or whole[last].isna().any()):
                for _ in _lines(path, d):  # which rejects one that is cut off
                    checked = True
            yield whole.set_axis(names, axis=1).set_axis(pd.Index(ids, name=d.columns[at]))


def flags(values: NDArray[np.float64]) -> Bools:
    """Flag columns with an empty cell, with nothing else, with a fraction: (3, width)."""
    empty = np.isnan(values)
    with np.errstate(invalid="ignore"):
        fractional = ~empty & ~((values % 1 == 0) & (abs(values) < 2**53))
    return np.stack([empty.any(0), empty.all(0), fractional.any(0)])


def whole_numbers(path: Path, names: Iterable[Any], parts: Sequence[Bools]) -> list[Any]:
    """Select columns of whole numbers and empty cells, by the flags of all parts of a table, that
    are written without a decimal point: pandas reads them as floats."""
    any_empty, all_empty, fractional = np.stack(parts, axis=1)
    maybe = any_empty.any(0) & ~all_empty.all(0) & ~fractional.any(0)
    if not maybe.any():
        return []
    d = sniff(path)
    at = {d.columns.index(name): name for name, yes in zip(names, maybe, strict=True) if yes}
    options = {"dtype": object, "usecols": [*at], "na_filter": False, "chunksize": 1000}
    with _parser(path, d, **options) as rows:
        text = next(rows)
    return [at[j] for j in at if not re.search(r"\.\d|\d\.|[eE]", " ".join(text[j].tolist()))]


@contextmanager
def _parser(path: Path, d: Dialect, **options: Any) -> Iterator[Any]:
    """Open the parser of pandas, an iterator over frames; raise its errors as sentences."""
    packed, width = path.suffix.lower() == ".gz", len(d.columns)
    absolute = path.absolute()  # pandas expands a leading ~ to the home folder
    try:
        with (
            errors_as(f"{path} is damaged", "write it again", *GZIP_ERRORS),
            errors_as(f"{path} is not UTF-8 text", "save it as UTF-8", UnicodeError),
            warnings.catch_warnings(),
            limits.unpacked(path) if packed else nullcontext(absolute) as content,
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            options |= {"sep": d.separator, "encoding": d.encoding, "names": list(range(width))}
            options |= {"header": 0, "index_col": False, "keep_default_na": False, "iterator": True}
            options |= {"skipinitialspace": True, "low_memory": False, "float_precision": PRECISION}
            with pd.read_csv(content, **options) as parts:
                yield parts
    except (pd.errors.ParserWarning, pd.errors.ParserError) as e:
        problem = f"{path} is not a text table ({' '.join(str(e).split())})"
        if isinstance(e, Warning):
            problem = f"{path}: rows have more fields than the header, {width}; correct it"
        elif long := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(e)):
            fields = f"{long[3]} fields, the header {width}"
            problem = f"{path}, line {long[2]} has {fields}; correct the line"
        elif start := re.search(r"EOF inside string starting at row (\d+)", str(e)):
            line = int(start[1]) + 1
            problem = f"{path}: a quote that opens in line {line} is never closed; close it"
        raise ValueError(problem) from None


def check_ids(index: pd.Index, path: Path) -> None:
    """Reject a first column of measurements."""
    name = str(index.name)
    like_ids = re.search(r"id|sample|patient|subject|name|barcode|cell|index|key|^$", name, re.I)
    if not like_ids and index.str.fullmatch(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?").all():
        what = f"{name!r}, holds values like {index[0]!r}, not sample ids"
        raise ValueError(f"{path}: the first column, {what}; put ids there, or name it 'id'")


class Dialect(NamedTuple):
    """Format of a text table. unnamed: 1 if the header omits the id column, as in R."""

    separator: str
    encoding: str
    end: str
    columns: list[str]
    unnamed: int


def opened(path: Path, encoding: str, mode: str = "r") -> IO[str]:
    """Open a text file, compressed or not; line ends stay."""
    if path.suffix.lower() != ".gz":
        return path.open(mode, encoding=encoding, newline="")
    packed: Any = limits.unpacked(path) if mode == "r" else gzip.GzipFile(path, mode)
    return TextIOWrapper(packed, encoding=encoding, newline="")


def sniff(path: Path) -> Dialect:
    """Detect separator, encoding, line ends and header."""
    limits.check(path.stat().st_size, path)
    encoding = _encoding(path)
    with (
        errors_as(f"{path} is not UTF-8 text", "save it as UTF-8", UnicodeError),
        opened(path, encoding) as file,
    ):
        lines = [line for line in islice(file, SNIFFED_LINES) if line.strip()]
    if not lines:
        raise ValueError(f"{path} is empty; leave it out")
    with errors_as(f"{path} is not a text table", "export it as CSV", csv.Error):
        separator, rows = _split_lines(lines)
    header = [name.strip() for name in rows[0]]
    unnamed = 0
    if len(rows) > 1 and all(len(r) == len(header) + 1 for r in rows[1:]):
        unnamed = int(any(r[-1].strip() for r in rows[1:]))  # else commas at the ends of lines
        header = ["", *header] if unnamed else [*header, ""]
    if len(header) < 2:
        raise ValueError(f"{path} has one column, {header[0]!r}; separate several by commas")
    twice = [name for name, k in Counter(filter(None, header)).items() if k > 1]
    if twice:
        raise ValueError(f"{path} has duplicated columns {listed(twice)}; rename them")
    named = [name for name in header[1:] if name]
    if named and all(map(is_number, named)) and not all(name.isdigit() for name in named):
        raise ValueError(f"{path} has no header: line 1 holds {named[0]!r}; name the columns there")
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    return Dialect(separator, encoding, end, header, unnamed)


def _encoding(path: Path) -> str:
    packed = path.suffix.lower() == ".gz"
    with (
        errors_as(f"{path} is not a gzip file", "write it again", *GZIP_ERRORS),
        gzip.open(path) if packed else path.open("rb") as file,
    ):
        start = file.read(4096)
    if start.startswith(b"PK\x03\x04"):
        raise ValueError(f"{path} is a zip or Excel file, not text; export it as CSV")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in start:
        raise ValueError(f"{path} holds zero bytes, so it is not text; export it as CSV")
    return "utf-8-sig" if start.startswith(b"\xef\xbb\xbf") else "utf-8"


def _split_lines(lines: list[str]) -> tuple[str, list[list[str]]]:
    """Choose the separator that splits lines into as many fields as the header, and into most."""
    best, score = (",", [[line.strip()] for line in lines]), (False, 1)
    problem: csv.Error | None = None
    for separator in SEPARATORS:
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


def is_formula(text: str) -> bool:
    return text.startswith(FORMULA_STARTS) and not is_number(text)


def escaped_id(cell: Any) -> Any:
    """Prepare an id for a .csv file."""
    guard = formula_guard.get()
    if guard is None or not isinstance(cell, str) or not is_formula(cell):
        return cell
    safe, formulas = guard
    formulas += [] if safe else [cell]
    return f"'{cell}" if safe else cell


def unescaped_id(text: str) -> str:
    """Strip the apostrophe that makes an id text."""
    return text[1:] if text.startswith("'") and is_formula(text[1:]) else text


def typed(raw: pd.DataFrame, path: Path, how: Reading) -> pd.DataFrame:
    """Convert columns but that of labels to numbers, truth values, dates or categories."""
    if all(d.kind in "biuf" for d in raw.dtypes):
        return raw
    columns: dict[Any, Any] = {}
    parsed: dict[Any, _Parsed] = {}
    for name, column in raw.items():
        known = name == how.label or isinstance(column.dtype, pd.CategoricalDtype)
        if known or column.dtype.kind in "biuf" or dates.are_in(column):
            columns[name] = column
            continue
        with noted():
            parsed[name] = _parse_text(f"{path}, column {name!r}", name, column, how)
            columns[name] = parsed[name].values
    with noted(part=False):
        _check_commas(raw, parsed, path, how)
    with_limits = {name: column.limits for name, column in parsed.items() if len(column.limits)}
    if with_limits:
        warnings.warn(cells.limits_note(str(path), with_limits), stacklevel=2)
    return pd.DataFrame(columns, raw.index, raw.columns[raw.columns.isin([*columns])])


class _Parsed(NamedTuple):
    """A converted column of text. limits: cells that are limits of detection; cells: text of the
    numbers, limits without their sign; commas: whether some have a decimal comma."""

    values: pd.Series
    limits: pd.Series
    cells: pd.Series
    commas: bool


def _parse_text(where: str, name: Any, column: pd.Series, how: Reading) -> _Parsed:
    """Convert a column whose dtype is neither numeric nor of dates."""
    cells.check_kind(where, column, f"drop the column (--drop {quote(str(name))})")
    text = cells.stripped(column)
    plain, limit_cells = cells.without_limits(text)
    number = cells.numbers(plain)
    commas = number is None and cells.all_match(plain, cells.WITH_COMMAS)
    if commas:
        number = cells.numbers(plain.str.replace(",", "."))
    if number is not None:
        first = next(iter(plain.dropna()), None)
        if isinstance(first, str) and first.lower() in {*cells.TRUTHS} - {"true", "false"}:
            pair = cells.as_text([False, True], truth=first)  # two categories
            words = number.astype(object).map({False: pair[0], True: pair[1]})
            number = words.astype(pd.CategoricalDtype([*pair]))
        return _Parsed(number, limit_cells, plain, commas)
    words = text.map(lambda x: str(x) if isinstance(x, date) else x)  # of spreadsheets
    days = dates.of_text(where, words, f"or leave them out: --drop {quote(str(name))}")
    values = _categories(name, words, where, how) if days is None else days
    return _Parsed(values, text[:0], text[:0], commas=False)


def _categories(name: Any, column: pd.Series, where: str, how: Reading) -> pd.Series:
    """Convert text to categories if `how.one_hot`, up to MOST_LEVELS of them; else raise."""
    row, text, levels = cells.first_word(where, column)
    word = quote(str(name))
    where, drop = f"{where}, row {row!r} holds {text!r}", f"--drop {word} leaves it out"
    if len(levels) > MOST_LEVELS:
        most = f"--one-hot takes up to {MOST_LEVELS}: {drop}"
        raise ValueError(f"{where}, one of {len(levels)} different texts; {most}")
    if not how.one_hot and FEW_NAMES < len(levels) == column.notna().sum():
        raise ValueError(f"{where}, and another text in every row; {drop}")
    if not how.one_hot:
        others = f"--label {word} labels, {drop}"
        raise ValueError(f"{where}, not a number; --one-hot makes categories, {others}")
    return column.astype(pd.CategoricalDtype(levels))


def _check_commas(raw: pd.DataFrame, parsed: dict[Any, _Parsed], path: Path, how: Reading) -> None:
    """Require decimal commas to be the only decimal marks, and not to look like thousands."""
    commas = {name: column.cells for name, column in parsed.items() if column.commas}
    if not commas:
        return
    first, example_column = next(iter(commas.items()))
    example = next(x for x in example_column.dropna() if "," in x)
    floats = raw.select_dtypes("float64")
    pointed = [c for c in floats if bool((floats[c].dropna() % 1 != 0).any())]
    limited = {c: x.cells for c, x in parsed.items() if len(x.limits) and not x.commas}
    pointed += [c for c, x in limited.items() if any(isinstance(k, str) and "." in k for k in x)]
    if pointed:
        marks = f"commas in column {first!r} ({example!r}), points in column {pointed[0]!r}"
        raise ValueError(f"{path} has decimal {marks}; use one of them")
    thousands = all(cells.all_match(c, f"{THOUSANDS}|{INTEGER}") for c in commas.values())
    if thousands and how.decimal != ",":
        remedy = "pass --decimal , or remove the thousands separators"
        raise ValueError(f"{path}, column {first!r} holds {example!r}, maybe thousands; {remedy}")
