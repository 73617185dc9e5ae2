"""Groups, cohorts and views that nothing connects, on the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from shell import done, refused

from vedute.data.missing import rates
from vedute.methods.fills.mean_fill import MeanFill

IDS = [f"p{i:03d}" for i in range(120)]
FILL = ("--method", "mean_fill")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table of four views with patients, the same as a folder, and a file of the patients."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = [f"{v}{j}" for v in "abcd" for j in range(3)]
    table = pd.DataFrame(rng.normal(size=(120, 12)).round(3), IDS, names).rename_axis("id")
    patients = pd.Series([f"x{i // 3}" for i in range(120)], IDS, name="patient").rename_axis("id")
    table.assign(patient=patients).to_csv("wide.csv")
    patients.iloc[::-1].to_csv("patients.csv")
    (tmp_path / "views.toml").write_text('[views]\na = "a*"\nb = "b*"\nc = "c*"\nd = "d*"\n')
    (tmp_path / "data").mkdir()
    for v in "abcd":
        table.filter(like=v).to_csv(f"data/{v}.csv")
    return tmp_path


def hidden(run):
    with np.load(run / "hidden.npz") as file:
        found = np.zeros((120, 4), bool)
        found[file["row"], file["view"]] = True
    return found.reshape(40, 3, 4)  # by patient


def test_groups_are_a_column_or_a_file(place):
    done("fit", "wide.csv", "--views", "views.toml", "--groups", "patient", "-o", "run", *FILL)
    done("fit", "data", "--groups", "patients.csv", "-o", "other", *FILL)
    for run in ("run", "other"):
        found = hidden(place / run)
        assert found.sum() == 48
        assert (found == found[:, :1]).all()


def test_a_mistake_gets_one_sentence(place):
    fit = ("fit", "wide.csv", "--views", "views.toml", "-o", "r", *FILL, "--groups")
    assert "no column 'patiant' for --groups; it has" in refused(*fit, "patiant")
    assert "no file 'x.csv' of ids and groups" in refused(
        "fit", "data", "-o", "r", *FILL, "--groups", "x.csv"
    )
    assert "has 3 columns beside the ids" in refused(*fit, "data/a.csv")
    pd.read_csv("patients.csv").iloc[1:].to_csv("few.csv", index=False)
    assert "sample 'p119' has no group" in refused(*fit, "few.csv")
    np.savez("bare.npz", a=np.ones((4, 2)), b=np.ones((4, 2)))
    assert "DATA has no ids" in refused("fit", "bare.npz", "-o", "r", *FILL, "--groups", "few.csv")


def test_ampute_by_cohort_by_value_and_by_group(place):
    views = ("wide.csv", "--views", "views.toml")
    for protocol, rate in (("chain", "1"), ("mar", ".4"), ("mnar", ".4"), ("group", ".4")):
        words = ("--groups", "patient") if protocol == "group" else ()
        done("ampute", *views, "--rate", rate, "--protocol", protocol, "-o", f"{protocol}.npz",
             *words)  # fmt: skip
        with np.load(f"{protocol}.mask.npz") as file:
            mask = file["mask"]
        assert rates(mask).slots == pytest.approx(0.5 if protocol == "chain" else 0.4, abs=0.01)
        if protocol == "group":
            assert (mask.reshape(40, 3, 4) == mask.reshape(40, 3, 4)[:, :1]).all()
    less = ("ampute", *views, "--rate", ".4", "--protocol", "group", "-o", "x.npz", "--groups")
    assert "no column 'site' for --groups" in refused(*less, "site")


def test_views_that_nothing_connects_are_named(place):
    done("ampute", "data", "--rate", "1", "--protocol", "two_components", "-o", "apart.npz")
    sentence = "the views form groups that no sample connects (a, b | c, d): fit each by itself"
    out = done("inspect", "apart.npz")
    assert f"! {sentence}" in out
    assert "only other views relate them" not in out
    rows = [line.split() for line in out.splitlines()]
    assert ["a", "60", "60", "0", "0"] in rows
    assert sentence in done("fit", "apart.npz", "-o", "run", *FILL)
    done("report", "run", "-o", "page.html")
    page = (place / "page.html").read_text()
    assert "The views form groups that no sample connects (a, b | c, d)" in page
    assert "Samples that have both views" in page
    with np.load("apart.npz") as file:
        X = [file[k] for k in "abcd"]
    with pytest.warns(UserWarning, match="no sample connects"):
        MeanFill(random_state=0).fit(X)
