"""Layers in one operation with their activation, here a plain one, say what they say apart."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.functional import leaky_relu

from vedute.nn import kernels
from vedute.nn.layers import Mlp, StackedLinear


def linear(x, weight, bias, slope):
    product = x @ weight.t() + bias if weight.ndim == 2 else torch.baddbmm(bias, x, weight)
    return leaky_relu(product, slope)


@pytest.mark.parametrize(
    ("layers", "shape"),
    [
        ([nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2)], (5, 3)),
        ([StackedLinear(2, 3, 4), nn.LeakyReLU(), StackedLinear(2, 4, 3)], (2, 5, 3)),
    ],
)
def test_activations_are_taken_once(layers, shape, monkeypatch):
    net = Mlp(*layers)
    x = torch.randn(shape)
    torch.manual_seed(1)
    apart = net(x)
    monkeypatch.setattr(kernels, "of", lambda what, t: SimpleNamespace(linear=linear))
    torch.manual_seed(1)
    torch.testing.assert_close(net(x), apart)
