"""Stacked linear layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
