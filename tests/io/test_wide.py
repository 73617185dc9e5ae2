"""Tables with many columns."""

import numpy as np
import pandas as pd
import pytest
from shell import done

from vedute.data.frames import from_frame
from vedute.io import Reading, csv


def read(path):
    return csv.typed(csv.raw(path, Reading()), path, Reading())


@pytest.mark.slow
def test_a_line_of_any_length_is_read_and_written_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    rng = np.random.default_rng(0)
    ids = pd.Index([f"s{i}" for i in range(12)], name="id")
    wide = pd.DataFrame(rng.normal(size=(12, 8_000)), ids, columns=[f"g{j}" for j in range(8_000)])
    wide.iloc[3, 5] = wide.iloc[7, 7_999] = np.nan
    wide.to_csv("d/wide.csv")
    pd.DataFrame(rng.normal(size=(13, 2)), [*ids, "more"]).to_csv("d/small.csv", index_label="id")
    assert max(map(len, (tmp_path / "d/wide.csv").read_text().splitlines())) > 131_072
    pd.testing.assert_frame_equal(read(tmp_path / "d/wide.csv"), wide, check_names=False)
    done("fit", "d", "-o", "run", "--method", "mean_fill")
    done("impute", "run", "d", "-o", "out")
    filled = read(tmp_path / "out/wide.csv")
    assert not filled.isna().any(axis=None)
    before, after = (pd.read_csv(f"{k}/wide.csv", dtype=str, index_col=0) for k in ("d", "out"))
    known = before.notna().to_numpy()  # as text: the parser of pandas 2.1 rounds
    assert (after.loc[ids].to_numpy()[known] == before.to_numpy()[known]).all()
    np.testing.assert_allclose(filled.loc["more"], wide.mean(), rtol=1e-6, atol=1e-9)


def test_parts_of_a_file_are_written_as_the_whole(tmp_path, monkeypatch):
    source = tmp_path / "a.csv"
    source.write_text("id;x;yes;n\np1;1,5;true;1\np2;;;\np3;2,5;false;3\n")
    filled = read(source).copy()
    missing = filled.isna().to_numpy()
    filled["x"] = filled["x"].fillna(0.25)
    filled["yes"], filled["n"] = filled["yes"].fillna(True), filled["n"].fillna(2)
    written = []
    for cells in (1, 10**6):
        monkeypatch.setattr(csv, "CELLS_PER_BLOCK", cells)
        ends = {"lower": filled[["x"]]}
        csv.write(tmp_path / "out.csv", source, filled, missing, Reading(), ends)
        written.append((tmp_path / "out.csv").read_text())
    assert written[0] == written[1]
    assert "p2;0,25;true;2;0,25\n" in written[0]


def test_columns_of_all_kinds_become_numbers_in_their_order():
    frame = pd.DataFrame(
        {
            "a": [1, 2, 3],
            "b": pd.Categorical(["x", "y", "z"]),
            "c": pd.array([1, None, 3], dtype="Int64"),
            "d": [True, False, True],
            "e": pd.Categorical(["u", "v", None]),
            "f": np.array([1.5, np.nan, 2.5], np.float32),
            "g": pd.array([True, None, False], dtype="boolean"),
        }
    )
    values, spec = from_frame("v", frame, frame.index, None)
    nan = np.nan
    expected = [
        [1, 1, 0, 0, 1, 1, 0, 1.5, 1],
        [2, 0, 1, 0, nan, 0, 1, nan, nan],
        [3, 0, 0, 1, 3, 1, nan, 2.5, 0],
    ]
    np.testing.assert_array_equal(values, expected)
    turned = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(from_frame("v", turned, frame.index, spec)[0], expected)
