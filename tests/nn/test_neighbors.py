"""Nearest neighbours: equal to a loop, whatever the pieces; ties, blocked keys, too few of them."""

from __future__ import annotations

import math

import pytest
import torch

from vedute.nn import neighbors
from vedute.nn.neighbors import METRICS, nearest


def allowed(blocked, i, j):
    if blocked is None:
        return True
    return not blocked[j] if blocked.dtype == torch.bool else blocked[i] != j


def slow(query, keys, k, blocked=None, metric="cosine"):
    """One query and one key after the other."""
    worst = -math.inf if metric == "cosine" else math.inf
    scores, found = [], []
    for i, a in enumerate(query.double()):
        ranked = []
        for j, b in enumerate(keys.double()):
            if blocked is not None and (
                blocked[j] if blocked.dtype == torch.bool else blocked[i] == j
            ):
                continue
            size = float(a.norm() * b.norm())
            cosine = float(a @ b) / size if size else 0.0
            ranked.append((-cosine if metric == "cosine" else float((a - b).norm()), j))
        best = sorted(ranked)[:k]
        gap = k - len(best)
        scores.append([-s if metric == "cosine" else s for s, _ in best] + [worst] * gap)
        found.append([j for _, j in best] + [-1] * gap)
    return torch.tensor(scores), torch.tensor(found)


def points(m=9, n=14, D=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(m, D, generator=g), torch.randn(n, D, generator=g)


def same(fast, slow):
    torch.testing.assert_close(fast[0], slow[0], rtol=1e-5, atol=1e-6)
    assert fast[1].tolist() == slow[1].tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("chunk", [1, 30, 10**6])
@pytest.mark.parametrize("k", [1, 4, 14, 20])
def test_equal_to_a_loop(metric, chunk, k):
    query, keys = points()
    same(nearest(query, keys, k, metric=metric, chunk=chunk), slow(query, keys, k, metric=metric))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("free", [0, 2, 9])
def test_blocked_keys_are_never_chosen(metric, free):
    query, keys = points()
    blocked = torch.arange(14) >= free
    fast = nearest(query, keys, 4, blocked, metric, chunk=40)
    same(fast, slow(query, keys, 4, blocked, metric))
    assert ((fast[1] == -1).sum(1) == max(0, 4 - free)).all()


@pytest.mark.parametrize("metric", METRICS)
def test_nobody_is_a_neighbour_of_itself_where_its_index_is_given(metric):
    keys = points()[1]
    own = torch.arange(14)
    same(nearest(keys, keys, 13, own, metric, 50), slow(keys, keys, 13, own, metric))
    query, own = keys[[3, 5]], torch.tensor([3, -1])
    _, found = nearest(query, keys, 14, own, metric)
    assert 3 not in found[0]
    assert found[0, -1] == -1
    assert found[1, 0] == 5


@pytest.mark.parametrize("metric", METRICS)
def test_equal_scores_are_ranked_by_index(metric):
    keys = torch.eye(3).repeat(40, 1)  # forty of each
    _, found = nearest(torch.eye(3), keys, 5, metric=metric)
    assert found.tolist() == [[v + 3 * i for i in range(5)] for v in range(3)]
    _, far = nearest(torch.eye(3)[:1], keys, 42, metric=metric)  # all of the first, then any
    assert far[0, 40:].tolist() == [1, 2]


def test_a_large_common_offset_loses_nothing():
    query, keys = (points(D=2, seed=1)[i].double() for i in (0, 1))
    here, there = (nearest(query + c, keys + c, 5, metric="euclidean") for c in (0.0, 1e6))
    assert there[1].tolist() == here[1].tolist()
    torch.testing.assert_close(there[0], here[0], rtol=0, atol=1e-8)


def test_a_zero_vector_is_as_near_to_all():
    scores, found = nearest(torch.zeros(1, 3), points()[1], 3)
    assert scores.tolist() == [[0.0, 0.0, 0.0]]
    assert found.tolist() == [[0, 1, 2]]


def test_no_more_scores_than_stated_exist_at_a_time(monkeypatch):
    sizes, nearness = [], neighbors._nearness
    spy = lambda a, b, metric: sizes.append(len(a) * len(b)) or nearness(a, b, metric)  # noqa: E731
    monkeypatch.setattr(neighbors, "_nearness", spy)
    nearest(*points(m=100), 2, chunk=50)
    assert max(sizes) <= 50
    assert sum(sizes) == 100 * 14


def test_nothing_to_choose_from_and_nobody_who_asks():
    query, keys = points()
    scores, found = nearest(query, keys[:0], 2, metric="euclidean")
    assert (found == -1).all()
    assert (scores == torch.inf).all()
    assert nearest(query[:0], keys, 2)[1].shape == (0, 2)
    with pytest.raises(ValueError, match="metric must be one of cosine, euclidean, got 'l1'"):
        nearest(query, keys, 2, metric="l1")
