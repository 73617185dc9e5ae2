"""MoPoE: against the paper written slowly, closed forms, and what must never matter."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from building import model_of
from oracles import vaes
from oracles.vaes import batch_of, build, complete
from scipy.stats import chisquare

from vedute.estimators.settings import declared
from vedute.methods.deep import mopoe
from vedute.methods.deep.mopoe import MoPoE, all_products, subsets
from vedute.methods.deep.mvae import MVAE
from vedute.methods.deep.shared.vae import any_of
from vedute.nn.gaussian import Gaussian, product


def members(model, chosen):
    return model.members[chosen].nonzero()[:, 0].tolist()


def slow_loss(model, batch, noise, chosen):
    """noise (B, D); chosen (B,): which of all subsets tells the views."""
    hp, L, rec, divergence = model.hp, batch.shape[1], 0.0, 0.0
    p = vaes.standard(model)
    for b in range(len(batch)):
        q = vaes.experts(model, batch, b)
        parts = {}
        for s in vaes.all_subsets(q):
            prior = {"full_only": len(s) == L, "never": False, "always": True}[hp.prior_expert]
            parts[s] = vaes.product([*(q[v] for v in s), *([p] if prior else [])])
        one = parts[tuple(members(model, chosen[b]))]
        rec = rec + vaes.told(model, batch, b, q, one.mean + one.stddev * noise[b])
        divergence = divergence + sum(vaes.kl(part, p) for part in parts.values()) / len(parts)
    return {"reconstruction": rec / len(batch), "kl": hp.beta * divergence / len(batch)}


def compare(monkeypatch, model, batch):
    torch.manual_seed(7)
    available = ~(model.members & ~batch.mask[:, None]).any(-1)
    chosen, noise = any_of(available), torch.randn(len(batch), model.latent_dim)

    def pick(offered):
        assert torch.equal(offered, available)
        return chosen

    monkeypatch.setattr(mopoe, "any_of", pick)
    vaes.fix_noise(monkeypatch, noise)
    vaes.as_written(model, model.loss(batch), slow_loss(model, batch, noise, chosen))


@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize("prior_expert", declared(MoPoE)["prior_expert"].choices)
def test_same_loss_as_the_paper_written_slowly(monkeypatch, L, prior_expert):
    model = build(MoPoE, L, prior_expert=prior_expert)
    compare(monkeypatch, model, batch_of(L, holes=True))


@pytest.mark.parametrize(("kind", "rescale"), [("laplace", True), ("bernoulli", False)])
def test_other_likelihoods(monkeypatch, kind, rescale):
    batch = batch_of(4, holes=True, kind=kind)
    compare(monkeypatch, build(MoPoE, 4, kind, rescale=rescale), batch)


def test_subsets_are_all_there_once():
    found = [tuple(s.nonzero()[:, 0].tolist()) for s in subsets(5)]
    assert sorted(found) == sorted(vaes.all_subsets(range(5)))
    assert len(found) == 31
    assert found[-1] == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("L", [1, 3, 7])
@pytest.mark.parametrize("apart", [1.0, 8.0])
def test_doubling_gives_the_masked_product_of_every_subset(L, apart):
    torch.manual_seed(0)
    q = Gaussian(torch.randn(4, L, 3), (apart * torch.randn(4, L, 3)).clamp(-15, 15))
    for p in q:
        p.requires_grad_()
    chosen = subsets(L)
    slow = product(q.map(lambda t: t.unsqueeze(1)), 2, chosen[None, :, :, None])
    fast = all_products(q, torch.zeros(len(chosen), dtype=torch.bool))
    torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-5)
    found = [torch.autograd.grad((p.mean.sin() + p.logvar.cos()).sum(), [*q]) for p in (fast, slow)]
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)
    alone = fast.map(lambda t: t[:, chosen.sum(1) == 1])  # one expert is itself: a plain mixture
    torch.testing.assert_close(alone, q, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("seen", "prior_expert", "value"),
    [
        ((0, 1, 2), "full_only", 2.4773267603),
        ((0, 1, 2), "never", 2.5910754736),
        ((0, 1), "full_only", 0.6661415317),
        ((0, 1), "never", 0.6661415317),
    ],
)
def test_average_divergence_of_the_base_experts(seen, prior_expert, value):
    settings = dict(beta=1.0, prior_expert=prior_expert)
    model, batch = vaes.with_base_experts(MoPoE, seen, **settings)
    assert model.loss(batch)["kl"].item() == pytest.approx(value, abs=1e-10)


def test_the_full_set_alone_is_the_joint_bound_of_mvae(monkeypatch):
    model, batch = build(MoPoE, 3, prior_expert="always"), complete(3)
    other = build(MVAE, 3, subsample="none")
    vaes.fix_noise(monkeypatch, torch.randn(6, 3))
    monkeypatch.setattr(mopoe, "any_of", lambda available: torch.full((6,), 6))
    same = model.loss(batch)["reconstruction"], other.loss(batch)["reconstruction"]
    torch.testing.assert_close(*same)
    incomplete = batch_of(3)
    torch.testing.assert_close(model.embed(incomplete), other.embed(incomplete))


def test_one_view_without_prior_expert_is_a_plain_vae(monkeypatch):
    model, batch = build(MoPoE, 1, prior_expert="never"), complete(1)
    noise = torch.randn(6, 3)
    vaes.fix_noise(monkeypatch, noise)
    rec = divergence = 0.0
    for b in range(6):
        q = vaes.experts(model, batch, b)[0]
        rec += vaes.error(model, batch, b, 0, q.mean + q.stddev * noise[b]) / 6
        divergence += model.hp.beta * vaes.kl(q, vaes.standard(model)) / 6
    vaes.same(model.loss(batch), {"reconstruction": rec, "kl": divergence})


def test_every_available_subset_is_as_likely():
    torch.manual_seed(0)
    mask = torch.tensor([1, 0, 1, 1]).bool()
    available = ~(subsets(4) & ~mask).any(-1)
    drawn = Counter(any_of(available.expand(14_000, 15)).tolist())
    assert set(drawn) == set(available.nonzero()[:, 0].tolist())
    assert len(drawn) == 7
    assert chisquare(list(drawn.values())).pvalue > 1e-3


def test_the_order_of_the_views_does_not_matter(monkeypatch):
    model, batch, order = build(MoPoE, 4), batch_of(4, B=9), [2, 0, 3, 1]
    other, moved = vaes.reordered(model, batch, order)
    vaes.fix_noise(monkeypatch, torch.randn(9, 3))
    chosen = any_of(~(model.members & ~batch.mask[:, None]).any(-1))
    there = (other.members[None] == model.members[chosen][:, None, order]).all(-1).int().argmax(1)
    monkeypatch.setattr(mopoe, "any_of", lambda available: chosen)
    here = model.loss(batch)
    monkeypatch.setattr(mopoe, "any_of", lambda available: there)
    vaes.same(other.loss(moved), here)


def test_inference_is_the_product_of_exactly_what_is_seen():
    model, batch = build(MoPoE, 3), batch_of(3)
    z = model.embed(batch)
    for b in range(6):
        q = list(vaes.experts(model, batch, b).values())
        prior = [vaes.standard(model)] if len(q) == 3 else []
        vaes.same(z[b], vaes.product([*q, *prior]).mean)


def test_settings_that_cannot_be():
    with pytest.raises(ValueError, match="prior_expert must be one of full_only, never, always"):
        MoPoE(prior_expert="yes").check_settings()
    with pytest.raises(ValueError, match="every subset of the views, at most 12 views, got 13"):
        model_of(MoPoE(), [(3,)] * 13, ("normal",) * 13)


def test_twelve_views_will_do():
    model = model_of(MoPoE(latent_dim=2, hidden=(3,)), [(1,)] * 12, ("normal",) * 12)
    assert model.members.shape == (4095, 12)
    x = tuple(torch.ones(2, 1) for _ in range(12))
    whole = vaes.Views(x, torch.ones(2, 12).bool(), torch.arange(2), (None,) * 12, ("v",) * 12)
    assert all(t.isfinite() for t in model.loss(whole).values())
