"""DCCAE: DCCA and PCA are its limits; what it tells of a missing view."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from building import model_of
from sklearn.decomposition import PCA

from vedute.data.views import Views
from vedute.methods.deep.dcca import DCCA
from vedute.methods.deep.dccae import DCCAE

SMALL = dict(latent_dim=2, hidden=(6,), batch_size=8, steps=3)


def batch_of(B=12, holes=False):
    """Two views; some rows lack the first, some the second."""
    g = torch.Generator().manual_seed(0)
    mask = torch.ones(B, 2, dtype=torch.bool)
    mask[6:9, 0] = mask[9:, 1] = False
    x = tuple(torch.randn(B, w, generator=g) * mask[:, [v]] for v, w in enumerate((5, 3)))
    gaps = [mask[:, [v]] & (torch.rand(a.shape, generator=g) < 0.3) for v, a in enumerate(x)]
    return Views(x, mask, torch.arange(B), tuple(gaps) if holes else (None, None), ("a", "b"))


def build(data, **settings):
    hp = DCCAE(**(SMALL | settings))
    torch.manual_seed(1)
    model = model_of(hp, data.shapes, ("normal", "normal")).eval()
    with torch.no_grad():
        list(model.stages(data))
    return model


def correlated(n, seed=0, widths=(8, 6), noise=0.2):
    loadings = np.random.default_rng(9).normal(size=(3, sum(widths)))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) @ loadings + noise * rng.normal(size=(n, sum(widths)))
    return np.split(x + 2, [widths[0]], axis=1)


@torch.no_grad()
@pytest.mark.parametrize("holes", [False, True])
def test_same_loss_as_written_slowly(holes):
    batch = batch_of(holes=holes)[:6]
    model, total = build(batch_of(holes=holes), rec_weight=0.3), 0.0
    for i in range(6):
        for v in range(2):
            told = model.decoders[v](model.encoders[v](batch.x[v][i : i + 1]))[0]
            for c in range(len(told)):
                if batch.holes[v] is None or not batch.holes[v][i, c]:
                    total += float((batch.x[v][i, c] - told[c]) ** 2) / 6
    terms = model.loss(batch)
    assert float(terms["reconstruction"]) == pytest.approx(0.3 * total, rel=1e-5)
    h = model.outputs(batch)
    assert terms["correlation"] == model.correlation(h)
    assert list(terms) == ["correlation", "reconstruction"]


def test_without_reconstruction_it_is_dcca():
    X = correlated(90)
    X[0][:20], X[1][70:] = np.nan, np.nan
    shared = SMALL | dict(steps=15, random_state=3)
    one = DCCA(**shared).fit(X)
    two = DCCAE(**shared, rec_weight=0.0)
    two.__class__ = type("Once", (DCCAE,), {"relearns": False})  # it hides nothing, as DCCA does
    np.testing.assert_array_equal(two.fit(X).embedding_, one.embedding_)
    assert not np.array_equal(two.set_params(rec_weight=1.0).fit(X).embedding_, one.embedding_)


def test_linear_networks_without_correlation_reach_the_error_of_pca():
    X = [x - x.mean(0) for x in correlated(80, noise=1.0)]
    x = tuple(torch.from_numpy(a).float() for a in X)
    data = Views(x, torch.ones(80, 2).bool(), torch.arange(80), (None, None), ("a", "b"))
    model = build(data, hidden=(), rec_weight=1.0, batch_size=80).train()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=400, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = model.loss(data)["reconstruction"]
        loss.backward()
        return loss

    optimizer.step(closure)
    reached = closure().item()
    expected = 0.0
    for a in X:
        pca = PCA(2).fit(a)
        expected += ((a - pca.inverse_transform(pca.transform(a))) ** 2).sum() / len(a)
    assert reached == pytest.approx(expected, rel=1e-3)


def test_the_correlation_does_not_reach_the_decoders():
    model = build(batch_of()).train()
    terms = model.loss(batch_of()[:6])
    decoders = list(model.decoders.parameters())
    found = torch.autograd.grad(
        terms["correlation"], decoders, retain_graph=True, allow_unused=True
    )
    assert found == (None,) * len(decoders)
    found = torch.autograd.grad(terms["reconstruction"], list(model.parameters()))
    assert all(g.abs().max() > 0 for g in found)


@torch.no_grad()
def test_a_missing_view_is_told_by_its_expected_canonical_variates():
    batch = batch_of()
    model = build(batch)
    told, linear = model.decode(batch), model.linear
    h = model.outputs(batch)
    for v, rows in ((0, slice(6, 9)), (1, slice(9, 12))):
        own = [i for i in range(12) if batch.mask[i, v]]
        torch.testing.assert_close(told[v][0, own], model.decoders[v](h[own, v]))
        u = (h[rows, 1 - v] - linear.mean[1 - v]) @ linear.weight[1 - v]
        back = linear.mean[v] + linear.rho * u @ torch.linalg.inv(linear.weight[v])
        torch.testing.assert_close(told[v][0, rows], model.decoders[v](back), rtol=1e-4, atol=1e-5)
    assert [x.shape for x in model.decode(batch, draws=3)] == [(3, 12, 5), (3, 12, 3)]
    junk = tuple(torch.where(batch.mask[:, [v]], x, 1e6) for v, x in enumerate(batch.x))
    for clean, poisoned in zip(told, model.decode(replace(batch, x=junk)), strict=True):
        torch.testing.assert_close(poisoned, clean, rtol=0, atol=0)


@torch.no_grad()
def test_new_samples_are_as_correlated_as_the_training_samples(monkeypatch):
    model = build(batch_of())
    seen = []
    monkeypatch.setattr(model, "decode_both", lambda h: seen.append(h))
    torch.manual_seed(0)
    model.prior(20_000)
    u = model.linear.project(seen[0])
    covariance = torch.cov(u.flatten(1).t())
    expected = torch.eye(4) + torch.diag(model.linear.rho, 2) + torch.diag(model.linear.rho, -2)
    torch.testing.assert_close(covariance, expected, rtol=0, atol=0.05)


def test_views_hidden_from_it_are_told_better_than_by_their_mean():
    X, truth = correlated(400), correlated(400)
    X[0][:80], X[1][80:160] = np.nan, np.nan
    settings = dict(latent_dim=3, hidden=(32,), steps=150, rec_weight=0.05, random_state=0)
    model = DCCAE(**settings).fit(X)
    filled = model.impute(X)
    for v, rows in ((0, slice(0, 80)), (1, slice(80, 160))):
        gap = ((filled[v] - truth[v]) / truth[v].std(0))[rows]
        assert (gap**2).mean() < 0.5
    assert all(share > 0.5 for share in model.r2_.values())


def test_a_negative_weight_is_refused():
    with pytest.raises(ValueError, match="rec_weight must be at least 0, got -1"):
        DCCAE(rec_weight=-1).fit(correlated(30))
