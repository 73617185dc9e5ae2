"""CPSPAN: alignment in closed form and written slowly, copied latents, and no way to leak."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np
import pytest
import torch
from blobs import (
    WIDTHS,
    batch_of,
    blobs,
    built,
    check_clusters,
    check_resuming,
    gradients,
    poisoned,
    same,
)
from every_method import small
from torch.nn.functional import cosine_similarity as cos

from vedute.data.views import Views
from vedute.estimators.settings import declared
from vedute.methods.deep import cpspan
from vedute.methods.deep.cpspan import (
    CPSPAN,
    donors,
    instance_alignment,
    prototype_alignment,
    released_prototype_alignment,
)
from vedute.nn.losses import match_clusters

PAIRS = torch.triu_indices(3, 3, 1)
both_variants = pytest.mark.parametrize("variant", declared(CPSPAN)["variant"].choices)


# Alignment.


@pytest.mark.parametrize(("factor", "expected"), [(0.1, 0.0), (7.0, 0.0), (-2.0, 4.0)])
def test_instances_are_compared_by_direction(factor, expected):
    torch.manual_seed(0)
    z = torch.randn(9, 1, 4) * torch.tensor([1.0, factor])[:, None]
    told = instance_alignment(z, torch.ones(9, 2, dtype=torch.bool), torch.tensor([[0], [1]]))
    same(told, torch.tensor(expected))


def test_a_pair_of_views_that_nobody_has_counts_nothing():
    z, mask = torch.randn(6, 3, 2), torch.ones(6, 3, dtype=torch.bool)
    mask[:3, 0] = mask[3:, 1] = False
    only = torch.tensor([[0], [1]])
    for alignment in (instance_alignment, released_prototype_alignment):
        assert alignment(z, mask, only) == 0
        assert alignment(z, mask, PAIRS) > 0
        assert alignment(z[:, :1], mask[:, :1], torch.triu_indices(1, 1, 1)) == 0
    there = torch.zeros(3, 4, dtype=torch.bool)
    partner = torch.arange(4).repeat(3, 1)
    assert prototype_alignment(torch.randn(3, 4, 2), there, PAIRS, partner) == 0


def test_permuted_prototypes_are_matched_again():
    torch.manual_seed(0)
    model, data = built(CPSPAN, n_prototypes=3, latent_dim=4), blobs(60, share=0.0)
    z = model.nets.latents(data).detach()
    z = z[:, :1].expand(-1, 3, -1) * torch.tensor([1.0, 2.0, 0.5])[:, None]  # one view thrice
    model.groups = torch.zeros(60, 3, dtype=torch.long)
    model.find_prototypes(z, data.mask)
    for p, (a, b) in enumerate(PAIRS.t().tolist()):
        assert torch.equal(model.partner[p][model.groups[:, a]], model.groups[:, b])


def test_the_matching_is_the_cheapest_there_is():
    torch.manual_seed(0)
    for _ in range(20):
        cost, rows = torch.rand(5, 5), torch.arange(5)
        found = match_clusters(cost)
        least = min(float(cost[rows, torch.tensor(p)].sum()) for p in permutations(range(5)))
        assert float(cost[rows, found].sum()) == pytest.approx(least)
        relaxed = torch.rand(5, 5)
        for _ in range(500):  # any doubly stochastic matrix costs as much or more
            relaxed = relaxed / relaxed.sum(1, keepdim=True)
            relaxed = relaxed / relaxed.sum(0, keepdim=True)
        same(relaxed.sum(1), torch.ones(5), 1e-3)
        assert float((relaxed * cost).sum()) >= least - 1e-4
    rename = torch.randperm(5)
    points = torch.randn(5, 3)
    cost = torch.cdist(points, points[rename.argsort()])
    assert torch.equal(match_clusters(cost), rename)


def slow_instances(z, mask):
    total = 0.0
    for a, b in PAIRS.t().tolist():
        rows = [i for i in range(len(z)) if mask[i, a] and mask[i, b]]
        total += sum((1 - cos(z[i, a], z[i, b], dim=0)) ** 2 for i in rows) / max(len(rows), 1)
    return total


def slow_prototypes(z, mask, groups, partner):
    def middle(v, k):
        rows = [i for i in range(len(z)) if mask[i, v] and groups[i, v] == k]
        return z[rows, v].mean(0) if rows else None

    total = 0.0
    for p, (a, b) in enumerate(PAIRS.t().tolist()):
        ends = [(middle(a, k), middle(b, int(partner[p, k]))) for k in range(partner.shape[1])]
        apart = [(1 - cos(c, d, dim=0)) ** 2 for c, d in ends if c is not None and d is not None]
        total += sum(apart) / max(len(apart), 1)
    return total


def slow_released(z, mask):
    total = 0.0
    for a, b in PAIRS.t().tolist():
        rows = mask[:, a] & mask[:, b]
        if rows.any():
            columns = [(c, d) for c in z[rows, a].t() for d in z[rows, b].t()]
            total += torch.stack([(1 - cos(c, d, dim=0)) ** 2 for c, d in columns]).mean()
    return total


@both_variants
def test_same_loss_as_written_slowly(variant):
    settings = dict(variant=variant, n_prototypes=3, instance_weight=0.3, prototype_weight=0.7)
    model, batch = built(CPSPAN, **settings), batch_of(12)
    model.groups = torch.randint(3, (12, 3))
    model.partner = torch.stack([torch.randperm(3) for _ in range(3)])
    fast, z, mask = model.loss(batch), model.nets(batch), batch.mask
    reconstruction = 0.0
    for v in range(3):
        rows = mask[:, v]
        out = model.nets.decoders[v](model.nets.encoders[v](batch.x[v][rows]).mean)
        reconstruction += (out - batch.x[v][rows]).square().mean()
    if variant == "paper":
        prototypes = slow_prototypes(z, mask, model.groups, model.partner)
    else:
        prototypes = slow_released(z, mask)
    slow = {
        "reconstruction": reconstruction,
        "instances": 0.3 * slow_instances(z, mask),
        "prototypes": 0.7 * prototypes,
    }
    same(fast, slow)
    same(gradients(model, fast), gradients(model, slow), 1e-4)


def test_prototypes_are_found_where_a_view_has_fewer_samples_than_prototypes():
    model, data = built(CPSPAN, n_prototypes=10), blobs(8)
    model.groups = torch.zeros(8, 3, dtype=torch.long)
    with torch.no_grad():
        model.find_prototypes(model.nets.latents(data), data.mask)
    assert all(t.isfinite() for t in model.loss(data).values())
    assert all(sorted(p) == list(range(10)) for p in model.partner.tolist())


# Copied latents.


def bank_of(n, L=4, D=3, seed=0, share=0.5):
    g = torch.Generator().manual_seed(seed)
    mask = torch.rand(n, L, generator=g) < share
    mask[torch.arange(n), torch.randint(L, (n,), generator=g)] = True
    return torch.randn(n, L, D, generator=g), mask


@pytest.mark.parametrize("chunk", [cpspan.SIMILARITIES, 70, 1])
def test_donors_are_those_of_a_loop(monkeypatch, chunk):
    monkeypatch.setattr(cpspan, "SIMILARITIES", chunk)
    (z, mask), (bank, known) = bank_of(15, seed=1), bank_of(30, seed=2, share=0.3)
    found = donors(z, mask, bank, known)
    for i in range(15):
        for v in range(4):
            best, donor = -np.inf, -1
            for j in range(30):
                shared = [w for w in range(4) if mask[i, w] and known[j, w]]
                if known[j, v] and shared and not mask[i, v]:
                    like = float(np.mean([cos(z[i, w], bank[j, w], dim=0) for w in shared]))
                    best, donor = max((best, donor), (like, j))
            assert found[i, v] == donor


def test_what_a_sample_lacks_is_copied_from_its_nearest_in_the_views_it_has():
    """View 1 is view 0 turned: the donor is the true nearest sample."""
    torch.manual_seed(0)
    turn = torch.linalg.qr(torch.randn(3, 3))[0]
    model = built(CPSPAN, latent_dim=3)
    first = torch.randn(40, 3)
    model.bank = torch.stack([first, first @ turn, torch.randn(40, 3)], dim=1)
    model.known = torch.rand(40, 3) < 0.7
    model.known[:, 0] = True
    model.bank *= model.known.unsqueeze(-1)
    asked = torch.randn(10, 3)
    z, seen = torch.zeros(10, 3, 3), torch.tensor([True, False, False]).expand(10, 3)
    z[:, 0] = asked
    filled = model.filled(z, seen)
    has = model.known[:, 1].nonzero()[:, 0]
    near = has[cos((asked @ turn)[:, None], (first @ turn)[has], dim=-1).argmax(1)]
    same(filled[:, 1], (first @ turn)[near])
    assert torch.equal(filled[:, 0], asked)


def test_without_a_neighbour_a_latent_is_the_usual_one():
    model = built(CPSPAN)
    model.bank, model.known = torch.randn(5, 3, 2), torch.tensor([True, False, False]).expand(5, 3)
    model.usual = torch.randn(3, 2)
    seen = torch.tensor([[False, True, False]])
    z = torch.randn(1, 3, 2)
    same(model.filled(z, seen)[0], torch.stack([model.usual[0], z[0, 1], model.usual[2]]))


@both_variants
def test_the_usual_latent(variant):
    model, data = built(CPSPAN, variant=variant), blobs(40)
    with torch.no_grad():
        model.store_donors(data)
        for v in range(3):
            own = model.nets.encoders[v](data.x[v][data.mask[:, v]]).mean
            zeros = model.nets.encoders[v](torch.zeros(1, WIDTHS[v])).mean
            nearest = own[cos(zeros, own).argmax()]
            same(model.usual[v], own.mean(0) if variant == "paper" else nearest)


def test_the_usual_latent_of_a_view_whose_samples_are_all_hidden():
    model, data = built(CPSPAN), blobs(40)
    nobody = data.hide((torch.arange(3) == 1).expand_as(data.mask))
    with torch.no_grad():
        model.store_donors(nobody[nobody.mask.any(1)])
    assert model.usual.isfinite().all()


def test_the_released_fill_asks_with_zeros_so_all_get_the_same_copy():
    model, data = built(CPSPAN, variant="released"), blobs(40)
    with torch.no_grad():
        model.store_donors(data)
        z = model.embed(data).view(40, 3, 2)
    for v in range(3):
        gone = ~data.mask[:, v]
        assert gone.sum() > 3
        assert (z[gone, v] == z[gone, v][0]).all()
        assert (model.bank[data.mask[:, v], v] == z[gone, v][0]).all(1).any()


@both_variants
def test_what_lies_under_a_missing_view_never_matters(variant):
    """The public code differs: it queries with the encoding of the missing view itself."""
    batch, found = batch_of(12), []
    for data in (batch, poisoned(batch)):
        model = built(CPSPAN, variant=variant, n_prototypes=3)
        model.groups = torch.zeros(12, 3, dtype=torch.long)
        with torch.no_grad():
            model.find_prototypes(model.nets.latents(data), data.mask)
            model.store_donors(data)
        terms = [model.nets.reconstruction(data), model.loss(data)]
        told = [*terms, *(gradients(model, t) for t in terms)]
        found.append([*told, model.embed(data), *model.decode(data)])
    same(*found, 0.0)


@both_variants
def test_no_door_lets_a_hidden_view_in(variant):
    clean = blobs(60)
    mask, arrays, told = clean.mask.numpy(), [x.numpy() for x in clean.x], []
    settings = dict(hidden=(8,), pretrain=5, steps=5, rounds=2, random_state=0, device="cpu")
    for junk in (np.nan, 1e6):
        dirty = [np.where(m[:, None], x, junk) for x, m in zip(arrays, mask.T, strict=True)]
        model = CPSPAN(n_clusters=3, variant=variant, **settings)
        told.append(model.fit(Views.of(dirty, mask=mask)).embedding_)
    np.testing.assert_array_equal(*told)


# Training.


@both_variants
def test_schedule(variant):
    data = blobs(60)
    model = built(CPSPAN, variant=variant, pretrain=7, steps=20, rounds=4, align_lr=0.5)
    with torch.no_grad():
        first, *rest = model.stages(data)
    assert first.steps == 7
    assert len(rest) == 4
    assert all(s is rest[0] for s in rest)  # one optimizer, one captured step
    assert (rest[0].steps, rest[0].fresh, rest[0].lr) == (5, True, 0.5)
    assert len(model.groups) == 0
    assert model.bank.shape == (60, 3, 2)
    assert torch.equal(model.known, data.mask)


@pytest.mark.parametrize(("order", "share"), [((0, 1, 2), 0.5), ((2, 0, 1), 0.0)])
def test_separated_clusters_are_found_by_complete_and_incomplete_samples(order, share):
    model = CPSPAN(n_clusters=3, hidden=(32,), pretrain=200, steps=60, random_state=0, device="cpu")
    check_clusters(model, order, share)
    assert min(model.r2_.values()) > 0.9  # hidden views, from the latents of others


@pytest.mark.parametrize("epoch", [2, 5, 7])
def test_a_fit_goes_on_where_it_died(tmp_path, monkeypatch, epoch):
    make = partial(small, CPSPAN, n_clusters=3, epochs=4, rounds=2)
    check_resuming(make, tmp_path, monkeypatch, epoch)


def test_calibration_never_sees_a_sample_find_itself():
    """Noise knows nothing of other noise, so hidden views cannot be told."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(200, w)) for w in WIDTHS]
    model = CPSPAN(hidden=(32,), pretrain=200, steps=20, random_state=0, device="cpu").fit(X)
    assert max(model.r2_.values()) < 0.2


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"variant": "leaky"}, "variant must be one of paper, released, got 'leaky'"),
        ({"n_prototypes": 0}, "n_prototypes must be at least 1, got 0"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        CPSPAN(**{"n_clusters": 3} | settings).fit(list(np.eye(9).reshape(3, 27, 1)))
