"""MVTCAE: a bound on total correlation (Hwang et al., NeurIPS 2021).

    q(z | X) ~ prod_v q(z | x_v)                                                    p = N(0, 1)

    loss = (V - alpha) / V  sum_v -log p(x_v | z)
         + beta [ (1 - alpha) KL(q(z | X) || p) + alpha / V sum_v KL(q(z | X) || q(z | x_v)) ]

z is one draw of q(z | X); products and sums are over the observed views of a sample. The prior is
not an expert and has a small weight: the posterior of each view is trained towards the joint one.

`normaliser`   views: V counts all views, and a missing one has an infinitely wide likelihood (as
               the authors advise); observed: V counts the observed views of the sample
`view_dropout` X are the views kept in a step; the first sum, and V, are over all observed ones
"""

import torch
from torch import Tensor

from vedute.data.views import Views
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared import hyperparameters
from vedute.methods.deep.shared.vae import GaussianVAE, VAEEstimator
from vedute.nn import gaussian, shards
from vedute.nn.gaussian import Gaussian, kl, product, standard_like
from vedute.training.model import Terms


class MVTCAEModel(GaussianVAE):
    def loss(self, batch: Views) -> Terms:
        hp, kept = self.hp, shards.hide(batch, self.hp.view_dropout)
        q = self.experts(kept)
        joint = self.posterior(q, kept.mask)
        z = gaussian.sample(joint)
        errors = self.errors(batch, z[None, :, None])[0].sum(1)  # (B,)
        prior = kl(joint, standard_like(joint))
        views = torch.where(kept.mask, kl(joint.map(lambda t: t.unsqueeze(1)), q), 0.0).sum(1)
        V = batch.mask.sum(1).to(prior) if hp.normaliser == "observed" else batch.shape[1]
        return {
            "reconstruction": ((V - hp.alpha) / V * errors).mean(),
            "kl_prior": hp.beta * (1 - hp.alpha) * prior.mean(),
            "kl_views": hp.beta * (hp.alpha / V * views).mean(),
        }

    def posterior(self, q: Gaussian, mask: Tensor) -> Gaussian:
        return product(q, 1, mask.unsqueeze(-1))


@estimator
class MVTCAE(VAEEstimator):
    """Multimodal VAE whose views learn to agree with their product."""

    dropout: float | None = None
    balance: float | None = None
    cooldown: int = 250
    alpha: float = setting(5 / 6, "Weight of agreement with the product.", at_least=0, at_most=1)
    normaliser: str = choice(("views", "observed"), "What V counts: all views, or those observed.")
    view_dropout: float = hyperparameters.view_dropout(0.3)

    paper = "Hwang et al., NeurIPS 2021"
    absent = "left out of the product"
    model_class = MVTCAEModel
