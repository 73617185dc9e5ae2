"""Likelihoods against torch.distributions, and the bare errors made of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import distributions as td

from vedute.data import views
from vedute.data.views import Views
from vedute.estimators import panels
from vedute.nn.likelihoods import LIKELIHOODS
from vedute.nn.losses import view_errors

REFERENCE = {
    "normal": lambda out, s: td.Normal(out, s),
    "laplace": lambda out, s: td.Laplace(out, s),
    "bernoulli": lambda out, s: td.Bernoulli(logits=out),
    "categorical": lambda out, s: td.OneHotCategorical(logits=out),
}
TWO = {"a": np.array([[0.0], [1.0], [0.5]]), "b": np.array([[1.0], [0.25], [0.0]])}
every_kind = pytest.mark.parametrize("kind", REFERENCE)


def fitted(likelihood):
    return panels.fitted(views.read(TWO)[0], likelihood)


def data(kind):
    """Decoder outputs (5, 4) and a value that they may have."""
    torch.manual_seed(0)
    out = 2 * torch.randn(5, 4)
    return out, REFERENCE[kind](out.roll(1), 1.0).sample()


@every_kind
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_errors_over_the_spread_are_log_densities_up_to_a_constant(kind, scale):
    out, x = data(kind)
    log_prob = -LIKELIHOODS[kind].error(out, x) / LIKELIHOODS[kind].spread(scale)
    log_prob = log_prob.sum(-1) if kind == "categorical" else log_prob
    constant = {
        "normal": -math.log(scale * math.sqrt(2 * math.pi)),
        "laplace": -math.log(2 * scale),
    }
    theirs = REFERENCE[kind](out, scale).log_prob(x)
    torch.testing.assert_close(log_prob + constant.get(kind, 0.0), theirs)


def test_no_two_fits_share_a_module():
    assert LIKELIHOODS["normal"] is not LIKELIHOODS["normal"]
    first, second = fitted("bernoulli")
    assert first.likelihood is not second.likelihood


def test_real_errors_are_the_bare_ones():
    out, x = data("normal")
    torch.testing.assert_close(LIKELIHOODS["normal"].error(out, x), (x - out) ** 2)
    torch.testing.assert_close(LIKELIHOODS["laplace"].error(out, x), (x - out).abs())


@every_kind
def test_many_outputs_meet_one_value(kind):
    out, x = data(kind)
    many = torch.stack([out, out + 1])
    each = torch.stack([LIKELIHOODS[kind].error(o, x) for o in many])
    torch.testing.assert_close(LIKELIHOODS[kind].error(many, x), each)


@every_kind
def test_mean(kind):
    out, _ = data(kind)
    torch.testing.assert_close(LIKELIHOODS[kind].mean(out), REFERENCE[kind](out, 1.0).mean)


@every_kind
def test_draws_have_the_mean_and_the_noise(kind):
    out, _ = data(kind)
    mean, noise = LIKELIHOODS[kind].mean(out), torch.tensor([0.5, 1.0, 2.0, 3.0])
    drawn = LIKELIHOODS[kind].draw(mean.expand(40_000, 5, 4), noise)
    torch.testing.assert_close(drawn.mean(0), mean, rtol=0, atol=0.08)
    if kind in ("normal", "laplace"):
        torch.testing.assert_close(drawn.std(0), noise.expand(5, 4), rtol=0.05, atol=0)
        tails = ((drawn - mean).abs() > 3 * noise).float().mean().item()
        beyond = {"normal": math.erfc(3 / math.sqrt(2)), "laplace": math.exp(-3 * math.sqrt(2))}
        assert tails == pytest.approx(beyond[kind], abs=5e-4)
    else:
        assert set(drawn.unique().tolist()) == {0.0, 1.0}
    if kind == "categorical":
        assert (drawn.sum(-1) == 1).all()


def test_tokens_are_categories_by_number():
    torch.manual_seed(0)
    out, x = 2 * torch.randn(3, 5, 4, 7), torch.randint(7, (5, 4))  # draws, samples, places, words
    one_hot = torch.nn.functional.one_hot(x, 7).float()
    error = LIKELIHOODS["tokens"].error(out, x)
    torch.testing.assert_close(error, LIKELIHOODS["categorical"].error(out, one_hot).sum(-1))
    torch.testing.assert_close(error, -td.Categorical(logits=out).log_prob(x))
    told = LIKELIHOODS["tokens"].mean(out)
    assert torch.equal(told, out.argmax(-1).float())
    assert torch.equal(LIKELIHOODS["tokens"].draw(told, torch.ones(4)), told)
    assert set(REFERENCE) | {"tokens"} == set(LIKELIHOODS)


def test_a_laplace_draw_is_finite_whatever_the_generator_says(monkeypatch):
    monkeypatch.setattr(torch, "rand_like", torch.zeros_like)
    assert LIKELIHOODS["laplace"].draw(torch.zeros(3), torch.ones(3)).isfinite().all()


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="no likelihood 'gauss'; choose from auto, normal"):
        fitted("gauss")
    with pytest.raises(ValueError, match="names view 'c'; X has a, b"):
        fitted({"c": "normal"})
    with pytest.raises(ValueError, match="names 1 views, X has 2"):
        fitted(["normal"])


def test_one_likelihood_per_view():
    def named(given):
        return [view.likelihood.name for view in fitted(given)]

    assert named("laplace") == ["laplace", "laplace"]
    assert named(["laplace", "auto"]) == ["laplace", "normal"]
    assert named({"b": "laplace"}) == ["normal", "laplace"]


@pytest.mark.parametrize("mean", [True, False])
def test_view_errors_respect_holes(mean):
    torch.manual_seed(0)
    outs = [torch.randn(2, 3, 4), torch.randn(2, 3, 2, 2)]  # two draws, three samples
    x = (torch.randn(3, 4), torch.randn(3, 2, 2))
    holes = (torch.rand(3, 4) < 0.4, None)
    batch = Views(x, torch.ones(3, 2).bool(), torch.arange(3), holes, ("a", "b"))
    kinds = [LIKELIHOODS["normal"], LIKELIHOODS["laplace"]]

    codes, decoders = (
        [out.flatten(2) for out in outs],
        [lambda t: t, lambda t: t.unflatten(2, (2, 2))],
    )
    found = view_errors(kinds, decoders, codes, batch, mean)
    for s, b in ((s, b) for s in range(2) for b in range(3)):
        there = ~holes[0][b]
        a = (outs[0][s, b] - x[0][b])[there].square().sum() / (there.sum() if mean else 1)
        c = (outs[1][s, b] - x[1][b]).abs().sum() / (4 if mean else 1)
        torch.testing.assert_close(found[s, b], torch.stack([a, c]))
    mask = torch.tensor([[True, False], [False, True], [True, False]])
    fewer = view_errors(kinds, decoders, codes, replace(batch, mask=mask), mean)
    for v, rows in enumerate([torch.tensor([0, 2]), torch.tensor([1])]):
        torch.testing.assert_close(fewer[:, rows, v], found[:, rows, v])
        assert (fewer[..., v] != 0).sum() == 2 * len(rows)
    empty = replace(batch, holes=(torch.ones(3, 4).bool(), None))
    assert (view_errors(kinds, decoders, codes, empty, mean)[..., 0] == 0).all()


@pytest.mark.parametrize(
    ("kind", "values", "sentence"),
    [
        ("bernoulli", [[0.0, 2.5]], "holds 2.5; bernoulli values lie between 0 and 1"),
        ("categorical", [[-1.0, 1.0]], "holds -1; categorical values lie between 0 and 1"),
        ("categorical", [[0.0, 1.0], [1.0, 1.0]], "has a row that sums to 2; categorical rows"),
        ("tokens", [[0.5, 1.0]], "holds 0.5; tokens are whole numbers from 0"),
        ("bernoulli", [[0.0, 1.0000001]], None),  # as scaling leaves it
        ("categorical", [[0.25, 0.75]], None),
        ("normal", [[-7.0, 1e9]], None),
    ],
)
def test_values_that_a_likelihood_cannot_tell(kind, values, sentence):
    x = torch.tensor(values)
    told = LIKELIHOODS[kind].problem(x, torch.ones_like(x, dtype=torch.bool))
    assert told is None if sentence is None else told.startswith(sentence)
    hidden = LIKELIHOODS[kind].problem(x, torch.zeros_like(x, dtype=torch.bool))
    assert hidden is None
    assert "holds bytes" in LIKELIHOODS["bernoulli"].problem(x.byte(), x > -9)
