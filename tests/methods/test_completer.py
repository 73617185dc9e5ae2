"""Completer: mutual information in its limits, the loss written slowly, predictions of latents."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from building import model_of
from torch.nn.functional import one_hot

from vedute.data.views import Views
from vedute.methods.deep.completer import Completer
from vedute.nn.losses import mutual_information

K, ALPHA = 128, 9.0


def simplex(B=40, k=6, seed=0):
    g = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(B, k, generator=g, dtype=torch.float64)).softmax(-1)


# Mutual information.


def test_limits_of_the_contrastive_loss():
    corners = one_hot(torch.arange(K).repeat(3), K).float()
    assert -mutual_information(corners, corners, ALPHA) == pytest.approx(-92.1886, abs=1e-4)
    uniform = torch.full((50, K), 1 / K)
    assert -mutual_information(uniform, uniform, ALPHA) == pytest.approx(-87.3365, abs=1e-4)
    assert -mutual_information(corners[:1], corners[:1], ALPHA) == pytest.approx(0, abs=1e-8)


def test_independent_corners_tend_to_the_uniform_value():
    last = -math.inf
    for repeats in (1, 8, 64):
        at = torch.arange(K).repeat(repeats)
        other = at[torch.randperm(len(at), generator=torch.Generator().manual_seed(0))]
        loss = -float(mutual_information(one_hot(at, K), one_hot(other, K), ALPHA))
        assert -92.19 < loss < -87.33
        assert loss > last
        last = loss
    assert last == pytest.approx(-87.3365, abs=0.8)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 9.0])
def test_it_is_information_and_entropies_by_definition(alpha):
    p, q = simplex(), simplex(seed=1)
    P = np.zeros((6, 6))
    for a, b in zip(p.numpy(), q.numpy(), strict=True):
        P += np.outer(a, b) / 40
    P = (P + P.T) / 2
    assert P.sum() == pytest.approx(1)
    rows, columns = P.sum(1), P.sum(0)
    information = sum(
        P[a, b] * math.log(P[a, b] / (rows[a] * columns[b])) for a in range(6) for b in range(6)
    )
    entropies = -(rows * np.log(rows)).sum() - (columns * np.log(columns)).sum()
    found = float(mutual_information(p, q, alpha))
    assert found == pytest.approx(information + alpha * entropies)
    assert float(mutual_information(q, p, alpha)) == pytest.approx(found)
    if alpha == 0:
        assert 0 <= found <= math.log(6)


def test_gradients_are_finite_where_nobody_is():
    p = one_hot(torch.arange(3), 6).float().requires_grad_()
    mutual_information(p, p.detach(), ALPHA).backward()
    assert p.grad.isfinite().all()
    z = simplex(B=5, k=3).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: mutual_information(t, t.flip(0), 2.0), z)


# The model.


def batch_of(B=12, holes=False):
    """Two views in [0, 1]; some rows lack the first, some the second."""
    g = torch.Generator().manual_seed(0)
    mask = torch.ones(B, 2, dtype=torch.bool)
    mask[6:9, 0] = mask[9:, 1] = False
    x = tuple(torch.rand(B, w, generator=g) * mask[:, [v]] for v, w in enumerate((5, 3)))
    gaps = [mask[:, [v]] & (torch.rand(a.shape, generator=g) < 0.3) for v, a in enumerate(x)]
    return Views(x, mask, torch.arange(B), tuple(gaps) if holes else (None, None), ("a", "b"))


def build(kinds=("normal", "normal"), **settings):
    small = dict(latent_dim=4, hidden=(6,), map_hidden=(5,), batch_size=8, steps=10, warmup=4)
    hp = Completer(**(small | settings))
    torch.manual_seed(1)
    return model_of(hp, [(5,), (3,)], kinds).eval()


@torch.no_grad()
@pytest.mark.parametrize("holes", [False, True])
def test_same_loss_as_written_slowly(holes):
    model, batch = build(alpha=2.0, rec_weight=0.3, predict_weight=0.7), batch_of(holes=holes)[:6]
    z = [f(x).softmax(-1) for f, x in zip(model.encoders, batch.x, strict=True)]
    reconstruction = prediction = 0.0
    for v in range(2):
        told = model.decoders[v](z[v])
        for i in range(6):
            gap = batch.holes[v]
            seen = [c for c in range(told.shape[1]) if gap is None or not gap[i, c]]
            errors = [float((told[i, c] - batch.x[v][i, c]) ** 2) for c in seen]
            reconstruction += sum(errors) / max(len(seen), 1) / 6
        guess = model.predictors[v](z[1 - v]).softmax(-1)
        prediction += float(((guess - z[v]) ** 2).mean())
    terms = model.loss(batch)
    assert float(terms["information"]) == -float(mutual_information(*z, 2.0))
    assert float(terms["reconstruction"]) == pytest.approx(0.3 * reconstruction, rel=1e-5)
    assert float(terms["prediction"]) == pytest.approx(0.7 * prediction, rel=1e-5)
    warm = model.warmup_loss(batch)
    assert warm == {k: terms[k] for k in ("information", "reconstruction")}


def test_both_latents_learn_from_the_prediction():
    model = build().train()
    loss = model.loss(batch_of()[:6])["prediction"]
    for part in (*model.encoders, *model.predictors):
        found = torch.autograd.grad(loss, list(part.parameters()), retain_graph=True)
        assert max(float(g.abs().max()) for g in found) > 0


@torch.no_grad()
def test_a_missing_latent_is_predicted_from_the_other_view_alone():
    model, batch = build(), batch_of()
    z = model.completed(batch)
    torch.testing.assert_close(z.sum(-1), torch.ones(12, 2))
    assert (z >= 0).all()
    own = model.latents(batch)
    torch.testing.assert_close(z[:6], own[:6])
    torch.testing.assert_close(z[6:9, 0], model.predictors[0](own[6:9, 1]).softmax(-1))
    torch.testing.assert_close(z[9:, 1], model.predictors[1](own[9:, 0]).softmax(-1))
    torch.testing.assert_close(model.embed(batch), z.flatten(1))
    nan = tuple(torch.where(batch.mask[:, [v]], x, torch.nan) for v, x in enumerate(batch.x))
    poisoned = replace(batch, x=nan)
    torch.testing.assert_close(model.embed(poisoned), model.embed(batch), rtol=0, atol=0)
    for a, b in zip(model.decode(poisoned), model.decode(batch), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@torch.no_grad()
def test_outputs_are_not_negative_as_published_but_logits_may_be():
    assert all((x >= 0).all() for x in build().decode(batch_of()))
    for model, v in ((build(output="linear"), 0), (build(kinds=("normal", "bernoulli")), 1)):
        assert (model.decode(batch_of())[v] < 0).any()
    assert [x.shape for x in build().decode(batch_of(), draws=3)] == [(3, 12, 5), (3, 12, 3)]


@pytest.mark.parametrize(
    ("settings", "lengths"),
    [
        (dict(steps=10, warmup=4), [(4, None), (6, None)]),
        (dict(steps=10, warmup=0), [(10, None)]),
        (dict(steps=10, warmup=50), [(10, None)]),
        (dict(epochs=5, warmup=2), [(None, 2), (None, 3)]),
    ],
)
def test_schedule(settings, lengths):
    model = build(**settings)
    stages = list(model.stages(batch_of()))
    assert [(s.steps, s.epochs) for s in stages] == lengths
    assert all(s.rows.tolist() == [True] * 6 + [False] * 6 for s in stages)
    assert stages[0].loss == (model.loss if settings["warmup"] == 0 else model.warmup_loss)


def test_mistakes_get_a_sentence():
    X = [np.random.default_rng(0).normal(size=(30, d)) for d in (3, 2)]
    for settings, told in (
        (dict(output="tanh"), "output must be one of relu, linear, got 'tanh'"),
        (dict(latent_dim=1), "latent_dim must be at least 2, got 1"),
        (dict(scaling="standard"), "choose scaling='minmax' or output='linear'"),
    ):
        with pytest.raises(ValueError, match=told):
            Completer(**settings).fit(X)
    images = [np.zeros((30, 2, 2), np.uint8), X[0]]
    with pytest.raises(ValueError, match="choose output='linear' for images"):
        Completer().fit(images)
    with pytest.raises(TypeError, match="Completer cannot generate"):
        Completer(steps=2, hidden=(4,)).fit(X).generate(2)
