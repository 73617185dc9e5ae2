"""MoPoE-VAE: a mixture of the products of all subsets of experts (Sutter et al., ICLR 2021).

    q(z | X) = 1/|P| sum_{S in P} q_S(z)        q_S ~ prod_{v in S} q(z | x_v)        p = N(0, 1)

    loss = E_q(z | X) [ sum_v -log p(x_v | z) ] + beta / |P| sum_{S in P} KL(q_S || p)

P are all 2^|O| - 1 subsets of the observed views O of a sample; z is drawn from a random one.
Inference: q_O, the product over all observed views.

Departs from the released code: components are drawn per sample, not dealt out along the batch,
which counts the complete set twice.
"""

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import choice, estimator
from vedute.methods.deep.shared.vae import GaussianVAE, VAEEstimator, any_of, product_with_prior
from vedute.nn import gaussian
from vedute.nn.gaussian import Gaussian, kl, standard_like
from vedute.nn.likelihoods import Likelihoods
from vedute.training.model import Terms

PRIORS = ("full_only", "never", "always")
MOST_SUBSETS = 12  # most views, with 4095 subsets


class MoPoEModel(GaussianVAE):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "MoPoE", length: int) -> None:
        if len(shapes) > MOST_SUBSETS:
            most = f"at most {MOST_SUBSETS} views, got {len(shapes)}"
            raise ValueError(f"MoPoE uses every subset of the views, {most}")
        super().__init__(shapes, likelihoods, hp, length)
        self.members = nn.Buffer(subsets(len(shapes)))

    def loss(self, batch: Views) -> Terms:
        q = all_products(self.experts(batch), self.prior_joins(self.members))  # (B, S, D)
        available = ~(self.members & ~batch.mask.unsqueeze(1)).any(-1)  # (B, S)
        divergence = torch.where(available, kl(q, standard_like(q)), 0.0)
        chosen = any_of(available)[:, None, None]
        z = gaussian.sample(q.map(lambda t: t.take_along_dim(chosen, 1)))  # (B, 1, D)
        return {
            "reconstruction": self.errors(batch, z[None]).sum(-1).mean(),
            "kl": self.hp.beta * (divergence.sum(1) / available.sum(1)).mean(),
        }

    def prior_joins(self, members: Tensor) -> Tensor:
        """Whether N(0, 1) joins these experts, (..., L) -> (...)."""
        full = members.all(-1)
        joins = {"full_only": full, "never": full & False, "always": full | True}
        return joins[self.hp.prior_expert]

    def posterior(self, q: Gaussian, mask: Tensor) -> Gaussian:
        return product_with_prior(q, mask, self.prior_joins(mask))


@estimator
class MoPoE(VAEEstimator):
    """Multimodal VAE: products of all subsets of the observed views."""

    dropout: float | None = None
    balance: float | None = None
    cooldown: int = 250
    prior_expert: str = choice(PRIORS, "Products with the prior; published: of the complete set.")

    paper = "Sutter et al., ICLR 2021"
    absent = "subsets with them left out"
    model_class = MoPoEModel


def all_products(q: Gaussian, prior: Tensor) -> Gaussian:
    """Products q_S of all S, in the order of `subsets`: (B, L, D), prior (S,) bool -> (B, S, D).

    Precisions add, so every view doubles the number of sums, without and with it: L steps, and no
    table of (B, S, L, D). They are relative to the most precise expert: none overflows, and none
    vanishes if log-variances differ by less than 87, which encoders ensure.
    """
    top = (-q.logvar).amax(1, keepdim=True).clamp(min=0.0).detach()
    weight = (-q.logvar - top).exp()
    sums = weight.new_zeros(2, len(weight), 1, weight.shape[2])
    for terms in torch.stack([weight, weight * q.mean]).unbind(2):
        sums = torch.cat([sums, sums + terms.unsqueeze(2)], dim=2)
    precision, pull = sums[:, :, 1:]
    precision = precision + prior[:, None] * (-top).exp()
    return Gaussian(pull / precision, -(top + precision.log()))


def subsets(n_views: int) -> Tensor:
    """All nonempty subsets, (2^L - 1, L) bool; the last is the full set."""
    return (torch.arange(1, 2**n_views)[:, None] >> torch.arange(n_views)) % 2 == 1
