"""The number of clusters by stability, alone and through estimators."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, silhouette_score

import vedute
from vedute import methods
from vedute.estimators import clustering
from vedute.metrics.scores import clustering_scores


def blobs(K, n=300, d=8, std=1.0, seed=0):
    return make_blobs(n, d, centers=K, cluster_std=std, center_box=(-5, 5), random_state=seed)


@pytest.mark.parametrize("K", [3, 5, 8])
def test_the_number_of_blobs_is_found(K):
    z, _ = blobs(K)
    found, curve = clustering.choose(z, "auto", seed=0)
    assert found == K
    assert curve["n_clusters"].tolist() == list(range(2, 21))
    assert curve["stability"][K - 2] > 0.95
    assert {a.shape for a in curve.values()} == {(19,)}
    assert (np.diff(curve["chance"]) <= 0).all()


def test_three_hundred_rows_take_less_than_three_seconds():
    z, _ = blobs(5)
    start = time.process_time()
    clustering.choose(z, "auto", seed=0)
    assert time.process_time() - start < 3


def test_coarse_groups_do_not_hide_the_fine_ones():
    """Two far groups of three blobs each: two clusters are as stable as six."""
    z, y = blobs(6, std=0.5)
    z[y >= 3] += 40
    found, curve = clustering.choose(z, "auto", seed=0)
    assert curve["stability"][0] > 0.99
    assert found == 6


def test_separation_tells_near_blobs_from_far_ones():
    far, near = (blobs(4, std=std)[0] for std in (0.5, 2.0))
    assert clustering.separation(far, 4, 0) > clustering.separation(near, 4, 0) > 0
    assert clustering.separation(far, 4, 0) == clustering.separation(far, 4, 0)
    assert clustering.separation(far, 4, 0) == pytest.approx(
        silhouette_score(far, clustering.nearest(far, clustering.centers(far, 4, 0)))
    )
    for few in (far[:1], far[:3], np.zeros((9, 2))):
        assert clustering.separation(few, 4, 0) == 0.0


def test_same_seed_same_curve_whatever_the_size_of_the_units():
    z, _ = blobs(3, n=60)
    first, again, scaled = (clustering.choose(x, "auto", seed=1)[1] for x in (z, z, 1024 * z + 3))
    np.testing.assert_array_equal(first["stability"], again["stability"])
    np.testing.assert_allclose(first["stability"], scaled["stability"])
    assert first["n_clusters"].max() == 6  # ten samples per cluster


def test_a_given_number_is_kept_and_needs_no_curve():
    assert clustering.choose(np.zeros((5, 2)), 4, seed=0) == (4, {})


def test_few_distinct_points():
    z = np.repeat(np.eye(3), 20, axis=0)
    assert clustering.choose(z, "auto", seed=0)[0] == 3
    assert clustering.choose(np.zeros((40, 3)), "auto", seed=0)[0] == 2


def test_nearest_is_the_nearest():
    rng = np.random.default_rng(0)
    z, middles = rng.standard_normal((20, 3)), rng.standard_normal((4, 3))
    distance = np.linalg.norm(z[:, None] - middles, axis=2)
    np.testing.assert_array_equal(clustering.nearest(z, middles), distance.argmin(1))


@pytest.mark.parametrize("method", ["mean_fill", "mvp"])
def test_through_an_estimator(method, tmp_path):
    x, y = blobs(5, d=12)
    views = [x[:, :6].copy(), x[:, 6:].copy()]
    views[0][:30] = np.nan
    short = {"steps": 150, "cooldown": 0} if method == "mvp" else {}
    model = methods.find(method)(n_clusters="auto", random_state=0, **short).fit(views)
    assert model.n_clusters_ == len(model.centers_) == 5
    assert clustering_scores(y, model.labels_)["ari"] > 0.8
    model.save(tmp_path / "run")
    loaded = vedute.load(tmp_path / "run")
    assert loaded.n_clusters == "auto"
    assert loaded.n_clusters_ == 5
    for key, values in model.stability_.items():
        np.testing.assert_array_equal(loaded.stability_[key], values)
    np.testing.assert_array_equal(loaded.predict(views), model.labels_)


@pytest.mark.parametrize(
    ("n_clusters", "n", "learned", "told"),
    [
        ("auto", 19, False, "at least 20 samples, X has 19"),
        ("auto", 100, True, "learns its clusters"),
        (101, 100, False, "does not fit 100 samples"),
    ],
)
def test_refusals(n_clusters, n, learned, told):
    with pytest.raises(ValueError, match=told):
        clustering.check(n_clusters, n, learned)


def test_what_is_fine_is_not_refused():
    for n_clusters in (None, 1, 20, "auto"):
        clustering.check(n_clusters, 20, learned=False)


def test_agreement_is_the_adjusted_rand_index():
    rng = np.random.default_rng(0)
    a, b = rng.integers(4, size=(2, 5, 60))
    b[0] = (a[0] + 1) % 4  # the same clusters by other names
    a[1] = b[1] = 0
    expected = [adjusted_rand_score(*pair) for pair in zip(a, b, strict=True)]
    np.testing.assert_allclose(clustering._rand_index(a, b, 4), expected, atol=1e-12)


def test_many_k_means_at_once_find_what_one_finds():
    x = np.stack([blobs(5, n=150, seed=s)[0] for s in range(3)])
    rng = np.random.default_rng(0)
    found = clustering._lloyd(x, clustering._seeds(x, 5, rng), 50)
    for z, middles in zip(x, found, strict=True):
        best = clustering.centers(z, 5, seed=0)
        order = clustering.nearest(best, middles)
        np.testing.assert_allclose(middles[order], best, atol=1e-6)
