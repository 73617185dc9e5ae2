"""k-means for many starts at once finds what scikit-learn's does."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from vedute.estimators import clustering
from vedute.metrics import scores
from vedute_bench.generation import kmeans


def inertia(z, middles):
    return float(((z[:, None] - middles[None]) ** 2).sum(2).min(1).sum())


@pytest.mark.parametrize("width", [2, 30])
def test_clusters_that_are_there_are_found(width):
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=900)
    z = 8 * rng.standard_normal((8, width))[y] + rng.standard_normal((900, width))
    ours = kmeans.centers(torch.from_numpy(z).float(), 8, seed=0).numpy()
    theirs = KMeans(8, n_init=10, random_state=0).fit(z)
    assert inertia(z, ours) == pytest.approx(theirs.inertia_, rel=1e-4)
    found = scores.clustering_scores(theirs.labels_, clustering.nearest(z, ours))
    assert found["nmi"] > 0.999


def test_where_there_are_no_clusters_it_is_as_good():
    z = np.random.default_rng(1).standard_normal((1000, 5))
    ours = kmeans.centers(torch.from_numpy(z).float(), 6, seed=3).numpy()
    theirs = KMeans(6, n_init=10, random_state=3).fit(z)
    assert inertia(z, ours) == pytest.approx(theirs.inertia_, rel=0.01)


def test_the_seed_decides():
    z = torch.randn(300, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(kmeans.centers(z, 5, seed=1), kmeans.centers(z, 5, seed=1))


def test_fewer_distinct_samples_than_centers():
    z = torch.tensor([[0.0, 1.0], [2.0, 3.0]]).repeat(10, 1)
    found = kmeans.centers(z, 4, seed=0)
    assert found.shape == (4, 2)
    assert torch.isfinite(found).all()
    assert inertia(z.numpy(), found.numpy()) == pytest.approx(0, abs=1e-9)
