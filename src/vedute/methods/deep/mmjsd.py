"""mmJSD: the Jensen-Shannon divergence of experts and prior (Sutter et al., NeurIPS 2020).

    f(z) ~ (p prod_v q_v)^pi            q_v = q(z | x_v),  p = N(0, 1),  pi = 1 / (|O| + 1)

    JSD  = pi [ KL(p || f) + sum_v KL(q_v || f) ]
    loss = E_m(z) [ sum_v -log p(x_v | z) ] + beta JSD

Sums and products are over O, the observed views of a sample; f, the dynamic prior, is the geometric
mean of their experts and the prior; m = 1/|O| sum_v q_v, and z is drawn from a random component.

`subset_rule`        the code of all views at inference. dynamic_prior: f, or q_v if only one view
                     is observed; random_expert: one of q_v; mean_of_means: the mean of a draw of
                     each. The representation is its mean; for random_expert, the mean of m.

Departs from the released code: weights of missing views are divided among the observed ones.
"""

import torch
from torch import Tensor

from vedute.data.views import Views
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared.mixture import mean_seen, mixture_std
from vedute.methods.deep.shared.vae import GaussianVAE, VAEEstimator, any_of, with_prior
from vedute.nn import gaussian
from vedute.nn.gaussian import Gaussian, kl, product
from vedute.training.model import Terms

RULES = ("dynamic_prior", "random_expert", "mean_of_means")


class MMJSDModel(GaussianVAE):
    def loss(self, batch: Views) -> Terms:
        q, seen = with_prior(self.experts(batch)), _and_prior(batch.mask, True)
        z = gaussian.sample(_one_of(q, _and_prior(batch.mask, self.hp.prior_in_mixture)))
        return {
            "reconstruction": self.errors(batch, z[None, :, None]).sum(-1).mean(),
            "jsd": self.hp.beta * jensen_shannon(q, seen).mean(),
        }

    def posterior(self, q: Gaussian, mask: Tensor) -> Gaussian:
        n, seen = mask.sum(1, keepdim=True), mask.unsqueeze(-1)
        if self.hp.subset_rule == "dynamic_prior":
            f = geometric_mean(with_prior(q), _and_prior(mask, True))
            alone = product(q, 1, seen)
            return Gaussian(*(torch.where(n > 1, a, b) for a, b in zip(f, alone, strict=True)))
        variance = torch.where(seen, q.logvar.exp(), 0.0).sum(1) / n**2
        return Gaussian(mean_seen(q.mean, seen, -2), variance.log())

    def std(self, batch: Views) -> Tensor:
        if self.hp.subset_rule != "random_expert":
            return super().std(batch)
        q = self.experts(batch)
        return mixture_std(q.mean, q.logvar.exp(), batch.mask)

    def draw(self, q: Gaussian, mask: Tensor, draws: int) -> Tensor:
        if self.hp.subset_rule != "random_expert" or not draws:
            return super().draw(q, mask, draws)
        many = q.map(lambda t: t.expand(draws, *t.shape))
        return gaussian.sample(_one_of(many, mask.expand(draws, *mask.shape)))


@estimator
class MMJSD(VAEEstimator):
    """Multimodal VAE whose experts share a prior made of themselves."""

    prior_in_mixture: bool = setting(False, "The prior joins the mixture, as in later code.")
    subset_rule: str = choice(RULES, "What decodes all views at inference.")

    paper = "Sutter et al., NeurIPS 2020"
    absent = "left out of mixture and mean"
    model_class = MMJSDModel


def geometric_mean(q: Gaussian, mask: Tensor) -> Gaussian:
    """The geometric mean of n experts, as wide as one: (B, E, D), (B, E) -> (B, D)."""
    f = product(q, 1, mask.unsqueeze(-1))
    return Gaussian(f.mean, f.logvar + mask.sum(1, keepdim=True).to(f.logvar).log())


def jensen_shannon(q: Gaussian, mask: Tensor) -> Tensor:
    """The divergence 1/n sum KL(q_e || f) from the geometric mean f: (B, E, D), (B, E) -> (B,)."""
    f = geometric_mean(q, mask).map(lambda t: t.unsqueeze(1))
    return mean_seen(kl(q, f), mask, -1)


def _one_of(q: Gaussian, mask: Tensor) -> Gaussian:
    """Select a random observed expert per sample: (..., E, D), (..., E) -> (..., D)."""
    chosen = any_of(mask)[..., None, None]
    return q.map(lambda t: t.take_along_dim(chosen, -2).squeeze(-2))


def _and_prior(mask: Tensor, included: bool) -> Tensor:
    """Append a flag for the prior as the last expert: (B, L) -> (B, L + 1)."""
    return torch.cat([mask, torch.full_like(mask[:, :1], included)], dim=1)
