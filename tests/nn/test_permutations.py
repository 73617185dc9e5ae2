"""Permutations of the observed views, and the divergence that they define."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
import torch
from oracles.mvp import sattolo
from scipy.stats import chisquare

from vedute.nn.correspondences import Sources
from vedute.nn.gaussian import Gaussian, kl, symmetric_kl
from vedute.nn.permutations import random_cycles

PATTERNS = ["1", "0", "11", "10", "01101", "11111", "00010", "10000001", "11111111"]


def inverse(permutation):
    """inv[sigma(i)] = i along the last axis."""
    slot = torch.arange(permutation.shape[-1], device=permutation.device).expand_as(permutation)
    return torch.empty_like(permutation).scatter_(-1, permutation, slot)


def mask_of(pattern, times=1):
    return torch.tensor([c == "1" for c in pattern]).expand(times, -1)


def counts(draws):
    return Counter(map(tuple, draws.flatten(0, 1).tolist()))


def assert_uniform(draws, kinds):
    found = counts(draws)
    assert len(found) == kinds
    assert chisquare(list(found.values())).pvalue > 1e-3


def is_one_cycle(sigma, seen):
    """Missing views stay; following sigma from any observed one visits all the others first."""
    if any(sigma[v] != v for v in range(len(sigma)) if v not in seen):
        return False
    path = [seen[0]] if seen else []
    while len(path) < len(seen):
        path.append(sigma[path[-1]])
    return sorted(path) == seen and (not seen or sigma[path[-1]] == seen[0])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_draw_is_one_cycle_through_the_observed(pattern):
    torch.manual_seed(0)
    seen = [v for v, c in enumerate(pattern) if c == "1"]
    draws = random_cycles(mask_of(pattern, 50), len(pattern))
    for sigma in (draws, inverse(draws)):
        assert all(is_one_cycle(s, seen) for row in sigma.tolist() for s in row)


def test_patterns_may_differ_from_row_to_row():
    torch.manual_seed(0)
    mask = torch.rand(200, 5) < 0.5
    for row, sigmas in zip(mask, random_cycles(mask, 3), strict=True):
        assert all(is_one_cycle(s, row.nonzero()[:, 0].tolist()) for s in sigmas.tolist())


@pytest.mark.parametrize(("pattern", "cycles"), [("1111", 6), ("0110101", 6), ("111", 2)])
def test_cycles_are_uniform(pattern, cycles):
    torch.manual_seed(0)
    assert_uniform(random_cycles(mask_of(pattern, 20_000), 3), cycles)


def test_columns_and_samples_are_drawn_independently():
    torch.manual_seed(0)
    m = mask_of("111", 20_000)
    first, second = random_cycles(m, 2).unbind(1)
    kinds = len(counts(random_cycles(m, 1)))
    assert_uniform(torch.cat([first, second], -1).unsqueeze(1), kinds**2)
    assert_uniform(torch.cat([first[::2], first[1::2]], -1).unsqueeze(1), kinds**2)


def test_the_papers_vectors():
    views = torch.arange(1, 6)
    assert sattolo([1, 2, 3, 4, 5], [2, 0, 1, 0]) == [5, 4, 2, 1, 3]
    assert is_one_cycle([4, 3, 1, 0, 2], [0, 1, 2, 3, 4])  # 1 -> 5 -> 3 -> 2 -> 4 -> 1
    sigma = torch.tensor([4, 0, 1, 3, 2])  # (1 5 3 2)(4)
    table, sources = views.view(5, 1, 1).expand(5, 5, 1), Sources.of(torch.ones(1, 5).bool(), True)
    permuted = sources.permuted(table, sigma.expand(1, 5, 5))
    assert permuted[:, 0, 0].tolist() == [5, 1, 2, 4, 3]
    drawn = counts(random_cycles(mask_of("01101", 50), 2) + 1)
    assert set(drawn) == {(1, 3, 5, 4, 2), (1, 5, 2, 4, 3)}


def test_inverse():
    sigma = torch.tensor([[2, 0, 1, 3], [0, 1, 2, 3]])
    assert inverse(sigma).tolist() == [[1, 2, 0, 3], [0, 1, 2, 3]]


# The permutation divergence: sum_i KL(P_i || P_sigma(i)).


def divergence(P, sigma, of=kl):
    return of(P, P.map(lambda t: t[torch.as_tensor(sigma)])).sum()


def distributions(N, seed=0):
    g = torch.Generator().manual_seed(seed)
    return Gaussian(torch.randn(N, 2, generator=g), torch.randn(N, 2, generator=g))


def cycles_of(N):
    return [s for s in permutations(range(N)) if is_one_cycle(s, list(range(N)))]


@pytest.mark.parametrize("N", [2, 3, 4])
def test_divergence_vanishes_only_when_all_are_equal(N):
    P = distributions(N)
    same = P.map(lambda t: t[:1].expand(N, 2))
    for sigma in cycles_of(N):
        assert divergence(same, sigma) == 0
        assert divergence(P, sigma) > 0
        for i in range(N):
            other = same.map(torch.clone)
            other.mean[i] += 0.1
            assert divergence(other, sigma) > 0


@pytest.mark.parametrize("N", [2, 3, 5])
def test_a_cycle_and_its_inverse_make_symmetric_divergences(N):
    P = distributions(N)
    for sigma in cycles_of(N):
        back = inverse(torch.tensor(sigma))
        both = divergence(P, sigma) + divergence(P, back)
        pairs = sum(kl(P, P.map(lambda t, s=s: t[s])).sum() for s in (torch.tensor(sigma), back))
        torch.testing.assert_close(both, pairs)
        torch.testing.assert_close(both / 2, divergence(P, sigma, symmetric_kl))


def test_for_one_cycle_the_divergence_is_not_symmetric():
    """Against the third property in the paper's theorem, and against its sequel on the sum of a
    cycle and its inverse: KL of normals in closed form, docs/mvp.md."""
    P = Gaussian(torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[1.0], [2.0], [4.0]]).log())
    exchanged = P.map(lambda t: t[[1, 0, 2]])
    torch.testing.assert_close(divergence(P, [1, 2, 0]), torch.tensor(3.375))
    torch.testing.assert_close(divergence(exchanged, [1, 2, 0]), torch.tensor(1.875))
    line = Gaussian(torch.arange(4.0).unsqueeze(1), torch.zeros(4, 1))
    sums = [
        sum(divergence(line.map(lambda t, o=order: t[o]), s) for s in ([1, 2, 3, 0], [3, 0, 1, 2]))
        for order in ([0, 1, 2, 3], [0, 2, 1, 3])
    ]
    torch.testing.assert_close(torch.stack(sums), torch.tensor([12.0, 18.0]))


@pytest.mark.parametrize("N", [3, 4])
def test_the_mean_over_all_cycles_is_that_over_all_ordered_pairs(N):
    P, cycles = distributions(N), cycles_of(N)
    mean = sum(divergence(P, s) for s in cycles) / len(cycles)
    pairs = kl(P.map(lambda t: t.unsqueeze(1)), P.map(lambda t: t.unsqueeze(0)))
    torch.testing.assert_close(mean, pairs.sum() / (N - 1))


@pytest.mark.parametrize("N", [3, 4])
def test_relabelling_distributions_and_cycle_together_changes_nothing(N):
    P, cycles = distributions(N), cycles_of(N)
    mean = sum(divergence(P, s) for s in cycles) / len(cycles)
    moved = []
    for phi in map(torch.tensor, permutations(range(N))):
        relabelled = P.map(lambda t, phi=phi: t[phi])
        for sigma in map(torch.tensor, cycles):
            conjugate = inverse(phi)[sigma[phi]]
            torch.testing.assert_close(divergence(relabelled, conjugate), divergence(P, sigma))
            moved.append(abs(divergence(relabelled, sigma) - divergence(P, sigma)))
        average = sum(divergence(relabelled, s) for s in cycles) / len(cycles)
        torch.testing.assert_close(average, mean)
    assert max(moved) > 0.1  # for one cycle it is not symmetric
