"""A workbook (.xlsx): one view per sheet, ids in its first column, joined by id.

What is written is the workbook that was read, with its formats and formulas: only empty cells
change.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pandas as pd

from vedute.data import dates, limits
from vedute.data.cells import MISSING, as_text
from vedute.data.frames import listed
from vedute.data.problems import noted
from vedute.io import csv, folder
from vedute.io.contents import Data, Filled, Only, Reading, checked_ids
from vedute.io.unwanted import Unwanted

OPTIONS: tuple[str, ...] = folder.OPTIONS
ENDING = ".xlsx"


def read(path: Path, how: Reading) -> Data:
    """Sheets as views; those that are empty are none."""
    sheets = [sheet for sheet in _opened(path, values=True).worksheets if _cells(sheet)]
    if not sheets:
        raise ValueError(f"{path} has no cells; put a view on each sheet, ids in the first column")
    unwanted = Unwanted(how)
    found: dict[str, Any] = {}
    for sheet in sheets:
        with noted():
            found[sheet.title] = _frame(path, sheet, how, unwanted.rest)
    return folder.gathered(found, path, how, unwanted, len(found) == len(sheets))


def write(out: Path, data: Data, views: Filled, ends: Mapping[str, Filled]) -> None:
    """The workbook with empty cells filled; lower and upper ends in more columns."""
    assert data.path is not None
    book = _opened(data.path, values=False)
    for name, view in views.items():
        own = data.views.get(name)
        missing = view.isna() | True if own is None else own.isna()
        sheet = book[name] if name in book.sheetnames else book.create_sheet(name)
        _fill(sheet, view, missing.to_numpy())
        for end, group in ends.items():
            more = group[name].add_prefix(f"{end}_")
            _fill(sheet, more, more.notna().to_numpy())
    book.save(out)


def _opened(path: Path, values: bool) -> Any:
    """values: what formulas gave, in place of them."""
    if find_spec("openpyxl") is None:
        raise ImportError(f"{path} needs openpyxl: pip install 'vedute[excel]'")
    from openpyxl import load_workbook

    try:
        with ZipFile(path) as packed:
            limits.check(sum(part.file_size for part in packed.infolist()), path)
        return load_workbook(path, data_only=values)
    except (BadZipFile, KeyError, OSError) as e:
        reason = " ".join(str(e).split())
        raise ValueError(f"{path} is not an .xlsx file ({reason}); save it again") from None


def _cells(sheet: Any) -> list[tuple[Any, ...]]:
    """Its rows, without those that are empty."""
    rows = sheet.iter_rows(values_only=True)
    return [row for row in rows if any(x is not None for x in row)]


def _frame(path: Path, sheet: Any, how: Reading, only: Only) -> pd.DataFrame:
    """Columns as numbers, truth values, categories or labels; the index is ids, as text."""
    where = path / sheet.title
    head, *rows = _cells(sheet)
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
        raise ValueError(f"{where}: column {listed(names[names.duplicated()])} is there twice")
    index = checked_ids(raw[0].map(_id), where).rename(None if head[0] is None else str(head[0]))
    frame = raw[used].convert_dtypes().set_axis(names, axis=1).set_axis(index)
    return csv.typed(frame[only(list(frame.columns))], where, how)


def _id(cell: Any) -> str:
    """Excel keeps 7 as 7.0 at times."""
    whole = isinstance(cell, float) and cell.is_integer()
    return "" if cell is None else str(int(cell) if whole else cell)


def _fill(sheet: Any, frame: pd.DataFrame, missing: Any) -> None:
    """Values into the cells that are `missing`, (n, columns); rows and columns that the sheet lacks
    are added."""
    ids = {_id(sheet.cell(i, 1).value).strip(): i for i in range(2, sheet.max_row + 1)}
    heads = {str(c.value).strip(): c.column for c in sheet[1] if c.value is not None}
    rows = [ids[i] if i in ids else _append(sheet, i) for i in frame.index.astype(str)]
    for j, (name, column) in enumerate(frame.items()):
        at = heads.get(str(name)) or _put(sheet, 1, max(sheet.max_column, 1) + 1, str(name))
        form, values = _as_written(sheet, at, column)
        for i in missing[:, j].nonzero()[0].tolist():
            _put(sheet, rows[i], at, values[i])
            if form is not None:
                sheet.cell(rows[i], at).number_format = form


def _as_written(sheet: Any, at: int, column: pd.Series) -> tuple[str | None, list[Any]]:
    """Values as the cells of a column of the sheet have them: dates in their format, dates and
    truth values in their words."""
    if column.dtype.kind not in "Mb":
        return None, column.astype(object).where(column.notna(), None).tolist()
    cells = [sheet.cell(i, at) for i in range(2, sheet.max_row + 1)]
    form = next((str(c.number_format) for c in cells if c.is_date), None)
    text = [c.value.strip() for c in cells if isinstance(c.value, str)]
    text = [x for x in text if x not in MISSING]
    if not text:
        return form, column.tolist()
    if column.dtype.kind == "M":
        return None, dates.written(dates.stamps(column), dates.wording(text))
    return None, as_text(column.tolist(), truth=text[0])


def _append(sheet: Any, key: str) -> int:
    row = max(int(sheet.max_row), 1) + 1
    _put(sheet, row, 1, key)
    return row


def _put(sheet: Any, row: int, column: int, value: Any) -> int:
    """Text is text, even where it begins like a formula. Gives the column."""
    cell = sheet.cell(row, column, value)
    if isinstance(value, str):
        cell.data_type = "s"
    return column
