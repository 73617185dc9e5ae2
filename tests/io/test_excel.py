"""Workbooks: sheets are views, what is written is the workbook with its empty cells filled."""

from __future__ import annotations

from datetime import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from vedute import io
from vedute.cli import app
from vedute.io import excel

openpyxl = pytest.importorskip("openpyxl")
N = 12


def vedute_(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cell in sheet["A"]:  # ids are text, even where they begin like formulas
            cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type
    book.save(path)
    return path


def blood(first=0):
    rows = [[i if i else "=a", i * 0.5, i if i != 3 else None, i % 2 == 0, f"g{i % 2}"]
            for i in range(first, N)]  # fmt: skip
    return [["id", "iron", "age", "smokes", "group"], *rows]


def scan():
    return [["id", "volume"], *([i, i * 2.0 if i != 5 else "NA"] for i in range(4, N + 2))]


def test_sheets_are_views_joined_by_id(tmp_path):
    data = io.read(workbook(tmp_path / "d.xlsx", blood=blood(1), scan=scan(), notes=[]),
                   io.Reading(label="group"))  # fmt: skip
    assert data.ids.tolist() == list(range(1, N + 2))
    assert {k: list(v) for k, v in data.views.items()} == {
        "blood": ["iron", "age", "smokes"],
        "scan": ["volume"],
    }
    assert [str(d) for d in data.views["blood"].dtypes][1:] == ["Int64", "boolean"]
    assert pd.isna(data.views["scan"].loc[5, "volume"])
    assert pd.isna(data.views["blood"].loc[3, "age"])
    assert data.y[:2].tolist() == ["g1", "g0"]


def test_the_workbook_is_filled_and_the_rest_of_it_stays(tmp_path):
    path = workbook(tmp_path / "d.xlsx", blood=blood(), scan=scan())
    book = openpyxl.load_workbook(path)
    book["blood"]["B3"].number_format = "0.00"
    book["scan"]["D1"], book["scan"]["D2"] = "twice", 7
    book.save(path)
    said = vedute_("fit", path, "-o", tmp_path / "run", "--method", "mean_fill", "--label", "group")
    assert said.exit_code == 0, said.output
    said = vedute_("impute", tmp_path / "run", "-o", tmp_path / "out.xlsx", "--interval", "0.8")
    assert said.exit_code == 0, said.output
    old, new = (openpyxl.load_workbook(p) for p in (path, tmp_path / "out.xlsx"))
    assert new.sheetnames == old.sheetnames
    assert new["blood"]["B3"].number_format == "0.00"
    assert new["blood"]["A2"].value == "=a"
    for sheet in old:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.value not in (None, "NA"):
                    assert new[sheet.title][cell.coordinate].value == cell.value
    table = pd.read_excel(tmp_path / "out.xlsx", sheet_name="blood", index_col=0)
    assert len(table) == N + 2
    assert table["age"].notna().all()
    assert isinstance(new["blood"]["C5"].value, int)
    assert "group" in table
    assert (table["lower_iron"] <= table["upper_iron"]).all()
    assert new["scan"].cell(N, 1).value is not None
    added = [c for c in new["scan"]["A"] if c.value == "=a"]
    assert [c.data_type for c in added] == ["s"]
    again = io.read(tmp_path / "out.xlsx", io.Reading(label="group"))
    assert again.views["scan"]["volume"].notna().all()


REFUSED = {
    "times": ({"a": [["id", "x"], ["p", time(1, 2)]]}, r"'x' holds time.*--drop x"),
    "text": ({"a": [["id", "x"], ["p", "red"]]}, r"xlsx/a, column 'x', row 'p' holds 'red'"),
    "no name": ({"a": [["id", None], ["p", 1]]}, r"d\.xlsx/a: column 2 has no name"),
    "names twice": ({"a": [["id", "x", "x"], ["p", 1, 2]]}, r"column 'x' occurs twice"),
    "ids twice": ({"a": [["id", "x"], ["p", 1], ["p", 2]]}, r"d\.xlsx/a: id 'p' occurs twice"),
    "no rows": ({"a": [["id", "x"]]}, r"d\.xlsx/a has no rows; fill"),
    "no columns": ({"a": [["id"], ["p"]]}, r"d\.xlsx/a has no columns beside"),
    "nothing": ({"a": []}, r"d\.xlsx has no cells; put a view on each sheet"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named_with_its_sheet(case, tmp_path):
    sheets, said = REFUSED[case]
    with pytest.raises(ValueError, match=said):
        io.read(workbook(tmp_path / "d.xlsx", **sheets))


def test_no_workbook_and_no_openpyxl(tmp_path, monkeypatch):
    (tmp_path / "d.xlsx").write_bytes(b"PK\3\4")
    with pytest.raises(ValueError, match=r"d\.xlsx is not an \.xlsx file \(.*\); save it again"):
        io.read(tmp_path / "d.xlsx")
    monkeypatch.setattr(excel, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"d\.xlsx needs openpyxl: pip install 'vedute\[excel\]'"):
        io.read(tmp_path / "d.xlsx")


def test_nothing_is_hidden_in_workbooks(tmp_path):
    path = workbook(tmp_path / "d.xlsx", blood=blood(), scan=scan())
    said = vedute_("ampute", path, "-o", tmp_path / "e.xlsx", "--rate", "0.2", "--label", "group")
    assert said.exit_code != 0
    assert "let OUT end in .npz" in said.output + said.stderr
    assert not np.any([p.name == "e.xlsx" for p in tmp_path.iterdir()])
