"""DCCAE: deep canonically correlated autoencoders (Wang, Arora, Livescu & Bilmes, ICML 2015).

Deep CCA (see `_cca`) whose outputs must also tell the views they come from:

    min over f, g of  -corr(f_1(x_1), f_2(x_2))
                      + rec_weight (1/n) sum_i sum_v |x_iv - g_v(f_v(x_iv))|^2

on samples that have both views, squared errors summed over the features. A missing view is
decoded from the expectation of its canonical variates, rho u_1, mapped back to an output of f_2;
new samples from u_1 and u_2 drawn jointly Gaussian, as correlated as in training.

Departures. Released code averages the error over features, where the same weight makes it
negligible beside a correlation of up to `latent_dim`. Imputing is ours; the paper has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

import torch
from torch import Tensor, nn

from vedute.data.views import Views
from vedute.estimators.settings import estimator
from vedute.methods import _cca, _paired, _settings
from vedute.nn.losses import view_errors
from vedute.training.model import Generative, Terms


@estimator
class DCCAE(_cca.DeepCCAEstimator):
    """Deep CCA with autoencoders: two views correlated, each decoded from its representation."""

    rec_weight: float = _settings.rec_weight(1e-3)

    paper: ClassVar[str] = "Wang et al., ICML"
    year: ClassVar[int | None] = 2015
    relearns: ClassVar[bool] = True

    def build(self, shapes: Sequence[tuple[int, ...]], kinds: Sequence[str]) -> DCCAEModel:
        _paired.refuse_tokens(self, kinds)
        return DCCAEModel(shapes, kinds, self)


class DCCAEModel(_cca.DeepCCA, Generative):
    def __init__(self, shapes: Sequence[tuple[int, ...]], kinds: Sequence[str], hp: DCCAE) -> None:
        super().__init__(shapes, hp)
        self.rec_weight, self.kinds, self.shapes = hp.rec_weight, tuple(kinds), tuple(shapes)
        with torch.random.fork_rng(devices=[]):  # without decoders' weight: DCCA to the last bit
            self.decoders = nn.ModuleList(
                _cca.network(hp.latent_dim, *reversed(hp.hidden), prod(s)) for s in shapes
            )

    def loss(self, batch: Views) -> Terms:
        h = self.outputs(batch)
        errors = view_errors(self.kinds, lambda v, rows: self._tell(v, h[rows]), batch, mean=False)
        return {
            "correlation": self.correlation(h),
            "reconstruction": self.rec_weight * errors[0].sum(1).mean(),
        }

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        """A view that is there from its own output; there is nothing to draw."""
        told = self.linear.restore(self.canonical(batch, "canonical"))
        h = torch.where(batch.mask.unsqueeze(-1), self.outputs(batch), told)
        return [x.expand(max(draws, 1), *x.shape[1:]) for x in (self._tell(v, h) for v in (0, 1))]

    def prior(self, n: int) -> list[Tensor]:
        """u_1 ~ N(0, 1), u_2 ~ N(rho u_1, 1 - rho^2)."""
        rho = self.linear.rho
        first, noise = torch.randn(2, n, len(rho), device=rho.device)
        second = rho * first + (1 - rho.square()).clamp(min=0).sqrt() * noise
        h = self.linear.restore(torch.stack([first, second], dim=1))
        return [self._tell(v, h) for v in (0, 1)]

    def _tell(self, v: int, h: Tensor) -> Tensor:
        """View v decoded: (B, 2, D) -> (1, B, *shape_v)."""
        out: Tensor = self.decoders[v](h[:, v])
        return out.reshape(1, len(h), *self.shapes[v])
