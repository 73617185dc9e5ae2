"""Rubin's rules: by hand, in the user's type, and with the coverage that they promise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vedute
from vedute.analysis.pooling import pool


def test_by_hand():
    found = vedute.pool([1.0, 2.0, 3.0], [0.5, 0.4, 0.6])
    # u = 1/2, b = 1, (1 + 1/3) b = 4/3, t = 11/6, lambda = 8/11
    assert found.estimate == 2.0
    assert found.standard_error == pytest.approx(np.sqrt(11 / 6))
    df = 2 * (11 / 8) ** 2
    assert found.df == pytest.approx(df)
    r = 8 / 3
    assert found.missing_information == pytest.approx((r + 2 / (df + 3)) / (r + 1))
    low, high = found.interval(0.9)
    reach = 2.935189  # t of 3.78 degrees of freedom at .95, times the standard error
    assert (low, high) == pytest.approx((2 - reach, 2 + reach), abs=1e-5)
    assert isinstance(found.standard_error, float)


def test_degrees_of_freedom_of_complete_data_by_hand():
    found = pool([1.0, 2.0, 3.0], [0.5, 0.4, 0.6], df=20)
    old, observed = 2 * (11 / 8) ** 2, 21 / 23 * 20 * 3 / 11
    assert found.df == pytest.approx(1 / (1 / old + 1 / observed))
    narrow, wide = pool([1, 1.1], [1, 1]).interval(), pool([1, 1.1], [1, 1], df=5).interval()
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_imputations_that_agree_leave_the_complete_estimate():
    found = pool([2.0] * 5, [4.0] * 5)
    assert (found.estimate, found.standard_error, found.df) == (2.0, 2.0, np.inf)
    assert found.missing_information == 0.0
    assert found.interval()[1] == pytest.approx(2 + 1.959964 * 2)
    assert pool([2.0] * 5, [4.0] * 5, df=10).df == pytest.approx(11 / 13 * 10)


def test_arrays_and_labels_stay():
    rng = np.random.default_rng(0)
    q, u = rng.normal(size=(4, 2, 3)), rng.random((4, 2, 3))
    whole = pool(list(q), list(u))
    one = pool(q[:, 1, 2], u[:, 1, 2])
    assert whole.estimate.shape == (2, 3)
    assert whole.df[1, 2] == pytest.approx(one.df)
    assert whole.interval()[0][1, 2] == pytest.approx(one.interval()[0])
    series = [pd.Series(a, ["x", "y", "z"]) for a in q[:, 0]]
    turned = [pd.Series(a[::-1], ["z", "y", "x"]) for a in u[:, 0]]
    named = pool(series, turned)
    assert list(named.estimate.index) == ["x", "y", "z"]
    np.testing.assert_allclose(named.standard_error, whole.standard_error[0])
    assert named.interval()[1]["y"] == pytest.approx(whole.interval()[1][0, 1])


def test_intervals_cover_what_they_say():
    """The mean of normal values, 60 % missing, with draws from its posterior (known variance 1)."""
    rng = np.random.default_rng(0)
    n, seen, m, runs = 50, 20, 20, 4000
    x = rng.normal(size=(seen, runs))
    mean = x.mean(0) + rng.normal(size=(m, runs)) / np.sqrt(seen)  # drawn anew per imputation
    lost = mean[:, None] + rng.normal(size=(m, n - seen, runs))
    q = (x.sum(0) + lost.sum(1)) / n
    found = pool(list(q), [np.full(runs, 1 / n)] * m)
    low, high = found.interval(0.95)
    assert ((low < 0) & (high > 0)).mean() == pytest.approx(0.95, abs=0.012)
    assert np.median(found.missing_information) == pytest.approx(0.6, abs=0.06)


@pytest.mark.parametrize(
    ("estimates", "variances", "df", "why"),
    [
        ([1.0], [1.0], None, "two or more imputations"),
        ([], [], None, "two or more imputations"),
        ([1.0, 2.0], [1.0], None, "2 estimates and 1 variances"),
        ([1.0, [2.0, 3.0]], [1.0, 1.0], None, "estimates have shapes"),
        ([[1.0], [2.0]], [1.0, 1.0], None, r"estimates have shape \(1,\), variances \(\)"),
        ([1.0, 2.0], [1.0, -1.0], None, "not negative"),
        ([1.0, np.nan], [1.0, 1.0], None, "must be finite"),
        ([1.0, 2.0], [1.0, 1.0], 0, "df must be positive"),
        ([pd.Series({"a": 1.0}), pd.Series({"b": 1.0})], [1.0, 1.0], None, "different labels"),
    ],
)
def test_a_mistake_gets_one_sentence(estimates, variances, df, why):
    with pytest.raises(ValueError, match=why):
        pool(estimates, variances, df)


def test_confidence_is_a_probability():
    with pytest.raises(ValueError, match="between 0 and 1, got 95"):
        pool([1.0, 2.0], [1.0, 1.0]).interval(95)
