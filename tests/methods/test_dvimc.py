"""DVIMC: products, mixtures and coherence in closed form, and the objective written slowly."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from blobs import batch_of, blobs, built, check_clusters, check_resuming, gradients, poisoned, same
from every_method import small
from sklearn.mixture import GaussianMixture
from torch.distributions import Categorical, Normal, kl_divergence

from vedute.estimators import clustering
from vedute.methods.deep.dvimc import DVIMC, FLOOR, Mixture, coherence
from vedute.methods.deep.shared.autoencoders import kmeans
from vedute.metrics.scores import clustering_accuracy
from vedute.nn import gaussian
from vedute.nn.gaussian import Gaussian, kl, product


def normal(q):
    return Normal(q.mean, (0.5 * q.logvar).exp())


def some(*shape):
    return Gaussian(torch.randn(*shape), torch.randn(*shape))


# The product of experts.


def test_one_view_is_its_own_product():
    model, batch = built(DVIMC), batch_of()
    q, experts = model.posterior(batch)
    alone = batch.mask.sum(1) == 1
    assert alone.any()
    for i in alone.nonzero()[:, 0].tolist():
        v = int(batch.mask[i].int().argmax())
        same(q.map(lambda t, i=i: t[i]), experts.map(lambda t, i=i, v=v: t[i, v]))
    assert (coherence(q, experts, batch.mask)[alone].abs() < 1e-6).all()


def test_two_equal_experts_have_the_same_mean_and_half_the_variance():
    torch.manual_seed(0)
    one = some(4, 3)
    experts = one.map(lambda t: torch.stack([t, t], dim=1))
    q = product(experts, 1, torch.ones(4, 2, 1, dtype=torch.bool))
    same(q, Gaussian(one.mean, one.logvar - math.log(2)))
    told = coherence(q, experts, torch.ones(4, 2, dtype=torch.bool))
    same(told / 3, torch.full((4,), 0.5 * (math.log(2) - 0.5)))
    assert told[0] / 3 == pytest.approx(0.0966, abs=1e-4)


def test_coherence_is_a_mean_over_the_views_seen():
    torch.manual_seed(0)
    q, experts, mask = some(7, 2), some(7, 3, 2), batch_of().mask
    told = coherence(q, experts, mask)
    assert (told >= 0).all()
    fused, own = normal(q), normal(experts)
    for i in range(7):
        here = Normal(fused.loc[i], fused.scale[i])
        views = [Normal(own.loc[i, v], own.scale[i, v]) for v in range(3) if mask[i, v]]
        same(told[i], torch.stack([kl_divergence(here, p).sum() for p in views]).mean())


def test_variances_are_softplus_and_never_vanish():
    model, batch = built(DVIMC), batch_of()[:2]
    raw = torch.stack([e(x).logvar for e, x in zip(model.nets.encoders, batch.x, strict=True)], 1)
    same(model.posterior(batch)[1].logvar.exp(), (1 + raw.exp()).log() + 1e-6)
    with torch.no_grad():
        for encoder in model.nets.encoders:
            encoder.net[-1].bias[2:] = -1e4
    experts = model.posterior(batch)[1]
    same(experts.logvar.exp(), torch.full_like(experts.logvar, 1e-6))
    assert all(t.isfinite() for t in model.loss(batch).values())


# The mixture.


def mixture(K=4, D=3, seed=0):
    torch.manual_seed(seed)
    m = Mixture(K, D)
    with torch.no_grad():
        for p in m.parameters():
            p.normal_()
    return m


def test_divergence_from_a_component():
    torch.manual_seed(0)
    q, p = some(5, 3), some(5, 3)
    same(kl(q, p), kl_divergence(normal(q), normal(p)).sum(-1))


def test_responsibilities_are_those_of_scikit_learn():
    m, z = mixture(), 3 * torch.randn(50, 3)
    reference = GaussianMixture(4, covariance_type="diag")
    reference.weights_ = m.log_weights.exp().detach().double().numpy()
    reference.means_ = m.mean.detach().double().numpy()
    reference.covariances_ = m.logvar.exp().detach().double().numpy()
    reference.precisions_cholesky_ = 1 / np.sqrt(reference.covariances_)
    found = m.log_responsibilities(z).exp().detach().numpy()
    np.testing.assert_allclose(found, reference.predict_proba(z.double().numpy()), atol=1e-5)
    joint = m.log_weights + gaussian.log_prob(m.parts, z.unsqueeze(1))
    likelihood = reference.score_samples(z.double().numpy())
    np.testing.assert_allclose(joint.logsumexp(1).detach().numpy(), likelihood, rtol=1e-5)


@pytest.mark.parametrize(("away", "floored"), [(4.0, 0.79), (6.0, 0.1)])
def test_the_released_floor_forgets_points_that_are_far_away(away, floored):
    m = Mixture(10, 10)
    with torch.no_grad():
        m.mean[1:, 0] = -1e3
    z = torch.zeros(1, 10)
    z[0, 1] = away
    same(m.log_responsibilities(z).exp()[0, 0], torch.tensor(1.0))
    same(m.log_responsibilities(z, FLOOR).exp()[0, 0], torch.tensor(floored), 0.01)
    for released in (True, False):
        model = built(DVIMC, released_floor=released, n_clusters=10, latent_dim=10)
        model.mixture.load_state_dict(m.state_dict())
        assert (model.log_gamma(z).exp()[0, 0] < 0.9) == released


def test_draws_of_the_mixture_have_its_moments():
    m = mixture(3, 2)
    torch.manual_seed(1)
    z, pi = m.sample(40_000), m.log_weights.exp()
    mean = pi @ m.mean
    same(z.mean(0), mean, 0.05)
    second = pi @ (m.logvar.exp() + m.mean.square())
    same((z.square().mean(0) / second).sqrt(), torch.ones(2), 0.05)


# The objective.


def chance(monkeypatch, *noise):
    drawn = iter(noise)
    monkeypatch.setattr(gaussian, "sample", lambda q: q.mean + (q.logvar / 2).exp() * next(drawn))


def test_same_loss_as_the_paper_written_slowly(monkeypatch):
    model, batch = built(DVIMC, coherence_weight=3.0), batch_of()
    B, noise = len(batch), torch.randn(2, 7, 2)
    chance(monkeypatch, *noise)
    fast = model.loss(batch)
    slow = dict.fromkeys(("reconstruction", "kl_z", "kl_c", "coherence"), 0.0)
    pi = torch.full((model.K,), 1 / model.K)
    parts = [
        Normal(m, s.exp().sqrt())
        for m, s in zip(model.mixture.mean, model.mixture.logvar, strict=True)
    ]
    for i in range(B):
        seen = [v for v in range(3) if batch.mask[i, v]]
        raw = {v: model.nets.encoders[v](batch.x[v][i : i + 1]) for v in seen}
        mu = {v: q.mean[0] for v, q in raw.items()}
        var = {v: (1 + q.logvar[0].exp()).log() + 1e-6 for v, q in raw.items()}
        T = sum(1 / var[v] for v in seen)
        mean = sum(mu[v] / var[v] for v in seen) / T
        q = Normal(mean, T**-0.5)
        z, other = (mean + T**-0.5 * noise[s, i] for s in range(2))
        joint = torch.stack(
            [p * n.log_prob(other).sum().exp() for p, n in zip(pi, parts, strict=True)]
        )
        gamma = joint / joint.sum()
        for v in seen:
            slow["reconstruction"] += (model.nets.decoders[v](z) - batch.x[v][i]).square().sum() / B
            apart = kl_divergence(q, Normal(mu[v], var[v].sqrt())).sum()
            slow["coherence"] += 3.0 * apart / len(seen) / B
        for c, part in enumerate(parts):
            slow["kl_z"] += gamma[c] * kl_divergence(q, part).sum() / B
            slow["kl_c"] += gamma[c] * (gamma[c] / pi[c]).log() / B
    same(fast, slow, 1e-4)
    same(gradients(model, fast), gradients(model, slow), 1e-3)


def test_one_component_makes_an_ordinary_vae(monkeypatch):
    model, batch = built(DVIMC, n_clusters=1), batch_of()
    with torch.no_grad():
        for p in model.mixture.parameters():
            p.zero_()
    chance(monkeypatch, *torch.randn(2, 7, 2))
    terms, (q, _) = model.loss(batch), model.posterior(batch)
    assert terms["kl_c"] == 0
    standard = Normal(torch.zeros(2), torch.ones(2))
    same(terms["kl_z"], kl_divergence(normal(q), standard).sum(-1).mean())


def test_the_divergence_of_labels_vanishes_only_where_they_are_the_weights():
    model, batch = built(DVIMC), batch_of()
    with torch.no_grad():
        model.mixture.mean.zero_()
        model.mixture.logvar.zero_()
    assert model.loss(batch)["kl_c"].abs() < 1e-6
    with torch.no_grad():
        model.mixture.mean.copy_(torch.randn(3, 2))
    assert model.loss(batch)["kl_c"] > 1e-3
    gamma, pi = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.5, 0.25, 0.25])
    assert kl_divergence(Categorical(gamma), Categorical(pi)) > 0


def test_what_lies_under_a_missing_view_never_matters():
    model, batch, found = built(DVIMC), batch_of(), []
    for data in (batch, poisoned(batch)):
        torch.manual_seed(3)
        terms = [model.nets.reconstruction(data), model.loss(data)]
        told = [*terms, *(gradients(model, t) for t in terms)]
        torch.manual_seed(3)
        told += [model.embed(data), model.assign(data), *model.decode(data), *model.decode(data, 2)]
        found.append(told)
    same(*found, 0.0)


def test_no_gradient_reaches_a_view_nobody_has():
    model, batch = built(DVIMC), batch_of()
    batch = batch.hide(torch.tensor([False, True, False]).expand(7, 3))
    batch = batch[batch.mask.any(1)]
    size = {k: float(g.abs().max()) for k, g in gradients(model, model.loss(batch)).items()}
    gone = ("nets.encoders.1.", "nets.decoders.1.")
    assert all((s == 0) == k.startswith(gone) for k, s in size.items())


# Training and inference.


def test_means_start_at_the_clusters_of_the_complete_samples():
    data, model = blobs(90), built(DVIMC)
    with torch.no_grad():
        torch.manual_seed(0)
        means = kmeans(model.averages(data), model.K)
        whole = data[data.mask.all(1)]
        z = model.nets.latents(whole).mean(1)
        torch.manual_seed(0)
        seed = int(torch.randint(2**31 - 1, ()))
        expected = clustering.centers(z.double().numpy(), 3, seed)
    np.testing.assert_allclose(means.numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("released", [True, False])
def test_latents_start_at_a_spread_that_the_clusters_know(released):
    data, model = blobs(90), built(DVIMC, pretrain=0, released_scale=released)
    with torch.no_grad():
        before, told = model.averages(data), model.nets.reconstruction(data)
        next(model.stages(data))
        after = model.averages(data)
        same(model.nets.reconstruction(data), told, 1e-4)  # decoders undo it
    factor = 1.0 if released else 2.0 / float(before.std(0, correction=0).mean())
    same(after, factor * before, 1e-4)
    near = clustering.nearest(after.numpy(), model.mixture.mean.detach().double().numpy())
    assert clustering_accuracy(data.y[data.mask.all(1).numpy()], near) == 1.0


def test_after_the_start_labels_are_those_of_k_means():
    data = blobs(90, share=0.0)
    model = built(DVIMC, pretrain=0)
    with torch.no_grad():
        model.mixture.logvar.zero_()
        next(model.stages(data))
        z = model.nets.latents(data).mean(1)
        near = clustering.nearest(z.numpy(), model.mixture.mean.double().numpy())
    assert np.array_equal(model.log_gamma(z).argmax(1).numpy(), near)


def test_without_complete_samples_means_start_from_all():
    data, model = blobs(90), built(DVIMC)
    data = data[~data.mask.all(1)]
    with torch.no_grad():
        means = kmeans(model.averages(data), model.K)
    assert means.isfinite().all()
    assert len(means.unique(dim=0)) == 3


@pytest.mark.parametrize(
    ("settings", "epochs"),
    [(dict(steps=100, batch_size=20), 20), (dict(epochs=8), 8), (dict(steps=5, batch_size=500), 5)],
)
def test_rates_fall_to_their_end(settings, epochs):
    model = built(DVIMC, pretrain=3, lr_end=0.1, lr=0.01, pretrain_lr=0.3, **settings)
    with torch.no_grad():
        first, last = model.stages(blobs(90))
    assert (first.steps or first.epochs, first.lr) == (3, 0.3)
    assert (last.lr, last.fresh, last.watch) == (0.01, True, True)
    assert last.rates == (("mixture.", 0.05),)
    assert last.decay**epochs == pytest.approx(0.1)
    fitted = DVIMC(n_clusters=3, hidden=(4,), pretrain=3, random_state=0, **settings).fit(blobs(90))
    assert sum(r["stage"] == 1 for r in fitted.history_) == epochs  # as they are trained


@pytest.mark.parametrize(
    ("order", "share"), [((0, 1, 2), 0.5), pytest.param((2, 0, 1), 0.0, marks=pytest.mark.all)]
)
def test_separated_clusters_are_found_by_complete_and_incomplete_samples(order, share):
    model = DVIMC(n_clusters=3, hidden=(32,), pretrain=150, steps=600, random_state=0, device="cpu")
    data = check_clusters(model, order, share)
    assert min(model.r2_.values()) > 0.9  # one z tells all views
    np.testing.assert_allclose(model.predict_proba(data).sum(1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("epoch", [2, 5, 7])
def test_a_fit_goes_on_where_it_died(tmp_path, monkeypatch, epoch):
    make = partial(small, DVIMC, n_clusters=3, epochs=4)
    check_resuming(make, tmp_path, monkeypatch, epoch)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"n_clusters": None}, "n_clusters=None.* set n_clusters"),
        ({"latent_dim": 0}, "latent_dim must be at least 1, got 0"),
        ({"lr_end": 0.0}, "lr_end must be above 0 and at most 1, got 0.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        DVIMC(**{"n_clusters": 3} | settings).fit(list(np.eye(9).reshape(3, 27, 1)))
