"""Files that are written back have the rows of DATA in their order, and its column of ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from shell import done

IDS = [f"p{i}" for i in np.random.default_rng(1).permutation(40)]  # in no order
SPEC = '[views]\na = "a*"\nb = "b*"\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Both views as one frame, with a hole; a working folder for files of it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = ["a0", "a1", "b0", "b1"]
    table = pd.DataFrame(rng.normal(size=(40, 4)).round(3), columns=names)
    table.loc[5:9, ["b0", "b1"]] = np.nan
    table.loc[20, "a0"] = np.nan
    table.insert(0, "patient", IDS)
    (tmp_path / "views.toml").write_text(SPEC)
    return table


def write(frame, path):
    path.parent.mkdir(exist_ok=True)
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)


def read(path):
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def filled(data, out, *options):
    """Write DATA imputed, and the labels of its samples."""
    fit = ("fit", data, "-o", "run", "--method", "mean_fill", "--clusters", "2", *options)
    for words in (fit, ("impute", "run", "-o", out), ("cluster", "run", "-o", "labels.csv")):
        done(*words, "--force")


def is_filled(after, before):
    """Nothing but what was missing has changed."""
    assert list(after.columns) == list(before.columns)
    assert after["patient"].tolist() == IDS
    assert after.where(before.notna()).equals(before)
    return not after.isna().any(axis=None)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_one_table(place, tmp_path, ending):
    write(place, tmp_path / f"wide{ending}")
    filled(f"wide{ending}", f"filled{ending}", "--views", "views.toml")
    assert is_filled(read(tmp_path / f"filled{ending}"), place)
    assert read(tmp_path / "labels.csv")["patient"].tolist() == IDS


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_folder(place, tmp_path, ending):
    for view in "ab":
        part = place[["patient", f"{view}0", f"{view}1"]]
        write(part, tmp_path / "data" / f"{view}{ending}")
    filled("data", "filled")
    for view in "ab":
        before, after = (read(tmp_path / f / f"{view}{ending}") for f in ("data", "filled"))
        assert is_filled(after, before)
    assert read(tmp_path / "labels.csv")["patient"].tolist() == IDS


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_folder_whose_files_differ_in_order_and_rows(place, tmp_path, ending):
    """The rows of a file in its order, then those that it lacked."""
    a, b = (place[["patient", f"{v}0", f"{v}1"]] for v in "ab")
    b = b.dropna().iloc[::-1].rename(columns={"patient": "subject"}).reset_index(drop=True)
    write(a, tmp_path / "data" / "a.csv")
    write(b, tmp_path / "data" / f"b{ending}")
    filled("data", "filled")
    after = read(tmp_path / "filled" / f"b{ending}")
    assert after[: len(b)].equals(b)
    assert after["subject"][len(b) :].tolist() == IDS[5:10]
    assert not after.isna().any(axis=None)
    assert read(tmp_path / "filled" / "a.csv")["patient"].tolist() == IDS


def test_the_ids_may_stand_in_another_column(place, tmp_path):
    (tmp_path / "views.toml").write_text(f'id = "patient"\n{SPEC}')
    moved = place[["a0", "a1", "b0", "b1", "patient"]]
    for ending in (".csv", ".parquet"):
        write(moved, tmp_path / f"wide{ending}")
        filled(f"wide{ending}", f"filled{ending}", "--views", "views.toml")
        after = read(tmp_path / f"filled{ending}")
        assert list(after.columns) == list(moved.columns)
        assert after["patient"].tolist() == IDS


def test_ampute_keeps_them_too(place, tmp_path):
    write(place, tmp_path / "wide.csv")
    done("ampute", "wide.csv", "--views", "views.toml", "--rate", ".3", "-o", "less.csv")
    after = read(tmp_path / "less.csv")
    assert list(after.columns) == list(place.columns)
    assert after["patient"].tolist() == IDS


def test_an_id_column_with_the_name_of_a_result_is_called_ids(place, tmp_path):
    write(place.rename(columns={"patient": "labels"}), tmp_path / "wide.csv")
    filled("wide.csv", "filled.csv", "--views", "views.toml")
    assert list(read(tmp_path / "labels.csv").columns) == ["ids", "labels"]


def test_a_view_that_new_data_lack_has_ids_under_their_name(place, tmp_path):
    for view in "ab":
        write(place[["patient", f"{view}0", f"{view}1"]], tmp_path / "d" / f"{view}.csv")
    filled("d", "filled")
    (tmp_path / "d" / "b.csv").unlink()
    done("impute", "run", "d", "-o", "new")
    assert list(read(tmp_path / "new" / "b.csv").columns) == ["patient", "b0", "b1"]
