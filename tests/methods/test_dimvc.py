"""DIMVC: soft labels, the P-step, the objective written slowly, and what must never matter."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from blobs import batch_of, blobs, built, check_clusters, check_resuming, gradients, poisoned, same
from every_method import small

from vedute.methods.deep.dimvc import DIMVC, order, view_weights
from vedute.methods.deep.shared.autoencoders import kmeans
from vedute.nn.losses import log_student_t, per_view_mean, sharpen


def entropy(p):
    return -torch.special.xlogy(p, p).sum(-1)


# Soft labels.


def test_soft_labels_are_students_t():
    torch.manual_seed(0)
    z, u = torch.randn(5, 3, 4), torch.randn(3, 6, 4)
    q = log_student_t(z, u).exp()
    same(q.sum(-1), torch.ones(5, 3))
    for i in range(5):
        for v in range(3):
            weight = torch.stack([1 / (1 + ((z[i, v] - c) ** 2).sum()) for c in u[v]])
            same(q[i, v], weight / weight.sum())
    far = log_student_t(1e15 * torch.ones(1, 2), torch.eye(2))
    same(far.exp(), torch.full((1, 2), 0.5))


def test_sharpening_keeps_the_extremes_and_never_adds_entropy():
    K = 5
    same(sharpen(torch.full((1, K), 1 / K)), torch.full((1, K), 1 / K))
    same(sharpen(torch.eye(K)), torch.eye(K))
    torch.manual_seed(0)
    q = (3 * torch.randn(500, K)).softmax(-1)
    assert (entropy(sharpen(q)) <= entropy(q) + 1e-6).all()
    assert torch.equal(sharpen(q).argmax(-1), q.argmax(-1))
    same(sharpen(torch.tensor([0.75, 0.25])), torch.tensor([0.9, 0.1]))


def test_cross_entropy_is_least_where_the_labels_are_the_target():
    torch.manual_seed(0)
    p, q = (torch.randn(200, 4).softmax(-1) for _ in range(2))
    assert (-(p * q.log()).sum(-1) > entropy(p)).all()
    same(-(p * p.log()).sum(-1), entropy(p))


# The P-step.


def test_matching_finds_the_permutation_and_the_least_cost():
    torch.manual_seed(0)
    labels, rename = torch.randint(6, (300,)), torch.randperm(6)
    assert torch.equal(order(labels, rename[labels], 6), rename)
    few = order(torch.tensor([0, 0, 2]), torch.tensor([1, 1, 1]), 4)  # clusters nobody is in
    assert few[0] == 1
    assert sorted(few.tolist()) == [0, 1, 2, 3]


def test_a_target_keeps_the_order_of_the_one_before():
    torch.manual_seed(0)
    old = (4 * torch.randn(80, 5)).softmax(-1)
    for _ in range(5):
        new = old[:, torch.randperm(5)]
        assert torch.equal(new[:, order(old.argmax(1), new.argmax(1), 5)], old)


def test_the_p_step_does_not_hang_on_the_numbers_of_k_means():
    data = blobs(60, share=0.0)
    model = built(DIMVC)
    with torch.no_grad():
        z = model.nets.latents(data)
        for v in range(3):
            model.centers[v] = kmeans(z[:, v], 3, model.hp.starts)
        first = model.target(z)
        orders = set()
        for seed in range(6):
            torch.manual_seed(seed)
            again = model.target(z)
            orders.add(tuple(again.argmax(1)[:3].tolist()))
            same(again[:, order(first.argmax(1), again.argmax(1), 3)], first, 1e-4)
    assert len(orders) > 1


def test_view_weights():
    torch.manual_seed(0)
    one = torch.rand(6, 4)
    for L in (1, 2, 5):
        same(view_weights(one.expand(L, 6, 4)), torch.full((L,), 1 + math.log2(1 + 1 / L)))
    weights = view_weights(torch.randn(4, 6, 3))
    assert ((weights > 1) & (weights <= 2)).all()
    lone = torch.stack([one, torch.ones(6, 4), torch.zeros(6, 4)])  # constant columns say nothing
    same(view_weights(lone), torch.tensor([2.0, 1.0, 1.0]))
    same(view_weights(torch.zeros(3, 1, 2)), torch.ones(3))
    scaled = torch.tensor([[[0.0, 5.0], [1.0, 5.0]], [[2.0, 3.0], [4.0, 7.0]]])
    # scaled to 0/1: entries (0, 0, 1, 0) with variance 3/16, and (0, 0, 1, 1) with 1/4
    expected = [1 + math.log2(1 + s / 7) for s in (3, 4)]
    same(view_weights(scaled), torch.tensor(expected))


def test_p_is_the_sharpened_label_of_the_weighted_latents():
    model, data = built(DIMVC), blobs(40, share=0.0)
    with torch.no_grad():
        z, w = model.nets.latents(data), view_weights(model.centers)
        torch.manual_seed(3)
        target = model.target(z)
        h = torch.cat([w[v] * z[:, v] for v in range(3)], dim=1)
        torch.manual_seed(3)
        s = log_student_t(h, kmeans(h, 3, model.hp.starts)).exp()
    same(target, s**2 / (s**2).sum(1, keepdim=True))


def test_centers_get_the_numbers_of_the_target():
    model, data = built(DIMVC), blobs(60, share=0.0)
    with torch.no_grad():
        z = model.nets.latents(data)
        for v in range(3):
            model.centers[v] = kmeans(z[:, v], 3, model.hp.starts)[torch.randperm(3)]
        before, target = model.centers.clone(), model.target(z)
        model.order_centers(z, target)
        own = log_student_t(z, model.centers).argmax(-1)
    for v in range(3):
        assert {tuple(c) for c in before[v].tolist()} == {
            tuple(c) for c in model.centers[v].tolist()
        }
        assert (target.argmax(1) == own[:, v]).sum() >= 50


# The objective.


def test_means_over_a_view_are_over_those_who_have_it():
    values = torch.tensor([[1.0, 5.0, 7.0], [3.0, 9.0, 1e30]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    same(per_view_mean(values, mask), torch.tensor(2.0 + 5.0))


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.5, 2.0)])
def test_same_loss_as_the_paper_written_slowly(weights):
    model = built(DIMVC, cluster_weight=weights[0], rec_weight=weights[1])
    batch = batch_of()[:2]
    model.targets = torch.randn(2, 3).softmax(-1)
    fast = model.loss(batch)
    clustering = reconstruction = 0.0
    for v in range(3):
        encoder, decoder = model.nets.encoders[v], model.nets.decoders[v]
        for i in range(2):
            z = encoder(batch.x[v][i : i + 1]).mean
            reconstruction += (decoder(z) - batch.x[v][i]).square().mean() / 2
            weight = torch.stack([1 / (1 + (z[0] - u).square().sum()) for u in model.centers[v]])
            q = weight / weight.sum()
            clustering -= (model.targets[i] * q.log()).sum() / 2
    slow = {"reconstruction": weights[1] * reconstruction, "clustering": weights[0] * clustering}
    same(fast, slow)
    same(gradients(model, fast), gradients(model, slow), 1e-4)


def test_what_lies_under_a_missing_view_never_matters():
    model, batch = built(DIMVC), batch_of()
    model.targets = torch.randn(7, 3).softmax(-1)
    for loss in (model.nets.reconstruction, model.loss):
        clean, junk = (loss(b) for b in (batch, poisoned(batch)))
        same(clean, junk, 0.0)
        same(gradients(model, clean), gradients(model, junk), 0.0)
    same(model.assign(batch), model.assign(poisoned(batch)), 0.0)


def test_a_sample_is_judged_by_the_views_it_has():
    model, batch = built(DIMVC), batch_of()
    soft = model.assign(batch)
    same(soft.sum(1), torch.ones(7))
    for i, seen in enumerate(batch.mask):
        q = [
            log_student_t(model.nets.encoders[v](batch.x[v][i : i + 1]).mean, model.centers[v])[0]
            for v in range(3)
            if seen[v]
        ]
        same(soft[i], torch.stack(q).exp().mean(0))
    same(model.embed(batch), soft)


# Training.


def test_schedule():
    data = blobs(60)
    model = built(DIMVC, pretrain=7, steps=40, rounds=4, batch_size=16)
    first, *rest = (s for s in stages(model, data))
    assert (first.steps, first.rows) == (7, None)
    assert len(rest) == 4
    assert all(s is rest[0] for s in rest)  # one optimizer, one captured step
    assert (rest[0].steps, rest[0].fresh) == (10, True)
    assert torch.equal(rest[0].rows, data.mask.all(1))
    assert len(model.targets) == 0  # nothing of the training samples is kept


def stages(model, data):
    with torch.no_grad():
        yield from model.stages(data)


def test_targets_are_those_of_complete_samples():
    data, model = blobs(60), built(DIMVC, pretrain=0, rounds=1)
    with torch.no_grad():
        next(model.stages(data))
    whole = data.mask.all(1)
    same(model.targets[whole].sum(1), torch.ones(int(whole.sum())))
    assert not model.targets[~whole].any()


def test_released_order_is_that_of_k_means():
    data, centers = blobs(60), []
    for released in (True, False):
        model = built(DIMVC, pretrain=0, released_order=released)
        torch.manual_seed(1)
        with torch.no_grad():
            next(model.stages(data))
            found = model.nets.latents(data[data.mask.all(1)])
        torch.manual_seed(1)
        expected = torch.stack([kmeans(found[:, v], 3, model.hp.starts) for v in range(3)])
        centers.append(torch.equal(model.centers, expected))
    assert centers == [True, False]


@pytest.mark.parametrize(("order", "share"), [((0, 1, 2), 0.5), ((2, 0, 1), 0.0)])
def test_separated_clusters_are_found_by_complete_and_incomplete_samples(order, share):
    model = DIMVC(n_clusters=3, hidden=(32,), pretrain=150, steps=150, random_state=0, device="cpu")
    data = check_clusters(model, order, share)
    soft = model.predict_proba(data)
    np.testing.assert_allclose(soft.sum(1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(soft.argmax(1), model.labels_)


@pytest.mark.parametrize("epoch", [2, 5, 7])
def test_a_fit_goes_on_where_it_died(tmp_path, monkeypatch, epoch):
    make = partial(small, DIMVC, n_clusters=3, epochs=4, rounds=2)
    check_resuming(make, tmp_path, monkeypatch, epoch)


def test_complete_data_and_batches_larger_than_it_will_do():
    data = blobs(30, share=0.0)
    model = DIMVC(n_clusters=3, hidden=(8,), pretrain=5, steps=5, batch_size=99, random_state=0)
    assert set(model.fit_predict(data)) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"n_clusters": None}, "n_clusters=None.* set n_clusters"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"latent_dim": 0}, "latent_dim must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        DIMVC(**{"n_clusters": 3} | settings).fit(list(np.eye(9).reshape(3, 27, 1)))


def test_too_few_complete_samples_are_refused():
    data = blobs(30)
    hidden = torch.zeros_like(data.mask)
    hidden[2:, 0] = data.mask[2:, 1:].any(1)
    data = data.hide(hidden)
    whole = int(data.mask.all(1).sum())
    with pytest.raises(ValueError, match=f"X has {whole} of them, it needs at least 3"):
        DIMVC(n_clusters=3, pretrain=1, steps=1).fit(data)
