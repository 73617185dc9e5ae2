"""Tables of latents with a row for each observed view, against tables of all pairs."""

from __future__ import annotations

import pytest
import torch

from vedute.nn.correspondences import Sources, take
from vedute.nn.gaussian import Gaussian, product
from vedute.nn.permutations import random_cycles

B, L, D = 4, 3, 2


def drawn(whole):
    """Sources of a random mask, and a table of them as (P, L, D) and as (B, L, L, D)."""
    torch.manual_seed(0)
    mask = torch.rand(B, L) < 0.6
    sources, table = Sources.of(mask, whole), torch.randn(B, L, L, D)
    return sources, table.flatten(0, 1)[sources.pairs].requires_grad_(), table


def each():
    parts = torch.arange(B), torch.arange(L), torch.arange(L)
    return torch.cartesian_prod(*parts).tolist()


@pytest.mark.parametrize("whole", [True, False])
def test_rows_are_the_observed_pairs(whole):
    sources, rows, table = drawn(whole)
    assert len(rows) == (B * L if whole else int(sources.mask.sum()))
    there = torch.ones(B, L).bool() if whole else sources.mask
    dense = sources.spread(rows)
    assert torch.equal(dense, table * there[..., None, None])
    own = sources.spread(sources.own(rows))
    for b, i, _ in each():
        assert torch.equal(own[b, i], dense[b, i, i])


@pytest.mark.parametrize("whole", [True, False])
def test_sources_are_exchanged_within_columns(whole):
    sources, rows, table = drawn(whole)
    sigma = random_cycles(sources.mask, L)
    out = sources.spread(sources.permuted(rows, sigma))
    for b, i, j in each():
        if whole or sources.mask[b, i]:
            assert torch.equal(out[b, i, j], table[b, sigma[b, j, i], j])


@pytest.mark.parametrize("whole", [True, False])
def test_a_column_is_what_all_sources_say_of_a_view(whole):
    sources, rows, table = drawn(whole)
    wanted = torch.zeros(B, L).bool()
    wanted[0, 2] = wanted[1, 0] = wanted[3, 1] = True
    found = sources.product(Gaussian(rows, rows - 1), wanted)
    for b, j in wanted.nonzero().tolist():
        column = table[b, sources.mask[b], j]
        expected = product(Gaussian(column, column - 1), 0)
        torch.testing.assert_close(Gaussian(*(t[b, j] for t in found)), expected)


def test_gradients_of_what_is_taken():
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([3, 0, 5, 4])  # 5: none
    assert torch.equal(take(x, index)[[0, 1, 3]], x[[3, 0, 4]])
    weight = torch.tensor([[1.0], [2.0], [9.0], [3.0]], dtype=torch.float64)
    (weight * take(x, index)).sum().backward()
    assert x.grad[:, 0].tolist() == [2.0, 0.0, 0.0, 1.0, 3.0]


def test_a_column_of_no_views():
    sources, rows, _ = drawn(whole=False)
    nothing = sources.product(Gaussian(rows, rows), torch.zeros(B, L).bool())
    assert nothing.mean.tolist() == torch.zeros(B, L, D).tolist()
