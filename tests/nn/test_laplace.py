"""Laplace algebra against closed forms."""

from __future__ import annotations

import pytest
import torch
from torch import distributions

from vedute.nn.laplace import Laplace, log_prob, sample, shared_width, standard_like


def some(*shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return Laplace(torch.randn(shape, generator=g), torch.rand(shape, generator=g) + 0.1)


def test_the_density_of_the_specification():
    q = Laplace(torch.zeros(1).double(), torch.full((1,), 0.75).double())
    assert log_prob(q, torch.tensor([0.3]).double()).item() == pytest.approx(-0.8054651081)


def test_the_density_is_the_textbook_one():
    q, z = some(4, 3, 5), torch.randn(7, 4, 3, 5)
    torch.testing.assert_close(log_prob(q, z), distributions.Laplace(*q).log_prob(z).sum(-1))
    standard = distributions.Laplace(0.0, 1.0).log_prob(z).sum(-1)
    torch.testing.assert_close(log_prob(standard_like(z), z), standard)


def test_the_scales_share_a_width():
    h = torch.tensor([1.0, 2.0, 5.0]).double().log()
    assert shared_width(h).tolist() == pytest.approx([0.375001, 0.750001, 1.875001], abs=1e-9)
    h = torch.randn(6, 4, 20)  # neither batch nor views are as long as the latent axis
    torch.testing.assert_close(shared_width(h).sum(-1), torch.full((6, 4), 20 * (1 + 1e-6)))


def test_widths_far_apart_stay_positive_and_finite():
    h = torch.tensor([15.0, -15.0, -15.0], requires_grad=True)
    log_prob(Laplace(torch.zeros(3), shared_width(h)), torch.ones(3)).backward()
    assert h.grad.isfinite().all()
    assert (shared_width(h) > 0).all()


def test_draws_have_the_moments_and_let_gradients_through():
    torch.manual_seed(0)
    q = Laplace(torch.tensor([1.0, -2.0]), torch.tensor([1.0, 3.0])).map(
        torch.Tensor.requires_grad_
    )
    x = sample(q.map(lambda t: t.expand(60_000, 2)))
    torch.testing.assert_close(x.mean(0), q.loc, rtol=0, atol=0.06)
    far = (x - q.loc).abs()
    torch.testing.assert_close(far.mean(0), q.scale, rtol=0.02, atol=0)
    torch.testing.assert_close(far.square().mean(0), 2 * q.scale**2, rtol=0.04, atol=0)
    x.square().sum(1).mean().backward()  # d/dm of m^2 + 2 b^2 is 2m, d/db is 4b
    torch.testing.assert_close(q.loc.grad, 2 * q.loc.detach(), rtol=0, atol=0.1)
    torch.testing.assert_close(q.scale.grad, 4 * q.scale.detach(), rtol=0.03, atol=0)
