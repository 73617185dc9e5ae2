"""Categorical columns with many categories, of which few may occur."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from vedute import MeanFill, Views
from vedute.data import limits


def column(used, declared, n=200):
    """n cells of `used` categories, of which so many are declared; the last cell is empty."""
    codes = np.append(np.arange(n - 1) % used, -1)
    return pd.Categorical.from_codes(codes, categories=np.arange(declared))


def frames(used, declared, n=200):
    code = pd.DataFrame({"code": column(used, declared, n)})
    return {"code": code, "number": pd.DataFrame({"x": np.arange(n) % 7.0})}


def test_categories_that_do_not_occur_take_no_memory():
    X = frames(3, 100_000)
    tracemalloc.start()
    views = Views.of(X)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert views.shapes[0] == (3,)
    assert most < 2**26
    filled = MeanFill().fit(X).impute(X)["code"]["code"]
    assert filled.dtype == X["code"]["code"].dtype
    assert filled.iloc[-1] in {0, 1, 2}


def test_categories_that_occur_take_what_they_need():
    X = frames(150, 100_000)
    tracemalloc.start()
    assert Views.of(X).shapes[0] == (150,)
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


def test_two_of_many_categories_are_one_number():
    assert Views.of(frames(2, 1000)).shapes[0] == (1,)


def test_a_few_declared_categories_are_kept_for_samples_to_come():
    X = frames(3, 5)
    model = MeanFill().fit(X)
    new = frames(3, 5)
    new["code"].loc[0, "code"] = 4
    assert model.impute(new)["code"].loc[0, "code"] == 4


def test_a_category_of_many_that_did_not_occur_is_new():
    X = frames(3, 1000)
    model = MeanFill().fit(X)
    X["code"].loc[0, "code"] = 999
    with pytest.raises(ValueError, match="new category 999"):
        model.impute(X)


def test_more_than_there_is_memory_for_is_refused_with_its_size(monkeypatch):
    monkeypatch.setenv(limits.LIMIT_VARIABLE, "100000")
    with pytest.raises(ValueError, match=r"column 'code' of 199 categories takes 318.4 kB"):
        Views.of(frames(1000, 1000))
