"""Gaussian algebra against closed forms."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from vedute.nn.gaussian import Gaussian, kl, product, sample, standard_like, symmetric_kl


def some(*shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return Gaussian(torch.randn(shape, generator=g), torch.randn(shape, generator=g))


def normal(q):
    return Normal(q.mean, (q.logvar / 2).exp())


def test_product_of_three():
    q = Gaussian(torch.tensor([1.0, -1.0, 3.0]), torch.tensor([1.0, 4.0, 0.25]).log())
    p = product(q, dim=0)
    assert p.mean.item() == pytest.approx(2.4285714286)
    assert p.logvar.exp().item() == pytest.approx(0.1904761905)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_product_is_the_normalised_density_product(dim):
    q, x = some(2, 3, 4), torch.linspace(-3, 3, 7).view(-1, 1, 1, 1)
    together = normal(q).log_prob(x).sum(dim + 1)
    ratio = together - normal(product(q, dim)).log_prob(x.squeeze(-1))
    torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio), rtol=0, atol=1e-4)


@pytest.mark.parametrize("junk", [0.0, 1e30, -1e30])
def test_a_silenced_expert_is_one_that_is_not_there(junk):
    q, mask = some(5, 4, 3), torch.tensor([True, False, True, True])
    q.mean[:, 1] = junk
    masked = product(q, 1, mask.view(1, 4, 1))
    torch.testing.assert_close(masked, product(q.map(lambda t: t[:, mask]), 1))


def test_product_of_one_is_itself():
    q = some(5, 1, 3)
    torch.testing.assert_close(product(q, 1), q.map(lambda t: t[:, 0]))


@pytest.mark.parametrize("logvars", [(60.0, -60.0), (60.0, 60.0), (-60.0, -60.0)])
def test_product_stays_finite(logvars):
    q = Gaussian(torch.tensor([1.0, -2.0]), torch.tensor(logvars))
    q.mean.requires_grad_()
    q.logvar.requires_grad_()
    p = product(q, 0)
    (p.mean + p.logvar).backward()
    assert all(t.isfinite().all() for t in (*p, q.mean.grad, q.logvar.grad))
    surest = p.mean.item()
    assert surest == pytest.approx(-2.0 if logvars == (60.0, -60.0) else -0.5)


def test_kl_is_the_textbook_one():
    q, p = some(4, 2, 3), some(4, 2, 3, seed=1)
    torch.testing.assert_close(kl(q, p), kl_divergence(normal(q), normal(p)).sum(-1))
    torch.testing.assert_close(
        kl(q, standard_like(q)), kl_divergence(normal(q), Normal(0.0, 1.0)).sum(-1)
    )
    assert (kl(q, q) == 0).all()
    assert (kl(q, p) > 0).all()


def test_symmetric_kl_is_half_of_both():
    q, p = some(4, 3), some(4, 3, seed=1)
    torch.testing.assert_close(symmetric_kl(q, p), (kl(q, p) + kl(p, q)) / 2)
    torch.testing.assert_close(symmetric_kl(q, p), symmetric_kl(p, q))
    assert (symmetric_kl(q, q) == 0).all()


def test_draws_have_the_moments_and_let_gradients_through():
    torch.manual_seed(0)
    q = Gaussian(torch.tensor([1.0, -2.0]), torch.tensor([0.0, 2.0])).map(
        torch.Tensor.requires_grad_
    )
    x = sample(q.map(lambda t: t.expand(40_000, 2)))
    torch.testing.assert_close(x.mean(0), q.mean, rtol=0, atol=0.06)
    torch.testing.assert_close(x.var(0), q.logvar.exp(), rtol=0.03, atol=0)
    x.square().sum(1).mean().backward()  # d/dm of m^2 + s^2 is 2m, d/dlogvar is s^2
    torch.testing.assert_close(q.mean.grad, 2 * q.mean.detach(), rtol=0, atol=0.1)
    torch.testing.assert_close(q.logvar.grad, q.logvar.detach().exp(), rtol=0.03, atol=0)
