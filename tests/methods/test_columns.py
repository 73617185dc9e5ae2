"""Holes: columns regressed on all others."""

import numpy as np
import pytest
from every_method import METHODS
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import euclidean_distances

from vedute.methods.fills import kernel_fill


def table(n=90, p=5, seed=0):
    """A complete table of smooth columns, and which of its entries are holes."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-2, 2, (n, 2))
    x = np.sin(z @ rng.normal(size=(2, p))) + 0.01 * rng.normal(size=(n, p))
    holes = rng.random((n, p)) < 0.1
    holes[:, 0] = False
    return x, holes


def test_each_column_is_a_kernel_ridge_regression_on_the_others(monkeypatch):
    monkeypatch.setattr(kernel_fill, "GAMMAS", np.array([1.0]))
    monkeypatch.setattr(kernel_fill, "RIDGES", np.array([0.1]))
    monkeypatch.setattr(kernel_fill, "COLUMN_ROUNDS", 1)
    x, holes = table()
    columns = kernel_fill.learn_columns(x, ~holes, holes, np.random.default_rng(0))
    found = kernel_fill.fill_columns(columns, x, holes, 1)
    assert (columns["weights"][:, 0] == 0).all()
    for j in range(1, x.shape[1]):
        own, others = ~holes[:, j], np.delete(x, j, axis=1)
        slow = KernelRidge(alpha=0.1, kernel="rbf", gamma=columns["gammas"][j] / 2)
        slow.fit(others[own], x[own, j])
        assert_allclose(found[~own, j], slow.predict(others[~own]), rtol=1e-3, atol=1e-4)
    assert_allclose(found[~holes], x[~holes])


def test_distances_without_a_column():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 4)), rng.normal(size=(5, 4))
    slow = ((np.delete(a, 2, 1)[:, None] - np.delete(b, 2, 1)) ** 2).sum(-1)
    squared = euclidean_distances(a, b, squared=True)
    assert_allclose(kernel_fill.without_column(squared, a, b, 2), slow, atol=1e-12)


@pytest.mark.parametrize("widths", [(8,), (4, 4)])
def test_a_hole_is_inferred_from_the_columns_of_its_own_view(widths):
    """Columns lie on a curve, which linear methods hardly explain."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    truth = np.stack([np.cos(k * angle + k) for k in range(1, 9)], 1)
    x = np.where(rng.random(truth.shape) < 0.1, np.nan, truth)
    views = np.split(x, np.cumsum(widths)[:-1], axis=1)
    errors = {}
    for name in ("gaussian_fill", "kernel_fill"):
        filled = np.hstack(METHODS[name](random_state=0).fit(views).impute(views))
        errors[name] = ((filled - truth)[np.isnan(x)] ** 2).mean() / truth.var()
    assert errors["kernel_fill"] < 0.1 < errors["gaussian_fill"]
