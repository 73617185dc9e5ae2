"""MVP: the batched objective against the paper written slowly, and what must never matter."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product as every

import pytest
import torch
from building import model_of
from oracles.mvp import draw, reconstructed, slow_loss
from oracles.slow_mvp import SlowMVP
from torch.distributions import MultivariateNormal

from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.methods import _trimmings, mvp
from vedute.methods.mvp import MVP
from vedute.nn import gaussian
from vedute.nn.coders import WIDEST
from vedute.nn.gaussian import Gaussian, kl
from vedute.nn.sources import Sources

WIDTHS = (3, 2, 4, 1, 2, 3)
DECLARED = declared(MVP)
SMALL = dict(latent_dim=3, shared_dim=2, hidden=(5,), map_hidden=(4,))
SMALL |= dict(dropout=0.0, view_dropout=0.0)
SMALL |= dict(beta_views=0.7, beta_consensus=0.3, rec_weight=2.0, kl_weight=1.5)


def build(L, kind="normal", **settings):
    """A small model whose weights are all in play."""
    hp, shapes = MVP(**(SMALL | settings)), [(w,) for w in WIDTHS[:L]]
    torch.manual_seed(L)
    model = model_of(hp, shapes, (kind,) * L)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0.0, 0.4)
        model.share.copy_(torch.linspace(1.5, 0.5, L))
    return model


def batch_of(L, B=6, holes=False, seed=0):
    """Incomplete views: row 0 is complete, row 1 has one view, no view is always there."""
    g = torch.Generator().manual_seed(seed)
    mask = torch.rand(B, L, generator=g) < 0.6
    mask[0], mask[1:2] = True, torch.arange(L) == L - 1
    mask[torch.arange(B), torch.randint(L, (B,), generator=g)] = True
    mask[1:2] = torch.arange(L) == L - 1
    x = [torch.randn(B, w, generator=g) * mask[:, [v]] for v, w in enumerate(WIDTHS[:L])]
    gaps = [None] * L
    if holes:
        gaps = [mask[:, [v]] & (torch.rand(a.shape, generator=g) < 0.4) for v, a in enumerate(x)]
        for gap in gaps:
            gap[:, 0] = False
    names = tuple(f"v{v}" for v in range(L))
    return Views(tuple(x), mask, torch.arange(B), tuple(gaps), names)


def chance(model, batch):
    torch.manual_seed(7)
    return draw(batch.mask, model.shared, model.hp.latent_dim, model.hp.view_dropout)


def play(monkeypatch, model, batch, draws, equation):
    """Let the batched code meet with the same chance, asked for with the right mask."""
    kinds = [draws.w, draws.z, draws.agreed, draws.told][: 4 if model.hp.view_dropout else 2]
    noise = [n[a] for a in reconstructed(model.hp.permutation, equation) for n in kinds]
    joint = model.hp.objective == "joint"
    noise = iter(noise + ([draws.joint_w, draws.joint_z] if joint else []))

    def permutations(drawn, mask, count):
        assert torch.equal(mask, batch.mask & ~draws.hidden)
        assert count == mask.shape[1]
        return drawn

    monkeypatch.setattr(mvp, "random_cycles", partial(permutations, draws.cycles))
    monkeypatch.setattr(mvp, "random_permutations", partial(permutations, draws.permutations))
    monkeypatch.setattr(_trimmings, "hidden_views", lambda mask, share: draws.hidden)
    monkeypatch.setattr(gaussian, "sample", lambda q: q.mean + (q.logvar / 2).exp() * next(noise))


def gradients(model, terms):
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad(sum(terms.values()), parameters.values(), allow_unused=True)
    pairs = zip(parameters.items(), found, strict=True)
    return {k: torch.zeros_like(p) if g is None else g for (k, p), g in pairs}


def same(a, b):
    torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-5)


def compare(monkeypatch, model, batch, equation):
    draws = chance(model, batch)
    play(monkeypatch, model, batch, draws, equation)
    warm = equation == 2 and model.hp.objective != "eq2"
    fast = (model.warmup_loss if warm else model.loss)(batch)
    slow = slow_loss(model, batch, draws, equation)
    same(fast, slow)
    same(gradients(model, fast), gradients(model, slow))
    return fast


@pytest.mark.parametrize("equation", [2, 3])
@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("normal", dict(average=True)),
        ("laplace", dict(average=False, shared_dim=None)),
        ("normal", dict(average=False, linear_paths=False, output="tanh")),
    ],
    ids=["averaged", "laplace-summed", "tanh-summed"],
)
def test_same_loss_as_the_paper_written_slowly(monkeypatch, L, kind, settings, equation):
    compare(monkeypatch, build(L, kind, **settings), batch_of(L, holes=True), equation)


@pytest.mark.parametrize("L", [1, 2, 3, 6])
def test_the_final_loss_is_half_of_eq1_and_eq2(monkeypatch, L):
    model, batch = build(L), batch_of(L)
    draws = chance(model, batch)
    play(monkeypatch, model, batch, draws, 3)
    eq1, eq2 = (slow_loss(model, batch, draws, equation) for equation in (1, 2))
    eq3 = model.loss(batch)
    same(eq3, {k: (eq1[k] + eq2[k]) / 2 for k in eq3})


@pytest.mark.parametrize("equation", [2, 3])
@pytest.mark.parametrize("permutation", DECLARED["permutation"].choices)
@pytest.mark.parametrize("prior", DECLARED["prior"].choices)
def test_variants_against_their_slow_definition(monkeypatch, permutation, prior, equation):
    model = build(4, permutation=permutation, prior=prior)
    compare(monkeypatch, model, batch_of(4), equation)


@pytest.mark.parametrize("equation", [1, 2])
@pytest.mark.parametrize("prior", DECLARED["prior"].choices)
def test_one_half_of_the_objective_alone(monkeypatch, prior, equation):
    model = build(4, prior=prior, objective=f"eq{equation}")
    compare(monkeypatch, model, batch_of(4), equation)


@pytest.mark.parametrize(
    "settings", [dict(divergence="forward"), dict(per_view=False), dict(beta_prior=0.3)]
)
def test_other_weights_of_divergences(monkeypatch, settings):
    compare(monkeypatch, build(4, **settings), batch_of(4), 3)


def test_all_pairs_are_what_cycles_are_on_average():
    """Every other view is a view's neighbour on as many cycles as every other."""
    model, batch = build(3, prior="all_pairs"), batch_of(3)
    sources = model.sources(batch)
    z0 = model.latents(batch, sources)
    own = model.rows(z0).map(sources.spread), z0
    expected, _ = model._divergences(sources, own, own, "eq2")
    ahead, back = torch.tensor([1, 2, 0]), torch.tensor([2, 0, 1])
    whole = batch.mask.all(1)
    told = [
        kl(z0, z0.map(lambda t, k=k: sources.permuted(t, k.expand(len(batch), 3, 3)))).sum(1)
        for k in (ahead, back)
    ]
    same(expected[whole], sources.spread(sum(told) / 2)[whole])


def test_unbounded_latents(monkeypatch):
    model, batch = build(3, bounded=False), batch_of(3)
    with torch.no_grad():
        for p in model.encoders.parameters():
            p.mul_(2.0)
    assert 1 < model.latents(batch, model.sources(batch)).mean.abs().max() < WIDEST
    compare(monkeypatch, model, batch, 3)


def test_maps_do_not_take_unbounded_latents_beyond_numbers():
    model, batch = build(3, bounded=False), batch_of(3)
    with torch.no_grad():
        for p in (*model.encoders.parameters(), *model.maps.parameters()):
            p.mul_(100.0)
    z = model.latents(batch, model.sources(batch))
    assert max(t.abs().max() for t in z) == WIDEST
    terms = model.loss(batch)
    assert all(torch.isfinite(t) for t in terms.values())
    assert all(torch.isfinite(g).all() for g in gradients(model, terms).values())


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


@pytest.mark.parametrize("L", [1, 2, 4])
@pytest.mark.parametrize("average", [True, False])
def test_dropped_views_are_told_by_the_others(monkeypatch, L, average):
    model = build(L, view_dropout=0.5, average=average)
    for equation in (2, 3):
        terms = compare(monkeypatch, model, batch_of(L, holes=True), equation)
        assert (terms["prediction"] > 0) == (L > 1)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize(("L", "view_dropout"), [(1, 0.0), (3, 0.4), (6, 0.0)])
def test_the_reference_with_one_network_per_pair_agrees(L, view_dropout, warm):
    model, batch = build(L, "laplace", view_dropout=view_dropout), batch_of(L, holes=True)
    slow, draws = SlowMVP.of(model), chance(model, batch)
    same(slow.terms(batch, draws, warm), slow_loss(model, batch, draws, 2 if warm else 3))
    assert len(slow.maps) == L * (L - 1)
    before = sum(slow.loss(batch).values())
    optimizer = torch.optim.AdamW(slow.parameters(), 1e-2)
    for _ in range(20):
        optimizer.zero_grad()
        sum(slow.loss(batch).values()).backward()
        optimizer.step()
    assert sum(slow.loss(batch).values()) < before


def poisoned(batch):
    g = torch.Generator().manual_seed(1)
    junk = (1e3 * torch.randn(a.shape, generator=g) for a in batch.x)
    seen = batch.mask.unbind(1)
    x = (torch.where(m[:, None], a, j) for m, a, j in zip(seen, batch.x, junk, strict=True))
    return replace(batch, x=tuple(x))


@pytest.mark.parametrize("prior", DECLARED["prior"].choices)
@pytest.mark.parametrize("view_dropout", [0.0, 0.4])
def test_what_lies_under_a_missing_view_never_matters(prior, view_dropout):
    model, batch = build(4, prior=prior, view_dropout=view_dropout), batch_of(4)
    clean, junk = [], []
    for found, data in ((clean, batch), (junk, poisoned(batch))):
        for loss in (model.loss, model.warmup_loss):
            torch.manual_seed(3)
            terms = loss(data)
            found += [*terms.values(), *gradients(model, terms).values()]
        found += [model.embed(data), *model.decode(data)]
        torch.manual_seed(3)
        found += model.decode(data, draws=2)
    torch.testing.assert_close(clean, junk, rtol=0, atol=0)


@pytest.mark.parametrize("prior", DECLARED["prior"].choices)
def test_no_gradient_reaches_the_encoder_of_a_view_nobody_has(prior):
    model, batch = build(3, prior=prior), batch_of(3)
    batch = poisoned(batch.hide(torch.tensor([False, True, False]).expand(6, 3)))
    batch = batch[batch.mask.any(1)]
    found = gradients(model, model.loss(batch))
    size = {k: float(g.abs().max()) for k, g in found.items()}
    assert all(s == 0 for k, s in size.items() if k.startswith(("encoders.1.", "decoders.1.")))
    assert all(s > 0 for k, s in size.items() if k.startswith(("encoders.0.", "decoders.2.")))


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("prior", ["cyclic", "random"])
@pytest.mark.parametrize("whole", [True, False])
def test_rows_of_missing_views_are_at_no_distance_from_themselves(prior, warm, whole):
    model, batch = build(5, permutation=prior, prior=prior), poisoned(batch_of(5, B=30))
    sources = Sources.of(batch.mask, whole)
    z0 = model.latents(batch, sources)
    z1 = mvp._permuted(z0, sources, prior)
    own, swapped = ((model.rows(z).map(sources.spread), z) for z in (z0, z1))
    D, W = model._divergences(sources, own, swapped, "eq2" if warm else "eq3")
    assert (D[~batch.mask] == 0).all()
    assert (W[~batch.mask] == 0).all()
    assert (D[batch.mask & (batch.mask.sum(1, keepdim=True) > 1)] > 0).any()


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("L", [1, 2, 5])
def test_one_view_has_nothing_to_agree_with(L, warm):
    model, batch = build(L), batch_of(L)
    batch = batch.hide(torch.arange(L) != batch.mask.int().argmax(1)[:, None])
    terms = (model.warmup_loss if warm else model.loss)(batch)
    assert terms["kl_views"] == terms["kl_consensus"] == 0
    assert terms["reconstruction"] > 0


@pytest.mark.parametrize("L", [1, 2, 6])
def test_consensus_is_the_product_of_rows_and_of_columns(L):
    model, batch = build(L), batch_of(L)
    sources = model.sources(batch)
    z = model.latents(batch, sources).map(sources.spread)
    consensus, told = model.fuse(batch)
    shared = told.map(lambda t: t[..., : model.shared])
    same(consensus, gaussian.product(shared, 1))
    for b, seen in enumerate(batch.mask):
        some = z.map(lambda t, b=b, seen=seen: t[b, seen, :, : model.shared].flatten(0, 1))
        same(consensus.map(lambda t, b=b: t[b]), gaussian.product(some, 0))
    same(model.embed(batch), consensus.mean)


@pytest.mark.parametrize("L", [1, 2, 3])
def test_rows_do_not_see_each_other(L):
    model, batch = build(L), batch_of(L)
    whole = [model.embed(batch), *(x[0] for x in model.decode(batch))]
    for b in range(len(batch)):
        one = batch[b : b + 1]
        same([model.embed(one), *(x[0] for x in model.decode(one))], [t[b : b + 1] for t in whole])
        assert all(t.isfinite() for t in model.loss(one).values())


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_dropout_never_takes_the_last_view(share):
    torch.manual_seed(1)
    mask = batch_of(4, B=20_000).mask
    hidden = mask & _trimmings.hidden_views(mask, share)
    assert (mask & ~hidden).any(1).all()
    complete = hidden[mask.all(1)].float().mean()  # all four below the share: one of them stays
    assert complete == pytest.approx(share - share**4 / 4, abs=0.02)


@pytest.mark.parametrize(
    ("settings", "lengths"),
    [
        (dict(steps=100, warmup=30, cooldown=5),
         [(30, None, False), (65, None, True), (5, None, True)]),
        (dict(steps=20, warmup=3), [(3, None, False), (12, None, True), (5, None, True)]),
        (dict(epochs=9, warmup=2, cooldown=0), [(None, 2, False), (None, 7, True)]),
        (dict(steps=100, warmup=0, cooldown=0), [(100, None, True)]),
        (dict(steps=20, warmup=50, cooldown=0), [(20, None, False)]),
        (dict(steps=90, warmup=9, lr_halving=40, cooldown=0),
         [(9, None, False), (31, None, True), (50, None, True)]),
    ],
)  # fmt: skip
def test_schedule(settings, lengths):
    model = build(2, **settings)
    with torch.no_grad():
        stages = list(model.stages(batch_of(2)))
    assert [(s.steps, s.epochs, s.watch) for s in stages] == lengths
    slower = model.hp.lr / (2 if settings.get("lr_halving") else 10)
    assert [s.lr for s in stages[2:]] == [slower] * len(stages[2:])
    assert len(model.posteriors) == 6


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
    weights = dict(average=False, rec_weight=1.0, kl_weight=1.0, beta_views=L, beta_consensus=1.0)
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
