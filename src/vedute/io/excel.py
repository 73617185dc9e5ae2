"""A workbook (.xlsx): one view per sheet, ids in its first column, joined by id.

`write` copies the workbook that was read, with its formats and formulas: only empty cells change.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pandas as pd

from vedute.data import dates, limits
from vedute.data.cells import MISSING, as_text
from vedute.data.escaping import listed
from vedute.io import folder
from vedute.io.contents import Data, Ends, Filled, Reading, checked_ids, errors_as

OPTIONS: tuple[str, ...] = folder.OPTIONS
ENDING = ".xlsx"


def read(path: Path, how: Reading) -> Data:
    """Read sheets as views; empty ones are skipped."""
    sheets = dict[str, list[tuple[Any, ...]]]()
    for sheet in _opened(path, values=True).worksheets:
        rows = [r for r in sheet.iter_rows(values_only=True) if any(x is not None for x in r)]
        sheets |= {sheet.title: rows} if rows else {}
    if not sheets:
        raise ValueError(f"{path} has no cells; put a view on each sheet, ids in the first column")
    places = {title: path / title for title in sheets}
    return folder.joined(places, lambda k: _raw(places[k], *sheets[k]), path, how)


def write(out: Path, data: Data, views: Filled, ends: Ends) -> None:
    """Write the workbook with empty cells filled; lower and upper ends in further columns."""
    assert data.path is not None
    book = _opened(data.path, values=False)
    for name, view in views.items():
        source = data.views.get(name)
        missing = view.isna() | True if source is None else source.isna()
        sheet = book[name] if name in book.sheetnames else book.create_sheet(name)
        _fill(sheet, view, missing.to_numpy())
        for end, group in ends.items():
            more = group[name].add_prefix(f"{end}_")
            _fill(sheet, more, more.notna().to_numpy())
    book.save(out)


def _opened(path: Path, values: bool) -> Any:
    """Open a workbook. values: results of formulas, in place of them."""
    if find_spec("openpyxl") is None:
        raise ImportError(f"{path} needs openpyxl: pip install 'vedute[excel]'")
    from openpyxl import load_workbook

    with errors_as(f"{path} is not an .xlsx file", "save it again", BadZipFile, KeyError, OSError):
        with ZipFile(path) as packed:
            limits.check(sum(part.file_size for part in packed.infolist()), path)
        return load_workbook(path, data_only=values)


def _raw(where: Path, head: tuple[Any, ...], *rows: tuple[Any, ...]) -> pd.DataFrame:
    """Read the columns of a sheet in the dtypes of their cells; the index is ids, as text."""
    raw = pd.DataFrame(rows, columns=range(len(head)), dtype=object)
    used = [j for j in range(1, len(head)) if head[j] is not None or raw[j].notna().any()]
    unnamed = [j for j in used if head[j] is None]
    if unnamed:
        raise ValueError(f"{where}: column {unnamed[0] + 1} has no name; name it in the first row")
    if not rows or not used:
        lacking = "columns beside the sample ids" if rows else "rows"
        raise ValueError(f"{where} has no {lacking}; fill the sheet, or remove it")
    names = pd.Index([str(head[j]).strip() for j in used])
    if not names.is_unique:
        raise ValueError(f"{where}: column {listed(names[names.duplicated()])} occurs twice")
    index = checked_ids(raw[0].map(_id), where).rename(None if head[0] is None else str(head[0]))
    return raw[used].convert_dtypes().set_axis(names, axis=1).set_axis(index)


def _id(cell: Any) -> str:
    """Format an id; Excel may store 7 as 7.0."""
    whole = isinstance(cell, float) and cell.is_integer()
    return "" if cell is None else str(int(cell) if whole else cell)


def _fill(sheet: Any, frame: pd.DataFrame, missing: Any) -> None:
    """Write values into `missing` cells (n, columns), into new rows and columns where needed."""
    ids = {_id(sheet.cell(i, 1).value).strip(): i for i in range(2, sheet.max_row + 1)}
    heads = {str(c.value).strip(): c.column for c in sheet[1] if c.value is not None}
    for i in frame.index.astype(str):
        if i not in ids:
            ids[i] = max(int(sheet.max_row), 1) + 1
            _put(sheet, ids[i], 1, i)
    rows = [ids[i] for i in frame.index.astype(str)]
    for j, (name, column) in enumerate(frame.items()):
        at = heads.get(str(name)) or _put(sheet, 1, max(sheet.max_column, 1) + 1, str(name))
        form, values = _as_written(sheet, at, column)
        for i in missing[:, j].nonzero()[0].tolist():
            _put(sheet, rows[i], at, values[i])
            if form is not None:
                sheet.cell(rows[i], at).number_format = form


def _as_written(sheet: Any, at: int, column: pd.Series) -> tuple[str | None, list[Any]]:
    """Format dates and truth values like the cells of a column: the number format, and values."""
    if column.dtype.kind not in "Mb":
        return None, column.astype(object).where(column.notna(), None).tolist()
    cells = [sheet.cell(i, at) for i in range(2, sheet.max_row + 1)]
    form = next((str(c.number_format) for c in cells if c.is_date), None)
    strings = [c.value.strip() for c in cells if isinstance(c.value, str)]
    text = [x for x in strings if x not in MISSING]
    if text and column.dtype.kind == "M":
        return None, dates.written(dates.stamps(column), dates.wording(text))
    return (None, as_text(column.tolist(), truth=text[0])) if text else (form, column.tolist())


def _put(sheet: Any, row: int, column: int, value: Any) -> int:
    """Write a cell and return its column; text stays text, even if it begins like a formula."""
    cell = sheet.cell(row, column, value)
    if isinstance(value, str):
        cell.data_type = "s"
    return column
