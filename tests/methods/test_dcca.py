"""DCCA: correlations against their definitions, gradients in closed form, missing views by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from building import model_of

from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.methods.deep.dcca import DCCA
from vedute.methods.deep.shared import paired
from vedute.methods.deep.shared.paired import LAST_RIDGE, LinearCCA
from vedute.nn.losses import cca_corr


def outputs(n=200, d=4, seed=0, shared=0.7):
    """Two correlated clouds, (n, d) float64 each, with anything but unit covariance."""
    g = torch.Generator().manual_seed(seed)

    def draw(*size):
        return torch.randn(*size, generator=g, dtype=torch.float64)

    common = draw(n, d)
    return tuple((shared * common + draw(n, d)) @ draw(d, d) + draw(d) for _ in range(2))


def root(S):
    """S^-1/2 by eigenvectors."""
    values, vectors = torch.linalg.eigh(S)
    return vectors @ torch.diag(values.rsqrt()) @ vectors.T


def by_the_paper(h1, h2, ridge):
    """S_11^-1/2 S_12 S_22^-1/2 and what its gradient needs, step by step."""
    n, d = h1.shape
    a, b = h1 - h1.mean(0), h2 - h2.mean(0)
    K1, K2 = (root(x.T @ x / (n - 1) + ridge * torch.eye(d).double()) for x in (a, b))
    return a, b, K1, K2, K1 @ (a.T @ b / (n - 1)) @ K2


# The objective.


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
def test_correlations_are_the_singular_values_of_the_paper(ridge):
    h1, h2 = outputs()
    T = by_the_paper(h1, h2, ridge)[-1]
    torch.testing.assert_close(cca_corr(h1, h2, ridge), torch.linalg.svdvals(T))
    assert cca_corr(h1, h2, ridge).sum() == pytest.approx(float(torch.linalg.norm(T, "nuc")))


def test_without_ridge_they_are_the_cosines_between_the_two_column_spaces():
    h1, h2 = outputs()
    Q1, Q2 = (torch.linalg.qr(h - h.mean(0))[0] for h in (h1, h2))
    cosines = torch.linalg.svdvals(Q1.T @ Q2)
    torch.testing.assert_close(cca_corr(h1, h2, 0.0), cosines, rtol=0, atol=1e-10)


def test_invertible_affine_maps_change_nothing():
    h1, h2 = outputs()
    A, b = outputs(n=4, seed=5)[0], outputs(seed=6)[0][0]
    for moved in ((h1 @ A + b, h2), (h1, h2 @ A - b)):
        torch.testing.assert_close(cca_corr(*moved, 0.0), cca_corr(h1, h2, 0.0))
    assert cca_corr(h1, h1 @ A + b, 0.0).sum() == pytest.approx(4.0)


@pytest.mark.parametrize(("n", "told"), [(20, 6.6), (50, 3.9), (100, 2.7), (256, 1.7), (800, 0.9)])
def test_small_batches_see_correlations_that_are_not_there(n, told):
    """`told`: one draw of ten independent columns; squares sum to d^2 / (n - 1) on average."""
    found = torch.stack([cca_corr(*outputs(n, 10, seed, shared=0.0), 0.0) for seed in range(20)])
    sums, squares = found.sum(1), found.square().sum(1)
    assert abs(told - sums.mean()) < 2 * sums.std()
    assert abs(squares.mean() - 100 / (n - 1)) < 3 * squares.std() / 20**0.5


@pytest.mark.parametrize("ridge", [1e-3, 0.3])
def test_the_gradient_has_the_closed_form(ridge):
    h1, h2 = (h.requires_grad_() for h in outputs(60))
    found = torch.autograd.grad(cca_corr(h1, h2, ridge).sum(), (h1, h2))
    for x, y, gradient in ((h1, h2, found[0]), (h2, h1, found[1])):
        a, b, K1, K2, T = by_the_paper(x.detach(), y.detach(), ridge)
        U, D, Vt = torch.linalg.svd(T)
        cross, own = K1 @ U @ Vt @ K2, -0.5 * K1 @ U @ torch.diag(D) @ U.T @ K1
        expected = (2 * a @ own + b @ cross.T) / (len(a) - 1)
        torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)
    few = [h.detach()[:12].requires_grad_() for h in (h1, h2)]
    assert torch.autograd.gradcheck(lambda a, b: cca_corr(a, b, ridge).sum(), few)


def test_correlations_lie_between_0_and_1_and_a_ridge_lowers_them():
    h1, h2 = outputs()
    sums = []
    for ridge in (0.0, 1e-3, 1e-1, 10.0):
        found = cca_corr(h1, h2, ridge)
        assert (found >= 0).all()
        assert (found <= 1 + 1e-12).all()
        assert (found.diff() <= 0).all()
        sums.append(float(found.sum()))
    assert sums == sorted(sums, reverse=True)
    assert len(set(sums)) == 4


@pytest.mark.parametrize("same", [False, True])
def test_gradients_are_finite_where_columns_repeat_and_where_the_batch_is_white(same):
    h1 = outputs()[0]
    h1 = torch.cat([h1, h1[:, :2]], 1) if same else torch.linalg.qr(h1 - h1.mean(0))[0]
    h1.requires_grad_()
    cca_corr(h1, h1.detach().flip(1), 1e-3).sum().backward()
    assert h1.grad.isfinite().all()


def test_float32_outputs_are_correlated_in_float64():
    h1, h2 = (h.float() for h in outputs())
    assert cca_corr(h1, h2, 1e-3).dtype == torch.float64
    torch.testing.assert_close(cca_corr(h1, h2, 1e-3), cca_corr(h1.double(), h2.double(), 1e-3))


# Linear CCA.


def test_projections_are_white_and_correlated_one_by_one():
    h = torch.stack(outputs(500), 1)
    linear = LinearCCA(4).double()
    linear.fit(h, LAST_RIDGE)
    u = linear.project(h)
    (S11, S12), (_, S22) = (
        [u[:, j].T @ u[:, k] / 499 for k in (0, 1)] for j in (0, 1)
    )  # (4, 4) each
    for S in (S11, S22):
        torch.testing.assert_close(S, torch.eye(4).double(), rtol=0, atol=5e-3)  # the ridge
    torch.testing.assert_close(S12, torch.diag(linear.rho), rtol=0, atol=1e-10)
    assert (linear.rho.diff() < 0).all()
    torch.testing.assert_close(linear.rho, cca_corr(h[:, 0], h[:, 1], LAST_RIDGE))
    torch.testing.assert_close(linear.restore(u), h)
    assert u.mean(0).abs().max() < 1e-10


# The model.


def batch_of(B=12, seed=0):
    """Two views; some rows lack the first, some the second."""
    g = torch.Generator().manual_seed(seed)
    mask = torch.ones(B, 2, dtype=torch.bool)
    mask[4:8, 0] = mask[8:, 1] = False
    x = tuple(torch.randn(B, w, generator=g) * mask[:, [v]] for v, w in enumerate((5, 3)))
    return Views(x, mask, torch.arange(B), (None, None), ("a", "b"))


def build(fill="canonical", **settings):
    """A model that has been through its schedule, but for the steps."""
    hp = DCCA(latent_dim=2, hidden=(6,), fill=fill, batch_size=8, steps=3, **settings)
    torch.manual_seed(1)
    model = model_of(hp, [(5,), (3,)], ("normal", "normal")).eval()
    with torch.no_grad():
        list(model.stages(batch_of()))
    return model


@torch.no_grad()
def test_what_stands_for_a_missing_view():
    batch = batch_of()
    both, first, second = slice(0, 4), slice(8, 12), slice(4, 8)
    found = {
        fill: build(fill).embed(batch).view(12, 2, 2) for fill in declared(DCCA)["fill"].choices
    }
    model = build()
    u = model.linear.project(model.outputs(batch))
    for z in found.values():
        torch.testing.assert_close(z[both], u[both])
        torch.testing.assert_close(z[first, 0], u[first, 0])
        torch.testing.assert_close(z[second, 1], u[second, 1])
    rho = model.linear.rho
    torch.testing.assert_close(found["canonical"][first, 1], rho * u[first, 0])
    torch.testing.assert_close(found["canonical"][second, 0], rho * u[second, 1])
    torch.testing.assert_close(found["copy"][first, 1], u[first, 0])
    for fill, x in (
        ("zero_input", torch.zeros(1, 3)),
        ("mean_input", batch.x[1][:8].mean(0)[None]),
    ):
        h = torch.stack([torch.zeros(1, 2), model.encoders[1](x)], 1)
        torch.testing.assert_close(
            found[fill][first, 1], model.linear.project(h)[:, 1].expand(4, 2)
        )


@torch.no_grad()
@pytest.mark.parametrize("fill", declared(DCCA)["fill"].choices)
def test_what_lies_under_a_missing_view_never_matters(fill):
    model, batch = build(fill), batch_of()
    junk = tuple(
        torch.where(batch.mask[:, [v]], x, torch.tensor(1e6)) for v, x in enumerate(batch.x)
    )
    poisoned = replace(batch, x=junk)
    torch.testing.assert_close(model.embed(poisoned), model.embed(batch), rtol=0, atol=0)
    again = build(fill)
    list(again.stages(poisoned))
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_only_samples_with_both_views_are_learned_from():
    model = build()
    (stage,) = model.stages(batch_of())
    assert stage.rows.tolist() == [True] * 4 + [False] * 8
    assert stage.steps == 3
    assert not stage.capture


@pytest.mark.parametrize(
    ("n", "batch_size", "size"),
    [(4, 32, 4), (900, 800, 900), (1500, 800, 750), (33, 32, 33), (21, 4, 6)],
)
def test_batches_are_of_nearly_equal_size(n, batch_size, size):
    data = Views(
        (torch.ones(n, 2),) * 2, torch.ones(n, 2).bool(), torch.arange(n), (None,) * 2, "ab"
    )
    stage = paired.stage(DCCA(batch_size=batch_size), data, lambda batch: {}, 5)
    assert stage.batch_size == size


def test_two_sets_of_measurements_of_one_cause_are_correlated_in_new_samples():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(600, 2))
    X = [np.tanh(z @ rng.normal(size=(2, d))) + 0.1 * rng.normal(size=(600, d)) for d in (8, 6)]
    model = DCCA(latent_dim=2, hidden=(32,), steps=60, random_state=0).fit([x[:400] for x in X])
    u = model.transform([x[400:] for x in X]).reshape(200, 2, 2)
    for k in range(2):
        assert np.corrcoef(u[:, 0, k], u[:, 1, k])[0, 1] > 0.85


def test_mistakes_get_a_sentence():
    X = [np.random.default_rng(0).normal(size=(30, d)) for d in (3, 2)]
    for settings, told in (
        (
            dict(fill="zero"),
            "fill must be one of canonical, copy, mean_input, zero_input, got 'zero'",
        ),
        (dict(ridge=0.0), "ridge must be above 0, got 0.0"),
        (dict(latent_dim=0), "latent_dim must be at least 1, got 0"),
        (dict(latent_dim=8, batch_size=8), "latent_dim must be below batch_size, got 8 and 8"),
        (dict(batch_size=1), "batch_size must be at least 2, got 1"),
    ):
        with pytest.raises(ValueError, match=told):
            DCCA(**settings).fit(X)
    apart = [x.copy() for x in X]
    apart[0][:15], apart[1][15:] = np.nan, np.nan
    with pytest.raises(ValueError, match=r"samples that have both views; X has 0 sample\(s\)"):
        DCCA().fit(apart)
    with pytest.raises(ValueError, match=r"takes two views, X has 3; BestPair\(DCCA\(\.\.\.\)\)"):
        DCCA().fit([*X, X[0]])
    with pytest.raises(TypeError, match="DCCA cannot impute; `vedute list methods`"):
        DCCA(steps=2).fit(X).impute(X)
