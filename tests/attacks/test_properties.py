"""Properties that hold for every input, on inputs that hypothesis draws, the same each time."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vedute import methods
from vedute.data.views import Views
from vedute.io.files import below

FEW = settings(
    derandomize=True,
    max_examples=25,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
FILLS = ("mean_fill", "knn_fill", "lowrank_fill")
numbers = st.floats(-1e6, 1e6, width=32)


@st.composite
def views(draw):
    """Two views of a few samples with NaN; every row has something, and every column."""
    n = draw(st.integers(2, 9))
    X = [draw(arrays(np.float64, (n, w), elements=numbers | st.just(np.nan))) for w in (2, 3)]
    X[0][0], X[1][0] = 1.0, 2.0
    blank = np.isnan(np.hstack(X)).all(1)
    X[0][blank] = 0.0
    return X


def same(a, b):
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("method", FILLS)
@given(X=views())
@FEW
def test_what_is_there_stays_and_what_is_missing_is_filled(method, X):
    before = [x.copy() for x in X]
    model = methods.find(method)(random_state=0).fit(X)
    mean, lower, upper = model.impute(X, interval=0.9)
    for x, low, middle, high in zip(X, lower, mean, upper, strict=True):
        seen = ~np.isnan(x)
        assert all(np.isfinite(a).all() for a in (low, middle, high))
        assert all((a[seen] == x[seen]).all() for a in (low, middle, high))
        assert ((low <= middle) & (middle <= high)).all()
    same(mean, model.impute(X))
    assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(X, before, strict=True))


@given(X=views(), scale=st.sampled_from([1e-6, 1e6]), shift=st.sampled_from([0.0, 1e3]))
@FEW
def test_units_do_not_matter(X, scale, shift):
    fill = methods.find("mean_fill")
    one = fill(random_state=0).fit(X).impute(X)
    moved = [scale * x + shift for x in X]
    other = fill(random_state=0).fit(moved).impute(moved)
    for a, b in zip(one, other, strict=True):
        size = 1e-5 * scale * np.abs(a).max() + 1e-9 * abs(shift) + 1e-30
        np.testing.assert_allclose(scale * a + shift, b, atol=size)


@given(X=views(), data=st.data())
@FEW
def test_samples_in_another_order_are_the_same_samples(X, data):
    order = data.draw(st.permutations(range(len(X[0]))))
    model = methods.find("knn_fill")(random_state=0).fit(X)
    turned = model.impute([x[order] for x in X])
    for a, b in zip(model.impute(X), turned, strict=True):
        np.testing.assert_allclose(a[order], b, rtol=1e-5, atol=1e-6)


@given(X=views(), names=st.lists(st.text(min_size=1), min_size=9, max_size=9, unique=True))
@FEW
def test_frames_keep_their_ids_and_columns(X, names):
    ids = names[: len(X[0])]
    frames = {
        str(v): pd.DataFrame(x, ids, [f"c{j}" for j in range(x.shape[1])]) for v, x in enumerate(X)
    }
    filled = methods.find("mean_fill")(random_state=0).fit(frames).impute(frames)
    for name, frame in frames.items():
        assert filled[name].index.equals(frame.index)
        assert filled[name].columns.equals(frame.columns)
        assert filled[name].notna().all(axis=None)


@given(X=views())
@FEW
def test_views_are_what_the_arrays_say(X):
    entered = Views.of(X, dtype=None)
    for v, x in enumerate(X):
        known = entered.known(v)
        assert (np.isnan(known) == np.isnan(x)).all()
        np.testing.assert_allclose(known, x, rtol=1e-6)


@given(name=st.text())
@settings(FEW, max_examples=300)
def test_a_name_is_refused_or_stays_in_its_folder(name, tmp_path):
    with suppress(ValueError):  # which is tested by names in test_paths.py
        path = below(tmp_path, name, ".csv")
        assert path.resolve().parent == tmp_path.resolve()
        path.touch()  # the system takes it, too
        path.unlink()
