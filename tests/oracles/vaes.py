"""The Gaussian multimodal VAEs written slowly, from their specification: loops over samples,
subsets and views, one decoder call each, with the weights of the model. And a bench to test on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import torch
from building import model_of
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.nn import gaussian, noise, shards
from vedute.nn.gaussian import Gaussian

WIDTHS = (3, 2, 4, 1, 2, 3)
SMALL = dict(latent_dim=3, hidden=(5,), beta=1.7, scale=0.6, rescale=True)
OFF = dict(dropout=0.0, balance=0.0, cooldown=0, view_dropout=0.0)


def plain(estimator) -> dict[str, float]:
    """What is no part of the paper, off."""
    return {k: v for k, v in OFF.items() if k in declared(estimator)}


# The paper written slowly.


def experts(model, batch: Views, b: int) -> dict[int, Normal]:
    """q(z | x_v) of the views that sample b has."""
    found = {}
    for v in range(len(batch.x)):
        if batch.mask[b, v]:
            q = model.encoders[v](batch.x[v][b : b + 1])
            found[v] = Normal(q.mean[0], (q.logvar[0] / 2).exp())
    return found


def standard(model) -> Normal:
    return Normal(torch.zeros(model.latent_dim), torch.ones(model.latent_dim))


def product(factors: Sequence[Normal]) -> Normal:
    precision = sum(q.stddev**-2 for q in factors)
    return Normal(sum(q.mean * q.stddev**-2 for q in factors) / precision, precision**-0.5)


def kl(q: Normal, p: Normal) -> Tensor:
    return kl_divergence(q, p).sum()


def error(model, batch: Views, b: int, v: int, z: Tensor) -> Tensor:
    """-r_v log p(x_v | z), without the constant, times the share of v."""
    hp, kind, x = model.hp, model.likelihoods[v].name, batch.x[v][b]
    out = model.decoders[v](z)
    each = {
        "normal": lambda: (x - out) ** 2 / (2 * hp.scale**2),
        "laplace": lambda: (x - out).abs() / hp.scale,
        "bernoulli": lambda: -(x * out.sigmoid().log() + (1 - x) * (1 - out.sigmoid()).log()),
    }[kind]()
    there = torch.ones_like(each) if batch.holes[v] is None else ~batch.holes[v][b]
    dims = [prod(a.shape[1:]) for a in batch.x]
    counts_as = {True: max(dims), False: dims[v]}.get(hp.rescale, hp.rescale)
    return model.share[v] * (each * there).sum() * counts_as / dims[v]


def told(model, batch: Views, b: int, views, z: Tensor) -> Tensor:
    return sum((error(model, batch, b, v, z) for v in views), start=torch.zeros(()))


def all_subsets(views) -> list[tuple[int, ...]]:
    return [s for n in range(1, len(views) + 1) for s in combinations(sorted(views), n)]


# The bench: small models whose weights are all in play, incomplete views, fixed chance.


def build(estimator, L: int, kind: str = "normal", **settings):
    hp = estimator(**(plain(estimator) | SMALL | settings))
    torch.manual_seed(L)
    model = model_of(hp, [(w,) for w in WIDTHS[:L]], (kind,) * L)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0.0, 0.4)
        model.share.copy_(torch.linspace(1.5, 0.5, L))
    return model


def batch_of(L: int, B: int = 6, holes: bool = False, kind: str = "normal", seed: int = 0) -> Views:
    """Incomplete views: row 0 is complete, row 1 has only the last, no view is always there."""
    g = torch.Generator().manual_seed(seed)
    mask = torch.rand(B, L, generator=g) < 0.6
    mask[torch.arange(B), torch.randint(L, (B,), generator=g)] = True
    mask[0], mask[1:2] = True, torch.arange(L) == L - 1
    x = [torch.randn(B, w, generator=g) for w in WIDTHS[:L]]
    x = [(a > 0).float() if kind == "bernoulli" else a for a in x]
    x = [a * mask[:, [v]] for v, a in enumerate(x)]
    gaps: list[Tensor | None] = [None] * L
    if holes:
        gaps = [mask[:, [v]] & (torch.rand(a.shape, generator=g) < 0.4) for v, a in enumerate(x)]
    names = tuple(f"v{v}" for v in range(L))
    return Views(tuple(x), mask, torch.arange(B), tuple(gaps), names)


def complete(L: int, **settings) -> Views:
    batch = batch_of(L, **settings)
    g = torch.Generator().manual_seed(5)
    x = tuple(torch.randn(a.shape, generator=g) for a in batch.x)
    return replace(batch, x=x, mask=torch.ones_like(batch.mask))


def fix_noise(monkeypatch, noise: Tensor) -> None:
    """Every draw is mean + std * noise; noise (B, D) serves all draws of a sample."""

    def sample(q: Gaussian) -> Tensor:
        B, *between, D = q.mean.shape
        eps = noise if noise.ndim == q.mean.ndim else noise.view(B, *[1] * len(between), D)
        return q.mean + (q.logvar / 2).exp() * eps

    monkeypatch.setattr(gaussian, "sample", sample)


def fix_hidden(monkeypatch, model, batch: Views) -> Views:
    """Every step hides the same views, if any; what is left of the batch."""
    hidden = torch.zeros_like(batch.mask)
    if model.hp.view_dropout > 0:
        for b, seen in enumerate(batch.mask):  # all but one or two of those seen
            some = seen.nonzero()[:, 0]
            hidden[b, some[torch.randperm(len(some))[1 + b % 2 :]]] = True
        assert hidden.any() == (batch.shape[1] > 1)
    monkeypatch.setattr(shards, "hide", lambda batch, share: batch.hide(hidden) if share else batch)
    return batch.hide(hidden)


def gradients(model, terms) -> dict[str, Tensor]:
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad(sum(terms.values()), parameters.values(), allow_unused=True)
    pairs = zip(parameters.items(), found, strict=True)
    return {k: torch.zeros_like(p) if g is None else g for (k, p), g in pairs}


def same(a, b) -> None:
    torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-5)


def as_written(model, fast, slow) -> None:
    """Terms and gradients agree."""
    same(fast, slow)
    same(gradients(model, fast), gradients(model, slow))


# What must never matter (T12 of the specification). `model` is any, `batch` incomplete.


def everything(model, batch: Views) -> list[Tensor]:
    """All that a model has to say, from the same seed."""
    torch.manual_seed(3)
    terms = model.loss(batch)
    out = [*terms.values(), *gradients(model, terms).values()]
    return [*out, model.embed(batch), *model.decode(batch), *model.decode(batch, draws=2)]


def check_junk(model, batch: Views) -> None:
    """(a) What lies under a missing view changes nothing, not one bit."""
    clean = everything(model, batch)
    assert all(t.isfinite().all() for t in clean)
    for junk in (1e3, -1e30, torch.inf, torch.nan):
        x = [
            torch.where(m[:, None], a, torch.full_like(a, junk))
            for m, a in zip(batch.mask.unbind(1), batch.x, strict=True)
        ]
        torch.testing.assert_close(
            everything(model, replace(batch, x=tuple(x))), clean, rtol=0, atol=0
        )


def check_absent(model, batch: Views, v: int = 1) -> None:
    """(b) Nothing reaches the networks of a view that nobody has."""
    batch = batch.hide((torch.arange(batch.shape[1]) == v).expand_as(batch.mask))
    batch = batch[batch.mask.any(1)]
    for name, g in gradients(model, model.loss(batch)).items():
        mine = name.removeprefix("own_").startswith((f"encoders.{v}.", f"decoders.{v}."))
        assert bool((g == 0).all()) == mine, name


def check_rows(model, batch: Views, monkeypatch) -> None:
    """(d) The loss of a batch is the mean of its samples', told one by one, in any company."""
    luck, draws = [], []
    rand, like = torch.rand, noise.like

    def record(t, fill=Tensor.normal_, rows=0):
        kept = draws if fill is Tensor.normal_ else luck
        kept.append(like(t, fill, rows))
        return kept[-1]

    with monkeypatch.context() as patch:
        patch.setattr(torch, "rand", lambda *a, **k: luck.append(rand(*a, **k)) or luck[-1])
        patch.setattr(noise, "like", record)
        whole = model.loss(batch)
    singles = []
    for b in range(len(batch)):
        again = iter([t[b : b + 1] for t in luck]), iter([t[b : b + 1] for t in draws])
        with monkeypatch.context() as patch:
            patch.setattr(torch, "rand", lambda *a, again=again, **k: next(again[0]))
            replay = lambda t, fill=Tensor.normal_, rows=0, again=again: next(  # noqa: E731
                again[fill is Tensor.normal_]
            )
            patch.setattr(noise, "like", replay)
            singles.append(model.loss(batch[b : b + 1]))
    same(whole, {k: torch.stack([s[k] for s in singles]).mean() for k in whole})
    told = [model.embed(batch), *(x[0] for x in model.decode(batch))]
    for b in range(len(batch)):
        one = batch[b : b + 1]
        alone = [model.embed(one), *(x[0] for x in model.decode(one))]
        same(alone, [t[b : b + 1] for t in told])


def check_single_views(model, batch: Views) -> None:
    """(e) Rows with one view only: all is finite."""
    one = batch.hide(torch.arange(batch.shape[1]) != batch.mask.int().argmax(1)[:, None])
    assert (one.mask.sum(1) == 1).all()
    assert all(t.isfinite().all() for t in everything(model, one))


def reordered(model, batch: Views, order: Sequence[int]):
    """(f) The same model with its views in another order, and the same samples."""
    kinds = [model.likelihoods[v].name for v in order]
    other = model_of(model.hp, [tuple(batch.x[v].shape[1:]) for v in order], kinds)
    other.share.copy_(model.share[list(order)])
    for new, old in enumerate(order):
        other.encoders[new].load_state_dict(model.encoders[old].state_dict())
        other.decoders[new].load_state_dict(model.decoders[old].state_dict())
    return other, batch.pick(*order)


def check_order(model, batch: Views, order: Sequence[int]) -> None:
    """(f) Inference does not hang on the order of the views."""
    other, moved = reordered(model, batch, order)
    same(other.embed(moved), model.embed(batch))
    same(other.decode(moved), [model.decode(batch)[v] for v in order])


# Linear Gaussian models whose bound can be told exactly (T3), and the base experts (T1, T2, T4-T6).


def linear(estimator, slopes: Sequence[float], **settings):
    """x_v = a_v z + N(0, 1), z ~ N(0, 1); experts N(x_v / a_v, 1 / a_v^2), one latent dimension."""
    exact = dict(latent_dim=1, hidden=(), linear_paths=False, scale=1.0, beta=1.0, rescale=False)
    model = model_of(
        estimator(**(plain(estimator) | exact | settings)),
        [(1,)] * len(slopes),
        ("normal",) * len(slopes),
    )
    with torch.no_grad():
        for a, encoder, decoder in zip(slopes, model.encoders, model.decoders, strict=True):
            slope = torch.tensor(float(a))
            encoder.net[0].weight.copy_(torch.stack([1 / slope, slope * 0])[:, None])
            encoder.net[0].bias.copy_(torch.stack([slope * 0, -2 * slope.log()]))
            decoder.net[0].weight.copy_(slope.view(1, 1))
            decoder.net[0].bias.zero_()
    return model


def expected(model, batch: Views, monkeypatch) -> dict[str, float]:
    """The exact expectation of the terms where the loss is quadratic in the only noise there is:
    +1 and -1 have the moments that it feels."""
    found = []
    for sign in (-1.0, 1.0):
        with monkeypatch.context() as patch:
            fix_noise(patch, torch.full((len(batch), 1), sign))
            found.append({k: t.detach() for k, t in model.loss(batch).items()})
    return {k: float(sum(f[k] for f in found)) / 2 for k in found[0]}


BASE = Gaussian(
    torch.tensor([[[1.0], [-1.0], [3.0]]], dtype=torch.float64),
    torch.tensor([[[1.0], [4.0], [0.25]]], dtype=torch.float64).log(),
)


def with_base_experts(estimator, seen: Sequence[int], **settings):
    """A model that sees the base experts, whatever the data, and a batch with some of them."""
    settings = plain(estimator) | dict(latent_dim=1, hidden=(), beta=2.5) | settings
    model = model_of(estimator(**settings), [(1,)] * 3, ("normal",) * 3).double()
    model.experts = lambda batch: BASE
    mask = torch.tensor([[v in seen for v in range(3)]])
    x = tuple(torch.zeros(1, 1) for _ in range(3))
    return model, Views(x, mask, torch.arange(1), (None,) * 3, ("a", "b", "c"))
