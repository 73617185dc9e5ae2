"""mmVAE: a mixture of experts as posterior (Shi et al., NeurIPS 2019).

Every observed view is an expert, a Laplace posterior whose scales sum to D. Draws z_e^k, k = 1..K,
of each expert e are decoded to all n observed views, and weighted under the mixture of all n:

    log w_e^k = sum_v log p(x_v | z_e^k)
              + beta [ log p(z_e^k) - log 1/n sum_u q_u(z_e^k | x_u) ]

with p = Lap(0, b), the scales b sum to D and are learned. The loss is the negative of

    iwae_loose (as published; the ELBO for K = 1), iwae_tight, dreg: see `mixture`
    moe_elbo      1/n sum_e E_{q_e} sum_v log p(x_v | z) - beta/n sum_v KL(q_v || N(0, 1))
                  with Gaussian experts, e drawn at random: what later tables call MMVAE

Without draws, all views are decoded from the mean of the locations, the representation.

Departs from the released code: the DReG hook works, whereas the released one never fires; the loss
is averaged over the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vedute.data.views import Names, Shapes, Views
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared import mixture
from vedute.methods.deep.shared.mixture import mean_seen, mixture_std, one_of, sample_many
from vedute.methods.deep.shared.vae import VAE, GaussianVAE, VAEEstimator
from vedute.nn import gaussian, laplace
from vedute.nn.coders import encode
from vedute.nn.laplace import Laplace
from vedute.nn.likelihoods import Likelihoods
from vedute.training.model import Terms

RULES = ("mean_of_means", "random_expert")


@estimator
class MMVAE(VAEEstimator):
    """Mixture-of-experts VAE: each view alone predicts the others."""

    objective: str = choice((*mixture.OBJECTIVES, "moe_elbo"), "The bound that is maximised.")
    samples: int = setting(1, "Draws of each expert, K.", at_least=1)
    learn_prior: bool = setting(True, "Learn the scales of the prior.")
    subset_rule: str = choice(RULES, "What decodes all views: the mean of draws, or one of them.")

    paper = "Shi et al., NeurIPS 2019"
    absent = "left out of the mixture"

    def build(
        self, shapes: Shapes, likelihoods: Likelihoods, names: Names, length: int
    ) -> MMVAEModel | SimpleModel:
        model = SimpleModel if self.objective == "moe_elbo" else MMVAEModel
        return model(shapes, likelihoods, self, length)


class MMVAEModel(VAE):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: MMVAE, length: int) -> None:
        super().__init__(shapes, likelihoods, hp, length)
        self.widths = nn.Parameter(torch.zeros(hp.latent_dim), requires_grad=hp.learn_prior)

    def experts(self, batch: Views) -> Laplace:
        loc, h = encode(self.encoders, batch)
        return Laplace(loc, laplace.shared_width(h))

    def loss(self, batch: Views) -> Terms:
        hp, q = self.hp, self.experts(batch)
        z = sample_many(q, hp.samples, rows=1)  # (K, B, E, D)
        errors = mixture.source_errors(batch, z, lambda b, z, _: self.errors(b, z.unsqueeze(2)))
        log_q = mixture.log_probs(mixture.fixed(hp.objective, q), z)  # (K, B, E, U)
        ratio = laplace.log_prob(mixture.centred(self.widths), z) - mixture.log_mixture(
            log_q, batch.mask
        )
        log_w = hp.beta * ratio - errors  # (K, B, E)
        return {"bound": -mixture.bound(hp.objective, log_w, batch.mask, [z]).mean()}

    def embed(self, batch: Views) -> Tensor:
        return mean_seen(self.experts(batch).loc, batch.mask.unsqueeze(-1), -2)

    def std(self, batch: Views) -> Tensor:
        q = self.experts(batch)
        return _joint_std(q.loc, laplace.variance(q), batch.mask, self.hp.subset_rule)

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        if draws == 0:
            return self.decode_codes(self.embed(batch)[None, :, None])
        z = sample_many(self.experts(batch), draws)
        return self.decode_codes(_joint_code(z, batch.mask, self.hp.subset_rule).unsqueeze(2))

    def prior(self, n: int) -> list[Tensor]:
        shape = (1, n, 1, self.latent_dim)
        return self.decode_codes(
            laplace.sample(mixture.centred(self.widths).map(lambda t: t.expand(shape)))
        )


class SimpleModel(GaussianVAE):
    """The model of moe_elbo: one draw of one expert per sample, and the experts' divergences."""

    def loss(self, batch: Views) -> Terms:
        q = self.experts(batch)
        z = one_of(gaussian.sample(q)[None], batch.mask)  # (1, B, D)
        kl = mean_seen(gaussian.kl(q, gaussian.standard_like(q)), batch.mask, -1)
        return {
            "reconstruction": self.errors(batch, z.unsqueeze(2)).sum(-1).mean(),
            "kl": self.hp.beta * kl.mean(),
        }

    def posterior(self, q: gaussian.Gaussian, mask: Tensor) -> gaussian.Gaussian:
        """The distribution of the mean of one draw per expert."""
        seen = mask.unsqueeze(-1)
        variance = mean_seen(q.logvar.exp(), seen, -2) / seen.sum(1)
        return gaussian.Gaussian(mean_seen(q.mean, seen, -2), variance.log())

    def std(self, batch: Views) -> Tensor:
        q = self.experts(batch)
        return _joint_std(q.mean, q.logvar.exp(), batch.mask, self.hp.subset_rule)

    def draw(self, q: gaussian.Gaussian, mask: Tensor, draws: int) -> Tensor:
        if not draws:
            return super().draw(q, mask, draws)
        z = gaussian.sample(q.map(lambda t: t.expand(draws, *t.shape)))
        return _joint_code(z, mask, self.hp.subset_rule)


def _joint_code(z: Tensor, mask: Tensor, rule: str) -> Tensor:
    """Combine a draw of each expert into one code for all views: (S, B, L, D) -> (S, B, D)."""
    return one_of(z, mask) if rule == "random_expert" else mean_seen(z, mask.unsqueeze(-1), -2)


def _joint_std(mean: Tensor, variance: Tensor, mask: Tensor, rule: str) -> Tensor:
    """Standard deviation of `_joint_code`, from the experts: (B, L, D) each -> (B, D)."""
    if rule == "random_expert":
        return mixture_std(mean, variance, mask)
    seen = mask.unsqueeze(-1)
    return (mean_seen(variance, seen, -2) / seen.sum(1)).sqrt()
