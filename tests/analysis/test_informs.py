"""Which view informs which: against a slow transcription with `impute`, and in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from blobs import blobs, poisoned
from sklearn.exceptions import NotFittedError

from vedute import DCCA, MVP, KNNFill, MeanFill, RidgeFill, Views
from vedute.analysis.informs import informs


@pytest.fixture(scope="module")
def fitted():
    data = blobs(90)
    return RidgeFill(random_state=0).fit(data), data


def by_hand(model, data, given, v):
    """Rows that have v and, of `given`, a view: 1 - error / error of the mean."""
    others = [s for s in given if s != v]
    rows = (data.mask[:, v] & data.mask[:, others].any(1)).numpy()
    if not rows.any():
        return np.nan
    keep = torch.zeros(len(data.x), dtype=torch.bool)
    keep[others] = True
    some = data[rows]
    filled = model.impute(some.hide(~keep.expand(some.shape))).x[v].numpy()
    truth, scaler = some.known(v), model.views_[v].scaler
    mean = scaler.restore(scaler.mean)
    unit = scaler.std * scaler.scale
    error, base = (np.nansum(((a - truth) / unit) ** 2) for a in (filled, mean))
    return 1 - error / base


def test_a_slow_transcription_gives_the_same(fitted):
    model, data = fitted
    table = informs(model, data)
    assert list(table.columns) == list(data.names)
    assert list(table.index) == [*data.names, "all others"]
    for v, name in enumerate(data.names):
        for s, source in enumerate(data.names):
            if s == v:
                assert np.isnan(table.loc[source, name])
            else:
                assert table.loc[source, name] == pytest.approx(by_hand(model, data, [s], v), 1e-4)
        together = by_hand(model, data, range(3), v)
        assert table.loc["all others", name] == pytest.approx(together, 1e-4)


def test_all_others_are_the_other_of_two():
    data = blobs(60).pick(0, 1)
    data = data[data.mask.any(1)]
    table = informs(KNNFill(random_state=0).fit(data), data)
    a, b = data.names
    assert table.loc["all others", b] == table.loc[a, b]
    assert table.loc["all others", a] == table.loc[b, a]


def test_the_mean_explains_nothing():
    data = blobs(60)
    off = ~np.eye(4, 3, dtype=bool)
    found = informs(MeanFill(random_state=0).fit(data), data).to_numpy()
    np.testing.assert_allclose(found[off], 0, atol=1e-6)


def test_what_is_written_in_missing_entries_changes_nothing(fitted):
    model, data = fitted
    pd.testing.assert_frame_equal(informs(model, poisoned(data)), informs(model, data))


def test_pairs_that_no_sample_has_are_unknown(fitted):
    model, data = fitted
    apart = data.hide(torch.tensor([[True, False, False]]) & data.mask[:, [1]])
    table = informs(model, apart[apart.mask.any(1)])
    a, b, c = data.names
    assert np.isnan([table.loc[a, b], table.loc[b, a]]).all()
    assert np.isfinite([table.loc[c, a], table.loc[b, c], table.loc["all others", a]]).all()


def test_single_missing_values_do_not_count(fitted):
    model, data = fitted
    holes = torch.zeros_like(data.x[0], dtype=torch.bool)
    holes[:, 0] = data.mask[:, 0]
    worse = torch.where(holes, 1e6, data.x[0])
    some = replace(data, x=(worse, *data.x[1:]), holes=(holes, *data.holes[1:]))
    assert informs(model, some).iloc[1, 0] > 0.5


def test_refusals(fitted):
    _, data = fitted
    with pytest.raises(NotFittedError):
        informs(MVP(), data)
    with pytest.raises(ValueError, match="X has one view; two are needed"):
        informs(MeanFill().fit(data.pick(0)[data.mask[:, 0]]), data.pick(0)[data.mask[:, 0]])
    pair = data.pick(0, 1)[data.mask[:, :2].all(1)]
    clusterer = DCCA(latent_dim=2, hidden=(8,), steps=5, device="cpu").fit(pair)
    with pytest.raises(TypeError, match="DCCA cannot impute; `vedute list methods` shows"):
        informs(clusterer, pair)


def test_frames_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    a = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("xyz"))
    b = a * 2 + 1
    X = {"a": a, "b": b.iloc[5:]}
    model = RidgeFill(random_state=0).fit(X)
    table = informs(model, X)
    assert table.loc["a", "b"] > 0.9
    pd.testing.assert_frame_equal(table, informs(model, Views.of(X)))
