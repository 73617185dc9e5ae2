"""What later methods need is open: a likelihood with parameters is one file, and a batch carries
covariates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import negative_binomial
import numpy as np
import pytest
import torch
from plugging import install
from scipy.stats import nbinom
from torch import nn

import vedute
from vedute import Views
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import estimator
from vedute.methods.mvp import MVP
from vedute.nn import likelihoods
from vedute.nn.coders import Decoder, Encoder, encode
from vedute.nn.losses import per_view_mean, view_errors
from vedute.training.model import Generative

NAME = "negative_binomial"
CODE = Path(negative_binomial.__file__).read_text(encoding="utf-8")
SMALL = dict(likelihood=NAME, hidden=(32,), latent_dim=4, steps=300, random_state=0, device="cpu")


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """The file in the folder of likelihoods."""
    (tmp_path / f"{NAME}.py").write_text(CODE, encoding="utf-8")
    monkeypatch.setattr(likelihoods, "__path__", [*likelihoods.__path__, str(tmp_path)])


def counts(n=200, theta=2.0):
    """Two views of counts that depend on one latent, each a fifth missing."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 1))
    means = [np.exp(1.5 + z @ rng.normal(size=(1, d))) for d in (5, 4)]
    views = [nbinom.rvs(theta, theta / (theta + m), random_state=rng).astype(float) for m in means]
    views[0][: n // 5], views[1][-n // 5 :] = np.nan, np.nan
    return views


def test_the_density_is_that_of_scipy():
    kind = negative_binomial.NegativeBinomial().for_view((3,))
    with torch.no_grad():
        kind.log_theta.copy_(torch.tensor([-1.0, 0.0, 2.0]))
    out, x = torch.tensor([0.5, 1.0, -1.0]), torch.tensor([[0.0, 3.0, 1.0], [7.0, 0.0, 2.0]])
    theta, m = kind.log_theta.exp().detach().numpy(), 2.0 * out.exp().numpy()
    expected = -nbinom.logpmf(x.numpy(), theta, theta / (theta + m))
    found = kind.error(out, x, {"size": torch.full((2, 1), 2.0)}).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_file_is_a_likelihood(registered, tmp_path):
    views = counts()
    model = MVP(**SMALL).fit(views)
    kinds = [view.likelihood for view in model.views_]
    assert {kind.name for kind in kinds} == {NAME}
    assert [kind.log_theta.shape for kind in kinds] == [(5,), (4,)]
    assert all((kind.log_theta != 0).all() for kind in kinds)  # learned
    filled, missing = model.impute(views), np.isnan(views[0])
    assert (filled[0] >= 0).all()
    drawn = np.stack([d[0][missing] for d in model.sample_imputations(views, 50, random_state=0)])
    assert (drawn % 1 == 0).all()  # counts
    assert (drawn.var(0) > drawn.mean(0)).mean() > 0.9  # overdispersed
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model").impute(views)
    np.testing.assert_array_equal(again[0], filled[0])


def test_an_entry_point_is_a_likelihood(tmp_path, monkeypatch):
    target = "own_counts:NegativeBinomial"
    install(tmp_path, monkeypatch, likelihoods.GROUP, **{NAME: (target, CODE)})
    assert NAME in likelihoods.LIKELIHOODS
    assert MVP(**SMALL | {"steps": 2}).fit(counts(40)).views_[0].likelihood.name == NAME


class DosedModel(Generative):
    """Autoencoders of a shared latent; decoders read a covariate beside it."""

    def __init__(self, shapes, likelihoods):
        super().__init__()
        D, self.likelihoods = 4, likelihoods
        self.encoders = nn.ModuleList(Encoder(shape, (16,), D) for shape in shapes)
        self.decoders = nn.ModuleList(Decoder(D + 1, (16,), s, "linear", True) for s in shapes)

    def embed(self, batch):
        seen = batch.mask.unsqueeze(-1)
        return torch.where(seen, encode(self.encoders, batch).mean, 0.0).sum(1) / seen.sum(1)

    def decode(self, batch, draws=0):
        z = self.code(batch)[None]
        return [decoder(z) for decoder in self.decoders]

    def code(self, batch):
        return torch.cat([self.embed(batch), batch.context["dose"]], -1)

    def loss(self, batch):
        codes = [self.code(batch)] * len(self.decoders)
        errors = view_errors(self.likelihoods, self.decoders, codes, batch, mean=True)
        return {"reconstruction": per_view_mean(errors, batch.mask)}


@estimator
class Dosed(NeuralEstimator):
    """Autoencoders with a covariate."""

    def build(self, shapes, likelihoods, names, length) -> DosedModel:
        return DosedModel(shapes, likelihoods)


def dosed(dose, n=300):
    """Views a = z and b = 2 dose, which nothing but the covariate tells."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(n, 3))
    b = np.repeat(2 * dose, 2, axis=1)
    b[: n // 3] = np.nan
    context = {"dose": torch.from_numpy(dose).float()}
    return replace(Views.of({"a": z, "b": b}), context=context)


def test_a_batch_carries_covariates():
    dose = np.random.default_rng(2).normal(size=(300, 1))
    X = dosed(dose)
    assert torch.equal(X[5:9].context["dose"], X.context["dose"][5:9])
    model = Dosed(steps=600, random_state=0, device="cpu").fit(X)
    filled = model.impute(X)
    assert "dose" in filled.context
    error = filled.arrays()[1][:100] - 2 * dose[:100]
    assert np.sqrt((error**2).mean()) < 0.3  # 2 without the covariate
    other = replace(X, context={"dose": X.context["dose"] + 1})
    shift = model.impute(other).arrays()[1][:100] - filled.arrays()[1][:100]
    assert shift.mean() == pytest.approx(2, abs=0.3)
