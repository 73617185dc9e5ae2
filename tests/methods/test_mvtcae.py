"""MVTCAE: against the paper written slowly, closed forms, limits, and what must never matter."""

from __future__ import annotations

import math

import pytest
import torch
from oracles import vaes
from oracles.vaes import batch_of, build, complete

from vedute.estimators.settings import declared
from vedute.methods.deep.mvae import MVAE
from vedute.methods.deep.mvtcae import MVTCAE
from vedute.nn.gaussian import Gaussian


def slow_loss(model, batch, kept, noise):
    """`kept`: the batch without the views that are hidden, but told and counted."""
    hp, p = model.hp, vaes.standard(model)
    rec = prior = views = 0.0
    for b in range(len(batch)):
        q, seen = vaes.experts(model, kept, b), batch.mask[b].nonzero()[:, 0].tolist()
        V = len(seen) if hp.normaliser == "observed" else batch.shape[1]
        joint = vaes.product(list(q.values()))
        z = joint.mean + joint.stddev * noise[b]
        rec = rec + (V - hp.alpha) / V * vaes.told(model, batch, b, seen, z)
        prior = prior + (1 - hp.alpha) * vaes.kl(joint, p)
        views = views + hp.alpha / V * sum(vaes.kl(joint, q[v]) for v in q)
    terms = {"reconstruction": rec, "kl_prior": hp.beta * prior, "kl_views": hp.beta * views}
    return {k: t / len(batch) for k, t in terms.items()}


def compare(monkeypatch, model, batch):
    torch.manual_seed(7)
    kept = vaes.fix_hidden(monkeypatch, model, batch)
    noise = torch.randn(len(batch), model.latent_dim)
    vaes.fix_noise(monkeypatch, noise)
    vaes.as_written(model, model.loss(batch), slow_loss(model, batch, kept, noise))


@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize("normaliser", declared(MVTCAE)["normaliser"].choices)
@pytest.mark.parametrize("alpha", [0.0, 5 / 6, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_same_loss_as_the_paper_written_slowly(monkeypatch, L, normaliser, alpha, share):
    model = build(MVTCAE, L, normaliser=normaliser, alpha=alpha, view_dropout=share)
    compare(monkeypatch, model, batch_of(L, holes=True))


@pytest.mark.parametrize(("kind", "rescale"), [("laplace", True), ("bernoulli", False)])
def test_other_likelihoods(monkeypatch, kind, rescale):
    batch = batch_of(4, holes=True, kind=kind)
    compare(monkeypatch, build(MVTCAE, 4, kind, rescale=rescale), batch)


# Closed forms: the base experts, alpha 5/6 and beta 2.5.


@pytest.mark.parametrize(
    ("seen", "normaliser", "regulariser"),
    [
        ((0, 1, 2), "views", 4.6209710368),
        ((0, 1, 2), "observed", 4.6209710368),
        ((0, 1), "views", 0.6466901370),
        ((0, 1), "observed", 0.9301244189),
        ((0,), "views", 0.2083333333),
        ((0,), "observed", 0.2083333333),
    ],
)
def test_regulariser_of_the_base_experts(seen, normaliser, regulariser):
    model, batch = vaes.with_base_experts(MVTCAE, seen, normaliser=normaliser)
    terms = model.loss(batch)
    found = terms["kl_prior"] + terms["kl_views"]
    assert found.item() == pytest.approx(regulariser, abs=1e-10)


@pytest.mark.parametrize(
    ("seen", "values"),
    [
        ((0, 1, 2), (1.4447602968, 2.5154584978, 0.6699804632)),
        ((0, 1), (0.0915717757, 0.7247189562)),
        ((0,), (0.0,)),
    ],
)
def test_divergence_of_joint_and_view_in_this_direction(seen, values):
    model, batch = vaes.with_base_experts(MVTCAE, seen, alpha=1.0, beta=1.0)
    assert 3 * model.loss(batch)["kl_views"].item() == pytest.approx(sum(values), abs=1e-9)
    assert model.loss(batch)["kl_prior"].item() == 0


@pytest.mark.parametrize(("alpha", "weight"), [(5 / 6, 0.7222222222), (1.0, 2 / 3), (0.0, 1.0)])
def test_weight_of_the_reconstruction(monkeypatch, alpha, weight):
    model, plain, batch = build(MVTCAE, 3, alpha=alpha), build(MVTCAE, 3, alpha=0.0), batch_of(3)
    vaes.fix_noise(monkeypatch, torch.randn(6, 3))
    one, two = (m.loss(batch)["reconstruction"].item() for m in (model, plain))
    assert one / two == pytest.approx(weight, rel=1e-6)


# Limits.


def test_without_total_correlation_it_is_a_vae_with_a_product_of_experts(monkeypatch):
    model = build(MVTCAE, 4, alpha=0.0)
    other = build(MVAE, 4, subsample="none", prior_expert="never")
    batch = batch_of(4, holes=True)
    vaes.fix_noise(monkeypatch, torch.randn(6, 3))
    here, there = model.loss(batch), other.loss(batch)
    assert here["kl_views"] == 0
    assert here["reconstruction"].item() == there["reconstruction"].item()
    assert here["kl_prior"].item() == pytest.approx(there["kl"].item(), rel=1e-6)


def test_one_view_is_a_part_of_a_vae(monkeypatch):
    model, plain, batch = build(MVTCAE, 1), build(MVTCAE, 1, alpha=0.0), complete(1)
    vaes.fix_noise(monkeypatch, torch.randn(6, 3))
    here, there = (sum(m.loss(batch).values()).item() for m in (model, plain))
    assert here == pytest.approx((1 - 5 / 6) * there, rel=1e-5)


@pytest.mark.parametrize("V", [2, 5])
def test_equal_experts_differ_from_their_product_by_its_width(V):
    model, batch = build(MVTCAE, V, alpha=1.0, beta=1.0), complete(V)
    one = Gaussian(torch.randn(6, 1, 3), torch.randn(6, 1, 3))
    model.experts = lambda batch: one.map(lambda t: t.expand(-1, V, -1))
    joint = model.posterior(model.experts(batch), batch.mask)
    torch.testing.assert_close(joint.mean, one.mean[:, 0])
    torch.testing.assert_close(joint.logvar, one.logvar[:, 0] - math.log(V))
    each = 3 / 2 * (math.log(V) + 1 / V - 1)
    assert model.loss(batch)["kl_views"].item() == pytest.approx(each, rel=1e-5)


def test_the_order_of_the_views_does_not_matter(monkeypatch):
    model, batch = build(MVTCAE, 4), batch_of(4)
    other, moved = vaes.reordered(model, batch, (2, 0, 3, 1))
    vaes.fix_noise(monkeypatch, torch.randn(6, 3))
    vaes.same(other.loss(moved), model.loss(batch))


def test_settings_that_cannot_be():
    with pytest.raises(ValueError, match="normaliser must be one of views, observed, got 'all'"):
        MVTCAE(normaliser="all").check_settings()
    with pytest.raises(ValueError, match="alpha must be at least 0 and at most 1, got 2"):
        MVTCAE(alpha=2.0).check_settings()
