"""One view of one sample: the same numbers as `impute` gives, by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from blobs import blobs
from sklearn.exceptions import NotFittedError

from vedute import RidgeFill, Views
from vedute.analysis.inferred import inferred

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def cohort():
    ids = [f"p{i}" for i in range(60)]
    a = pd.DataFrame(RNG.normal(size=(60, 3)) * 5 + 50, ids, ["x", "y", "z"])
    b = a @ RNG.normal(size=(3, 2)) + RNG.normal(size=(60, 2))
    b.columns = ["u", "w"]
    a.loc["p3", "y"] = np.nan
    X = {"a": a, "b": b.iloc[10:]}
    return RidgeFill(random_state=0).fit(X), X


def test_it_is_what_impute_says(cohort):
    model, X = cohort
    table = inferred(model, X, "p2", "b", coverage=0.8)
    whole = model.impute(X, interval=0.8)
    assert list(table.index) == ["u", "w"]
    assert not table["observed"].any()
    for column, filled in zip(("value", "lower", "upper"), whole, strict=True):
        np.testing.assert_allclose(table[column], filled["b"].loc["p2"], rtol=1e-5)
    np.testing.assert_allclose(table["mean"], X["b"].mean(), rtol=1e-5)
    np.testing.assert_allclose(table["std"], X["b"].std(ddof=0), rtol=1e-5)


def test_what_was_observed_stays_and_has_no_interval(cohort):
    model, X = cohort
    table = inferred(model, X, 3, 0)
    assert table["observed"].tolist() == [True, False, True]
    seen = table[table["observed"]]
    np.testing.assert_array_equal(seen["value"], X["a"].loc["p3", ["x", "z"]])
    assert (seen["lower"] == seen["upper"]).all()
    assert table.loc["y", "lower"] < table.loc["y", "value"] < table.loc["y", "upper"]


def test_arrays_and_views_are_taken_too():
    data = blobs(50)
    model = RidgeFill(random_state=0).fit(data)
    i = int((~data.mask[:, 1]).nonzero()[0, 0])
    table = inferred(model, data, i, 1)
    pd.testing.assert_frame_equal(table, inferred(model, data.arrays(), i, data.names[1]))
    assert list(table.index) == ["0", "1"]


def test_refusals(cohort):
    model, X = cohort
    with pytest.raises(NotFittedError):
        inferred(RidgeFill(), X, 0, "a")
    with pytest.raises(IndexError, match="no sample 60; X has 60, from 0 to 59"):
        inferred(model, X, 60, "a")
    with pytest.raises(IndexError, match="no sample -1"):
        inferred(model, X, -1, "a")
    with pytest.raises(IndexError, match="no sample 'p99'; pass its position"):
        inferred(model, Views.of(X), "p99", "a")
    with pytest.raises(ValueError, match="no view 'c'; choose from 'a', 'b'"):
        inferred(model, X, 0, "c")
    with pytest.raises(ValueError, match="no view 2"):
        inferred(model, X, 0, 2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        inferred(model, X, 0, "a", coverage=1.5)
