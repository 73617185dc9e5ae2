"""Linear layers: several side by side, and one after the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vedute.nn import kernels


class StackedLinear(nn.Module):
    """G independent linear maps in one multiplication: (G, B, in) -> (G, B, out)."""

    def __init__(self, groups: int, d_in: int, d_out: int) -> None:
        super().__init__()
        std = (2.0 / (d_in + d_out)) ** 0.5  # Xavier, as for the other layers
        self.weight = nn.Parameter(torch.empty(groups, d_in, d_out).normal_(0.0, std))
        bound = d_in**-0.5
        self.bias = nn.Parameter(torch.empty(groups, 1, d_out).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


class Mlp(nn.Sequential):
    """Layers, one after the other; on a GPU a linear one and the (leaky) ReLU after it are one
    operation."""

    def forward(self, x: Tensor) -> Tensor:
        fused = kernels.of("layer", x)
        if fused is None:
            out: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return out
        layers = list(self)
        for layer, after in zip(layers, [*layers[1:], None], strict=True):
            if isinstance(layer, (nn.Linear, StackedLinear)):
                x = fused.linear(x, layer.weight, layer.bias, _slope(after))
            elif not isinstance(layer, (nn.ReLU, nn.LeakyReLU)):
                x = layer(x)
        return x


def _slope(after: nn.Module | None) -> float:
    """Of an activation below zero; 1 where there is none."""
    if isinstance(after, nn.LeakyReLU):
        return after.negative_slope
    return 0.0 if isinstance(after, nn.ReLU) else 1.0
