"""DSIMVC: its losses in closed form, the look ahead against differences, donors against a loop."""

from __future__ import annotations

import math
from dataclasses import replace

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
from torch import nn
from torch.nn.functional import normalize

from vedute.data.views import Views
from vedute.methods.deep import dsimvc
from vedute.methods.deep.dsimvc import DSIMVC, borrowed, donors, features, labels
from vedute.nn.losses import cluster_contrastive, entropy_balance, spectral_contrastive

SMALL = dict(n_clusters=3, latent_dim=16, feature_dim=16, hidden=(32,), random_state=0)
SMALL |= dict(pretrain=60, warmup=40, steps=60, lr=3e-3, device="cpu")


# The losses.


def slow_spectral(a, b):
    """The loss of the paper, one product after the other, on vectors of length at most sqrt 3."""
    B, clip = len(a), lambda h: h * min(1.0, math.sqrt(3) / float(h.norm()))
    total = sum(-2 / B * float(clip(a[i]) @ clip(b[i])) for i in range(B))
    for i in range(B):
        for j in range(B):
            if i != j:
                total += float(clip(a[i]) @ clip(b[j])) ** 2 / (B * (B - 1))
    return total


def test_the_parts_of_the_samples_sum_to_the_spectral_loss():
    torch.manual_seed(0)
    a, b = 2 * torch.randn(6, 3), 2 * torch.randn(6, 3)
    parts = spectral_contrastive(a, b)
    assert parts.shape == (6,)
    assert float(parts.sum()) == pytest.approx(slow_spectral(a, b), rel=1e-5)


@pytest.mark.parametrize(("length", "expected"), [(1.0, -2.0), (3**0.5, -6.0), (9.0, -6.0)])
def test_orthogonal_vectors_agree_up_to_their_length(length, expected):
    h = length * torch.eye(5)
    assert float(spectral_contrastive(h, h).sum()) == pytest.approx(expected, rel=1e-6)


def slow_labels(p, q):
    K, cos = p.shape[1], nn.CosineSimilarity(dim=0)
    total = 0.0
    for one, other in ((p, q), (q, p)):
        for k in range(K):
            own = math.exp(cos(one[:, k], other[:, k]))
            rest = [math.exp(cos(one[:, k], one[:, j])) for j in range(K) if j != k]
            total -= math.log(own / (own + sum(rest))) / (2 * K)
        mean = one.mean(0)
        total += math.log(K) + float((mean * mean.log()).sum())
    return total


def test_the_label_loss_written_slowly():
    torch.manual_seed(0)
    q = torch.randn(6, 3, 4).softmax(-1)
    expected = sum(slow_labels(q[:, v], q[:, w]) for v, w in ((0, 1), (0, 2), (1, 2)))
    assert float(labels(q)) == pytest.approx(expected, rel=1e-4)
    assert labels(q[:, :1]) == pytest.approx(slow_labels(q[:, 0], q[:, 0]), rel=1e-4)


def test_the_label_loss_of_perfect_and_of_empty_labels():
    K = 4
    sure, unsure = torch.eye(K).repeat(3, 1), torch.full((12, K), 1 / K)
    perfect = float(cluster_contrastive(sure, sure, 1.0, "same"))
    assert perfect == pytest.approx(math.log(1 + (K - 1) / math.e), abs=1e-6)
    assert perfect == pytest.approx(0.7437, abs=1e-4)
    assert float(cluster_contrastive(unsure, unsure, 1.0, "same")) == pytest.approx(math.log(K))
    with pytest.raises(ValueError, match="negatives must be same or both, got 'none'"):
        cluster_contrastive(sure, sure, 1.0, "none")


def test_balance_is_zero_only_for_clusters_of_one_size_and_finite_for_empty_ones():
    even, uneven = torch.eye(4), torch.eye(4)[[0, 0, 0, 0]].requires_grad_()
    assert float(entropy_balance(even)) == pytest.approx(0.0, abs=1e-6)
    assert float(entropy_balance(uneven.detach())) == pytest.approx(math.log(4), abs=1e-6)
    entropy_balance(uneven).backward()
    assert uneven.grad.isfinite().all()


def test_many_pairs_at_once_are_one_after_the_other():
    torch.manual_seed(0)
    a, b = torch.randn(5, 6, 3).softmax(-1), torch.randn(5, 6, 3).softmax(-1)
    for f in (
        spectral_contrastive,
        lambda a, b: cluster_contrastive(a, b, 1.0, "same"),
        lambda a, b: entropy_balance(a),
    ):
        same(f(a, b), torch.stack([f(x, y) for x, y in zip(a, b, strict=True)]))


# The look ahead.


class Linears(nn.Module):
    """Encoders in float64: differences need digits."""

    def __init__(self):
        super().__init__()
        self.encoders = nn.ModuleList(nn.Linear(w, 2) for w in WIDTHS)

    def forward(self, batch):
        return torch.stack([f(x) for f, x in zip(self.encoders, batch.x, strict=True)], dim=1)


def exact(seed=0, meta_lr=0.3):
    """A small model in float64, complete samples, and completed ones in it."""
    model = built(DSIMVC, seed, feature_dim=3, meta_lr=meta_lr)
    model.net.nets = Linears()
    model = model.double()
    with torch.no_grad():
        for p in model.trust.parameters():  # far from where the sigmoid is flat
            p.mul_(0.2)
    g = torch.Generator().manual_seed(seed)
    sizes = (7, 5)  # complete, completed
    x, y = ([torch.randn(n, w, generator=g).double() for w in WIDTHS] for n in sizes)
    for v, a in enumerate(y):
        setattr(model, f"completed{v}", a)
    seen = torch.ones(7, 3, dtype=torch.bool)
    return model, Views(tuple(x), seen, torch.arange(7), (None,) * 3, ("a", "b", "c"))


def completed(model, batch):
    x = tuple(getattr(model, f"completed{v}") for v in range(3))
    return replace(batch, x=x, mask=torch.ones(5, 3, dtype=torch.bool))


def slow_losses(net, batch, others, share):
    """F on the complete samples, and all of L."""
    h, q = net(batch)
    f = features(h).sum() + labels(q)
    h, q = net(others)
    return f, f + (share * features(h)).sum() + labels(q)


def shares(model, others):
    w = model.trust(model.net(others)[1].mean(1))
    return (w / w.sum()).detach()


def after_a_step(model, batch, share):
    """F(t - meta_lr dL/dt), by taking the step."""
    net, others = model.net, completed(model, batch)
    weights = [p for k, p in net.named_parameters()]
    total = slow_losses(net, batch, others, share)[1]
    steps = torch.autograd.grad(total, weights)
    with torch.no_grad():
        for p, step in zip(weights, steps, strict=True):
            p -= model.hp.meta_lr * step
        value = float(slow_losses(net, batch, others, share)[0])
        for p, step in zip(weights, steps, strict=True):
            p += model.hp.meta_lr * step
    return value


def slope_along(model, batch, direction, step=1e-6):
    """d F(t') along a direction in the weights of the trust net, by a central difference."""
    values = []
    for sign in (1, -2, 1):  # there, to the other side, and back
        with torch.no_grad():
            for p, d in zip(model.trust.parameters(), direction, strict=True):
                p += sign * step * d
        values.append(after_a_step(model, batch, shares(model, completed(model, batch))))
    return (values[0] - values[1]) / (2 * step)


@pytest.mark.parametrize("seed", [3, 4, 5])  # where trust matters
def test_the_trust_net_learns_from_the_look_ahead_and_the_rest_from_the_loss(seed):
    model, batch = exact(seed)
    others, terms = completed(model, batch), model.loss(batch)
    share = shares(model, others)
    total = slow_losses(model.net, batch, others, share)[1]
    assert sum(terms.values()).item() - terms["ahead"].item() == pytest.approx(total.item())
    found, expected = gradients(model, terms), gradients(model, {"total": total})
    assert terms["ahead"].item() == pytest.approx(after_a_step(model, batch, share))
    for name in found:
        if not name.startswith("trust."):
            same(found[name], expected[name], 1e-9)
    for _ in range(4):
        direction = [torch.randn_like(p) for p in model.trust.parameters()]
        slopes = [g for k, g in found.items() if k.startswith("trust.")]
        slope = sum(float((g * d).sum()) for g, d in zip(slopes, direction, strict=True))
        assert slope == pytest.approx(slope_along(model, batch, direction), rel=1e-3, abs=1e-8)
    assert max(float(g.abs().max()) for g in slopes) > 1e-4


def test_a_sample_that_pulls_against_the_complete_ones_is_trusted_less():
    """dF(t')/ds_i = -meta_lr <dF(t')/dt', dl_i/dt>: less is better where they point apart."""
    model, batch = exact(seed=13, meta_lr=1e-3)  # where some pull apart
    others = completed(model, batch)
    given = shares(model, others).requires_grad_()
    _, total = slow_losses(model.net, batch, others, given)
    (slope,) = torch.autograd.grad(model.ahead(batch, total), given, retain_graph=True)
    weights = list(model.net.parameters())
    steps = torch.autograd.grad(total, weights)
    parts = [
        torch.autograd.grad(part, weights, allow_unused=True, retain_graph=True)
        for part in features(model.net(others)[0])
    ]
    with torch.no_grad():
        for p, step in zip(weights, steps, strict=True):
            p -= 1e-3 * step
    ahead = torch.autograd.grad(slow_losses(model.net, batch, others, given)[0], weights)
    pulls = [sum(float((a * b).sum()) for a, b in zip(ahead, part, strict=True) if b is not None)
             for part in parts]  # fmt: skip
    same(slope, -1e-3 * torch.tensor(pulls).double(), 1e-9)
    assert min(pulls) < 0 < max(pulls)
    assert ((slope > 0) == (torch.tensor(pulls) < 0)).all()


# Donors.


def slow_donors(h, mask, v, i, k):
    """Walk the neighbours of i in each of its views until there are k donors of view v."""
    found = []
    for w in range(mask.shape[1]):
        if w == v or not mask[i, w]:
            continue
        ranked = [j for j in range(len(h)) if j != i and mask[j, w]]
        for j in sorted(ranked, key=lambda j, w=w: -float(h[i, w] @ h[j, w])):
            if mask[j, v]:
                found.append(j)
            if len(found) >= k:
                break
    return found


@pytest.mark.parametrize(("n", "k", "L"), [(30, 3, 4), (30, 1, 2), (9, 4, 3), (12, 2, 6)])
def test_donors_are_those_of_a_walk(n, k, L):
    g = torch.Generator().manual_seed(n)
    mask = torch.rand(n, L, generator=g) < 0.6
    mask[torch.arange(n), torch.randint(L, (n,), generator=g)] = True
    h = normalize(torch.randn(n, L, 3, generator=g), dim=-1)
    several = 0
    for v in range(L):
        rows = (~mask[:, v]).nonzero()[:, 0]
        found = donors(h, mask, v, rows, k)
        for i, row in zip(rows.tolist(), found.tolist(), strict=True):
            expected = slow_donors(h, mask, v, i, k)
            assert [j for j in row if j >= 0] == expected
            assert all(mask[j, v] and (mask[j] & mask[i]).any() for j in expected)
            several += len(expected) > k
    assert several > 0 or L == 2 or n < 4 * k


def test_a_view_like_the_others_is_borrowed_from_the_three_nearest():
    g = torch.Generator().manual_seed(0)
    x = normalize(torch.randn(40, 3, generator=g), dim=1)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=g)).Q
    mask = torch.ones(40, 2, dtype=torch.bool)
    mask[:15, 1] = False
    rows = torch.arange(15)
    found = borrowed(x @ turn, mask[:, 1], donors(torch.stack([x, x @ turn], 1), mask, 1, rows, 3))
    for i in range(15):
        near = sorted(range(15, 40), key=lambda j, i=i: float((x[i] - x[j]).norm()))[:3]
        same(found[i], (x[near] @ turn).mean(0))


def test_where_nobody_gives_the_mean_of_the_view_does_and_tokens_are_never_averaged():
    x, seen = torch.tensor([[2.0], [4.0], [9.0]]), torch.tensor([True, True, False])
    givers = torch.tensor([[-1, -1], [0, 1], [-1, 1]])
    assert borrowed(x, seen, givers).tolist() == [[3.0], [3.0], [4.0]]
    assert borrowed(x, seen, givers, whole=True).tolist() == [[3.0], [2.0], [4.0]]


def test_only_missing_views_are_borrowed_and_only_from_what_is_there():
    model, batch = built(DSIMVC, feature_dim=3), batch_of(12)
    h = torch.randn(12, 3, 3, generator=torch.Generator().manual_seed(0))
    lacking = ~batch.mask.all(1)
    found = []
    for data in (batch, poisoned(batch)):
        model.complete(data, h)
        found.append([getattr(model, f"completed{v}") for v in range(3)])
    for v, (a, b) in enumerate(zip(*found, strict=True)):
        assert torch.equal(a, b)
        seen = batch.mask[lacking, v]
        assert torch.equal(a[seen], batch.x[v][lacking][seen])


# The method.


def test_what_lies_under_a_missing_view_never_matters():
    model, batch = built(DSIMVC, feature_dim=3), batch_of()
    nan = replace(batch, x=tuple(
        torch.where(batch.mask[:, [v]], a, torch.nan) for v, a in enumerate(batch.x)
    ))  # fmt: skip
    for junk in (poisoned(batch), nan):
        for f in (model.embed, model.assign):
            same(f(junk), f(batch), 0.0)
    h, q = model.net(batch)
    for i, seen in enumerate(batch.mask):
        same(model.assign(batch)[i], q[i, seen].mean(0))
        same(model.embed(batch)[i], h[i, seen].mean(0))


@pytest.mark.parametrize(
    ("order", "share"),
    [
        ((0, 1, 2), 0.5),
        pytest.param((2, 0, 1), 0.5, marks=pytest.mark.all),
        pytest.param((0, 1, 2), 0.0, marks=pytest.mark.all),
    ],
)
def test_clusters_are_found_in_any_order_of_views_and_with_nothing_missing(order, share):
    model = DSIMVC(**SMALL)
    data = check_clusters(model, order, share)
    state = model.model_.state_dict()
    assert all(len(state[k]) == 0 for k in state if k.startswith(("memory", "completed")))
    assert [r["stage"] for r in model.history_][-1] == (2 if share else 1)
    again = DSIMVC(**SMALL).fit(data)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)


def test_borrowing_anew_after_every_step(monkeypatch):
    calls = []
    monkeypatch.setattr(dsimvc, "donors", lambda *a: calls.append(a[0]) or donors(*a))
    model = DSIMVC(**SMALL | dict(steps=3, reimpute=True)).fit(blobs(60))
    assert len(calls) == 3 * (1 + 3)  # three views, at first and after each of three steps
    for h in calls:
        same(h.norm(dim=-1), torch.ones(60, 3))
    assert not torch.equal(calls[3], calls[6])
    assert [r["stage"] for r in model.history_][-3:] == [2, 3, 4]
    assert "trust.0.0.weight" in model.model_.state_dict()


def test_few_complete_samples_will_do_and_none_will_not():
    data = blobs(60)
    whole = data.mask.all(1)
    keep = whole.clone()
    keep[whole.nonzero()[3:, 0]] = False  # three complete ones
    few = data[(keep | ~whole).numpy()]
    assert np.isfinite(DSIMVC(**SMALL | dict(steps=5)).fit(few).embedding_).all()
    with pytest.raises(ValueError, match=r"have every view, at least 2; of these, X has 0"):
        DSIMVC(**SMALL).fit(data[(~whole).numpy()])


@pytest.mark.parametrize("epoch", [3, 7, 11])
def test_a_fit_that_died_goes_on(tmp_path, monkeypatch, epoch):
    def make(**settings):
        lengths = dict(pretrain=10, warmup=8, steps=6, batch_size=16)
        return DSIMVC(**SMALL | lengths | settings)

    check_resuming(make, tmp_path, monkeypatch, epoch)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (dict(n_neighbors=0), "n_neighbors must be at least 1, got 0"),
        (dict(momentum=1.0), "momentum must be at least 0 and below 1, got 1.0"),
        (dict(n_clusters=None), "n_clusters=None.* set n_clusters"),
        (dict(n_clusters="auto"), "learns its clusters while it trains"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(settings, told):
    with pytest.raises(ValueError, match=told):
        DSIMVC(**SMALL | settings).fit(blobs(60))


def test_it_cannot_impute_and_says_who_can():
    model = DSIMVC(**SMALL | dict(pretrain=2, warmup=2, steps=2)).fit(blobs(60))
    for verb in (model.impute, model.reconstruct, model.score):
        with pytest.raises(TypeError, match=r"DSIMVC cannot .* shows which methods can"):
            verb(blobs(9))
