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
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vedute.data import limits
from vedute.data.cells import MISSING, TRUTHS, as_text
from vedute.data.dates import Wording, wording, written
from vedute.data.problems import noted
from vedute.io import columns, spreadsheet
from vedute.io.data import Only, Reading, checked_ids, every, id_column, own_first
from vedute.io.dialect import Dialect, opened, sniff
from vedute.io.paths import literal

CUT = "\0"  # between the cells of a line that waits to be written
# pandas rounds unless it is asked not to, before 3.1
PANDAS = tuple(int(x) for x in pd.__version__.split(".")[:2])
NEAREST: Mapping[str, Any] = {"float_precision": "round_trip"} if PANDAS < (3, 1) else {}
CELLS = 2_000_000  # that are in memory as text at a time


def read(path: Path, how: Reading, only: Only = every) -> pd.DataFrame:
    """Columns as numbers, categories or labels; the index is ids, as text."""
    d = sniff(path)
    at = id_column(d.columns, how.id, path)
    raw, ids = _raw(path, d, at)
    index = checked_ids(ids.str.strip().map(spreadsheet.read), path)
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
    whole = frozenset(names[j] for j in _whole(path, d, raw))
    raw = raw.set_axis(list(names.values()), axis=1)
    return columns.typed(raw.set_axis(index.rename(d.columns[at])), path, how, whole)


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
    own, blank = _own(source, d, key), [""] * len(d.columns)
    order = own_first(filled.index, own)
    filled, missing = filled.iloc[order], missing[order]
    ids = filled.index.astype(str)
    lines = [own.get(i) or CUT.join([*blank[:key], i, *blank[key + 1 :]]) for i in ids]
    into = _Cells.of(lines, filled, missing, d)
    place = {c: j for j, c in enumerate(d.columns)}
    beside = [
        (place[str(c)], a)
        for frame in (ends or {}).values()
        for c, a in zip(frame.columns, _columns(frame.iloc[order]), strict=True)
    ]
    more = [f"{end}_{c}" for end, frame in (ends or {}).items() for c in frame.columns]
    step = max(1, CELLS // (len(d.columns) + len(more)))
    with opened(out, "w", d.encoding) as file:
        writer = csv.writer(file, delimiter=d.separator, lineterminator=d.end)
        writer.writerow([*d.columns[d.unnamed :], *more])
        for part in (slice(i, i + step) for i in range(0, len(ids), step)):
            rows = [line.split(CUT) for line in lines[part]]
            into.fill(rows, part)
            added = [into.text(at, a[part]) for at, a in beside]
            for i, row in enumerate(rows):
                row[key] = spreadsheet.written(row[key])
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
        days = {j: wording(_column(lines, j)) for j, kind in kinds.items() if kind == "M"}
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
    ids = [spreadsheet.written(i) if isinstance(i, str) else i for i in frame.index.tolist()]
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


def _columns(frame: pd.DataFrame) -> list[NDArray[Any]]:
    found = {c: a for at, values in _alike(frame) for c, a in zip(at, values.T, strict=True)}
    return [found[c] for c in range(frame.shape[1])]


def _own(path: Path, d: Dialect, key: int) -> dict[str, str]:
    """The cells of every row by its id, joined by CUT: cells of their own would take ten times
    as much memory."""
    found = {}
    for line in _lines(path, d):
        found[spreadsheet.read(line[key].strip())] = text = CUT.join(line)
        if text.count(CUT) != len(line) - 1:
            raise ValueError(f"{path} holds zero bytes, so it is not text; export it as CSV")
    return found


def _decimal(lines: list[str], numeric: list[int]) -> str:
    """The decimal mark of the cells in these columns."""
    for cells in (line.split(CUT) for line in lines if "," in line):
        if any("," in cells[j] for j in numeric):
            return ","
    return "."


def _truths(lines: list[str], columns: list[int]) -> dict[int, str]:
    """The first truth value in each of these columns, as it is written."""
    found: dict[int, str] = {}
    for line in lines:
        if len(found) == len(columns):
            break
        cells = [cell.strip() for cell in line.split(CUT)]
        found |= {j: cells[j] for j in columns if j not in found and cells[j].lower() in TRUTHS}
    return found


def _column(lines: list[str], j: int) -> list[str | None]:
    """The cells of one column, None where they are empty."""
    cells = (line.split(CUT)[j].strip() for line in lines)
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
            ids = frame.pop(at).fillna("").str.strip().map(spreadsheet.read)
            yield frame.set_axis(names, axis=1).set_axis(pd.Index(ids, name=d.columns[at]))
    if short:
        _check_short(path, d)


def whole_numbers(path: Path, how: Reading, names: Sequence[Any]) -> list[Any]:
    """Of columns that are whole but for empty cells, those that are written so."""
    d = sniff(path)
    like = {d.columns.index(name): [np.nan, 1.0] for name in names}
    return [d.columns[j] for j in _whole(path, d, pd.DataFrame(like))]


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


def _whole(path: Path, d: Dialect, raw: pd.DataFrame) -> list[int]:
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
