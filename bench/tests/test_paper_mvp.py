"""Variants of MVP for studies, against the same written slowly."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields
from functools import partial
from itertools import product as every

import numpy as np
import pytest
import torch
from oracles import mvp_models
from oracles.mvp_models import (
    SMALL,
    WIDTHS,
    batch_of,
    everything,
    gradients,
    poisoned,
    same,
)
from scipy.stats import chisquare
from torch.distributions import MultivariateNormal

from vedute import MVP
from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.methods import mvp, presets
from vedute.methods.mvp import VARIANTS, Variant
from vedute.nn import gaussian
from vedute.nn.coders import MAX_OUTPUT
from vedute.nn.correspondences import Sources
from vedute.nn.gaussian import Gaussian, kl
from vedute.nn.likelihoods import LIKELIHOODS
from vedute_bench import paper_mvp
from vedute_bench.paper_mvp import PaperMVP, random_permutations

NORMAL = LIKELIHOODS["normal"]
DECLARED = declared(PaperMVP)
PRIORS = DECLARED["prior"].choices
compare = partial(mvp_models.compare, modules=(mvp, paper_mvp))
build = partial(mvp_models.build, cls=PaperMVP)


@pytest.mark.parametrize("name", [*VARIANTS])
@pytest.mark.parametrize("sizes", [[(3, 16, 16)], [(4,), (5,)]], ids=["images", "tables"])
def test_a_variant_is_its_switches(name, sizes):
    """A variant with the switches of another one equals it, except for its name and settings."""
    variant, study = MVP(variant=name).switches(sizes), PaperMVP(variant=name)
    assert study.switches(sizes) == variant
    changed = {"linear_paths": not variant.linear_paths, "prior": "standard", "lr_halving": 7}
    found = study.having(changed).switches(sizes)
    off = {f.name for f in fields(Variant) if getattr(found, f.name) != getattr(variant, f.name)}
    assert off == {*changed}


@pytest.mark.parametrize("variant", [None, *VARIANTS])
def test_without_changes_it_is_mvp_to_the_last_bit(variant):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(40, w)) for w in (4, 3)]
    X[1][:9] = np.nan
    small = SMALL | dict(steps=9, warmup=3, random_state=0, variant=variant, device="cpu")
    ours, theirs = (cls(**small).fit(X) for cls in (MVP, PaperMVP))
    np.testing.assert_array_equal(ours.transform(X), theirs.transform(X))
    for a, b in zip(ours.impute(X), theirs.impute(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_presets_are_those_of_mvp():
    model = PaperMVP(**presets.find("mvp", "scene15"), objective="eq1")
    assert model.switches([(4,)]).lr_halving == 200
    assert model.having({"lr_halving": 0}).switches([(4,)]).lr_halving == 0


@pytest.mark.parametrize("equation", [2, 3])
@pytest.mark.parametrize("permutation", DECLARED["permutation"].choices)
@pytest.mark.parametrize("prior", PRIORS)
def test_variants_against_their_slow_definition(monkeypatch, permutation, prior, equation):
    model = build(4, permutation=permutation, prior=prior)
    compare(monkeypatch, model, batch_of(4), equation)


@pytest.mark.parametrize("equation", [1, 2])
@pytest.mark.parametrize("prior", PRIORS)
def test_one_half_of_the_objective_alone(monkeypatch, prior, equation):
    model = build(4, prior=prior, objective=f"eq{equation}")
    compare(monkeypatch, model, batch_of(4), equation)


@pytest.mark.parametrize("equation", [1, 2])
@pytest.mark.parametrize("prior", ["cyclic", "joint", "standard"])
def test_views_are_decoded_jointly(monkeypatch, prior, equation):
    model = build(4, prior=prior, objective="joint", view_dropout=0.4)
    compare(monkeypatch, model, batch_of(4), equation)


@pytest.mark.parametrize(
    "settings",
    [
        dict(divergence="forward"),
        dict(per_view=False),
        dict(beta_prior=0.3),
        dict(beta_consensus=0.7),
        dict(average=False, output="tanh", linear_paths=False),
    ],
)
def test_other_weights_of_divergences(monkeypatch, settings):
    compare(monkeypatch, build(4, **settings), batch_of(4), 3)


def test_all_pairs_are_what_cycles_are_on_average():
    """Every other view is a view's neighbour on as many cycles as every other."""
    model, batch = build(3, prior="all_pairs"), batch_of(3)
    sources = Sources.of(batch.mask, batch.present() is None)
    z0 = model.latents(batch, sources)
    own = model.rows(z0).map(sources.spread), z0
    expected, _ = model._divergences(sources, own, own, True, None)
    ahead, back = torch.tensor([1, 2, 0]), torch.tensor([2, 0, 1])
    whole = batch.mask.all(1)
    told = [
        kl(z0, z0.map(lambda t, k=k: sources.permuted(t, k.expand(len(batch), 3, 3)))).sum(1)
        for k in (ahead, back)
    ]
    same(expected[whole], sources.spread(sum(told) / 2)[whole])


def test_unbounded_latents(monkeypatch):
    model = build(3, bounded=False, beta=1.05, beta_consensus=0.45)
    batch = batch_of(3)
    with torch.no_grad():
        for p in model.encoders.parameters():
            p.mul_(2.0)
    assert (
        1
        < model.latents(batch, Sources.of(batch.mask, batch.present() is None)).mean.abs().max()
        < MAX_OUTPUT
    )
    compare(monkeypatch, model, batch, 3)


@pytest.mark.parametrize("draws", [0, 2])
def test_views_that_are_there_may_be_decoded_from_themselves(draws):
    own, fused = (build(4, observed=kind).eval() for kind in ("own", "fused"))
    own.load_state_dict(fused.state_dict())
    batch = batch_of(4)
    torch.manual_seed(0)
    theirs = fused.decode(batch, draws)
    torch.manual_seed(0)
    mine = own.decode(batch, draws)
    for v in range(4):
        seen = batch.mask[:, v]
        assert torch.equal(mine[v][:, ~seen], theirs[v][:, ~seen])
        alone = own.decode(batch.hide(torch.arange(4).expand(6, 4) != v), 0) if not draws else mine
        torch.testing.assert_close(mine[v][:, seen], alone[v][:, seen])
        assert not torch.allclose(mine[v][0], theirs[v][0])


@pytest.mark.parametrize("maps", DECLARED["maps"].choices)
def test_other_correspondences(monkeypatch, maps):
    compare(monkeypatch, build(3, maps=maps), batch_of(3), 3)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("view_dropout", [0.0, 0.4])
def test_what_lies_under_a_missing_view_never_matters(prior, view_dropout):
    model, batch = build(4, prior=prior, view_dropout=view_dropout), batch_of(4)
    clean, junk = (everything(model, data) for data in (batch, poisoned(batch)))
    torch.testing.assert_close(clean, junk, rtol=0, atol=0)


@pytest.mark.parametrize("prior", PRIORS)
def test_no_gradient_reaches_the_encoder_of_a_view_nobody_has(prior):
    model, batch = build(3, prior=prior), batch_of(3)
    batch = poisoned(batch.hide(torch.tensor([False, True, False]).expand(6, 3)))
    batch = batch[batch.mask.any(1)]
    found = gradients(model, model.loss(batch))
    size = {k: float(g.abs().max()) for k, g in found.items()}
    assert all(s == 0 for k, s in size.items() if k.startswith(("encoders.1.", "decoders.1.")))
    assert all(s > 0 for k, s in size.items() if k.startswith(("encoders.0.", "decoders.2.")))


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("prior", ["random"])
@pytest.mark.parametrize("whole", [True, False])
def test_rows_of_missing_views_are_at_no_distance_from_themselves(prior, warm, whole):
    model, batch = build(5, permutation=prior, prior=prior), poisoned(batch_of(5, B=30))
    sources = Sources.of(batch.mask, whole)
    z0 = model.latents(batch, sources)
    z1 = model._permuted(z0, sources)
    own, swapped = ((model.rows(z).map(sources.spread), z) for z in (z0, z1))
    D, W = model._divergences(sources, own, swapped, warm, None)
    assert (D[~batch.mask] == 0).all()
    assert (W[~batch.mask] == 0).all()
    assert (D[batch.mask & (batch.mask.sum(1, keepdim=True) > 1)] > 0).any()


def test_the_rate_is_halved_after_epochs():
    model = build(2, epochs=90, warmup=9, lr_halving=40, cooldown=0)
    with torch.no_grad():
        stages = list(model.stages(batch_of(2)))
    assert [(s.epochs, s.lr) for s in stages] == [(9, None), (31, None), (50, model.hp.lr / 2)]


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_evenness_changes_the_scale_of_representations_and_nothing_else(power):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(40, w)) for w in (4, 3)]
    small = SMALL | dict(steps=9, warmup=3, random_state=0, device="cpu")
    learned, model = (PaperMVP(evenness=e, **small).fit(X) for e in (None, power))
    z, std = learned.transform(X, return_std=True)
    scale = z.std(0) ** -power
    np.testing.assert_allclose(model.transform(X), z * scale, rtol=2e-3)
    np.testing.assert_allclose(model.transform(X, return_std=True)[1], std * scale, rtol=2e-3)
    for a, b in zip(learned.impute(X), model.impute(X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seen", [[0, 1, 2], [1, 3, 6], [0, 1, 2, 3]])
def test_permutations_are_uniform_on_the_observed_and_leave_the_missing(seen):
    torch.manual_seed(0)
    mask = torch.zeros(7, dtype=torch.bool)
    mask[seen] = True
    draws = random_permutations(mask.expand(20_000, -1), 3)
    assert (draws[..., ~mask] == (~mask).nonzero()[:, 0]).all()
    found = Counter(map(tuple, draws.flatten(0, 1).tolist()))
    assert len(found) == math.factorial(len(seen))
    assert chisquare(list(found.values())).pvalue > 1e-3
    pairs = Counter(map(tuple, draws[:, :2].flatten(1).tolist()))  # of two columns
    assert len(pairs) == len(found) ** 2
    assert chisquare(list(pairs.values())).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["linear", "identity"])
def test_other_maps_start_as_the_identity(kind):
    model = PaperMVP(**SMALL, maps=kind).build([(2,), (3,)], [NORMAL] * 2, "ab", 9)
    q, sources = Gaussian(*torch.randn(2, 5, 2, 3)), Sources.of(torch.ones(5, 2).bool(), whole=True)
    for predicted, own in zip(model.maps(q, sources), q, strict=True):
        torch.testing.assert_close(predicted, own.flatten(0, 1).unsqueeze(1).expand_as(predicted))
    assert [*model.maps.parameters()] == [] or kind == "linear"


# A linear decoder and N(0, 1) priors: x_v is Gaussian, and the loss bounds its likelihood.


def bound(model, batch, monkeypatch):
    """The exact expectation of the loss as a bound on log p(x), per sample: noise of +-1 in every
    combination has the moments of the normal that a quadratic loss feels."""
    k, D = model.shared, model.hp.latent_dim
    total = []
    for signs in every((-1.0, 1.0), repeat=k + D):
        noise = iter([torch.tensor(signs[:k]), torch.tensor(signs[k:])])
        monkeypatch.setattr(
            gaussian, "sample", lambda q, noise=noise: q.mean + (q.logvar / 2).exp() * next(noise)
        )
        total.append(sum(model.warmup_loss(batch).values()))
    widths = torch.tensor(WIDTHS[: len(batch.names)])
    constant = 0.5 * math.log(math.pi) * (batch.mask * widths).sum() / len(batch)
    return -sum(total) / len(total) - constant


def log_likelihood(model, batch):
    """log p(x_v), x_v = A [w, z] + c + noise of variance 1/2, [w, z] ~ N(0, 1), over those seen."""
    total = 0.0
    for v, decoder in enumerate(model.decoders):
        A, c = decoder.net[0].weight, decoder.net[0].bias
        p = MultivariateNormal(c, A @ A.T + 0.5 * torch.eye(len(c)))
        total += (p.log_prob(batch.x[v]) * batch.mask[:, v]).sum()
    return total / len(batch)


def linear_gaussian(L, **settings):
    exact = dict(prior="standard", permutation="none", hidden=(), linear_paths=False)
    weights = dict(average=False, rec_weight=1.0, beta=float(L), beta_consensus=1.0)
    model = build(L, **(exact | weights | settings))
    model.share.fill_(1.0)
    return model


@pytest.mark.parametrize("seed", range(5))
def test_with_standard_priors_the_loss_bounds_the_likelihood(monkeypatch, seed):
    model, batch = linear_gaussian(6, maps="linear"), batch_of(6, seed=seed)
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.1 + 0.2 * seed)
        assert bound(model, batch, monkeypatch) <= log_likelihood(model, batch)


def test_the_bound_is_reached_by_the_exact_posterior(monkeypatch):
    """x = a [w, z] + noise: w and z have equal posteriors where both halves of x are equal."""
    model, a = linear_gaussian(1, latent_dim=1, shared_dim=1), 0.8
    x = torch.tensor([[0.6, 0.6, 0.0]])
    batch = Views((x,), torch.ones(1, 1).bool(), torch.arange(1), (None,), ("v0",))
    posterior = Gaussian(a * x[0, :1] / (a**2 + 0.5), torch.tensor([0.5 / (a**2 + 0.5)]).log())
    with torch.no_grad():
        model.decoders[0].net[0].weight.copy_(a * torch.eye(3, 2))
        model.decoders[0].net[0].bias.zero_()
        model.encoders[0].net[0].weight.zero_()
        model.encoders[0].net[0].bias.copy_(torch.cat(posterior).atanh())
        same(bound(model, batch, monkeypatch), log_likelihood(model, batch))
        model.encoders[0].net[0].bias.add_(0.1)
        assert bound(model, batch, monkeypatch) < log_likelihood(model, batch) - 1e-3
