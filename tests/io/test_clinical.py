"""Files as clinics have them: dates, limits of detection, yes and no, columns that nobody wants."""

from __future__ import annotations

import csv
import warnings
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from vedute import Views, io
from vedute.cli import app

N = 30
RNG = np.random.default_rng(3)
Z = RNG.normal(size=(N, 2))
FIT = ("--method", "lowrank_fill")
quiet = pytest.mark.filterwarnings("ignore::UserWarning")


def vedute_(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


def done(*words):
    result = vedute_(*words)
    assert result.exit_code == 0, result.output + result.stderr
    return result.stdout


def refused(*words):
    result = vedute_(*words)
    assert result.exit_code == 2, result.output + result.stderr
    return result.stderr


def number(i, mark="."):
    return f"{Z[i, 0] + 3:.2f}".replace(".", mark)


def folder(place, *columns, separator=",", **more):
    """Views `clinic`, of these columns (name, cells), and `blood`."""
    place.mkdir(parents=True)
    mark = "." if separator == "," else ","
    views = {
        "clinic": [["id", "age", *(name for name, _ in columns)]],
        "blood": [["id", "iron", "zinc"]],
    }
    for i in range(N):
        views["clinic"] += [[f"p{i}", str(40 + i), *(str(cells[i]) for _, cells in columns)]]
        views["blood"] += [[f"p{i}", number(i, mark), f"{Z[i, 1]:.3f}".replace(".", mark)]]
    for name, rows in (views | more).items():
        with (place / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=separator).writerows(rows)
    return place


def cells(path, column, separator=","):
    with path.open(newline="", encoding="utf-8") as file:
        return [row[column] for row in csv.DictReader(file, delimiter=separator)]


def imputed(place, *columns, separator=","):
    """What `impute` writes into these columns of the view `clinic`."""
    source = folder(place / "d", *columns, separator=separator)
    done("fit", source, "-o", place / "run", *FIT)
    done("impute", place / "run", "-o", place / "out")
    out = [cells(place / "out" / "clinic.csv", name, separator) for name, _ in columns]
    for (_, old), new in zip(columns, out, strict=True):
        pairs = [(str(a), b) for a, b in zip(old, new, strict=True) if str(a).strip() not in GAPS]
        assert all(a.lstrip() == b for a, b in pairs)
        assert not any(b.strip() in GAPS for b in new)
    return out[0] if len(out) == 1 else out


GAPS = ("", "NA", "?")


def days(form):
    found = [f"{date.fromordinal(738_000 + 11 * i):{form}}" for i in range(N)]
    return ["" if i == 4 else " " if i == 9 else x for i, x in enumerate(found)]


@quiet
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y"])
def test_dates_in_a_table_come_back_as_they_are_written(tmp_path, form):
    new = imputed(tmp_path, ("visit", days(form)))
    found = [datetime.strptime(x, form).date() for x in new]
    assert date(2021, 1, 1) < found[4] < date(2023, 6, 1)


@quiet
def test_days_since_the_earliest(tmp_path):
    source = folder(tmp_path / "d", ("visit", days("%Y-%m-%d")))
    views = io.enter(io.read(source)).views
    at = views.names.index("clinic")
    x = views.x[at][:, 1].numpy()
    assert x[:4].tolist() == [0, 11, 22, 33]


def test_a_note_tells_of_dates(tmp_path):
    source = folder(tmp_path / "d", ("visit", days("%Y-%m-%d")))
    with pytest.warns(UserWarning, match=r"view 'clinic' has dates, .* 'visit' since 2021-07-29"):
        io.enter(io.read(source))


@quiet
def test_intervals_of_dates(tmp_path):
    source = folder(tmp_path / "d", ("visit", days("%d.%m.%Y")))
    done("fit", source, "-o", tmp_path / "run", *FIT)
    done("impute", tmp_path / "run", "-o", tmp_path / "out", "--interval", "0.8")
    low, mid, high = (
        datetime.strptime(cells(tmp_path / "out" / end / "clinic.csv", "visit")[4], "%d.%m.%Y")
        for end in ("lower", ".", "upper")
    )
    assert low <= mid <= high


def test_ids_that_look_like_dates_stay_numbers(tmp_path):
    source = folder(tmp_path / "d", ("code", [20240101 + i % 28 for i in range(N)]))
    view = io.read(source).views["clinic"]
    assert view["code"].dtype == np.int64


@pytest.mark.parametrize("cells_", [["1-2", "3-4"], ["2024-01", "2024-02"], ["12:30", "1:05"]])
def test_what_only_resembles_dates_is_refused_with_the_way_out(tmp_path, cells_):
    source = folder(tmp_path / "d", ("code", cells_ * (N // 2)))
    said = refused("fit", source, "-o", tmp_path / "run")
    assert f"column 'code', row 'p0' holds {cells_[0]!r}, not a number" in said
    assert "--drop code leaves it out" in said


def test_day_or_month_is_asked(tmp_path):
    source = folder(tmp_path / "d", ("visit", ["01/02/2024", "03/04/2023"] * (N // 2)))
    said = refused("inspect", source)
    assert "is ambiguous; write them as in 2024-12-31, or leave them out: --drop" in said
    assert "samples" in done("inspect", source, "--drop", "visit")


def test_one_odd_cell_among_dates(tmp_path):
    visits = days("%Y-%m-%d")
    visits[7] = "soon"
    said = refused("inspect", folder(tmp_path / "d", ("visit", visits)))
    assert "column 'visit', row 'p7' holds 'soon' among dates; write it as the others" in said


@quiet
def test_dates_in_a_store(tmp_path):
    source = folder(tmp_path / "d", ("visit", days("%Y-%m-%d")))
    done("convert", source, "-o", tmp_path / "s", "--keep-order")
    done("fit", tmp_path / "s", "-o", tmp_path / "run", *FIT)
    pytest.importorskip("pyarrow")
    done("impute", tmp_path / "run", "-o", tmp_path / "t", "--format", "parquet")
    table = pd.read_parquet(tmp_path / "t" / "clinic.parquet")
    assert str(table["visit"].iloc[0])[:10] == days("%Y-%m-%d")[0]


@quiet
def test_dates_do_not_go_into_npz(tmp_path):
    source = folder(tmp_path / "d", ("visit", days("%Y-%m-%d")))
    done("fit", source, "-o", tmp_path / "run", *FIT)
    assert "'visit' holds dates" in refused("impute", tmp_path / "run", "-o", tmp_path / "o.npz")


@quiet
def test_dates_in_parquet_and_in_a_workbook(tmp_path):
    pytest.importorskip("pyarrow")
    openpyxl = pytest.importorskip("openpyxl")
    stamps = pd.Series(pd.date_range("2021-03-01 08:15:30.123456789", periods=N, freq="3D"))
    frame = pd.DataFrame({
        "age": np.arange(N) * 1.5,
        "at": stamps,
        "day": pd.Series([x.date() for x in stamps], dtype=object),
        "zone": stamps.dt.tz_localize("Asia/Tokyo"),
        "text": stamps.dt.strftime("%d.%m.%Y").astype(object),
        "low": ["<0.3" if i % 3 else f"{i}.5" for i in range(N)],
        "smokes": ["Yes" if i % 2 else "No" for i in range(N)],
    }).set_axis(pd.Index([f"p{i}" for i in range(N)], name="id"))  # fmt: skip
    frame.iloc[4, 1:] = None
    blood = pd.DataFrame({"iron": Z[:, 0]}, index=frame.index)
    (tmp_path / "d").mkdir()
    frame.to_parquet(tmp_path / "d" / "clinic.parquet")
    blood.to_parquet(tmp_path / "d" / "blood.parquet")
    with pd.ExcelWriter(tmp_path / "d.xlsx") as book:
        frame.drop(columns="zone").to_excel(book, sheet_name="clinic")
        blood.to_excel(book, sheet_name="blood")
    done("fit", tmp_path / "d", "-o", tmp_path / "run", *FIT)
    done("impute", tmp_path / "run", "-o", tmp_path / "out")
    from pyarrow import parquet

    old, new = (parquet.read_table(tmp_path / k / "clinic.parquet") for k in ("d", "out"))
    assert old.schema.types == new.schema.types
    for name in frame.columns:
        pairs = zip(old[name].to_pylist(), new[name].to_pylist(), strict=True)
        assert all(b is not None and (a is None or a == b) for a, b in pairs), name
    assert new["smokes"][4].as_py() in ("Yes", "No")
    datetime.strptime(new["text"][4].as_py(), "%d.%m.%Y")
    done("fit", tmp_path / "d.xlsx", "-o", tmp_path / "xrun", *FIT)
    done("impute", tmp_path / "xrun", "-o", tmp_path / "out.xlsx")
    before, after = (openpyxl.load_workbook(tmp_path / k)["clinic"] for k in ("d.xlsx", "out.xlsx"))
    for row in before.iter_rows():
        for cell in row:
            if cell.value is not None:
                assert after[cell.coordinate].value == cell.value
    filled = {c.value: after.cell(6, c.column) for c in after[1]}
    assert isinstance(filled["at"].value, datetime)
    assert filled["at"].number_format == before.cell(5, filled["at"].column).number_format
    assert filled["smokes"].value in ("Yes", "No")
    datetime.strptime(filled["text"].value, "%d.%m.%Y")


LIMITS = {
    "below": ("<0.3", 0.3),
    "with a blank": ("< 0.3", 0.3),
    "at most": ("<=2", 2.0),
    "a sign": ("≤ 2.5", 2.5),
    "above": (">100", 100.0),
    "at least": (">= 1e2", 100.0),
    "another sign": ("≥7", 7.0),
    "negative": ("<-1.5", -1.5),
    "blanks around": ("  >5 ", 5.0),
    "no zero": ("<.5", 0.5),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits_are_taken_as_numbers(tmp_path, case):
    text, value = LIMITS[case]
    column = [text if i % 10 == 1 else "NA" if i == 2 else number(i) for i in range(N)]
    source = folder(tmp_path / "d", ("crp", column))
    shown = repr(text.strip()).replace("(", r"\(")
    with pytest.warns(UserWarning, match=rf"clinic\.csv: 3 cells like {shown} in column 'crp' are"):
        found = io.read(source).views["clinic"]["crp"]
    assert found.iloc[[1, 11, 21]].tolist() == [value] * 3
    assert found.isna().sum() == 1


@quiet
def test_limits_stay_as_they_are_written(tmp_path):
    crp = ["<0,3" if i % 9 == 1 else "" if i == 2 else number(i, ",") for i in range(N)]
    psa = ["≥ 90" if i % 9 == 2 else "" if i == 1 else str(i) for i in range(N)]
    new, whole = imputed(tmp_path, ("crp", crp), ("psa", psa), separator=";")
    float(new[2].replace(",", "."))
    assert "." not in new[2]
    assert whole[1].isdigit()


def test_limits_are_reported_once_per_table(tmp_path):
    low = ["<1" if i == 3 else str(i) for i in range(N)]
    high = [">99" if i in (5, 6) else str(i) for i in range(N)]
    source = folder(tmp_path / "d", ("a", low), ("b", high), ("c", range(N)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        io.enter(io.read(source))
    texts = [str(w.message) for w in said]
    assert len(texts) == 1
    assert "3 cells like '<1' in columns 'a', 'b' are limits" in texts[0]


@pytest.mark.parametrize("word", ["<", "<low", "<0.3 mg", "<>3", "0.3<", "<<1", "<1-2"])
def test_an_odd_cell_among_limits(tmp_path, word):
    column = ["<0.3" if i % 4 == 1 else word if i == 6 else number(i) for i in range(N)]
    said = refused("inspect", folder(tmp_path / "d", ("crp", column)))
    assert f"column 'crp', row 'p6' holds {word!r} among numbers" in said


def test_classes_of_age_are_categories(tmp_path):
    source = folder(tmp_path / "d", ("group", ["<65", ">=65"] * (N // 2)))
    assert "holds '<65', not a number; --one-hot" in refused("inspect", source)
    found = io.read(source, io.Reading(one_hot=True)).views["clinic"]["group"]
    assert found.cat.categories.tolist() == ["<65", ">=65"]


WORDS = {
    "yes": ["Yes", "No"],
    "small": ["yes", "no"],
    "one letter": ["Y", "N"],
    "small letter": ["y", "n"],
    "capitals": ["YES", "NO"],
    "truth": ["TRUE", "FALSE"],
    "mixed truth": ["True", "False"],
}


@quiet
@pytest.mark.parametrize("case", WORDS)
def test_yes_and_no_come_back_in_their_words(tmp_path, case):
    words = WORDS[case]
    column = ["NA" if i == 5 else " " if i == 8 else words[i % 2] for i in range(N)]
    new = imputed(tmp_path, ("smokes", column))
    assert {new[5], new[8]} <= set(words)


@quiet
def test_yes_and_no_in_any_case(tmp_path):
    words = ["Yes", "no", "YES", " No ", "yes", ""]
    column = [words[i % 6] for i in range(N)]
    new = imputed(tmp_path, ("smokes", column))
    assert set(new[5::6]) <= {"Yes", "No"}
    views = io.enter(io.read(tmp_path / "d")).views
    at = views.names.index("clinic")
    assert views.x[at][:5, 1].tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("words", [["male", "female"], ["ja", "nein"], ["yes", "unknown"]])
def test_other_words_are_not_yes_and_no(tmp_path, words):
    source = folder(tmp_path / "d", ("q", words * (N // 2)))
    said = refused("inspect", source)
    assert f"holds {words[0]!r}, not a number; --one-hot" in said or "holds" in said
    assert "--drop q leaves it out" in said


@quiet
def test_yes_and_no_of_one_new_sample(tmp_path):
    column = ["Yes" if i % 2 else "No" for i in range(N)]
    done("fit", folder(tmp_path / "d", ("smokes", column)), "-o", tmp_path / "run", *FIT)
    new = tmp_path / "new"
    new.mkdir()
    (new / "clinic.csv").write_text("id,age,smokes\nq1,40,no\nq2,41,\nq4,42,YES\n")
    (new / "blood.csv").write_text("id,iron,zinc\nq1,2,1\nq2,3,1\nq3,1,1\n")
    done("impute", tmp_path / "run", new, "-o", tmp_path / "out")
    found = cells(Path(tmp_path / "out" / "clinic.csv"), "smokes")
    assert (found[0], found[2]) == ("no", "YES")
    assert {found[1].lower(), found[3].lower()} <= {"yes", "no"}


def notes():
    return [f"note {i}, long" for i in range(N)]


@pytest.mark.parametrize("words", [["--drop", "note", "--drop", "mrn"], ["--drop", "note, mrn"]])
def test_unwanted_columns_are_left_out(tmp_path, words):
    source = folder(tmp_path / "d", ("note", notes()), ("mrn", [f"X{i}" for i in range(N)]))
    said = refused("fit", source, "-o", tmp_path / "run")
    assert "'note', row 'p0' holds 'note 0, long', one of" in said or "--drop note" in said
    assert "vedute fit" in done("inspect", source, *words)
    done("fit", source, "-o", tmp_path / "run", *FIT, *words)
    done("impute", tmp_path / "run", "-o", tmp_path / "out")
    assert cells(tmp_path / "out" / "clinic.csv", "note") == notes()
    fresh = folder(tmp_path / "new", ("note", notes()), ("mrn", notes()))
    done("embed", tmp_path / "run", fresh, "-o", tmp_path / "e.csv")
    without = folder(tmp_path / "less")
    done("embed", tmp_path / "run", without, "-o", tmp_path / "f.csv")


def test_the_command_that_inspect_suggests_drops_them_too(tmp_path):
    source = folder(tmp_path / "d", ("a note", notes()))
    said = done("inspect", source, "--drop", "a note")
    assert "--drop 'a note'" in said


@pytest.mark.parametrize(("word", "hint"), [("notes", "did you mean 'note'?"), ("zzz", "it has")])
def test_a_name_that_no_table_has(tmp_path, word, hint):
    source = folder(tmp_path / "d", ("note", notes()))
    said = refused("fit", source, "-o", tmp_path / "run", "--drop", "note", "--drop", word)
    assert f"has no column {word!r} for --drop; {hint}" in said


def test_a_name_with_a_comma(tmp_path):
    source = folder(tmp_path / "d", ("Na, serum", notes()), ("Na", range(N)))
    assert "Na" in io.read(source, io.Reading(drop=["Na, serum"])).views["clinic"]


def test_a_view_of_nothing_else_is_no_view(tmp_path):
    source = folder(tmp_path / "d")
    found = io.read(source, io.Reading(drop=["iron,zinc"]))
    assert [*found.views] == ["clinic"]
    with pytest.raises(ValueError, match="has no column left; --drop fewer"):
        io.read(source, io.Reading(drop=["iron", "zinc", "age"]))


def test_unwanted_columns_of_one_table_and_of_a_workbook(tmp_path):
    pytest.importorskip("openpyxl")
    table = tmp_path / "d.csv"
    lines = [f"p{i},{number(i)},{i},free text {i}" for i in range(N)]
    table.write_text("\n".join(["id,r1,s1,r_note", *lines]))
    spec = tmp_path / "s.toml"
    spec.write_text('[views]\nr = ["r1", "r_*"]\ns = "s*"\n')
    found = done("inspect", table, "--views", spec, "--drop", "r_note")
    assert "30 samples, 2 views" in found
    frame = pd.read_csv(table, index_col="id")
    frame.to_excel(tmp_path / "d.xlsx", sheet_name="all")
    assert io.read(tmp_path / "d.xlsx", io.Reading(drop=["r_note"])).views["all"].shape == (N, 2)
    with pytest.raises(ValueError, match=r"no column 's2' for --drop; it has"):
        io.read(tmp_path / "d.xlsx", io.Reading(drop=["r_note", "s2"]))


def test_drop_is_for_tables(tmp_path):
    np.savez(tmp_path / "d.npz", a=Z)
    assert "--drop is not for" in refused("inspect", tmp_path / "d.npz", "--drop", "a")


def test_a_large_table_without_a_column(tmp_path, monkeypatch):
    from vedute.io import streaming

    monkeypatch.setattr(streaming, "STREAMED_BYTES", 0)
    source = folder(tmp_path / "d", ("note", notes()))
    views, _ = streaming.opened(source, io.Reading(drop=["note"]))
    assert views.shapes == [(2,), (1,)]


def test_frames_without_a_column():
    frame = pd.DataFrame({"a": [1.0, 2.0], "note": ["x", "y"]})
    assert Views.of({"f": frame, "g": frame[["a"]]}, drop="note").shapes == [(1,), (1,)]
    assert Views.of([frame], drop=["note"]).shapes == [(1,)]
    assert Views.of(frame, drop=["note"]).shapes == [(1,)]
    with pytest.raises(ValueError, match="no view has a column 'nte' to drop; did you mean 'note'"):
        Views.of(frame, drop=["nte"])


@pytest.mark.parametrize(
    ("good", "odd"), [(".", "13,5"), (",", "13.5"), (",", "low"), (".", "low")]
)
def test_an_odd_cell_among_numbers_is_the_odd_one(tmp_path, good, odd):
    column = [odd if i == 4 else number(i, good) for i in range(N)]
    said = refused("inspect", folder(tmp_path / "d", ("crp", column), separator=";"))
    assert f"column 'crp', row 'p4' holds {odd!r} among numbers" in said


def test_names_with_blanks_are_quoted_in_the_way_out(tmp_path):
    said = refused("inspect", folder(tmp_path / "d", ("a note", notes())))
    assert "and another text in every row; --drop 'a note' leaves it out" in said
