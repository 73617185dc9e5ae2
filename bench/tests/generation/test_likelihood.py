"""Importance samples: exact where the posterior is, a bound elsewhere, and weights that are."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, Normal

from vedute import MMVAE, MVAE, MVP, MMVAEPlus, MoPoE
from vedute.data.missing import drop_views
from vedute.data.views import Views
from vedute.datasets import synthetic
from vedute.estimators import clustering
from vedute.nn.likelihoods import LIKELIHOODS
from vedute_bench.generation import densities, likelihood
from vedute_bench.generation.likelihood import bits_per_entry

NORMAL = LIKELIHOODS["normal"]
SHORT = dict(hidden=(8,), latent_dim=2, steps=30, random_state=0, device="cpu")
METHODS = [MVP(**SHORT), MVAE(**SHORT), MoPoE(**SHORT), MMVAE(**SHORT), MMVAEPlus(**SHORT)]


class Line:
    """x = a c + noise of variance s2, c ~ N(0, 1), in one view of two entries; `off` shifts the
    posterior."""

    a, s2 = torch.tensor([0.8, -0.5]), 0.3

    def __init__(self, off=0.0):
        self.off = off

    def posterior(self, x):
        precision = 1 + self.a.square().sum() / self.s2
        return Normal((x @ self.a) / self.s2 / precision + self.off, precision**-0.5)

    def decode(self, batch, draws=0):
        return self.decode_code(self.posterior(batch.x[0]).mean[:, None])

    def decode_code(self, code):
        return [(code * self.a)[None]]

    def codes(self, batch, draws):
        q = self.posterior(batch.x[0])
        c = q.sample((draws,))
        return c[..., None], q.log_prob(c)

    def log_prior(self):
        return lambda code: Normal(0.0, 1.0).log_prob(code[..., 0])


def views_of(x):
    return Views((x,), torch.ones(len(x), 1).bool(), torch.arange(len(x)), (None,), ("x",))


@pytest.fixture
def drawn(monkeypatch):
    monkeypatch.setattr(likelihood, "_residuals", lambda *_: [torch.tensor(Line.s2).double()])
    torch.manual_seed(0)
    return views_of(torch.randn(50, 1) * Line.a + Line.s2**0.5 * torch.randn(50, 2))


def exact(views):
    cover = Line.a[:, None] * Line.a + Line.s2 * torch.eye(2)
    p = MultivariateNormal(torch.zeros(2), cover).log_prob(views.x[0])
    return float(-p.mean() / math.log(2) / 2)


def test_with_the_exact_posterior_every_weight_is_the_likelihood(drawn, monkeypatch):
    monkeypatch.setattr(likelihood, "DRAWS", 1)
    monkeypatch.setattr(likelihood, "DRAWS_PER_BATCH", 1)
    found = bits_per_entry(Line(), [NORMAL], drawn, drawn)
    assert found == pytest.approx(exact(drawn), abs=1e-5)


def test_with_another_posterior_it_is_a_bound_that_rises_with_the_draws(drawn, monkeypatch):
    found = []
    for draws in (1, 16, 512):
        monkeypatch.setattr(likelihood, "DRAWS", draws)
        monkeypatch.setattr(likelihood, "DRAWS_PER_BATCH", min(draws, 16))
        found.append(bits_per_entry(Line(off=0.7), [NORMAL], drawn, drawn))
    assert found[0] > found[1] > found[2] > exact(drawn) - 0.01
    assert found[2] == pytest.approx(exact(drawn), abs=0.02)


def test_the_noise_is_that_of_the_residuals():
    x = torch.randn(300, 2)
    views = views_of(x)
    (found,) = likelihood._residuals(Line(), [NORMAL], views)
    residual = x - Line().posterior(x).mean[:, None] * Line.a
    assert float(found) == pytest.approx(float(residual.square().mean()), rel=1e-5)


def test_densities_of_mvp_are_those_of_its_posterior_and_of_its_mixture():
    data = drop_views(synthetic.load(80), 0.3, 0)
    model = MVP(**SHORT).fit(data)
    network, batch = model.model_.eval(), model.learner.scaled(data)[:6]
    with torch.no_grad():
        codes = densities.of(network)
        code, log_q = codes.codes(batch, 3)
        w, z = network.fuse(batch)
        shared, own = (
            code[..., : network.shared],
            code[..., network.shared :].view(3, *z.mean.shape),
        )
        parts = ((w, shared, (-1,)), (z, own, (-1, -2)))
        known = (Normal(q.mean, (q.logvar / 2).exp()).log_prob(c).sum(k) for q, c, k in parts)
        torch.testing.assert_close(log_q, sum(known), rtol=1e-4, atol=1e-4)
        torch.manual_seed(3)
        found = codes.log_prior()(code)
        torch.manual_seed(3)
        rows = network.posteriors.double().numpy()
        mixed = clustering.mixture(rows, int(torch.randint(2**31 - 1, ())))
        expected = mixed.score_samples(code[2].double().numpy())
        torch.testing.assert_close(
            found[2].double(), torch.from_numpy(expected), rtol=1e-4, atol=1e-3
        )


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_draws_weighed_by_the_prior_have_all_of_it(model):
    """E_q[p / q] = 1, whatever q is, if it reaches where p is."""
    data = drop_views(synthetic.load(80), 0.3, 0)
    codes = densities.of(model.fit(data).model_.eval())
    batch = model.learner.scaled(data)[:6]
    torch.manual_seed(0)
    with torch.no_grad():
        log_prior = codes.log_prior()
        code, log_q = codes.codes(batch, 20_000)
        weight = (log_prior(code) - log_q).clamp(max=8)
        assert code.shape[:2] == log_q.shape == (20_000, 6)
        outs = codes.decode_code(code[0])
        assert [out.shape for out in outs] == [(1, 6, *x.shape[1:]) for x in batch.x]
        if isinstance(model, MVP):  # narrow posteriors of many dimensions: most of p is elsewhere
            assert (weight.exp().mean(0) < 1.5).all()
        else:
            torch.testing.assert_close(weight.exp().mean(0), torch.ones(6), rtol=0, atol=0.5)
