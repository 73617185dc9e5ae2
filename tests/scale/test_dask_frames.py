"""Dask frames through a fitted model: what pandas gives, partition by partition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from vedute.methods import find

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.filterwarnings("default")  # Dask's own

HERE = dict(scheduler="synchronous")


def tables(n=60):
    """Two views of n samples; each lacks some, one has a hole and a column of whole numbers."""
    rng = np.random.default_rng(0)
    z, ids = rng.standard_normal((n, 2)), pd.Index([f"p{i:02d}" for i in range(n)], name="id")
    a = pd.DataFrame(z @ rng.standard_normal((2, 3)), ids, ["x", "y", "z"])
    b = pd.DataFrame(z @ rng.standard_normal((2, 2)), ids, ["u", "v"]).assign(w=np.arange(n) % 7)
    a.iloc[3, 1] = np.nan
    return {"a": a.iloc[: n - 10], "b": b.iloc[15:]}


def lazy(views):
    return {k: dd.from_pandas(t, npartitions=3 + i) for i, (k, t) in enumerate(views.items())}


def fitted(X, **settings):
    return find("lowrank_fill")(n_clusters=2, random_state=0, **settings).fit(X)


def same(found, table):
    """Dask has text of its own in the index."""
    found, table = found.sort_index(), table.sort_index()
    assert_frame_equal(found, table, check_names=False, check_index_type=False)


def test_views_are_joined_by_id_and_filled():
    views = tables()
    model = fitted(views)
    (found,) = dask.compute(model.impute(lazy(views)), **HERE)
    for name, table in model.impute(views).items():
        same(found[name], table)
    assert found["b"]["w"].dtype == views["b"]["w"].dtype


def test_a_view_that_nobody_has_is_inferred():
    views = tables()
    model = fitted(views)
    some = {"a": views["a"]}
    (found,) = dask.compute(model.impute(lazy(some)), **HERE)
    for name, table in model.impute(some).items():
        same(found[name], table)


def test_representation_and_clusters():
    views = tables()
    model = fitted(views)
    ids = pd.Index(dict.fromkeys([*views["a"].index, *views["b"].index]))
    z = model.transform(lazy(views)).compute(**HERE)
    labels = model.predict(lazy(views)).compute(**HERE)
    np.testing.assert_allclose(z.loc[ids], model.transform(views), atol=1e-5)
    assert list(z.columns) == list(model.get_feature_names_out())
    assert (labels.loc[ids] == model.predict(views)).all()


def test_one_frame_with_an_empty_partition():
    views = tables()
    wide = pd.concat(views.values(), axis=1).sort_index()
    model = fitted(wide, columns={k: list(t.columns) for k, t in views.items()})
    frame = dd.from_pandas(wide, npartitions=4)
    frame = frame[frame.index >= "p30"]
    found = model.impute(frame).compute(**HERE)
    same(found, model.impute(wide.loc["p30":]))
    assert len(model.transform(frame).compute(**HERE)) == 30


def test_intervals_of_views_and_of_one_table():
    views = tables()
    model = fitted(views)
    (found,) = dask.compute(model.impute(lazy(views), interval=0.9), **HERE)
    for part, expected in zip(found, model.impute(views, interval=0.9), strict=True):
        for name, table in expected.items():
            same(part[name], table)
    wide = pd.concat(views.values(), axis=1).sort_index()
    model = fitted(wide, columns={k: list(t.columns) for k, t in views.items()})
    (found,) = dask.compute(model.impute(dd.from_pandas(wide, npartitions=4), interval=0.5), **HERE)
    for part, expected in zip(found, model.impute(wide, interval=0.5), strict=True):
        same(part, expected)
