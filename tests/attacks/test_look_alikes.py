"""Cells, names and ids that look like others, or like something that they are not."""

import os
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest
from shell import done, refused

from vedute import io, methods

NAMES = [f"p{i}" for i in range(8)]
FIT = ("-o", "run", "--method", "mean_fill")


def frame(ids=NAMES):
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(len(ids), 2)), ids, ["u", "v"]).rename_axis("id")


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """A folder with two views."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    for name in "ab":
        frame().to_csv(f"d/{name}.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_named_tilde_is_not_the_home_folder(ending, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for place in ("home", "~"):
        Path(place, "d").mkdir(parents=True)
    for name in "ab":
        table = frame(NAMES[2:] if name == "b" else NAMES)
        getattr(table, f"to_{ending}")(tmp_path / "~" / "d" / f"{name}.{ending}")
    done("fit", "./~/d", "-o", "./~/run", "--method", "mean_fill")
    done("impute", "./~/run", "./~/d", "-o", "./~/out")
    done("embed", "./~/run", "./~/d", "-o", "./~/z.parquet")
    assert len(io.read("./~/out").ids) == len(pd.read_parquet(tmp_path / "~/z.parquet")) == 8
    assert [*Path("home").rglob("*")] == [Path("home/d")]


@pytest.mark.parametrize(
    ("cell", "held"),
    [([1.0, 2.0], "ndarray"), ({"a": 1}, "dict"), (b"x", "bytes")],
)
def test_cells_that_hold_several_values_are_no_categories(cell, held):
    frame().assign(w=[cell] * 8).to_parquet("d/c.parquet")
    for words in (["inspect", "d"], ["fit", "d", *FIT, "--one-hot"]):
        assert f"column 'w' holds {held} objects, not numbers; drop" in refused(*words)
    X = {"a": frame().assign(w=[cell] * 8), "b": frame()}
    with pytest.raises(ValueError, match=r"column .w. holds .* objects, not numbers; drop"):
        methods.find("mean_fill")().fit(X)


def test_digits_of_other_scripts_are_not_read_as_ours():
    text = Path("d/a.csv").read_text(encoding="utf-8")
    for wrong in ("٣", "١,٥"):
        Path("d/a.csv").write_text(f'{text}q,"{wrong}",1\n', encoding="utf-8")
        assert f"holds '{wrong}' among numbers; correct it" in refused("inspect", "d")
    ids = ["1٣", "2٣", *"345678"]
    for name in "ab":
        frame(ids).to_csv(f"d/{name}.csv")
    found = io.read("d")
    assert found.ids.tolist() == ids
    assert not found.views["a"].isna().any(axis=None)


@pytest.mark.parametrize("words", [["inspect", "d"], ["convert", "d", "-o", "store"]])
def test_two_columns_of_one_name_are_named(words):
    from pyarrow import array, parquet, table

    columns = [array(NAMES), array(np.ones(8)), array(np.ones(8))]
    parquet.write_table(table(columns, names=["id", "w", "w"]), "d/c.parquet")
    assert "d/c.parquet has duplicated columns 'w'; rename them" in refused(*words)


def test_ids_that_look_the_same_are_refused():
    ids = [f"é{i}" for i in range(8)]
    frames = {form: frame([normalize(form, i) for i in ids]) for form in ("NFC", "NFD")}
    for table, name in zip(frames.values(), "ab", strict=True):
        table.to_csv(f"d/{name}.csv")
    wanted = r"ids '\xe90' and 'e\u03010' are both"
    assert wanted in refused("inspect", "d")
    with pytest.raises(ValueError, match="in two forms of Unicode; write it in one"):
        methods.find("mean_fill")().fit(frames)
    frames["NFD"].to_csv("d/a.csv")
    assert io.read("d").ids.tolist() == frames["NFD"].index.tolist()  # one form stays as it is


def test_a_settings_file_of_windows_is_read():
    frame().to_csv("w.csv")
    Path("views.toml").write_text('[views]\na = "u"\nb = "v"\n', encoding="utf-8-sig")
    Path("set.toml").write_text('method = "mean_fill"\n', encoding="utf-8-sig")
    done("fit", "w.csv", "-o", "run", "--views", "views.toml", "--config", "set.toml")
    Path("set.toml").write_text("method = 3\n", encoding="utf-8")
    said = refused("fit", "d", "-o", "other", "--config", "set.toml")
    assert "set.toml: method is a name in quotes, got 3" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_among_views_is_not_left_out_in_silence():
    os.mkfifo("d/c.csv")
    assert "d/c.csv is a pipe or a device; write the view as a file" in refused("inspect", "d")


@pytest.mark.parametrize("option", ["--views", "--config"])
def test_a_folder_where_a_file_is_asked_for_is_told_so(option):
    assert refused("fit", "d", option, "d", *FIT) == "vedute: d: Is a directory; name a file\n"


@pytest.mark.parametrize("words", [("loop",), ("d", "--config", "loop")])
def test_links_that_lead_in_a_circle_are_refused(words):
    Path("loop").symlink_to("loop")
    assert refused("fit", *words, *FIT).endswith("; name the file itself\n")


def test_endings_in_capitals_are_the_same_formats():
    pd.concat([frame().add_prefix("a"), frame().add_prefix("b")], axis=1).to_csv("T.csv.gz")
    Path("T.csv.gz").rename("T.CSV.GZ")
    Path("v.toml").write_text('[views]\na = "a*"\nb = "b*"\n', encoding="utf-8")
    done("fit", "T.CSV.GZ", "--views", "v.toml", *FIT)
    done("impute", "run", "-o", "OUT.NPZ")
    done("impute", "run", "-o", "OUT.CSV.GZ")
    with np.load("OUT.NPZ") as found:
        assert found["a"].shape == (8, 2)
    assert pd.read_csv("OUT.CSV.GZ", compression="gzip").shape == (8, 5)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_that_hardly_match_are_told_on_the_command_line(ending):
    Path("e").mkdir()
    frame(["P01", "P02", "P03", "s"]).to_csv("e/a.csv")
    other = frame(["P1", "p02", "P03", "s"])
    getattr(other, f"to_{ending}")(f"e/b.{ending}")
    with pytest.warns(UserWarning, match="'P01' of view 'a' and 'P1' of view 'b'; 'P02' of view"):
        done("inspect", "e")
    with pytest.warns(UserWarning, match="2 pairs of ids are one but for .*write an id alike"):
        done("fit", "e", *FIT)
