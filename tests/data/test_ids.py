"""Ids of one sample, written in two ways."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from vedute.data import ids
from vedute.data.views import Views


def views(*indices):
    return {
        f"v{i}": pd.DataFrame({"x": np.arange(float(len(k)))}, k) for i, k in enumerate(indices)
    }


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("01", "1"),
        ("P01", "P1"),
        ("P1", "p1"),
        ("P1 ", "P1"),
        ("P1\u00a0", "P1"),
        ("7.0", "7"),
        (7, "7"),
        ("7", 7),
        ("TCGA-AB-1", "TCGA.AB.1"),
        ("P 1", "P_1"),
        ("Straße", "STRASSE"),
    ],
)
def test_ids_that_hardly_match_are_told(a, b):
    with pytest.warns(UserWarning, match="two ids are one but for .* write an id alike") as told:
        assert len(Views.of(views([a, "same"], [b, "same"]))) == 3
    assert f"{a!r} of view 'v0' and {b!r} of view 'v1'" in str(told[0].message)


@pytest.mark.parametrize(
    "indices",
    [
        (["a", "A", "b"], ["a", "b"]),  # v0 has both
        (["P1", "P10"], ["P1", "P100"]),
        (["x-11", "s"], ["x-1-1", "s"]),
        (["1.5", "s"], ["15", "s"]),
        ([1, 2, 3], [2, 3, 40]),
    ],
)
def test_other_ids_are_not(indices):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Views.of(views(*indices))


def test_any_two_views_are_compared_and_two_examples_given():
    same = ["s", "t"]
    X = views([*same, "01", "P3"], same, [*same, "1", "p3", "02"], [*same, "2"])
    said = "3 pairs of ids .* '01' of view 'v0' and '1' of view 'v2'; 'P3' of .*'p3' of view 'v2';"
    with pytest.warns(UserWarning, match=said):
        Views.of(X)


def test_a_million_ids_take_seconds():
    one = pd.Index([f"p{i}" for i in range(200_000)])
    with pytest.warns(UserWarning, match="100000 pairs"):
        ids.warn_of_look_alikes({"a": one, "b": one[::2].str.upper()})
