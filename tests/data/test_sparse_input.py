"""Large sparse views: the same numbers as the dense ones, in far less memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from by_scalers import scaled
from every_method import METHODS, small
from numpy.testing import assert_allclose
from scipy import sparse

from vedute import Views
from vedute.data import checks, kinds, scaling
from vedute.data.compressed import Compressed
from vedute.data.rows import from_csr
from vedute.estimators.front import Components
from vedute.methods.fills.engine import softimpute

NAN = np.nan


@pytest.fixture(autouse=True)
def every_sparse_view_is_large(monkeypatch):
    monkeypatch.setattr(checks, "SMALL", 0)


def texts(n=60, width=200, seed=0):
    """Bags of words of two topics, and numbers that go with them."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(2, size=n)
    words = rng.poisson(rng.gamma(0.1, 1.0, size=(2, width))[topic]).astype(float)
    return words, rng.normal(size=(n, 4)) + 2 * topic[:, None]


def kept(x):
    part = from_csr(checks.large_sparse(sparse.csr_array(x)), torch.float64)
    assert part.is_sparse
    return part


def compressed(x, rest):
    part = torch.from_numpy(x)
    return Compressed.of([part], [np.full(x.shape[1], rest)], torch.ones(len(x), 1).bool())


@pytest.mark.parametrize(
    "kind", ["csr_matrix", "csr_array", "csc_array", "coo_matrix", "lil_array"]
)
def test_every_format_stays_sparse_and_gives_the_same_tensor(kind):
    words, numbers = texts()
    views = Views.of({"a": getattr(sparse, kind)(words), "b": numbers})
    dense = Views.of({"a": words, "b": numbers})
    assert views.parts[0].is_sparse
    assert all(torch.equal(x, y) for x, y in zip(views.x, dense.x, strict=True))
    some, rows = torch.tensor([3, 5, 3]), torch.arange(60) % 2 == 0
    for part in (some, rows, slice(4, 9), 2):
        assert torch.equal(views[part].x[0], dense[part].x[0])
    hidden = torch.zeros(60, 2, dtype=torch.bool)
    hidden[:7, 0] = True
    assert torch.equal(views.hide(hidden).x[0], dense.hide(hidden).x[0])
    assert repr(views) == repr(dense)


def test_rows_of_nan_are_missing_and_a_mask_hides_rows():
    words, numbers = texts()
    words[:5] = NAN
    mask = np.ones((60, 2), bool)
    mask[5:9, 0] = mask[:5, 0] = False
    views = Views.of([sparse.csr_array(words), numbers], mask=mask)
    dense = Views.of([words, numbers], mask=mask)
    assert views.parts[0].is_sparse
    assert not views.parts[0][:9].any()  # nothing is left of what is hidden
    assert torch.equal(views.mask, dense.mask)
    assert torch.equal(views.x[0], dense.x[0])


def test_single_nan_are_holes_as_in_an_array():
    words, numbers = texts()
    words[3, 7] = NAN
    views = Views.of([sparse.csr_array(words), numbers])
    assert views.holes[0].nonzero().tolist() == [[3, 7]]
    assert torch.equal(views.x[0], Views.of([words, numbers]).x[0])


def test_zeros_that_are_stored_and_entries_given_twice_are_what_they_are_in_an_array():
    data, at = [1.0, 2.0, 0.0, 4.0], ([0, 0, 1, 2], [3, 3, 5, 0])
    x = sparse.coo_matrix((data, at), shape=(3, 40))
    unsummed = sparse.csr_matrix((data, [3, 3, 5, 0], [0, 2, 3, 4]), shape=(3, 40))
    for given in (x, unsummed):
        before = given.copy()
        assert torch.equal(Views.of([given]).x[0], torch.from_numpy(x.toarray()).float())
        assert given.nnz == before.nnz == 4  # the user's own is not touched
    assert kinds.recognise(kept(unsummed), torch.ones(3, 40).bool()).why.startswith("98 %")


def test_infinity_is_refused_by_its_row_unless_it_is_hidden():
    words, numbers = texts()
    words[4, 2] = np.inf
    with pytest.raises(ValueError, match="view 'a': row 4 has infinite values"):
        Views.of({"a": sparse.csr_array(words), "b": numbers})
    mask = np.ones((60, 2), bool)
    mask[4, 0] = False
    assert torch.isfinite(Views.of([sparse.csr_array(words), numbers], mask=mask).x[0]).all()


def test_what_float32_would_round_away_stays_in_float64():
    words = texts()[0]
    words[:, 0] = 1e9 + np.arange(60)
    assert Views.of([sparse.csr_array(words)]).x[0].dtype == torch.float64
    assert Views.of([sparse.csr_array(texts()[0])]).x[0].dtype == torch.float32


def shapes_of_data():
    rng = np.random.default_rng(1)
    words = texts()[0]
    one_hot = np.eye(40)[rng.integers(40, size=60)]
    deep = rng.poisson(words * rng.gamma(1.0, 30.0, size=(60, 1))).astype(float)
    signed = np.where(rng.random((60, 50)) < 0.1, rng.normal(size=(60, 50)), 0.0)
    few = np.where(rng.random((60, 12)) < 0.2, 2.0, 0.0)
    weights = words * rng.random((60, 200))
    return [words, (words > 0) * 1.0, one_hot, deep, signed, few, weights, 0 * words]


@pytest.mark.parametrize("which", range(8))
def test_kinds_are_recognised_and_scaled_as_those_of_arrays(which):
    x = shapes_of_data()[which]
    dense, seen = torch.from_numpy(x), torch.ones(x.shape, dtype=torch.bool)
    found = kinds.recognise(dense, seen)
    assert kinds.recognise(kept(x), seen) == found
    for kind in kinds.KINDS.values():
        assert kinds.bounds(kind, kept(x), seen) == kinds.bounds(kind, dense, seen)
        assert kinds.problem(kind, kept(x), seen) == kinds.problem(kind, dense, seen)


@pytest.mark.parametrize("word", ["length", "depth", "standard"])
def test_scaling_is_that_of_the_array(word):
    x = texts()[0]
    x[:6] = NAN
    x[6] = 0.0
    thin, thick = Views.of([sparse.csr_array(x), texts()[1]]), Views.of([x, texts()[1]])
    assert thin.parts[0].is_sparse
    each = [scaling.fit(word, views.parts[0], views.seen(0)) for views in (thin, thick)]
    for field in ("shift", "scale", "mean", "std", "top"):
        assert_allclose(*(getattr(s, field) for s in each), rtol=1e-10, atol=1e-12)
    plain = scaling.fit("standard", thick.x[1], thick.seen(1))
    small, large = (scaled([s, plain], v) for s, v in zip(each, (thin, thick), strict=True))
    assert small.parts[0].is_sparse == (word != "standard")
    assert_allclose(small.x[0], large.x[0], rtol=1e-6, atol=1e-6)
    if word != "standard":
        assert_allclose(small.sizes[0], large.sizes[0], rtol=1e-12)


@pytest.mark.parametrize("n", [60, 300])
def test_components_and_products_are_those_of_the_array(n):
    x = (texts(n)[0] - 0.25).astype(np.float32)
    small = compressed(x, -0.25)
    one, other = Components.of(small, 8, 3), Components.of(x, 8, 3)
    assert_allclose(one.mean, other.mean, atol=1e-5)
    assert one.scale == pytest.approx(other.scale, rel=1e-4)
    assert_allclose(one.basis, other.basis, atol=1e-3)
    b, u = np.ones((200, 2), np.float32), np.ones((n, 2), np.float32)
    assert_allclose(small @ b, x @ b, rtol=1e-4, atol=1e-4)
    assert_allclose(small.T @ u, x.T @ u, rtol=1e-3, atol=1e-3)


def test_compressed_views_are_those_of_the_array():
    rng, mask = np.random.default_rng(0), np.ones((60, 2), bool)
    mask[:9, 0] = mask[50:, 1] = False
    a, b = texts()[0] - 0.5, rng.normal(size=(60, 3))
    x = np.hstack([np.where(mask[:, [0]], a, 0), np.where(mask[:, [1]], b, 0)])
    parts, rests = [torch.from_numpy(a), torch.from_numpy(b)], [np.full(200, -0.5), np.zeros(3)]
    small = Compressed.of(parts, rests, torch.from_numpy(mask))
    assert small.off.nnz < x.size / 3
    assert_allclose(small.dense(), x)
    assert small.power() == pytest.approx((x**2).sum())
    count = np.repeat(mask.sum(0), [200, 3])
    assert_allclose(small.mean(), x.sum(0) / count)
    right, left = rng.normal(size=(203, 2)), rng.normal(size=(60, 2))
    assert_allclose(small @ right, x @ right)
    assert_allclose(small.T @ left, x.T @ left)
    assert_allclose(small[[3, 20]].dense(), x[[3, 20]])
    assert_allclose(small.view(1).dense(), x[:, 200:])
    half = rng.random(mask.shape) < 0.5
    assert_allclose(small.only(half).dense(), np.where(np.repeat(half, [200, 3], 1), x, 0))
    shift, factor, seen = rng.normal(size=203), rng.random(203), np.repeat(mask, [200, 3], 1)
    assert_allclose(small.affine(shift, factor).dense(), np.where(seen, (x - shift) * factor, 0))


@pytest.mark.parametrize("n", [40, 300])
def test_leading_axes_are_those_of_the_array(n):
    x = texts(n)[0] - 0.1
    own = softimpute.axes(compressed(x, -0.1), 12, np.random.default_rng(0))
    assert_allclose(own.T @ own, np.eye(12), atol=1e-5)
    _, size, right = np.linalg.svd(x, full_matrices=False)
    length = np.linalg.norm(x @ own, axis=0)
    assert_allclose(length[:4], size[:4], rtol=1e-3)
    assert_allclose(np.abs(own.T @ right[:2].T), np.eye(12)[:, :2], atol=2e-2)


@pytest.mark.parametrize("method", ["ridge_fill", "kernel_fill", "gaussian_fill"])
def test_fills_of_components_give_nearly_what_they_give_for_the_array(method):
    words, numbers = texts(width=400)  # wider than the components that are kept
    words[:10] = NAN
    each = [small(METHODS[method]).fit([x, numbers]) for x in (words, sparse.csr_array(words))]
    dense, thin = (m.impute([words, numbers])[0][:10] for m in each)
    assert_allclose(thin, dense, atol=0.1 * words[10:].std())


@pytest.mark.parametrize("method", ["lowrank_fill", "knn_fill", "mean_fill", "ridge_fill", "mvp"])
def test_methods_give_what_they_give_for_the_array(method):
    words, numbers = texts()
    words[:10] = NAN
    numbers[50:] = NAN
    models = [small(METHODS[method]).fit([x, numbers]) for x in (words, sparse.csr_array(words))]
    dense, thin = (m.impute([words, numbers]) for m in models)
    assert_allclose(thin[0], dense[0], atol=2e-2 * words[10:].std())
    assert_allclose(thin[1], dense[1], atol=2e-2 * np.nanstd(numbers))
    filled = models[1].impute([sparse.csr_matrix(words), numbers])
    assert isinstance(filled[0], sparse.csr_matrix)
    assert_allclose(filled[0].toarray(), thin[0], atol=1e-4)
    np.testing.assert_array_equal(filled[0].toarray()[10:], words[10:])
    embedded = [m.transform([words, numbers]) for m in models]
    assert_allclose(*(np.abs(e) for e in embedded), atol=2e-2 * np.abs(embedded[0]).max())


@pytest.mark.parametrize("method", ["lowrank_fill", "mvp"])
def test_what_is_written_where_a_view_is_missing_changes_nothing(method):
    words, numbers = texts()
    mask = np.ones((60, 2), bool)
    mask[:10, 0] = False
    given = []
    for junk in (0.0, 1e6):
        spoilt = words.copy()
        spoilt[:10, :20] = junk
        X = Views.of([sparse.csr_array(spoilt), numbers], mask=mask)
        assert X.parts[0].is_sparse
        given.append(small(METHODS[method]).fit(X).impute(X))
    assert torch.equal(given[0].x[0], given[1].x[0])


def test_a_view_that_is_fitted_as_numbers_is_made_dense():
    words, numbers = texts()
    models = [
        METHODS["mean_fill"](kinds=["numbers", "auto"]).fit([x, numbers])
        for x in (words, sparse.csr_array(words))
    ]
    np.testing.assert_array_equal(*(m.embedding_ for m in models))


@pytest.mark.slow
@pytest.mark.parametrize("method", [pytest.param("lowrank_fill", marks=pytest.mark.all), "mvp"])
def test_fit_and_transform_never_make_the_view_dense(method):
    n, width = 300, 40_000  # 48 MB in float32
    rng = np.random.default_rng(0)
    words = sparse.random(n, width, density=0.002, random_state=1, format="csr")
    numbers = rng.normal(size=(n, 3))
    model = small(METHODS[method])
    model.fit([words[:40, :100], numbers[:40]])  # modules that a fit loads are not counted
    tracemalloc.start()
    model.fit([words, numbers]).transform([words, numbers])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 4 * n * width
