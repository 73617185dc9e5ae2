"""MVP: the batched objective against the paper written slowly, and what must never matter."""

from __future__ import annotations

import pytest
import torch
from oracles.mvp import slow_loss
from oracles.mvp_models import (
    batch_of,
    build,
    chance,
    compare,
    everything,
    gradients,
    play,
    poisoned,
    same,
)
from oracles.slow_mvp import SlowMVP

from vedute.nn import gaussian, shards
from vedute.nn.coders import MAX_OUTPUT
from vedute.nn.correspondences import Sources


@pytest.mark.parametrize("equation", [2, 3])
@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("normal", dict()),
        ("laplace", dict(shared_dim=None)),
        ("normal", dict(variant="paper")),
        ("laplace", dict(variant="paper", shared_dim=None)),
    ],
    ids=["tables", "laplace", "paper", "paper-laplace"],
)
def test_same_loss_as_the_paper_written_slowly(monkeypatch, L, kind, settings, equation):
    compare(monkeypatch, build(L, kind, **settings), batch_of(L, holes=True), equation)


@pytest.mark.parametrize("equation", [1, 2])
@pytest.mark.parametrize("L", [1, 2, 3, 6])
@pytest.mark.parametrize("view_dropout", [0.0, 0.4])
def test_same_loss_for_images_written_slowly(monkeypatch, L, view_dropout, equation):
    model = build(L, variant="images", view_dropout=view_dropout)
    compare(monkeypatch, model, batch_of(L, holes=True), equation)


@pytest.mark.parametrize("L", [1, 2, 3, 6])
def test_the_final_loss_is_half_of_eq1_and_eq2(monkeypatch, L):
    model, batch = build(L), batch_of(L)
    draws = chance(model, batch)
    play(monkeypatch, model, batch, draws, 3)
    eq1, eq2 = (slow_loss(model, batch, draws, equation) for equation in (1, 2))
    eq3 = model.loss(batch)
    same(eq3, {k: (eq1[k] + eq2[k]) / 2 for k in eq3})


def test_unbounded_latents(monkeypatch):
    model, batch = build(3, variant="images"), batch_of(3)
    with torch.no_grad():
        for p in model.encoders.parameters():
            p.mul_(2.0)
    sources = Sources.of(batch.mask, batch.present() is None)
    assert 1 < model.latents(batch, sources).mean.abs().max() < MAX_OUTPUT
    compare(monkeypatch, model, batch, 1)


def test_maps_do_not_take_unbounded_latents_beyond_numbers():
    model, batch = build(3, variant="images"), batch_of(3)
    with torch.no_grad():
        for p in (*model.encoders.parameters(), *model.maps.parameters()):
            p.mul_(100.0)
    z = model.latents(batch, Sources.of(batch.mask, batch.present() is None))
    assert max(t.abs().max() for t in z) == MAX_OUTPUT
    terms = model.loss(batch)
    assert all(torch.isfinite(t) for t in terms.values())
    assert all(torch.isfinite(g).all() for g in gradients(model, terms).values())


@pytest.mark.parametrize("L", [1, 2, 4])
@pytest.mark.parametrize("variant", ["tables", "images", "paper"])
def test_dropped_views_are_told_by_the_others(monkeypatch, L, variant):
    model = build(L, view_dropout=0.5, variant=variant)
    for equation in (2, 1 if variant == "images" else 3):
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


@pytest.mark.parametrize("variant", ["tables", "images", "paper"])
@pytest.mark.parametrize("view_dropout", [0.0, 0.4])
def test_what_lies_under_a_missing_view_never_matters(variant, view_dropout):
    model, batch = build(4, variant=variant, view_dropout=view_dropout), batch_of(4)
    clean, junk = (everything(model, data) for data in (batch, poisoned(batch)))
    torch.testing.assert_close(clean, junk, rtol=0, atol=0)


@pytest.mark.parametrize("variant", ["tables", "images", "paper"])
def test_no_gradient_reaches_the_encoder_of_a_view_nobody_has(variant):
    model, batch = build(3, variant=variant), batch_of(3)
    batch = poisoned(batch.hide(torch.tensor([False, True, False]).expand(6, 3)))
    batch = batch[batch.mask.any(1)]
    found = gradients(model, model.loss(batch))
    size = {k: float(g.abs().max()) for k, g in found.items()}
    assert all(s == 0 for k, s in size.items() if k.startswith(("encoders.1.", "decoders.1.")))
    assert all(s > 0 for k, s in size.items() if k.startswith(("encoders.0.", "decoders.2.")))


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_rows_of_missing_views_are_at_no_distance_from_themselves(warm, whole):
    model, batch = build(5), poisoned(batch_of(5, B=30))
    sources = Sources.of(batch.mask, whole)
    z0 = model.latents(batch, sources)
    z1 = model._permuted(z0, sources)
    own, swapped = ((model.rows(z).map(sources.spread), z) for z in (z0, z1))
    D, W = model._divergences(sources, own, swapped, warm, None)
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
    sources = Sources.of(batch.mask, batch.present() is None)
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
    batch = batch_of(4, B=20_000)
    kept, mask = shards.hide(batch, share).mask, batch.mask
    hidden = mask & ~kept
    assert kept.any(1).all()
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
        (dict(variant="paper", epochs=250, warmup=9),
         [(None, 9, False), (None, 191, True), (None, 50, True)]),
        (dict(variant="paper", epochs=150), [(None, 100, False), (None, 50, True)]),
        (dict(variant="paper", steps=250, warmup=9), [(9, None, False), (241, None, True)]),
    ],
)  # fmt: skip
def test_schedule(settings, lengths):
    model = build(2, **settings)
    with torch.no_grad():
        stages = list(model.stages(batch_of(2)))
    assert [(s.steps, s.epochs, s.watch) for s in stages] == lengths
    slower = model.hp.lr / (2 if "variant" in settings else 10)
    assert [s.lr for s in stages[2:]] == [slower] * len(stages[2:])
    assert len(model.posteriors) == 6
