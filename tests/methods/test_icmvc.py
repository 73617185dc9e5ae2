"""ICMVC: graphs against loops, losses in closed form, rows it has seen and rows it has not."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from blobs import blobs, check_resuming, gradients, poisoned, same
from building import model_of
from torch.nn.functional import normalize

from vedute.data.views import Views
from vedute.methods.deep import icmvc
from vedute.methods.deep.icmvc import (
    ICMVC,
    GraphNetwork,
    Sums,
    equal_rows,
    guiding,
    link_sums,
    links,
    relations,
    released_relations,
)
from vedute.metrics.scores import clustering_accuracy
from vedute.nn.losses import cluster_contrastive, nt_xent

SMALL = dict(n_clusters=3, latent_dim=8, hidden=(16, 16), steps=40, lr=1e-2, n_neighbors=5)
SMALL |= dict(random_state=0, device="cpu")
RULES = (relations, released_relations)


def points(n=24, widths=(3, 2), share=0.5, seed=0):
    """Two views, zero where missing; a share of the rows lacks one."""
    g = torch.Generator().manual_seed(seed)
    mask = torch.ones(n, 2, dtype=torch.bool)
    gone = torch.randperm(n, generator=g)[: round(share * n)]
    mask[gone, torch.randint(2, (len(gone),), generator=g)] = False
    x = [torch.randn(n, w, generator=g) * mask[:, [v]] for v, w in enumerate(widths)]
    return x, mask


def batch_of(**kwargs):
    x, mask = points(**kwargs)
    return Views(tuple(x), mask, torch.arange(len(mask)), (None, None), ("a", "b"))


def trained(data, **settings):
    return ICMVC(**SMALL | settings).fit(data)


def test_gradients_of_many_samples_are_computed_in_pieces(monkeypatch):
    data = batch_of(n=30)
    found = []
    for many in (100, 4):
        monkeypatch.setattr(icmvc, "MANY_NODES", many)
        monkeypatch.setattr(icmvc, "BATCHES_IN_MEMORY", 2)
        model = ICMVC(**SMALL | {"batch_size": 6}).build(data.shapes, (), data.names, 1)
        torch.manual_seed(0)
        for p in model.parameters():
            torch.nn.init.normal_(p, 0.0, 0.3)
        stage = next(model.stages(data))
        torch.manual_seed(0)
        terms = stage.loss(data)
        found.append([*terms.values(), *gradients(model, terms).values()])
    same(*found)


# Graphs.


def slow_relations(x, mask, k):
    n, tables = len(mask), []
    for v in (0, 1):
        rows = []
        for i in range(n):
            u = v if mask[i, v] else 1 - v  # relations are taken over from the other view
            near = [
                (float((x[u][i].double() - x[u][j].double()).norm()), j)
                for j in range(n)
                if j != i and mask[j, u] and mask[i, u]
            ]
            best = [j for _, j in sorted(near)[:k]]
            rows.append(best + [-1] * (k - len(best)))
        tables.append(rows)
    return tables


@pytest.mark.parametrize(
    ("n", "k", "share"), [(24, 4, 0.5), (24, 4, 0.0), (6, 5, 0.9), (3, 10, 0.0)]
)
def test_relations_are_taken_over_where_a_view_is_missing(n, k, share):
    x, mask = points(n, share=share)
    found = relations(x, mask, x, mask, k, itself=True)
    assert [t.tolist() for t in found] == slow_relations(x, mask, k)


def slow_released(x, mask, k):
    """The released order of things, on whole matrices."""
    s1, s2 = (torch.exp(-0.5 * torch.cdist(a.double(), a.double()) ** 2) for a in x)
    gone1, gone2 = ~mask[:, 0], ~mask[:, 1]
    original = s2.clone()
    s1[:, gone1] = 0
    s1[gone1] = original[gone1]
    s2[:, gone2] = 0
    s2[gone2] = s1[gone2]
    tables = []
    for s in (s1, s2):
        s.fill_diagonal_(-1)
        tables.append(
            [sorted(range(len(s)), key=lambda j, r=row: (-float(r[j]), j))[:k] for row in s]
        )
    return tables


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_the_released_graph_is_built_in_the_released_order(share):
    x, mask = points(share=share)
    found = released_relations(x, mask, x, mask, 4, itself=True)
    assert [t.tolist() for t in found] == slow_released(x, mask, 4)


def test_nothing_is_taken_over_where_nothing_is_missing():
    x, mask = points(share=0.0)
    alone = [relations([a, a], mask, [a, a], mask, 4, True)[0] for a in x]
    for rule in RULES:
        for table, own in zip(rule(x, mask, x, mask, 4, itself=True), alone, strict=True):
            assert torch.equal(table, own)


def test_wide_views_underflow_only_as_released():
    """Low-dimensional: the same graph. At 1024 dimensions every exp is zero, and ties decide."""
    x, mask = points(40, (2, 2), share=0.0)
    for a, b in zip(*(rule(x, mask, x, mask, 3, True) for rule in RULES), strict=True):
        assert torch.equal(a, b)
    centers = torch.randn(4, 1024, generator=torch.Generator().manual_seed(0))
    y = torch.arange(40) % 4
    noise = torch.randn(2, 40, 1024, generator=torch.Generator().manual_seed(1))
    wide = [centers[y] + a for a in noise]
    sane, released = (rule(wide, mask, wide, mask, 3, True)[0] for rule in RULES)
    assert (y[sane] == y[:, None]).all()
    assert released[5].tolist() == [0, 1, 2]  # as near as any other


def test_links_go_both_ways_and_to_oneself():
    x, mask = points()
    for table in relations(x, mask, x, mask, 4, itself=True):
        ends = links(table)
        found = set(zip(*ends.tolist(), strict=True))
        expected = {(i, i) for i in range(24)}
        for i, row in enumerate(table.tolist()):
            expected |= {(i, j) for j in row if j >= 0} | {(j, i) for j in row if j >= 0}
        assert found == expected
        assert ends.shape[1] == len(expected)
    assert links(torch.full((3, 2), -1)).tolist() == [[0, 1, 2], [0, 1, 2]]


def adjacency(table, symmetric):
    """A, dense."""
    n = len(table)
    p = torch.zeros(n, n)
    p[tuple(links(table))] = 1
    root = p.sum(1).rsqrt()
    return root[:, None] * p * root if symmetric else root[:, None] * p


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_graph_network_is_its_formula(symmetric):
    x, mask = points()
    table = relations(x, mask, x, mask, 4, itself=True)[0]
    a = adjacency(table, symmetric)
    if symmetric:
        assert torch.equal(a, a.T)
        assert torch.linalg.eigvalsh(a).abs().max() <= 1 + 1e-5
    else:
        same(a.norm(dim=1), torch.ones(24))
    net = GraphNetwork((3, 6, 6, 2), symmetric).train()
    net.set_graph(x[0], table)
    h = x[0]
    for at, layer in enumerate(net.layers):
        out = a @ h @ layer.weight + layer.bias
        if at < 2:
            out = ((out - out.mean(0)) / (out.var(0, correction=0) + 1e-5).sqrt()).relu()
        h = out + h if at == 1 else out
    same(net(x[0]), h)


def test_sums_and_their_gradient_are_those_of_the_matrix():
    x, mask = points()
    ends = links(relations(x, mask, x, mask, 4, itself=True)[0])
    p = torch.zeros(24, 24).double()
    p[tuple(ends)] = 1
    a = torch.randn(24, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
    same(Sums.apply(ends, a), p @ a)
    assert torch.autograd.gradcheck(partial(Sums.apply, ends), a)
    some = torch.tensor([[0, 0, 2], [1, 5, 5]])
    same(link_sums(some, a, 3), torch.stack([a[1] + a[5], 0 * a[0], a[5]]))


# The losses.


def test_nt_xent_at_its_extremes():
    B = 5
    alike, apart = torch.eye(B)[[0] * B], torch.eye(B)
    assert float(nt_xent(alike, alike, 1.0)) == pytest.approx(math.log(2 * B - 1))
    expected = math.log(1 + (2 * B - 2) * math.exp(-1))
    assert float(nt_xent(apart, apart, 1.0)) == pytest.approx(expected)


def test_nt_xent_written_slowly():
    g = torch.Generator().manual_seed(0)
    a, b = (normalize(torch.randn(3, 4, 2, generator=g), dim=-1) for _ in range(2))
    for x, y, found in zip(a, b, nt_xent(a, b, 0.7), strict=True):
        z, total = torch.cat([x, y]), 0.0
        for i in range(8):
            e = [math.exp(float(z[i] @ z[j]) / 0.7) for j in range(8)]
            total -= math.log(e[(i + 4) % 8] / (sum(e) - e[i])) / 8
        assert float(found) == pytest.approx(total, rel=1e-5)


def test_cluster_contrast_of_perfect_labels():
    sure = torch.eye(4).repeat(3, 1)
    found = float(cluster_contrastive(sure, sure, 0.5, "both"))
    assert found == pytest.approx(math.log(1 + 6 * math.exp(-2)))
    assert found == pytest.approx(0.5944, abs=1e-4)


def test_guiding_follows_the_boldest_opinion():
    sure = torch.eye(3)
    assert float(guiding(sure, sure, (sure + 1e-30).log())) == pytest.approx(0.0, abs=1e-6)
    y1, y2 = torch.tensor([[0.6, 0.3, 0.1]]), torch.tensor([[0.2, 0.7, 0.1]])
    y = torch.tensor([[0.3, 0.3, 0.4]], requires_grad=True)
    t = torch.tensor([0.36, 0.49, 0.16]) / 1.01  # max, squared, normalised
    loss = guiding(y1.requires_grad_(), y2.requires_grad_(), y.log())
    same(loss, (t * (t / y).log()).sum())
    loss.backward()
    same(y.grad, -t / y.detach())  # none through the target
    assert y1.grad is None
    assert y2.grad is None


def built(batch, **settings):
    hp = ICMVC(**SMALL | settings)
    torch.manual_seed(0)
    model = model_of(hp, batch.shapes, ("normal", "normal"))
    stages = model.stages(batch)
    with torch.no_grad():
        stage = next(stages)
    return model.train(), stage, stages


def test_the_objective_written_slowly():
    batch = batch_of(n=24)
    model, stage, _ = built(batch, batch_size=7, cluster_weight=2.0, guide_weight=3.0)
    assert (stage.batch_size, stage.steps, stage.capture) == (0, 40, False)
    torch.manual_seed(5)
    terms = stage.loss(batch)
    h1, h2 = (net(x) for net, x in zip(model.networks, batch.x, strict=True))
    y1, y2, y = (model.head(h).softmax(1) for h in (h1, h2, model.fuse(h1, h2)))
    balance = sum(math.log(3) + (p.mean(0) * p.mean(0).log()).sum() for p in (y1, y2))
    same(terms["clusters"], 2.0 * (cluster_contrastive(y1, y2, 0.5, "both") + balance))
    same(terms["guiding"], 3.0 * guiding(y1, y2, y.log()))
    z1, z2 = (normalize(f(h), dim=1) for f, h in zip(model.projectors, (h1, h2), strict=True))
    torch.manual_seed(5)
    parts = torch.randperm(24)[:21].split(7)  # three of them, three samples left out
    each = torch.stack([nt_xent(z1[i], z2[i], 1.0) for i in parts])
    same(terms["instances"], each.sum())
    model.hp.instances = "mean"
    torch.manual_seed(5)
    same(model.loss(batch)["instances"], each.mean())
    model.hp.batch_size = 100  # one batch of all
    same(model.loss(batch)["instances"], nt_xent(z1, z2, 1.0))


def test_fusion_is_nearly_the_mean():
    model, *_ = built(batch_of())
    for scale in (1.0, 1e3):
        h = scale * torch.randn(9, 8)
        fused = model.fuse(torch.ones(9, 8), torch.zeros(9, 8) + 0 * h)
        assert ((fused > 0.475 - 1e-6) & (fused < 0.525 + 1e-6)).all()
        same(model.fuse(h, h), h, 1e-4)  # weights sum to one


# What must never matter.


@pytest.mark.parametrize("settings", [{}, dict(norm="released_row_l2"), dict(released_graph=True)])
def test_what_lies_under_a_missing_view_never_matters(settings):
    found = []
    clean = batch_of()
    for batch in (clean, poisoned(clean)):
        model, stage, stages = built(batch, **settings)
        torch.manual_seed(3)
        terms = stage.loss(batch)
        told = [*terms.values(), *gradients(model, terms).values()]
        with torch.no_grad():
            assert next(stages, None) is None
            other = batch_of(seed=1)
            told += [model.embed(batch), model.assign(batch), model.embed(other)]
            told += [model.embed(poisoned(other))]
        found.append(told)
    same(*found, 0.0)
    same(found[0][-1], found[0][-2], 0.0)


@pytest.mark.parametrize(("order", "share"), [((0, 2), 0.5), ((2, 0), 0.5), ((0, 1), 0.0)])
def test_clusters_are_found_in_any_order_of_views_and_with_nothing_missing(order, share):
    data = blobs(share=share).pick(*order)
    there = data[data.mask.any(1).numpy()]
    model = ICMVC(**SMALL)
    labels = model.fit_predict(there)
    assert clustering_accuracy(there.y, labels) > 0.95
    np.testing.assert_array_equal(ICMVC(**SMALL).fit(there).embedding_, model.embedding_)


# Rows it has seen, and rows it has not.


def test_after_training_the_statistics_are_those_of_the_whole():
    batch = batch_of()
    model, _, stages = built(batch)
    model.train()
    with torch.no_grad():
        h1, h2 = model.represent(list(batch.x))
        fused = model.fuse(h1, h2)
        y = model.head(fused).softmax(1)
        assert next(stages, None) is None
        assert not model.training
        same(model.fused, fused)
        same(model.embed(batch), fused)
        same(model.assign(batch), y)
        assert torch.equal(model.embed(batch), model.fused)
        assert torch.equal(model.embed(batch[[7, 3]]), model.fused[[7, 3]])


def slow_attachment(model, x, seen, batch, symmetric):
    """One new row beside the frozen training rows, whose links and numbers of links stay."""
    k, h = model.hp.n_neighbors, []
    kept = [batch.x[0], batch.x[1]]
    trained_tables = relations(kept, batch.mask, kept, batch.mask, k, itself=True)
    for v, net in enumerate(model.networks):
        u = v if seen[v] else 1 - v
        far = (
            (kept[u].double() - x[u].double()).norm(dim=1).masked_fill(~batch.mask[:, u], torch.inf)
        )
        near = far.argsort()[:k]
        degree = adjacency(trained_tables[v], False).count_nonzero(1).float()
        a = adjacency(trained_tables[v], symmetric)
        own, all_rows = x[v], batch.x[v]
        for layer in net.layers:
            reach = 1 / degree[near].sqrt() if symmetric else torch.ones(k)
            self_reach = 1 / math.sqrt(k + 1) if symmetric else 1.0
            heard = (reach[:, None] * (all_rows[near] @ layer.weight)).sum(0)
            out = (heard + self_reach * own @ layer.weight) / math.sqrt(k + 1) + layer.bias
            outs = a @ all_rows @ layer.weight + layer.bias
            if layer.norm is not None:
                out, outs = layer.norm(out[None])[0].relu(), layer.norm(outs).relu()
            own, all_rows = (out + own, outs + all_rows) if layer.skip else (out, outs)
        h.append(own[None])
    return model.fuse(*h)[0]


@pytest.mark.parametrize("norm", ["sym", "released_row_l2"])
def test_a_new_row_listens_to_its_nearest_training_rows(norm):
    batch, new = batch_of(), batch_of(n=6, seed=1)
    model, _, stages = built(batch, norm=norm)
    with torch.no_grad():
        next(stages, None)
        found = model.embed(new)
        for i in range(6):
            x = [a[i] for a in new.x]
            same(found[i], slow_attachment(model, x, new.mask[i], batch, norm == "sym"))
            same(model.embed(new[[i]])[0], found[i])


def test_the_same_row_with_another_mask_is_another_row():
    x, mask = points(5, share=0.0)
    assert equal_rows(x, mask, x, mask).tolist() == [0, 1, 2, 3, 4]
    twice = [torch.cat([a, a[:2]]) for a in x]
    assert equal_rows(x, mask, twice, mask[[0, 1, 2, 3, 4, 0, 1]]).tolist() == [0, 1, 2, 3, 4]
    hidden = mask.clone()
    hidden[2, 1] = False
    assert equal_rows(x, hidden, x, mask).tolist() == [0, 1, -1, 3, 4]
    moved = [x[0], x[1].clone()]
    moved[1][4, 0] += 1e-6
    assert equal_rows(moved, mask, x, mask).tolist() == [0, 1, 2, 3, -1]


def test_unseen_rows_of_a_cluster_join_it():
    data = blobs(300).pick(0, 1)
    data = data[data.mask.any(1).numpy()]
    train, test = data[:150], data[150:]
    model = trained(train)
    assert clustering_accuracy(test.y, model.predict(test)) > 0.95
    np.testing.assert_array_equal(model.predict(train), model.labels_)
    np.testing.assert_array_equal(model.transform(train[:9]), model.embedding_[:9])
    np.testing.assert_allclose(model.predict_proba(test).sum(1), 1, rtol=1e-5)
    assert model.model_.first.ends.shape == (2, 0)  # the links are not needed any more


def test_a_row_with_neither_view_is_linked_to_nobody():
    batch = batch_of()
    blind = batch.hide(torch.arange(24)[:, None] < torch.tensor([[2, 2]]))
    model, stage, stages = built(blind)
    assert model.first.degree[:2].tolist() == [[1.0], [1.0]]
    assert all(t.isfinite() for t in stage.loss(blind).values())
    with torch.no_grad():
        next(stages, None)
        assert model.embed(blind).isfinite().all()


def test_eight_rows_and_more_neighbours_than_rows_will_do():
    data = blobs(8, share=0.25).pick(0, 1)
    data = data[data.mask.any(1).numpy()]
    for released in (False, True):
        model = trained(data, n_neighbors=20, n_clusters=2, released_graph=released)
        assert np.isfinite(model.transform(blobs(9, share=0.0).pick(0, 1))).all()


@pytest.mark.parametrize("epoch", [1, 5])
def test_a_fit_that_died_goes_on(tmp_path, monkeypatch, epoch):
    class Pair(ICMVC):
        def fit(self, X, y=None):
            X = X.pick(0, 1)
            return super().fit(X[X.mask.any(1).numpy()])

    check_resuming(partial(Pair, **SMALL | dict(steps=6)), tmp_path, monkeypatch, epoch)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (dict(norm="l1"), "norm must be one of sym, released_row_l2, got 'l1'"),
        (dict(instances="max"), "instances must be one of sum, mean, got 'max'"),
        (dict(n_neighbors=0), "n_neighbors must be at least 1, got 0"),
        (dict(n_clusters=None), r"n_clusters=None.* set n_clusters"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(settings, told):
    with pytest.raises(ValueError, match=told):
        trained(blobs(60, share=0.0).pick(0, 1), **settings)


def test_three_views_are_sent_to_the_best_pair_and_tokens_away():
    with pytest.raises(ValueError, match=r"takes two views, X has 3; BestPair\(ICMVC\(...\)\)"):
        trained(blobs(60))
    with pytest.raises(ValueError, match="tokens have none"):
        model_of(ICMVC(n_clusters=2), [(3,), (4, 9)], ("normal", "tokens"))


def test_it_cannot_impute_and_says_who_can():
    data = blobs(60, share=0.0).pick(0, 1)
    model = trained(data, steps=2)
    for verb in (model.impute, model.reconstruct, model.score):
        with pytest.raises(TypeError, match=r"ICMVC cannot .* shows which methods can"):
            verb(data)
