"""MMVAE+: against the paper written slowly, the numbers of its specification, where the private
codes come from, and what must never matter."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from building import model_of
from oracles import mixtures, vaes
from oracles.vaes import batch_of, build, complete
from torch.distributions import Laplace as SlowLaplace

from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.methods.deep.mmvae import MMVAE
from vedute.methods.deep.mmvaeplus import MMVAEPlus
from vedute.methods.deep.shared import mixture
from vedute.methods.deep.shared.mixture import OBJECTIVES
from vedute.nn import coders, laplace
from vedute.nn.laplace import Laplace

SHARED, PRIVATE = 3, 2
some = partial(build, MMVAEPlus, latent_dim=5, shared_dim=SHARED, samples=2, scale=3.0)


def slow_experts(model, batch, b):
    """q(z | x_v) and q(w_v | x_v) of the views that sample b has."""
    found = {}
    for v in batch.mask[b].nonzero()[:, 0].tolist():
        x = batch.x[v][b : b + 1]
        loc, h = (t[0] for t in model.encoders[v](x))
        if not model.own_encoders:
            parts = zip(loc.split((SHARED, PRIVATE)), h.split((SHARED, PRIVATE)), strict=True)
        else:
            parts = (loc, h), tuple(t[0] for t in model.own_encoders[v](x))
        found[v] = [mixtures.constrained(*part) for part in parts]
    return found


def slow_loss(model, batch, z, w, fresh):
    """Noise: z and w (K, B, L, .), and fresh (K, B, source, target, private)."""
    hp, standard = model.hp, SlowLaplace(0.0, 1.0)

    def log_weight(b, e, k, draws, q):
        z, w = draws
        told = 0.0
        for v in q:
            r = mixtures.constrained(torch.zeros(PRIVATE), model.widths[v])
            private = w if v == e else r.loc + r.scale * fresh[k, b, e, v]
            told = told + vaes.error(model, batch, b, v, torch.cat([z, private]))
        shared = standard.log_prob(z).sum() - mixtures.mixture([p for p, _ in q.values()], z)
        private = standard.log_prob(w).sum() - q[e][1].log_prob(w).sum()
        return hp.beta * (shared + private) - told

    return mixtures.slow_loss(
        hp.objective,
        batch,
        hp.samples,
        partial(slow_experts, model, batch),
        [z, w],
        log_weight,
    )


def noise_for(model, batch):
    torch.manual_seed(7)
    (B, L), K = batch.shape, model.hp.samples
    sizes = (K, B, L, SHARED), (K, B, L, PRIVATE), (K, B, L, L, PRIVATE)
    return [mixtures.noise_like(*size) for size in sizes]


def asked_for(batch, z, w, fresh):
    """Noise in the order of the batched loss: fresh codes of observed sources only."""
    return z, w, fresh[:, batch.mask]


def compare(monkeypatch, model, batch):
    noise = noise_for(model, batch)
    mixtures.fix_noise(monkeypatch, *asked_for(batch, *noise))
    vaes.as_written(model, model.loss(batch), slow_loss(model, batch, *noise))


@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_same_loss_as_the_paper_written_slowly(monkeypatch, L, samples, objective):
    model = some(L, "laplace", samples=samples, objective=objective)
    compare(monkeypatch, model, batch_of(L, holes=True))


@pytest.mark.parametrize(("kind", "rescale"), [("normal", True), ("bernoulli", False)])
def test_other_likelihoods(monkeypatch, kind, rescale):
    compare(monkeypatch, some(4, kind, rescale=rescale), batch_of(4, holes=True, kind=kind))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_shared_and_private_codes_may_have_a_trunk_each(monkeypatch, objective):
    model = some(3, "laplace", objective=objective, trunks=2)
    batch = batch_of(3, B=20, holes=True)
    compare(monkeypatch, model, batch)
    monkeypatch.undo()
    vaes.check_junk(model, batch)
    vaes.check_absent(model, batch)
    one = some(3, latent_dim=5, shared_dim=5, trunks=2)  # nothing is private
    assert not one.own_encoders
    assert one.embed(batch).shape == (20, 5)


def test_both_trunks_see_images_less_their_mean():
    model = model_of(MMVAEPlus(latent_dim=4, trunks=2), [(3, 8, 8)] * 2, ("normal",) * 2)
    coders.start_at(model, [np.full((3, 8, 8), 0.5)] * 2)
    for encoder in (*model.encoders, *model.own_encoders):
        assert (encoder.center == 0.5).all()


# The toy: q(z) = Lap(.5, .8), Lap(-.2, 1.2), q(w) = Lap(.3, .6), Lap(-.4, .9), x = (1, .5), told by
# z + w and 2z - w.


@pytest.mark.parametrize(
    ("mask", "beta", "value", "sources"),
    [
        ((True, True), 1.0, -3.4349644208, [-3.0746627931, -3.7952660485]),
        ((True, True), 2.5, -3.4710157277, [-3.9702616584, -2.9717697970]),
        ((True, False), 1.0, -1.6227676165, [-1.6227676165]),
        ((True, False), 2.5, -3.0487213791, [-3.0487213791]),
    ],
)
def test_bounds_of_the_toy(monkeypatch, mask, beta, value, sources):
    exact = dict(latent_dim=2, hidden=(), linear_paths=False, scale=0.75, rescale=False)
    model = model_of(MMVAEPlus(**exact, beta=beta), [(1,)] * 2, ("laplace",) * 2)
    with torch.no_grad():
        for slopes, decoder in zip(((1.0, 1.0), (2.0, -1.0)), model.decoders, strict=True):
            decoder.net[0].weight.copy_(torch.tensor([slopes]))
            decoder.net[0].bias.zero_()
    numbers = partial(torch.tensor, dtype=torch.float32)
    q = [((0.5, -0.2), (0.8, 1.2)), ((0.3, -0.4), (0.6, 0.9))]
    q = [Laplace(*(numbers(t).view(1, 2, 1) for t in pair)) for pair in q]
    monkeypatch.setattr(model, "experts", lambda batch: q)
    seen = sum(mask)
    fresh = numbers([0.25, -0.15]).view(1, 1, 2, 1).expand(1, seen, 2, 1)
    draws = iter(
        [numbers([0.7, -0.4]).view(1, 1, 2, 1), numbers([0.1, 0.2]).view(1, 1, 2, 1), fresh]
    )
    monkeypatch.setattr(laplace, "sample", lambda q, rows=0: next(draws))
    x = (numbers([[1.0]]), numbers([[0.5]]))
    batch = Views(x, torch.ones(1, 2).bool(), torch.arange(1), (None, None), ("a", "b"))
    weights, bound = [], mixture.bound

    def watched(objective, log_w, mask, draws):
        weights.extend((log_w[0][mask] - mask.sum() * math.log(1.5)).tolist())
        return bound(objective, log_w, mask, draws)

    monkeypatch.setattr(mixture, "bound", watched)
    loss = model.loss(batch.hide(~torch.tensor([mask])))["bound"].item()
    assert -loss - seen * math.log(1.5) == pytest.approx(value, abs=5e-6)
    assert weights == pytest.approx(sources, abs=5e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_private_codes_it_is_mmvae(objective):
    settings = dict(latent_dim=4, samples=2, objective=objective, beta=1.0)
    plus = build(MMVAEPlus, 3, shared_dim=4, **settings)
    plain = build(MMVAE, 3, **settings)
    plain.widths.data.zero_()  # Lap(0, 1)
    coders = {k: p for k, p in plus.state_dict().items() if k != "widths"}
    assert plain.load_state_dict(coders, strict=False).missing_keys == ["widths"]
    found = []
    for model in (plus, plain):
        torch.manual_seed(0)
        terms = model.loss(batch_of(3, holes=True))
        gradients = vaes.gradients(model, terms)
        found.append((terms, {k: g for k, g in gradients.items() if k != "widths"}))
        found[-1] += (model.embed(batch_of(3)), model.decode(batch_of(3)))
    vaes.same(*found)


# Auxiliary priors and private codes.


def test_an_auxiliary_prior_learns_where_others_tell_its_view():
    model = some(3)
    batch = complete(3)
    for mask, learns in (
        ((True, True, True), [True, True, True]),
        ((True, False, True), [True, False, True]),
        ((True, False, False), [False, False, False]),
    ):
        seen = batch.hide(~torch.tensor([mask]).expand(len(batch), 3))
        found = vaes.gradients(model, model.loss(seen))["widths"]
        assert found.abs().amax(1).gt(0).tolist() == learns


def test_fresh_codes_are_as_wide_as_the_auxiliary_prior(monkeypatch):
    model, batch = some(3), batch_of(3)
    asked = []
    sample = laplace.sample
    monkeypatch.setattr(laplace, "sample", lambda q, rows=0: asked.append(q) or sample(q))
    model.loss(batch)
    widths = PRIVATE * model.widths.softmax(-1)
    assert [tuple(q.loc.shape) for q in asked][2] == (2, int(batch.mask.sum()), 3, PRIVATE)
    vaes.same(asked[2].scale, widths.expand_as(asked[2].scale))
    assert (asked[2].loc == 0).all()


def means(model, batch, b):
    q = slow_experts(model, batch, b)
    return torch.stack([z.loc for z, _ in q.values()]).mean(0), {
        v: w.loc for v, (_, w) in q.items()
    }


def test_the_representation_is_the_mean_of_the_shared_locations_seen():
    model, batch = some(4), batch_of(4)
    z = torch.stack([means(model, batch, b)[0] for b in range(len(batch))])
    vaes.same(model.embed(batch), z)


def test_without_draws_a_missing_view_has_no_private_code():
    model, batch = some(4), batch_of(4)
    out = model.decode(batch)
    for b in range(len(batch)):
        z, w = means(model, batch, b)
        for v, decoder in enumerate(model.decoders):
            vaes.same(out[v][0, b], decoder(torch.cat([z, w.get(v, torch.zeros(PRIVATE))])))


@pytest.mark.parametrize("private", declared(MMVAEPlus)["private"].choices)
def test_private_codes_are_ones_own_or_of_a_prior(monkeypatch, private):
    model, batch = some(3, private=private), batch_of(3)
    monkeypatch.setattr(laplace, "sample", lambda q, rows=0: q.loc + q.scale)
    torch.manual_seed(0)
    out = model.decode(batch, draws=900)
    for b in range(len(batch)):
        q = slow_experts(model, batch, b)
        sources = [z.loc + z.scale for z, _ in q.values()]
        for v, decoder in enumerate(model.decoders):
            own = q[v][1].loc + q[v][1].scale if v in q else torch.ones(PRIVATE)
            if v not in q and private == "auxiliary":
                own = PRIVATE * model.widths[v].softmax(0)
            told = torch.stack([decoder(torch.cat([z, own])) for z in sources])
            hit = (out[v][:, b, None] - told).abs().amax(-1) < 1e-4
            assert (hit.sum(1) == 1).all()
            share = torch.full((len(told),), 1 / len(told))
            torch.testing.assert_close(hit.float().mean(0), share, atol=0.06, rtol=0)


def test_new_samples_have_private_codes_of_their_own():
    model = some(3)
    torch.manual_seed(0)
    seen = []
    for decoder in model.decoders:
        decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    assert [tuple(x.shape) for x in model.prior(4000)] == [(1, 4000, w) for w in vaes.WIDTHS[:3]]
    assert all((z[..., :SHARED] == seen[0][..., :SHARED]).all() for z in seen)
    assert all((z[..., SHARED:] != seen[0][..., SHARED:]).all() for z in seen[1:])
    for z in seen:
        torch.testing.assert_close(z.abs().mean((0, 1)), torch.ones(5), rtol=0, atol=0.06)


# What must never matter.


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_samples_do_not_see_each_other(monkeypatch, objective):
    model, batch = some(4, objective=objective), batch_of(4, B=12, holes=True)
    noise = noise_for(model, batch)
    mixtures.fix_noise(monkeypatch, *asked_for(batch, *noise))
    whole, singles = model.loss(batch)["bound"], []
    for b in range(12):
        one = batch[b : b + 1]
        mixtures.fix_noise(monkeypatch, *asked_for(one, *(n[:, b : b + 1] for n in noise)))
        singles.append(model.loss(one)["bound"])
    vaes.same(whole, torch.stack(singles).mean())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_order_of_the_views_does_not_matter(monkeypatch, objective):
    model, batch, order = some(4, objective=objective), batch_of(4, B=9), [2, 0, 3, 1]
    other, moved = vaes.reordered(model, batch, order)
    other.widths.data.copy_(model.widths[order])
    z, w, fresh = noise_for(model, batch)
    mixtures.fix_noise(monkeypatch, *asked_for(batch, z, w, fresh))
    here = model.loss(batch)
    there = z[:, :, order], w[:, :, order], fresh[:, :, order][:, :, :, order]
    mixtures.fix_noise(monkeypatch, *asked_for(moved, *there))
    vaes.same(other.loss(moved), here)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_step_that_spares_nothing_says_the_same(monkeypatch, objective):
    """Steps on a GPU also encode and decode missing views."""
    model, batch = some(4, objective=objective), batch_of(4, holes=True)
    z, w, fresh = noise_for(model, batch)
    mixtures.fix_noise(monkeypatch, *asked_for(batch, z, w, fresh))
    terms = model.loss(batch)
    spared = terms, vaes.gradients(model, terms), model.embed(batch), model.decode(batch)
    monkeypatch.setattr(Views, "present", lambda self: None)
    mixtures.fix_noise(monkeypatch, z, w, fresh.flatten(1, 2))
    terms = model.loss(batch)
    vaes.same(
        (terms, vaes.gradients(model, terms), model.embed(batch), model.decode(batch)), spared
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (dict(objective="moe_elbo"), "objective must be one of iwae_loose, iwae_tight, dreg, got"),
        (dict(private="own"), "private must be one of prior, auxiliary, got 'own'"),
        (dict(samples=0), "samples must be at least 1, got 0"),
        (dict(trunks=3), "trunks must be one of 1, 2, got 3"),
        (dict(shared_dim=0), "shared_dim must be at least 1, got 0"),
        (dict(latent_dim=4, shared_dim=5), "shared_dim must be at most latent_dim, got 5 and 4"),
    ],
)
def test_settings_that_cannot_be(settings, told):
    with pytest.raises(ValueError, match=told):
        MMVAEPlus(**settings).check_settings()
