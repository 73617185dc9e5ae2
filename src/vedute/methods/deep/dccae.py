"""DCCAE: deep canonically correlated autoencoders (Wang, Arora, Livescu & Bilmes, ICML 2015).

Deep CCA (see `paired`) whose outputs are also decoded back to the views:

    min over f, g of  -corr(f_1(x_1), f_2(x_2))
                      + rec_weight (1/n) sum_i sum_v |x_iv - g_v(f_v(x_iv))|^2

on samples that have both views, squared errors summed over the features. A missing view is
decoded from the expectation of its canonical variates, rho u_1, mapped back to an output of f_2;
new samples from u_1 and u_2 drawn jointly Gaussian, with the correlations of training.

Departures. Released code averages the error over features, which makes it negligible against a
correlation of up to `latent_dim` at the same weight. Imputation is ours; the paper has none.
"""

from math import prod

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import estimator
from vedute.methods.deep.shared import hyperparameters, paired
from vedute.nn import noise
from vedute.nn.likelihoods import Likelihoods
from vedute.training.model import Terms


class DCCAEModel(paired.DeepCCA, paired.PairDecoder):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "DCCAE", length: int) -> None:
        super().__init__(shapes, likelihoods, hp, length)
        self.likelihoods, self.decoders = likelihoods, nn.ModuleList()
        start = torch.Generator().set_state(torch.get_rng_state())
        with noise.WeightsFrom(start):  # so that rec_weight=0 is DCCA exactly
            for shape in shapes:
                layers = paired.network(hp.latent_dim, *reversed(hp.hidden), prod(shape))
                self.decoders.append(nn.Sequential(*layers, nn.Unflatten(1, shape)))

    def loss(self, batch: Views) -> Terms:
        h = self.outputs(batch)
        errors = self.errors(h, batch, mean=False).sum(1).mean()
        weighted = self.hp.rec_weight * errors
        return {"correlation": self.correlation(h), "reconstruction": weighted}

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        """Decode observed views from their own outputs; these are points: all draws are equal."""
        expected = self.linear.restore(self.canonical(batch, "canonical"))
        h = torch.where(batch.mask.unsqueeze(-1), self.outputs(batch), expected)
        return self.decode_both(h, draws)

    def prior(self, n: int) -> list[Tensor]:
        """Decode u_1 ~ N(0, 1) and u_2 ~ N(rho u_1, 1 - rho^2)."""
        rho = self.linear.rho
        first, other = noise.like(rho.new_empty(2, n, len(rho)))
        second = rho * first + (1 - rho.square()).clamp(min=0).sqrt() * other
        return self.decode_both(self.linear.restore(torch.stack([first, second], dim=1)))


@estimator
class DCCAE(paired.DeepCCAEstimator):
    """Deep CCA with autoencoders: correlated views, each decoded."""

    rec_weight: float = hyperparameters.rec_weight(1e-3)

    paper = "Wang et al., ICML 2015"
    relearns = True
    model_class = DCCAEModel
