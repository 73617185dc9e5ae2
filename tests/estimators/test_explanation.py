"""Which views decide an imputation: one left out at a time, against a slow loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from blobs import blobs
from every_method import IMPUTING, METHODS, small

from vedute import DCCA, MVP, Blend, LowRankFill, MeanFill, RidgeFill, Views
from vedute.methods.best_pair import for_views

KEYS = ["sample", "missing", "left_out"]


def slowly(model, data):
    """Row by row, with `impute` itself: {(sample, missing, left out): change}."""
    found = {}
    for i in range(len(data)):
        row, L = data[i], len(data.x)
        seen = [u for u in range(L) if data.mask[i, u]]
        for v in (v for v in range(L) if v not in seen):
            x = np.concatenate([a[data.mask[:, v]].numpy() for a in [data.x[v]]])
            before = model.impute(row).x[v][0].numpy()
            for u in seen:
                if len(seen) == 1:
                    after = x.mean(0)
                else:
                    after = model.impute(row.hide(torch.arange(L)[None] == u)).x[v][0].numpy()
                off = (before - after) / x.std(0)
                names = (i, data.names[v], data.names[u])
                found[names] = np.sqrt((off**2).mean())
    return found


@pytest.mark.parametrize("cls", [MVP, LowRankFill, Blend])
def test_against_a_slow_loop(cls):
    data = blobs(40)
    model = small(cls, kinds="numbers").fit(data)
    found, known = model.explain(data), slowly(model, data)
    assert list(found) == [*KEYS, "change", "share"]
    assert list(found[KEYS].itertuples(index=False, name=None)) == list(known)
    np.testing.assert_allclose(found["change"], list(known.values()), rtol=1e-3, atol=1e-4)
    sums = found.groupby(["sample", "missing"])["share"].sum(min_count=1)
    np.testing.assert_allclose(sums, 1)
    single = found[found.groupby(["sample", "missing"])["share"].transform("size") == 1]
    assert len(single)
    np.testing.assert_allclose(single["share"], 1)


def test_the_view_that_decides_has_the_larger_share():
    rng = np.random.default_rng(0)
    a, noise = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    X = {"a": a, "noise": noise, "copy": a @ rng.normal(size=(3, 4))}
    model = RidgeFill(random_state=0).fit(X)
    X["copy"][:50] = np.nan
    found = model.explain(X)
    assert set(found["missing"]) == {"copy"}
    assert found[found["left_out"] == "a"]["share"].min() > 0.6


def test_samples_by_their_ids_and_what_is_missing_does_not_matter():
    data = blobs(30)
    ids = np.array([f"p{i}" for i in range(30)])
    model = small(MVP).fit(data)
    named = model.explain(replace(data, ids=ids))
    found = model.explain(data)
    assert (named["sample"] == ids[found["sample"]]).all()
    whole = blobs(30, share=0.0)
    poisoned = Views.of([x.numpy() for x in whole.x], mask=data.mask.numpy())
    again = model.explain(poisoned)
    assert again.equals(found)


def test_where_nothing_changes_there_is_no_share():
    data = blobs(30)
    found = MeanFill(random_state=0).fit(data).explain(data)
    assert (found["change"] < 1e-6).all()
    assert len(found)
    assert found["share"].isna().all()
    complete = MeanFill(random_state=0).fit(data).explain(data[data.mask.all(1)])
    assert len(complete) == 0
    assert list(complete) == [*KEYS, "change", "share"]


def test_refusals():
    data = blobs(40, share=0).pick(0, 1)
    with pytest.raises(TypeError, match="DCCA cannot impute"):
        small(DCCA).fit(data).explain(data)


@pytest.mark.parametrize("name", IMPUTING)
def test_every_method_that_imputes_explains(name):
    data = blobs(40)
    model = for_views(small(METHODS[name], n_clusters=3), 3).fit(data)
    found = model.explain(data)
    assert np.isfinite(found["change"]).all()
    assert (found["change"] >= 0).all()
