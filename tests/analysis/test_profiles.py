"""What makes a cluster: effects in closed form, and which features are shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from blobs import blobs, poisoned
from sklearn.exceptions import NotFittedError

from vedute import MeanFill, RidgeFill
from vedute.analysis.profiles import profiles, strongest


@pytest.fixture(scope="module")
def fitted():
    data = blobs(90)
    return RidgeFill(n_clusters=3, random_state=0).fit(data), data


def test_effects_are_standardised_mean_differences(fitted):
    model, data = fitted
    table, labels = profiles(model, data), model.predict(data)
    assert list(table.columns) == [0, 1, 2]
    assert table.index.names == ["view", "feature"]
    for v, name in enumerate(data.names):
        x = data.known(v)
        for k in range(3):
            mine, rest = (np.nanmean(x[at], axis=0) for at in (labels == k, labels != k))
            wanted = (mine - rest) / np.nanstd(x, axis=0)
            np.testing.assert_allclose(table.loc[name][k], wanted, rtol=1e-4, atol=1e-5)


def test_features_have_their_names_and_constants_no_effect():
    rng = np.random.default_rng(0)
    group = np.arange(40) % 2
    a = pd.DataFrame({"age": 10 * group + rng.normal(size=40), "same": 3.0})
    a["city"] = pd.Categorical(np.array(["A", "B", "C"])[rng.integers(3, size=40)])
    b = pd.DataFrame({"pulse": group + 0.1 * rng.normal(size=40)})
    model = RidgeFill(n_clusters=2, random_state=0).fit({"a": a, "b": b})
    table = profiles(model, {"a": a, "b": b})
    names = ["age", "same", "city=A", "city=B", "city=C"]
    assert list(table.index) == [*(("a", k) for k in names), ("b", "pulse")]
    assert table.loc[("a", "same")].isna().all()
    assert strongest(table, 2).index.tolist()[0] in [("a", "age"), ("b", "pulse")]
    assert ("a", "same") not in strongest(table, 99).index


def test_what_is_written_in_missing_entries_changes_nothing(fitted):
    model, data = fitted
    pd.testing.assert_frame_equal(profiles(model, poisoned(data)), profiles(model, data))


def test_every_cluster_has_its_features_in_order():
    values = {"p": [5.0, 0, 0, 4, 0, np.nan], "q": [0.0, 6, 1, 0, -7, np.nan]}
    index = pd.MultiIndex.from_product([["v"], list("abcdef")])
    chosen = strongest(pd.DataFrame(values, index), 4)
    assert [feature for _, feature in chosen.index] == list("adeb")


def test_refusals(fitted):
    _, data = fitted
    with pytest.raises(NotFittedError):
        profiles(RidgeFill(), data)
    with pytest.raises(ValueError, match="n_clusters"):
        profiles(MeanFill().fit(data), data)
    with pytest.raises(ValueError, match="all samples are in one cluster; two are needed"):
        profiles(RidgeFill(n_clusters=1, random_state=0).fit(data), data)
