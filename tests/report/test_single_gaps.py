"""Samples that lack single values of a view: what the page says of them, and where they stand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vedute import Blend
from vedute.report import run_folder, samples
from vedute.report.page import page


@pytest.fixture(scope="module")
def run():
    """p0 lacks one value, p1 two, of which one is a category; p2 lacks a view, p3 a view and one
    value of another."""
    rng = np.random.default_rng(0)
    ids = [f"p{i}" for i in range(60)]
    blood = pd.DataFrame(rng.normal(size=(60, 6)), ids, list("abcdef"))
    scan = pd.DataFrame(rng.normal(size=(60, 3)), ids, list("xyz"))
    scan["stage"] = pd.Categorical(rng.choice(["I", "II", "III"], 60))
    blood.loc[["p0", "p1", "p3"], "b"] = np.nan
    scan.loc["p1", "stage"] = np.nan
    views = {"blood": blood, "scan": scan.drop(["p2", "p3"])}
    model = Blend(experts=("mean_fill", "lowrank_fill"), random_state=0).fit(views)
    return run_folder.of_model(model, views)


def line(run, name):
    row = run.ids.tolist().index(name)
    return samples.line(run, row, name)


def test_single_values_that_a_sample_lacks_are_counted_by_view(run):
    assert line(run, "p0")["missing"] == "1 value of blood"
    assert line(run, "p1")["missing"] == "1 value of blood, 1 value of scan"
    assert line(run, "p2")["missing"] == "scan"
    assert line(run, "p3")["missing"] == "1 value of blood, scan"
    assert line(run, "p4")["missing"] == "nothing"
    assert "1 value of blood" in page(run, {})


def test_a_sample_that_lacks_a_value_is_less_uncertain_than_one_that_lacks_a_view(run):
    order = [str(run.ids[row]) for row in samples.ordered(run)]
    assert order[:4] == ["p3", "p2", "p1", "p0"]
    doubt = dict(zip(run.ids.tolist(), run.results.doubt, strict=True))
    assert 0 < doubt["p0"] <= 1 / 12 + 1e-6  # one of six values of one of two views
    assert doubt["p3"] <= 0.5 + 1 / 12 + 1e-6
    assert np.isnan(doubt["p4"])
    assert line(run, "p4")["uncertainty"] == samples.NONE


def test_a_missing_value_is_shown_however_near_the_mean_it_is():
    rng = np.random.default_rng(1)
    ids = [f"p{i}" for i in range(50)]
    wide = pd.DataFrame(rng.normal(size=(50, 200)), ids).add_prefix("c")
    wide.loc["p7", "c123"] = np.nan
    views = {"wide": wide, "scan": pd.DataFrame(rng.normal(size=(50, 3)), ids, list("xyz"))}
    model = Blend(experts=("mean_fill", "lowrank_fill"), random_state=0).fit(views)
    found = run_folder.of_model(model, views).results
    mine = found.cells[found.listed[found.cells["of"]] == 7]
    assert mine["name"][~mine["seen"]].tolist() == ["c123"]
