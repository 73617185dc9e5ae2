"""mmJSD: against the paper written slowly, closed forms, and what must never matter."""

from __future__ import annotations

import pytest
import torch
from oracles import vaes
from oracles.vaes import BASE, batch_of, build

from vedute.methods.deep import mmjsd
from vedute.methods.deep.mmjsd import MMJSD, geometric_mean, jensen_shannon
from vedute.methods.deep.shared.vae import any_of, with_prior
from vedute.nn.gaussian import Gaussian, kl, standard_like


def slow_mean(factors):
    """The geometric mean with equal weights: precisions and pulls are averaged."""
    n = len(factors)
    precision = sum(q.stddev**-2 for q in factors) / n
    mean = sum(q.mean * q.stddev**-2 for q in factors) / n / precision
    return vaes.Normal(mean, precision**-0.5)


def slow_loss(model, batch, noise, chosen):
    """noise (B, D); chosen (B,): the component that tells the views, L for the prior."""
    hp, p, rec, divergence = model.hp, vaes.standard(model), 0.0, 0.0
    for b in range(len(batch)):
        q = vaes.experts(model, batch, b)
        all_of_them = [*q.values(), p]
        f = slow_mean(all_of_them)
        one = {**q, batch.shape[1]: p}[int(chosen[b])]
        rec = rec + vaes.told(model, batch, b, q, one.mean + one.stddev * noise[b])
        divergence = divergence + sum(vaes.kl(e, f) for e in all_of_them) / len(all_of_them)
    return {"reconstruction": rec / len(batch), "jsd": hp.beta * divergence / len(batch)}


def mixed(model, batch):
    """What z may be drawn from, (B, L + 1)."""
    last = torch.full((len(batch), 1), model.hp.prior_in_mixture)
    return torch.cat([batch.mask, last], dim=1)


def compare(monkeypatch, model, batch):
    torch.manual_seed(7)
    chosen, noise = any_of(mixed(model, batch)), torch.randn(len(batch), model.latent_dim)

    def pick(offered):
        assert torch.equal(offered, mixed(model, batch))
        return chosen

    monkeypatch.setattr(mmjsd, "any_of", pick)
    vaes.fix_noise(monkeypatch, noise)
    vaes.as_written(model, model.loss(batch), slow_loss(model, batch, noise, chosen))


@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize("prior_in_mixture", [False, True])
def test_same_loss_as_the_paper_written_slowly(monkeypatch, L, prior_in_mixture):
    model = build(MMJSD, L, prior_in_mixture=prior_in_mixture)
    compare(monkeypatch, model, batch_of(L, B=12, holes=True))


@pytest.mark.parametrize(("kind", "rescale"), [("laplace", True), ("bernoulli", False)])
def test_other_likelihoods(monkeypatch, kind, rescale):
    batch = batch_of(4, holes=True, kind=kind)
    compare(monkeypatch, build(MMJSD, 4, kind, rescale=rescale), batch)


# Closed forms.


@pytest.mark.parametrize(
    ("seen", "mean", "variance", "value"),
    [
        ((0,), 0.5, 1.0, 0.125),
        ((0, 1), 0.3333333333, 1.3333333333, 0.4544586427),
        ((0, 1, 2), 2.04, 0.64, 3.5066220737),
    ],
)
def test_divergence_of_the_base_experts(seen, mean, variance, value):
    model, batch = vaes.with_base_experts(MMJSD, seen, beta=1.0)
    kept = torch.cat([batch.mask, torch.ones(1, 1).bool()], dim=1)
    f = geometric_mean(with_prior(BASE), kept)
    found = (f.mean.item(), f.logvar.exp().item())
    assert found == pytest.approx((mean, variance), abs=1e-10)
    assert model.loss(batch)["jsd"].item() == pytest.approx(value, abs=1e-10)
    if len(seen) > 1:
        told = model.posterior(BASE, batch.mask)
        assert (told.mean.item(), told.logvar.exp().item()) == pytest.approx(found)


def test_each_divergence_of_two_base_experts_and_the_prior():
    kept = torch.tensor([[True, True, False, True]])
    f = geometric_mean(with_prior(BASE), kept).map(lambda t: t.unsqueeze(1))
    each = kl(with_prior(BASE), f)[kept].tolist()
    assert each == pytest.approx([0.1855077029, 1.1173605223, 0.0605077029], abs=1e-10)


def test_experts_like_the_prior_do_not_diverge():
    q = standard_like(with_prior(BASE))
    assert jensen_shannon(q, torch.ones(1, 4).bool()).item() == 0


def test_two_of_equal_width():
    q = Gaussian(torch.tensor([[[2.0], [-1.0]]]), torch.tensor([[[0.5], [0.5]]]).log())
    assert jensen_shannon(q, torch.ones(1, 2).bool()).item() == pytest.approx(2.25)


# Inference.


def test_dynamic_prior_is_the_expert_where_there_is_one():
    model, batch = build(MMJSD, 4), batch_of(4, B=12)
    p = model.posterior(model.experts(batch), batch.mask)
    for b in range(12):
        q = list(vaes.experts(model, batch, b).values())
        f = slow_mean([*q, vaes.standard(model)]) if len(q) > 1 else q[0]
        vaes.same((p.mean[b], (p.logvar[b] / 2).exp()), (f.mean, f.stddev))


def test_mean_of_means_averages_a_draw_of_each():
    model, batch = build(MMJSD, 4, subset_rule="mean_of_means"), batch_of(4, B=12)
    p = model.posterior(model.experts(batch), batch.mask)
    for b in range(12):
        q = list(vaes.experts(model, batch, b).values())
        variance = sum(e.variance for e in q) / len(q) ** 2
        vaes.same((p.mean[b], p.logvar[b].exp()), (sum(e.mean for e in q) / len(q), variance))


def test_a_random_expert_is_one_of_those_seen(monkeypatch):
    model, batch = build(MMJSD, 3, subset_rule="random_expert"), batch_of(3)
    vaes.fix_noise(monkeypatch, torch.zeros(900, 6, 3))
    torch.manual_seed(0)
    z = model.draw(model.experts(batch), batch.mask, 900)  # (900, 6, 3)
    for b in range(6):
        means = torch.stack([q.mean for q in vaes.experts(model, batch, b).values()])
        hit = (z[:, b, None] - means).abs().amax(-1) < 1e-5
        assert (hit.sum(1) == 1).all()
        torch.testing.assert_close(
            hit.float().mean(0), torch.full((len(means),), 1 / len(means)), atol=0.06, rtol=0
        )
        vaes.same(model.embed(batch)[b], means.mean(0))


def test_the_order_of_the_views_does_not_matter(monkeypatch):
    model, batch, order = build(MMJSD, 4), batch_of(4, B=9), torch.tensor([2, 0, 3, 1])
    other, moved = vaes.reordered(model, batch, order.tolist())
    vaes.fix_noise(monkeypatch, torch.randn(9, 3))
    chosen = any_of(batch.mask)
    monkeypatch.setattr(mmjsd, "any_of", lambda mask: chosen)
    here = model.loss(batch)
    monkeypatch.setattr(mmjsd, "any_of", lambda mask: order.argsort()[chosen])
    vaes.same(other.loss(moved), here)


def test_settings_that_cannot_be():
    with pytest.raises(ValueError, match="subset_rule must be one of dynamic_prior, random_expert"):
        MMJSD(subset_rule="product").check_settings()
