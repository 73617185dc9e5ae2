"""MVAE: against the paper written slowly, against exact likelihoods, and what must never matter."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from building import model_of
from oracles import vaes
from oracles.vaes import batch_of, build
from scipy.stats import chisquare
from torch.distributions import Bernoulli, Laplace, MultivariateNormal, Normal

from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.methods.deep import mvae
from vedute.methods.deep.mvae import MVAE, random_subsets
from vedute.methods.deep.shared.vae import product_with_prior
from vedute.nn import shards
from vedute.nn.gaussian import kl, standard_like
from vedute.nn.likelihoods import LIKELIHOODS

MODES = [dict(subsample="none"), dict(subsample="unimodal")]
MODES += [dict(subsample="unimodal+k", subsets=k) for k in (0, 1, 3)]
MODES += [mode | dict(view_dropout=0.5) for mode in MODES]
PUBLISHED = dict(subsample="unimodal+k")


def slow_loss(model, batch, kept, noise, random):
    """noise (B, S, D) and random subsets (B, k, L) in the order of the bounds; `kept`: the batch
    without the views that are hidden, but told by the joint."""
    hp, rec, divergence = model.hp, 0.0, 0.0
    for b in range(len(batch)):
        q = vaes.experts(model, kept, b)
        bounds = [(0, list(q))]
        if hp.subsample != "none":
            bounds += [(1 + v, [v]) for v in q]
        if hp.subsample == "unimodal+k" and len(q) > 2:
            start = 1 + batch.shape[1]
            bounds += [(start + j, s.nonzero()[:, 0].tolist()) for j, s in enumerate(random[b])]
        for place, views in bounds:
            several = {"always": True, "several": len(views) > 1, "never": False}
            prior = [vaes.standard(model)] if several[hp.prior_expert] else []
            joint = vaes.product([*(q[v] for v in views), *prior])
            z = joint.mean + joint.stddev * noise[b, place]
            told = batch.mask[b].nonzero()[:, 0].tolist() if place == 0 else views
            rec = rec + vaes.told(model, batch, b, told, z)
            divergence = divergence + vaes.kl(joint, vaes.standard(model))
    return {"reconstruction": rec / len(batch), "kl": hp.beta * divergence / len(batch)}


def compare(monkeypatch, model, batch):
    torch.manual_seed(7)
    k = model.hp.subsets
    kept = vaes.fix_hidden(monkeypatch, model, batch)
    random = random_subsets(kept.mask, k)
    noise = torch.randn(len(batch), 1 + batch.shape[1] + k, model.latent_dim)
    used = {"none": 1, "unimodal": 1 + batch.shape[1]}.get(model.hp.subsample)
    monkeypatch.setattr(mvae, "random_subsets", lambda mask, k: random)
    vaes.fix_noise(monkeypatch, noise[:, :used])
    vaes.as_written(model, model.loss(batch), slow_loss(model, batch, kept, noise, random))


@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize("settings", MODES, ids=str)
def test_same_loss_as_the_paper_written_slowly(monkeypatch, L, settings):
    compare(monkeypatch, build(MVAE, L, **settings), batch_of(L, holes=True))


@pytest.mark.parametrize("prior_expert", declared(MVAE)["prior_expert"].choices)
@pytest.mark.parametrize(("kind", "rescale"), [("laplace", 9.0), ("bernoulli", False)])
def test_other_experts_and_likelihoods(monkeypatch, prior_expert, kind, rescale):
    model = build(MVAE, 4, kind, prior_expert=prior_expert, rescale=rescale, **PUBLISHED)
    compare(monkeypatch, model, batch_of(4, holes=True, kind=kind))


# Closed forms.

PRODUCTS = [  # members, then mean and variance without and with the prior
    ((0,), (1.0, 1.0), (0.5, 0.5)),
    ((1,), (-1.0, 4.0), (-0.2, 0.8)),
    ((2,), (3.0, 0.25), (2.4, 0.2)),
    ((0, 1), (0.6, 0.8), (0.3333333333, 0.4444444444)),
    ((0, 2), (2.6, 0.2), (2.1666666667, 0.1666666667)),
    ((1, 2), (2.7647058824, 0.2352941176), None),
    ((0, 1, 2), (2.4285714286, 0.1904761905), (2.04, 0.16)),
]


@pytest.mark.parametrize(("members", "without", "beside"), PRODUCTS)
def test_products_of_the_base_experts(members, without, beside):
    chosen = torch.tensor([[v in members for v in range(3)]])
    for prior, values in ((False, without), (True, beside)):
        if values is not None:
            q = product_with_prior(vaes.BASE, chosen, torch.tensor([prior]))
            found = (q.mean.item(), q.logvar.exp().item())
            assert found == pytest.approx(values, abs=1e-10)


@pytest.mark.parametrize(
    ("members", "prior", "value"),
    [
        ((0,), False, 0.5),
        ((1,), False, 1.3068528194),
        ((2,), False, 4.8181471806),
        ((0, 1), False, 0.1915717757),
        ((0, 1, 2), False, 3.3733317254),
        ((0,), True, 0.2215735903),
        ((0, 1, 2), True, 2.5770907319),
    ],
)
def test_divergence_of_the_base_experts(members, prior, value):
    words = {True: "always", False: "never"}
    settings = dict(subsample="none", prior_expert=words[prior], beta=1.0)
    model, batch = vaes.with_base_experts(MVAE, members, **settings)
    assert model.loss(batch)["kl"].item() == pytest.approx(value, abs=1e-10)
    q = product_with_prior(vaes.BASE, batch.mask, torch.tensor([prior]))
    assert kl(q, standard_like(q)).item() == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(
    ("mask", "settings", "bound"),
    [
        ((1, 1), dict(subsample="none"), -3.0254234677),
        ((1, 0), dict(subsample="none"), -1.5155121235),
        ((0, 1), dict(subsample="none"), -1.7486574894),
        ((1, 1), dict(subsample="unimodal"), -6.2895930806),
        (
            (1, 1),
            dict(subsample="unimodal+k", subsets=2),
            -6.2895930806,
        ),  # two views have no subset in between
        ((1, 1), dict(subsample="none", beta=2.5), -3.8275764029),
    ],
)
def test_with_exact_experts_the_bound_is_the_likelihood(monkeypatch, mask, settings, bound):
    model = vaes.linear(MVAE, (1.0, 2.0), **settings)
    seen = torch.tensor([mask]).bool()
    x = tuple(torch.tensor([[a]]) * m for a, m in zip((1.0, 0.5), mask, strict=True))
    batch = Views(x, seen, torch.arange(1), (None, None), ("a", "b"))
    terms = vaes.expected(model, batch, monkeypatch)
    told = sum(mask) * (1 if settings.get("subsample") == "none" else 2)
    constant = 0.5 * math.log(2 * math.pi)
    assert -sum(terms.values()) - told * constant == pytest.approx(bound, abs=2e-6)
    if settings == dict(subsample="none") and sum(mask) == 2:
        assert -terms["reconstruction"] - 2 * constant == pytest.approx(-2.4906548442, abs=2e-6)
        assert terms["kl"] == pytest.approx(0.5347686235, abs=2e-6)
        q = model.posterior(model.experts(batch), batch.mask)
        assert (q.mean.item(), q.logvar.exp().item()) == pytest.approx((1 / 3, 1 / 6))


# Learned: x_v ~ N(a_v z, 1), z ~ N(0, 1), rows with both views, the first or the second in turn.

SLOPES = torch.tensor([1.0, 2.0])
PATTERNS = ((1, 1), (1, 0), (0, 1))


def linear_data(n, seed, patterns):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, generator=g) * SLOPES + torch.randn(n, 2, generator=g)
    mask = torch.tensor(patterns).bool()[torch.arange(n) % len(patterns)]
    x = torch.where(mask, x, 0.0)
    return Views(x.split(1, dim=1), mask, torch.arange(n), (None, None), ("a", "b"))


@pytest.fixture(scope="module")
def trained():
    """Networks just rich enough: linear decoders, and experts with a linear mean."""
    exact = dict(latent_dim=1, hidden=(), linear_paths=False, rescale=False, scaling="none")
    exact |= dict(weight_decay=0.0, **vaes.OFF)
    training = dict(steps=1000, lr=0.02, batch_size=256, early_stopping=False, random_state=0)
    return MVAE(**exact, **training).fit(linear_data(3000, 0, PATTERNS))


@pytest.mark.parametrize("mask", PATTERNS)
def test_a_short_training_brings_the_bound_to_the_likelihood(monkeypatch, trained, mask):
    batch, seen = linear_data(4000, 1, [mask]), torch.tensor(mask).bool()
    terms = vaes.expected(trained.model_, batch, monkeypatch)
    bound = -sum(terms.values()) - sum(mask) * 0.5 * math.log(2 * math.pi)
    a = SLOPES[seen]
    p = MultivariateNormal(torch.zeros_like(a), a.outer(a) + torch.eye(len(a)))
    likelihood = p.log_prob(torch.cat(batch.x, dim=1)[:, seen]).mean().item()
    assert bound == pytest.approx(likelihood, abs=0.05)


@pytest.mark.parametrize(
    ("warmup", "steps", "shares"),
    [
        (0, 6, [1]),
        (4, 6, [0, 0.25, 0.5, 0.75, 1]),
        (50, 6, [i / 6 for i in range(6)]),
        (39, 45, [i / 20 for i in range(21)]),  # some shares last a step longer
    ],
)
def test_beta_grows_over_the_warmup(monkeypatch, warmup, steps, shares):
    seen, loss = [], mvae.MVAEModel.loss

    def watched(model, batch):
        seen.append(model.grown.item())
        return loss(model, batch)

    monkeypatch.setattr(mvae.MVAEModel, "loss", watched)
    size = dict(latent_dim=1, hidden=(), batch_size=8, early_stopping=False, random_state=0)
    size |= dict(cooldown=0)
    model = MVAE(**size, warmup=warmup, steps=steps).fit(linear_data(40, 0, PATTERNS))
    assert model.history_[-1]["step"] == len(seen) == steps
    assert list(dict.fromkeys(seen)) == pytest.approx(shares)
    assert sum(share < 1 for share in seen) == min(warmup, steps)
    assert (model.history_[0]["terms"]["kl"] == 0) == (warmup > 0)


@pytest.mark.parametrize("rescale", [True, False, 20.0])
def test_weighted_errors_are_log_likelihoods(rescale):
    kinds, scale = [LIKELIHOODS[k] for k in ("normal", "laplace", "bernoulli")], 0.7
    hp = MVAE(scale=scale, rescale=rescale)
    weights = mvae.MVAEModel([(4,), (2, 3), (8,)], kinds, hp, 10).weights
    torch.manual_seed(0)
    for kind, weight, shape in zip(kinds, weights, ((4,), (2, 3), (8,)), strict=True):
        out, x = torch.randn(5, *shape), (torch.randn(5, *shape) > 0).float()
        error = weight * kind.error(out, x).flatten(1).sum(1)
        density = {
            "normal": lambda at: Normal(at, scale),
            "laplace": lambda at: Laplace(at, scale),
            "bernoulli": lambda at: Bernoulli(logits=at),
        }[kind.name]
        log_p = density(out).log_prob(x).flatten(1).sum(1)
        peak = density(x).log_prob(x) if not kind.logits else torch.zeros(5, 8)
        dim = math.prod(shape)
        r = {True: 8, False: dim}.get(rescale, rescale) / dim
        torch.testing.assert_close(error, r * (peak.flatten(1).sum(1) - log_p))


# The random subsets.


def test_random_subsets_are_strict_and_every_size_is_as_likely():
    torch.manual_seed(0)
    mask = torch.tensor([[1, 1, 1, 1, 1, 0], [1, 0, 1, 0, 1, 0], [1, 0, 1, 0, 0, 0]]).bool()
    drawn = random_subsets(mask, 6000)
    assert not (drawn & ~mask[:, None]).any()
    sizes = drawn.sum(-1)
    counts = [int((sizes[0] == n).sum()) for n in (2, 3, 4)]
    assert sum(counts) == 6000
    assert chisquare(counts).pvalue > 1e-3
    assert chisquare(drawn[0, sizes[0] == 3].sum(0)[:5]).pvalue > 1e-3
    assert (sizes[1] == 2).all()  # three views: always two of them
    pairs = 4 * drawn[1, :, 0] + 2 * drawn[1, :, 2] + drawn[1, :, 4]
    assert chisquare(pairs.bincount()[[3, 5, 6]]).pvalue > 1e-3
    assert (drawn[2] == mask[2]).all()  # nothing in between: left out of the loss


# What must never matter.


@pytest.mark.parametrize("settings", MODES, ids=str)
def test_the_order_of_the_views_does_not_matter(monkeypatch, settings):
    model, batch, order = build(MVAE, 4, **settings), batch_of(4, B=9), [2, 0, 3, 1]
    other, moved = vaes.reordered(model, batch, order)
    hidden = batch.mask & ~vaes.fix_hidden(monkeypatch, model, batch).mask
    drawn = random_subsets(batch.mask & ~hidden, model.hp.subsets)
    vaes.fix_noise(monkeypatch, torch.randn(9, 3))
    monkeypatch.setattr(mvae, "random_subsets", lambda mask, k: drawn)
    here = model.loss(batch)
    monkeypatch.setattr(mvae, "random_subsets", lambda mask, k: drawn[..., order])
    monkeypatch.setattr(shards, "hide", lambda batch, share: batch.hide(hidden[:, order]))
    vaes.same(other.loss(moved), here)


def test_draws_scatter_round_the_posterior():
    model, batch = build(MVAE, 3), batch_of(3)
    q = model.experts(batch)
    z = model.draw(q, batch.mask, 4000)
    p = model.posterior(q, batch.mask)
    torch.testing.assert_close(z.mean(0), p.mean, atol=0.06, rtol=0)
    torch.testing.assert_close(z.var(0), p.logvar.exp(), atol=0.08, rtol=0)
    told = model.decode(batch, draws=5)
    assert [t.shape for t in told] == [(5, 6, w) for w in vaes.WIDTHS[:3]]
    assert [t.shape for t in model.prior(7)] == [(1, 7, w) for w in vaes.WIDTHS[:3]]


@pytest.mark.parametrize("network", ["mvp", "polymnist", "mlp"])
def test_pictures_beside_a_table(network):
    hp = MVAE(latent_dim=4, hidden=(8,), network=network, output="tanh", rescale=True, **PUBLISHED)
    torch.manual_seed(0)
    model = model_of(hp, [(3, 28, 28), (5,)], ("laplace", "normal"))
    x = (torch.rand(3, 3, 28, 28) * 2 - 1, torch.randn(3, 5))
    mask = torch.tensor([[1, 1], [1, 0], [0, 1]]).bool()
    whole = Views(x, torch.ones_like(mask), torch.arange(3), (None, None), ("a", "b"))
    batch = whole.hide(~mask)
    assert [t.shape for t in model.decode(batch)] == [(1, 3, 3, 28, 28), (1, 3, 5)]
    assert model.decode(batch)[0].abs().max() <= 1
    assert model.weights.tolist() == pytest.approx([1.0, 2352 / 5 / 2])
    vaes.check_single_views(model, replace(batch, mask=mask))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (dict(subsample="some"), "subsample must be one of none, unimodal, unimodal"),
        (dict(prior_expert="full_only"), "prior_expert must be one of always, several, never"),
        (dict(subsets=-1), "subsets must be at least 0, got -1"),
        (dict(warmup=-1), "warmup must be at least 0, got -1"),
        (dict(latent_dim=0), "latent_dim must be at least 1, got 0"),
        (dict(scale=0.0), "scale must be above 0, got 0"),
        (dict(rescale=-3.0), "rescale must be above 0, got -3"),
        (dict(beta=-1.0), "beta must be at least 0, got -1"),
        (dict(view_dropout=1.0), "view_dropout must be at least 0 and below 1, got 1"),
        (dict(cooldown=-1), "cooldown must be at least 0, got -1"),
        (dict(dropout=1.0), "dropout must be at least 0 and below 1, got 1"),
        (dict(output="relu"), "output must be one of linear, tanh, got 'relu'"),
        (dict(network="big"), "network must be one of .*, got 'big'"),
    ],
)
def test_settings_that_cannot_be(settings, told):
    with pytest.raises(ValueError, match=told):
        MVAE(**settings).check_settings()
