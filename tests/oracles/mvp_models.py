"""Small models of MVP, incomplete batches, and the comparison of both with the slow oracle."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product as every

import torch
from building import model_of
from oracles.mvp import draw, reconstructed, settings, slow_loss

from vedute.data.views import Views
from vedute.methods import mvp
from vedute.methods.mvp import MVP
from vedute.nn import gaussian, shards

WIDTHS = (3, 2, 4, 1, 2, 3)
SMALL = dict(latent_dim=3, shared_dim=2, hidden=(5,), map_hidden=(4,))
SMALL |= dict(dropout=0.0, view_dropout=0.0)
SMALL |= dict(beta=0.9, rec_weight=2.0)


def build(L, kind="normal", cls=MVP, **settings):
    """A small model whose weights are all in play."""
    hp, shapes = cls(**(SMALL | settings)), [(w,) for w in WIDTHS[:L]]
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


def play(monkeypatch, model, batch, draws, equation, modules=(mvp,)):
    """Let the batched code in these modules meet with the same chance, asked for with the right
    mask."""
    kinds = [draws.w, draws.z, draws.agreed, draws.told][: 4 if model.hp.view_dropout else 2]
    noise = [n[a] for a in reconstructed(settings(model).permutation, equation) for n in kinds]
    joint = model.variant.objective == "joint"
    noise = iter(noise + ([draws.joint_w, draws.joint_z] if joint else []))

    def permutations(drawn, mask, count):
        assert torch.equal(mask, batch.mask & ~draws.hidden)
        assert count == mask.shape[1]
        return drawn

    known = {"random_cycles": draws.cycles, "random_permutations": draws.permutations}
    for module, (name, drawn) in every(modules, known.items()):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, partial(permutations, drawn))
    hide = lambda batch, share: batch.hide(draws.hidden) if share else batch  # noqa: E731
    monkeypatch.setattr(shards, "hide", hide)
    monkeypatch.setattr(gaussian, "sample", lambda q: q.mean + (q.logvar / 2).exp() * next(noise))


def gradients(model, terms):
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad(sum(terms.values()), parameters.values(), allow_unused=True)
    pairs = zip(parameters.items(), found, strict=True)
    return {k: torch.zeros_like(p) if g is None else g for (k, p), g in pairs}


def same(a, b):
    torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-5)


def compare(monkeypatch, model, batch, equation, modules=(mvp,)):
    """Terms and gradients of the batched code and of the slow one."""
    draws = chance(model, batch)
    play(monkeypatch, model, batch, draws, equation, modules)
    warm = equation == 2 and model.variant.objective != "eq2"
    fast = (model.warmup_loss if warm else model.loss)(batch)
    slow = slow_loss(model, batch, draws, equation)
    same(fast, slow)
    same(gradients(model, fast), gradients(model, slow))
    return fast


def poisoned(batch):
    g = torch.Generator().manual_seed(1)
    junk = (1e3 * torch.randn(a.shape, generator=g) for a in batch.x)
    seen = batch.mask.unbind(1)
    x = (torch.where(m[:, None], a, j) for m, a, j in zip(seen, batch.x, junk, strict=True))
    return replace(batch, x=tuple(x))


def everything(model, data):
    """Terms and gradients of both losses, and all that is inferred, by one chance."""
    found = []
    for loss in (model.loss, model.warmup_loss):
        torch.manual_seed(3)
        terms = loss(data)
        found += [*terms.values(), *gradients(model, terms).values()]
    found += [model.embed(data), *model.decode(data)]
    torch.manual_seed(3)
    return found + model.decode(data, draws=2)
