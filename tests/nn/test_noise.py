"""Noise that rows have in common, and noise of their own."""

import torch

from vedute.methods.deep.shared.vae import any_of
from vedute.nn import gaussian, laplace, noise
from vedute.nn.gaussian import Gaussian
from vedute.nn.laplace import Laplace

DRAWS = 16


def standard(rows, *shape):
    zeros = torch.zeros(rows, *shape).expand(DRAWS, rows, *shape)
    return Gaussian(zeros, zeros), Laplace(zeros, zeros + 1)


def drawn(rows, *shape):
    q, p = standard(rows, *shape)
    return gaussian.sample(q), laplace.sample(p)


def test_common_noise_is_the_same_for_every_row_of_every_call():
    for shape in ((3,), (4, 20)):
        with noise.seeded(0, common=True):
            many = drawn(7, *shape)
        with noise.seeded(0, common=True):
            one = drawn(1, *shape)
        for a, b in zip(many, one, strict=True):
            assert a.shape == (DRAWS, 7, *shape)
            assert torch.equal(a, b.expand_as(a))
            assert len(a[:, 0].unique(dim=0)) == DRAWS


def test_common_normal_noise_has_no_mean_and_unit_covariance():
    with noise.seeded(0, common=True):
        eps = noise.like(torch.empty(DRAWS, 5, 2, 6))[:, 3].flatten(1)
    torch.testing.assert_close(eps.mean(0), torch.zeros(12), atol=1e-6, rtol=0)
    torch.testing.assert_close(eps.T.cov(), torch.eye(12), atol=1e-5, rtol=0)


def test_more_dimensions_than_draws_have_unit_variance_each():
    with noise.seeded(0, common=True):
        eps = noise.like(torch.empty(DRAWS, 1, 100))[:, 0]
    torch.testing.assert_close(eps.mean(0), torch.zeros(100), atol=1e-6, rtol=0)
    torch.testing.assert_close(eps.var(0), torch.ones(100), atol=1e-5, rtol=0)


def test_a_choice_depends_on_what_a_row_has():
    patterns = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 1, 1]]).bool()
    mask = patterns.repeat(4, 1)
    with noise.seeded(0, common=True):
        chosen = any_of(mask.expand(900, -1, -1))
    assert torch.equal(chosen[:, :3].repeat(1, 4), chosen)
    for row, found in zip(patterns, chosen[:, :3].T, strict=True):
        share = torch.bincount(found, minlength=3) / 900
        torch.testing.assert_close(share, row / row.sum(), atol=0.06, rtol=0)


def test_outside_rows_have_noise_of_their_own_and_generators_stay():
    torch.manual_seed(0)
    expected = drawn(7, 3)
    torch.manual_seed(0)
    with noise.seeded(0, common=True):
        drawn(7, 3)
    for a, b in zip(drawn(7, 3), expected, strict=True):
        assert torch.equal(a, b)
        assert len(a.unique()) == DRAWS * 7 * 3
