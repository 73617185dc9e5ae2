"""Stacked networks equal a loop of small ones."""

from __future__ import annotations

import pytest
import torch
from negative_binomial import NegativeBinomial
from torch import nn

from vedute.methods.deep.shared.autoencoders import RawEncoder
from vedute.nn.coders import Decoder, Encoder
from vedute.nn.convolutions import mlp
from vedute.nn.correspondences import Correspondences, Sources, StackedLinear
from vedute.nn.gaussian import Gaussian
from vedute.nn.likelihoods import LIKELIHOODS


def randomised(module, seed=0):
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.normal_(0.0, 0.5)
    return module


def latents(B=4, L=3, D=2):
    torch.manual_seed(1)
    return Gaussian(torch.randn(B, L, D), torch.randn(B, L, D))


def map_of(path, g):
    """One of the maps of a stacked network, as an ordinary one."""
    layers = []
    for layer in path if isinstance(path, nn.Sequential) else [path]:
        if isinstance(layer, StackedLinear):
            linear = nn.Linear(*layer.weight.shape[1:])
            linear.weight.data, linear.bias.data = layer.weight[g].T, layer.bias[g, 0]
            layer = linear
        layers.append(layer)
    return nn.Sequential(*layers)


def test_stacked_linear_is_a_loop_of_linear():
    stacked, x = randomised(StackedLinear(5, 3, 2)), torch.randn(5, 7, 3)
    each = torch.stack([map_of(stacked, g)(x[g]) for g in range(5)])
    torch.testing.assert_close(stacked(x), each)


@pytest.mark.parametrize("L", [1, 2, 4])
@pytest.mark.parametrize("skip", [False, True])
def test_batched_maps_equal_a_loop_of_maps(skip, L):
    maps, q = randomised(Correspondences(L, 2, (5, 3), skip)), latents(L=L)
    table = maps(q, Sources.of(torch.ones(4, L).bool(), whole=True))
    assert table.mean.shape == table.logvar.shape == (4 * L, L, 2)
    table = table.map(lambda t: t.view(4, L, L, 2))
    paths = [p for p in (maps.curve, maps.linear) if p is not None]
    assert len(paths) == (0 if L == 1 else 1 + skip)
    pairs = [(i, j) for i in range(L) for j in range(L) if i != j]
    for part in (0, 1):
        for i in range(L):
            torch.testing.assert_close(table[part][:, i, i], q[part][:, i], rtol=0, atol=0)
        for g, (i, j) in enumerate(pairs, start=part * len(pairs)):
            z = q[part][:, i]
            predicted = sum(map_of(path, g)(z) for path in paths)
            torch.testing.assert_close(table[part][:, i, j], predicted)


def test_linear_paths_start_as_the_identity():
    q = latents()
    whole = Sources.of(torch.ones(4, 3).bool(), whole=True)
    for predicted, own in zip(Correspondences(3, 2, (5,), skip=True)(q, whole), q, strict=True):
        torch.testing.assert_close(predicted, own.flatten(0, 1).unsqueeze(1).expand_as(predicted))


def test_maps_from_observed_views_are_those_from_all():
    maps, q = randomised(Correspondences(3, 2, (5,), skip=True)), latents()
    mask = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 1]]).bool()
    some = maps(q, Sources.of(mask, whole=False))
    all_pairs = maps(q, Sources.of(torch.ones_like(mask), whole=True))
    for found, every in zip(some, all_pairs, strict=True):
        torch.testing.assert_close(found, every[mask.flatten()])


@pytest.mark.parametrize("output", ["linear", "tanh"])
@pytest.mark.parametrize("skip", [True, False])
def test_decoder_is_a_curve_beside_a_line(skip, output):
    decoder, z = randomised(Decoder(3, (5, 4), (2, 6), output, skip)), torch.randn(7, 2, 3)
    out = decoder.net(z) + (z @ decoder.linear.weight.T if skip else 0)
    out = out.tanh() if output == "tanh" else out
    torch.testing.assert_close(decoder(z), out.reshape(7, 2, 2, 6))
    assert [m.out_features for m in decoder.net if isinstance(m, nn.Linear)] == [4, 5, 12]


def test_decoder_with_a_linear_path_starts_on_it():
    decoder, z = Decoder(3, (5,), (4,), "linear", True), torch.randn(7, 3)
    torch.testing.assert_close(decoder(z), z @ decoder.linear.weight.T)
    decoder(z).square().sum().backward()
    assert decoder.net[-1].weight.grad.abs().max() > 0  # and leaves it


def test_encoder_is_bounded_whatever_it_sees():
    encoder = Encoder((2, 3), (8,), 4)
    q = encoder(1e6 * torch.randn(5, 2, 3))
    assert q.mean.shape == q.logvar.shape == (5, 4)
    assert torch.cat(q).abs().max() <= 1


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_mlp_ends_with_a_line(dropout):
    net = mlp(3, 4, 5, 2, dropout=dropout)
    names = ["Linear", "ReLU", "Dropout"] if dropout else ["Linear", "ReLU"]
    assert [type(m).__name__ for m in net] == names * 2 + ["Linear"]
    assert mlp(3, 2)(torch.zeros(1, 3)).shape == (1, 2)


@pytest.mark.parametrize(
    ("shape", "kind"), [((3, 16, 16), "normal"), ((8, 5), "tokens"), ((6,), "normal")]
)
def test_dropout_reaches_every_kind_of_encoder(shape, kind):
    torch.manual_seed(0)
    x = torch.randint(5, (4, 8)) if kind == "tokens" else torch.rand(4, *shape)
    for dropout in (0.0, 0.5):
        encoder = Encoder(shape, (32,), 3, dropout, likelihood=LIKELIHOODS[kind])
        a, b = (encoder.train()(x).mean for _ in range(2))
        assert torch.equal(a, b) == (dropout == 0)
        a, b = (encoder.eval()(x).mean for _ in range(2))
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", [Encoder, RawEncoder])
def test_encoders_see_what_the_likelihood_shows_them(kind):
    encoder, x = kind((3,), (4,), 2, likelihood=NegativeBinomial((3,))), 10 * torch.rand(5, 3)
    same = kind((3,), (4,), 2)
    same.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(encoder(x).mean, same(x.log1p()).mean)
