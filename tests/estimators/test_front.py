"""Components of wide sparse views: what networks see of them."""

import numpy as np
import pytest
import torch
from every_method import METHODS, small
from numpy.testing import assert_allclose

import vedute
from vedute.estimators.front import Components


def texts(n=60, width=200, seed=0):
    """Bags of words of two topics in two languages; some lack one."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(2, size=n)
    rates = rng.gamma(0.1, 1.0, size=(2, 2, width))
    x = [rng.poisson(0.3 * rates[v][topic]).astype(float) for v in range(2)]
    x[1][: n // 4] = np.nan
    return x


def test_components_are_those_of_the_singular_value_decomposition():
    x = np.random.default_rng(0).normal(size=(30, 12)).astype(np.float32)
    part = Components.of(x, 12, 0)
    back = part.widen(part.narrow(torch.from_numpy(x)).numpy())
    assert_allclose(back, x, atol=1e-4)  # all of them lose nothing
    narrow = part.narrow(torch.from_numpy(x)).numpy()
    assert_allclose((narrow**2).mean(), 1.0, rtol=1e-4)
    few = Components.of(x, 3, 0)
    size = np.linalg.svd(x - x.mean(0), compute_uv=False)
    left = ((few.widen(few.narrow(torch.from_numpy(x)).numpy()) - x) ** 2).sum()
    assert_allclose(left, (size[3:] ** 2).sum(), rtol=1e-3)


@pytest.mark.parametrize("method", ["mvp", "mopoe"])
def test_wide_text_is_seen_by_its_components_and_comes_back_whole(method, tmp_path):
    x = texts()
    model = small(METHODS[method], components=8).fit(x)
    assert [view.kind for view in model.views_] == ["text", "text"]
    assert all(part.basis.shape == (200, 8) for part in model.front_)
    filled = model.impute(x)
    assert filled[1].shape == x[1].shape
    assert (filled[1] >= 0).all()
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(vedute.load(tmp_path / "m").impute(x)[1], filled[1])
    assert model.generate(3)["view0"].shape == (3, 200)


def test_dense_and_narrow_views_are_seen_whole():
    x = [np.random.default_rng(0).normal(size=(40, w)) for w in (300, 5)]
    assert small(METHODS["mvp"], components=8).fit(x).front_ == [None, None]
    assert small(METHODS["mvp"], components=None).fit(texts()).front_ == [None, None]
