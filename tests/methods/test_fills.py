"""The simple fills: what they are, and what every user may rely on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.impute import KNNImputer

import vedute
from vedute.data.views import Views
from vedute.methods import find
from vedute.methods.fills import kernel_fill, knn_fill
from vedute.methods.fills.engine import components, softimpute, wide_table
from vedute.methods.fills.engine.wide_table import Table
from vedute.methods.fills.gaussian_fill import GaussianFill, conditional
from vedute.methods.fills.kernel_fill import KernelFill
from vedute.methods.fills.knn_fill import KNNFill
from vedute.methods.fills.lowrank_fill import LowRankFill
from vedute.methods.fills.mean_fill import MeanFill
from vedute.methods.fills.ridge_fill import RidgeFill

FILLS = [MeanFill, KNNFill, LowRankFill, KernelFill, RidgeFill, GaussianFill]
REGRESSING = [KernelFill, RidgeFill, GaussianFill]
every_fill = pytest.mark.parametrize("fill", FILLS, ids=lambda c: c.__name__)


def views(n, seed=0, widths=(6, 9, 4), missing=0.3, holes=0.0, noise=0.3, rank=3):
    """L arrays from a few latent factors, NaN where missing, and the same complete."""
    loadings = np.random.default_rng(9).normal(size=(rank, sum(widths)))
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(n, rank)) @ loadings
    whole += noise * rng.normal(size=whole.shape) + 5.0
    truth = np.split(whole, np.cumsum(widths)[:-1], axis=1)
    mask = rng.random((n, len(widths))) >= missing
    mask[np.arange(n), rng.integers(len(widths), size=n)] = True
    X = [np.where(mask[:, [v]], x, np.nan) for v, x in enumerate(truth)]
    for x in X:
        hole = rng.random(x.shape) < holes
        hole[np.arange(n), rng.integers(x.shape[1], size=n)] = False
        x[hole] = np.nan
    return X, truth


def z_scored(X, like):
    """All views side by side, as a user of KNNImputer would balance them."""
    return np.hstack(
        [
            (x - np.nanmean(a, 0)) / np.nanstd(a, 0) / np.sqrt(a.shape[1])
            for x, a in zip(X, like, strict=True)
        ]
    )


def error(filled, truth, X):
    gaps = [((f - t) / t.std(0))[np.isnan(x)] for f, t, x in zip(filled, truth, X, strict=True)]
    return float(np.mean(np.concatenate(gaps) ** 2))


@pytest.mark.parametrize("holes", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("k", [1, 5, 500])
def test_knn_fill_is_the_imputer_of_scikit_learn(holes, k):
    X, _ = views(120, holes=holes)
    new, _ = views(30, seed=1, holes=holes / 2)
    ours = KNNFill(n_neighbors=k, random_state=0).fit(X)
    theirs = KNNImputer(n_neighbors=k).fit(z_scored(X, X))
    for data in (X, new):
        table = theirs.transform(z_scored(data, X))
        np.testing.assert_allclose(ours.transform(data), table, atol=1e-5)


def test_knn_fill_falls_back_on_the_mean_where_nobody_shares_a_view():
    a = np.r_[np.arange(6.0)[:, None], np.full((6, 1), np.nan)]
    b = np.r_[np.full((6, 1), np.nan), np.arange(6.0)[:, None]]
    with pytest.warns(UserWarning, match="no sample has two views"):
        model = KNNFill(random_state=0).fit([a, b])
    filled = model.impute([a, b])
    np.testing.assert_allclose(filled[0][6:], 2.5, atol=1e-6)
    np.testing.assert_allclose(filled[1][:6], 2.5, atol=1e-6)


def test_equal_distances_choose_the_same_neighbors_in_any_company():
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 2, (80, w)).astype(float) for w in (5, 4)]
    X[1][::3] = np.nan
    fill = KNNFill(n_neighbors=3, random_state=0).fit(X)
    together = fill.transform(X)
    alone = np.vstack([fill.transform([x[i : i + 1] for x in X]) for i in range(0, 80, 3)])
    np.testing.assert_allclose(together[::3], alone, atol=1e-6)


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_cells_that_hold_all_donors_change_nothing(monkeypatch, holes):
    X, _ = views(120, holes=holes)
    exact = KNNFill(random_state=0).fit(X)
    monkeypatch.setattr(knn_fill, "EXACT_DONORS", 50)
    monkeypatch.setattr(knn_fill, "LANDMARKS", 8)
    model = KNNFill(random_state=0).fit(X)
    assert not exact.cells_
    assert model.cells_["landmarks"].shape[0] == 8
    np.testing.assert_allclose(model.transform(X), exact.transform(X), atol=1e-6)


def test_the_nearest_of_many_are_searched_nearby(monkeypatch, tmp_path):
    X, truth = views(400)
    exact = error(KNNFill(random_state=0).fit(X).impute(X), truth, X)
    monkeypatch.setattr(knn_fill, "EXACT_DONORS", 50)
    monkeypatch.setattr(knn_fill, "LANDMARKS", 16)
    monkeypatch.setattr(knn_fill, "NEAR_ROWS", 200)
    model = KNNFill(random_state=0).fit(X)
    assert error(model.impute(X), truth, X) < 1.05 * exact
    alone = [model.impute([x[i : i + 1] for x in X])[0] for i in range(9)]
    np.testing.assert_allclose(np.vstack(alone), model.impute(X)[0][:9], atol=1e-6)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(vedute.load(tmp_path / "model").transform(X), model.transform(X))


def test_cells_around_a_row_hold_enough_rows(monkeypatch):
    monkeypatch.setattr(knn_fill, "LANDMARKS", 16)
    monkeypatch.setattr(knn_fill, "NEAR_ROWS", 60)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 7))
    table = Table(x, np.ones((200, 2), bool), None, (4, 3))
    found = list(knn_fill.search_cells(knn_fill.learn_cells(table, rng), table))
    assert sorted(np.concatenate([rows for rows, _ in found])) == list(range(200))
    assert all(60 <= len(near) < 200 for _, near in found)
    assert all(np.isin(rows, near).all() for rows, near in found)  # a row is near to itself


def test_mean_fill_is_the_mean():
    X, _ = views(50, holes=0.1)
    for x, filled in zip(X, MeanFill(random_state=0).fit(X).impute(X), strict=True):
        np.testing.assert_allclose(filled, np.where(np.isnan(x), np.nanmean(x, 0), x), rtol=1e-6)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_alternating_regressions_end_where_soft_impute_does(holes):
    X, _ = views(60, holes=holes)
    fill = MeanFill(random_state=0).fit(X)
    parts = wide_table.parts(Views.of(scaled(fill, X)), fill.scalers)
    table, rng = Table.of(parts), np.random.default_rng(0)
    threshold = 0.2 * softimpute.largest(table, rng)
    U, V = np.zeros((60, 0)), np.zeros((19, 0))
    for _ in range(3):
        U, V = softimpute.extend(table, U, V, threshold, 19, rng)
        U, V = softimpute.learn(table, U, V, threshold, 1e-7, 2000)
    Z = U @ V.T
    left, size, right = np.linalg.svd(np.where(table.seen(), table.x, Z), full_matrices=False)
    np.testing.assert_allclose(left * np.maximum(size - threshold, 0) @ right, Z, atol=1e-4)
    np.testing.assert_allclose(softimpute.project(table, V, threshold), U, atol=1e-3)


def scaled(fill, X):
    """X as the estimator sees it."""
    return [(x - s.shift) / s.scale for x, s in zip(X, fill.scalers, strict=True)]


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_low_rank_fill_recovers_a_matrix_of_low_rank(holes):
    X, truth = views(200, noise=0.0, holes=holes)
    fill = LowRankFill(random_state=0).fit(X)
    assert error(fill.impute(X), truth, X) < 0.03
    assert 3 <= fill.choice_["rank"] <= 8
    new, whole = views(50, noise=0.0, seed=1, holes=holes)
    assert error(fill.impute(new), whole, new) < 0.03


def test_fills_tell_more_than_the_mean():
    X, truth = views(200)
    errors = [error(c(random_state=0).fit(X).impute(X), truth, X) for c in FILLS]
    assert 0.9 < errors[0] < 1.2
    assert errors[1] < 0.4
    assert max(errors[2:]) < 0.25


@every_fill
@pytest.mark.parametrize("holes", [0.0, 0.15])
def test_a_row_does_not_hang_on_its_company(fill, holes):
    X, _ = views(60, holes=holes)
    new, _ = views(9, seed=1, holes=holes)
    fitted = fill(random_state=0, n_clusters=3).fit(X)
    rows = [[x[i : i + 1] for x in new] for i in range(9)]
    np.testing.assert_allclose(
        fitted.transform(new), np.vstack([fitted.transform(r) for r in rows]), atol=1e-5
    )
    for v, filled in enumerate(fitted.impute(new)):
        alone = np.vstack([fitted.impute(r)[v] for r in rows])
        np.testing.assert_allclose(filled, alone, atol=1e-5)
        seen = ~np.isnan(new[v])
        np.testing.assert_array_equal(filled[seen], new[v][seen])
    np.testing.assert_array_equal(fitted.transform(X), fitted.embedding_)


@every_fill
@pytest.mark.parametrize("holes", [0.0, 0.15])
def test_nothing_under_a_missing_entry_matters(fill, holes):
    X, _ = views(60, holes=holes)
    clean = Views.of(X)
    rng = np.random.default_rng(2)
    poisoned = Views(
        tuple(
            a.where(~missing(clean, v), a.new_tensor(1e3 * rng.normal(size=a.shape)))
            for v, a in enumerate(clean.x)
        ),
        clean.mask,
        clean.index,
        clean.holes,
        clean.names,
    )
    one, two = (fill(random_state=0).fit(d) for d in (clean, poisoned))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    for a, b in zip(one.impute(clean).x, two.impute(poisoned).x, strict=True):
        np.testing.assert_array_equal(a, b)


def missing(data, v):
    gone = ~data.mask[:, [v]].expand_as(data.x[v])
    return gone if data.holes[v] is None else gone | data.holes[v]


@every_fill
def test_saved_and_loaded_is_the_same(fill, tmp_path):
    X, _ = views(60, holes=0.1)
    new, _ = views(10, seed=1, holes=0.1)
    fitted = fill(random_state=0, n_clusters=3).fit(X)
    fitted.save(tmp_path)
    loaded = vedute.load(tmp_path)
    assert type(loaded) is fill
    np.testing.assert_array_equal(loaded.transform(new), fitted.transform(new))
    np.testing.assert_array_equal(loaded.predict(new), fitted.predict(new))
    for a, b in zip(loaded.impute(new), fitted.impute(new), strict=True):
        np.testing.assert_array_equal(a, b)


@every_fill
def test_forty_samples_are_enough(fill):
    X, truth = views(40)
    fitted = fill(random_state=0, n_clusters=2).fit(X)
    assert set(fitted.labels_) == {0, 1}
    assert error(fitted.impute(X), truth, X) < 1.5
    mean, lower, upper = fitted.impute(X, interval=0.9)
    assert all(
        (a <= b).all() and (b <= c).all() for a, b, c in zip(lower, mean, upper, strict=True)
    )
    assert len(fitted.sample_imputations(X, 2)) == 2
    assert fitted.score(X) <= 1.0


@every_fill
def test_holes_in_one_view(fill):
    X, truth = views(80, widths=(12,), missing=0.0, holes=0.2)
    filled = fill(random_state=0).fit(X).impute(X)
    assert error(filled, truth, X) < {MeanFill: 1.3, KNNFill: 0.4}.get(fill, 0.25)


@every_fill
def test_images_and_binary_views(fill):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 50)
    images = (100 * z[:, None, None] + rng.integers(0, 100, (50, 4, 5))).astype(np.uint8)
    binary = (rng.random((50, 6)) < 0.2 + 0.6 * z[:, None]).astype(float)
    real = rng.normal(size=(50, 3)) + z[:, None]
    binary[:10], real[20:30] = np.nan, np.nan
    fitted = fill(random_state=0).fit([images, binary, real])
    new = fitted.impute([None, binary[30:], real[30:]])
    assert new[0].shape == (20, 4, 5)
    assert 0 <= new[0].min() <= new[0].max() <= 255


@every_fill
def test_constant_data_is_no_trouble(fill):
    X = [np.ones((30, 3)), np.full((30, 2), 7.0)]
    X[1][:10] = np.nan
    np.testing.assert_allclose(fill(random_state=0).fit(X).impute(X)[1], 7.0)


@pytest.mark.parametrize(("fill", "field"), [(KNNFill, "n_neighbors"), (LowRankFill, "max_rank")])
def test_settings_below_one_are_refused(fill, field):
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        fill(**{field: 0}).fit(views(30)[0])


def test_the_folder_is_the_registry():
    names = ("mean_fill", "knn_fill", "lowrank_fill", "kernel_fill", "ridge_fill", "gaussian_fill")
    assert [find(n) for n in names] == FILLS


def inputs(n=30, d=4, k=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.normal(size=(n, k))


def kernel_ridge(A, Y, B, gamma, ridge):
    """Row by row, as the equation says."""
    k = lambda a, b: np.exp(-gamma / 2 * sum((a - b) ** 2))  # noqa: E731
    K = np.array([[k(a, b) for b in A] for a in A])
    return (
        np.array([[k(b, a) for a in A] for b in B]) @ np.linalg.inv(K + ridge * np.eye(len(A))) @ Y
    )


def ridge(A, Y, B, ridge):
    return B @ np.linalg.inv(A.T @ A + ridge * np.eye(A.shape[1])) @ A.T @ Y


CASES = [
    (KernelFill, 4, {"gamma": 0.5, "ridge": 0.1}, kernel_ridge),
    (RidgeFill, 4, {"ridge": 0.7}, ridge),
    (RidgeFill, 50, {"ridge": 0.7}, ridge),  # more columns than rows
]


@pytest.mark.parametrize(("fill", "d", "settings", "oracle"), CASES)
def test_a_regression_is_its_equation_with_each_row_left_out_in_turn(fill, d, settings, oracle):
    (A, Y), rng = inputs(d=d), np.random.default_rng(0)
    B = rng.normal(size=(7, d))
    regression, alone = fill()._regress(A, Y, settings, rng)
    found = fill()._predict(regression, B)
    np.testing.assert_allclose(found, oracle(A, Y, B, **settings), atol=1e-5)
    for i in range(len(A)):
        rest = np.arange(len(A)) != i
        slow = oracle(A[rest], Y[rest], A[[i]], **settings)[0]
        np.testing.assert_allclose(alone[i], slow, atol=1e-8)
    K = kernel_fill.kernel(A, A, settings["gamma"]) if fill is KernelFill else A @ A.T
    errors = components.leave_one_out_errors(K, Y, np.array([settings["ridge"]]))
    np.testing.assert_allclose(errors, ((Y - alone) ** 2).sum())


def test_landmarks_at_every_row_are_the_whole_kernel(monkeypatch):
    A, Y = inputs()
    settings, rng = {"gamma": 0.5, "ridge": 0.1}, np.random.default_rng(0)
    exact, alone = KernelFill()._regress(A, Y, settings, rng)
    monkeypatch.setattr(kernel_fill, "EXACT", 10)
    near, near_alone = KernelFill()._regress(A, Y, settings, rng)
    np.testing.assert_allclose(near_alone, alone, atol=1e-5)
    np.testing.assert_allclose(
        KernelFill()._predict(near, A), KernelFill()._predict(exact, A), atol=1e-4
    )
    monkeypatch.setattr(kernel_fill, "LANDMARKS", 12)
    assert len(KernelFill()._regress(A, Y, settings, rng)[0]["rows"]) == 12


def test_kernel_fill_learns_from_some_of_many_rows(monkeypatch):
    X, truth = views(300)
    whole = error(KernelFill(random_state=0).fit(X).impute(X), truth, X)
    monkeypatch.setattr(KernelFill, "most_rows", 100)
    model = KernelFill(random_state=0).fit(X)
    assert all(r["rows"].shape[0] == 100 for found in model.regressions_ for r in found)
    assert error(model.impute(X), truth, X) < 1.2 * whole


def test_kernel_fill_follows_a_curve_that_no_line_does():
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, 400)
    truth = [np.c_[t, rng.normal(size=400) / 9], np.c_[t**2, np.cos(3 * t)]]
    mask = np.ones((400, 2), bool)
    mask[:150, 1] = False
    X = [np.where(m[:, None], x, np.nan) for x, m in zip(truth, mask.T, strict=True)]
    kernel, linear = (error(c(random_state=0).fit(X).impute(X), truth, X) for c in FILLS[3:5])
    assert kernel < 0.02
    assert linear > 0.8


def test_gaussian_fill_is_the_conditional_mean_of_the_true_gaussian():
    """Gaussian fill is tested on many linear Gaussian data."""
    X, _ = views(4000, widths=(3, 4, 2), rank=2, noise=0.5)
    loadings = np.random.default_rng(9).normal(size=(2, 9))
    S, center = loadings.T @ loadings + 0.25 * np.eye(9), 5.0
    filled, wide = np.hstack(GaussianFill(random_state=0).fit(X).impute(X)), np.hstack(X)
    off = []
    for x, y in zip(wide[:300], filled[:300], strict=True):
        m = np.isnan(x)
        best = center + S[np.ix_(m, ~m)] @ np.linalg.solve(S[np.ix_(~m, ~m)], x[~m] - center)
        off += list((y[m] - best) / np.sqrt(S.diagonal()[m]))
    assert np.sqrt(np.mean(np.square(off))) < 0.06


def test_conditional_means_and_covariances_are_those_of_each_row():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    S, mask = root @ root.T, rng.random((20, 2)) < 0.6
    table = Table(np.zeros((20, 5)), mask, None, (2, 3))
    table = Table(np.where(table.spread(mask), rng.normal(size=(20, 5)), 0.0), mask, None, (2, 3))
    x, left = conditional(table, S, 0.1, spread=True)
    slow = np.zeros((5, 5))
    for i, o in enumerate(table.spread(mask)):
        B = np.linalg.inv(S[np.ix_(o, o)] + 0.1 * np.eye(o.sum())) @ S[np.ix_(o, ~o)]
        np.testing.assert_allclose(x[i, ~o], table.x[i, o] @ B, atol=1e-9)
        slow[np.ix_(~o, ~o)] += S[np.ix_(~o, ~o)] - S[np.ix_(~o, o)] @ B
    np.testing.assert_allclose(left, slow, atol=1e-9)


def test_components_given_some_entries_are_a_conditional_mean():
    rng = np.random.default_rng(0)
    W, root = np.linalg.qr(rng.normal(size=(6, 3)))[0], rng.normal(size=(3, 3))
    S, mean, x, o = root @ root.T, rng.normal(size=3), rng.normal(size=6), np.arange(6) < 4
    inner = W[o] @ S @ W[o].T + 0.2 * np.eye(4)
    slow = mean + S @ W[o].T @ np.linalg.solve(inner, x[o] - W[o] @ mean)
    np.testing.assert_allclose(components.given_entries(x, o, W, mean, S, 0.2), slow)


@pytest.mark.parametrize("fill", REGRESSING)
def test_views_wider_than_the_components_kept(fill, monkeypatch):
    monkeypatch.setattr(fill, "_most", lambda *_: 8)
    X, truth = views(150, widths=(30, 40, 4), holes=0.02)
    fitted = fill(random_state=0).fit(X)
    assert [W.shape for W in fitted.bases_] == [(30, 8), (40, 8), (4, 4)]
    assert error(fitted.impute(X), truth, X) < 0.2


@pytest.mark.parametrize("method", [RidgeFill, KernelFill])
@pytest.mark.filterwarnings("error")
def test_one_sample_is_learned_from_without_a_warning_of_others(method):
    model = method(random_state=0).fit([np.ones((1, 2)), np.zeros((1, 3))])
    np.testing.assert_allclose(model.impute([np.ones((1, 2)), None])[1], 0, atol=1e-6)
