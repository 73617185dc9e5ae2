"""MMVAE+: a mixture of experts with private latents of each view (Palumbo et al., ICLR 2023).

The first shared_dim of latent_dim dimensions are z, shared by all views, the rest w_v, private to
v. Encoder v gives Laplace posteriors q(z | x_v) and q(w_v | x_v), the scales of each summing to its
dimension. A source e is decoded with w_e ~ q(w_e | x_e), every other observed view n with an
independent w~_n ~ r_n = Lap(0, learned scale), so that shared information cannot bypass z:

    log w_e^k = log p(x_e | z_e, w_e) + sum_{n != e} log p(x_n | z_e, w~_n)
              + beta [ log p(z_e) - log 1/n sum_u q(z_e | x_u) + log p(w_e) - log q(w_e | x_e) ]

with p = Lap(0, 1) for both. The loss is the negative of iwae_loose (as published, with K = 1),
iwae_tight, or dreg: see `mixture`.

At inference z is a draw from a random observed view, or the mean of their locations. An observed
view uses w ~ q(w | x); a missing one w ~ p (`private="prior"`, as published) or w ~ r_n
(`private="auxiliary"`), or zero without draws. The representation is z alone.

Departs from the released code: encoders have one trunk, or one each for z and w with `trunks=2`;
codes are [z, w]; DReG hooks work, whereas the released ones never fire; the loss is averaged over
the batch.
"""

from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared import hyperparameters, mixture
from vedute.methods.deep.shared.mixture import mean_seen, mixture_std, one_of, sample_many
from vedute.methods.deep.shared.vae import VAE, VAEEstimator, trunk
from vedute.nn import laplace
from vedute.nn.coders import encode
from vedute.nn.laplace import Laplace, standard_like
from vedute.nn.likelihoods import Likelihoods
from vedute.training.model import Terms


class MMVAEPlusModel(VAE):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: Any, length: int) -> None:
        shared = hp.shared_dim or (hp.latent_dim + 1) // 2
        private = hp.latent_dim - shared
        separate = hp.trunks == 2 and private > 0
        super().__init__(shapes, likelihoods, hp, length, encoder_dim=shared if separate else 0)
        self.shared, self.widths = shared, nn.Parameter(torch.zeros(len(shapes), private))
        views = zip(shapes, likelihoods, strict=True) if separate else ()
        self.own_encoders = nn.ModuleList(trunk(*view, hp, private) for view in views)

    def experts(self, batch: Views) -> tuple[Laplace, Laplace]:
        """Experts q(z | x_v) and q(w_v | x_v) of every view, (B, L, shared) and (B, L, private)."""
        loc, h = encode(self.encoders, batch)
        if self.own_encoders:
            (z, h_z), (w, h_w) = (loc, h), encode(self.own_encoders, batch)
        else:
            (z, w), (h_z, h_w) = self.parts(loc), self.parts(h)
        return Laplace(z, laplace.shared_width(h_z)), Laplace(w, laplace.shared_width(h_w))

    def parts(self, code: Tensor) -> tuple[Tensor, Tensor]:
        """Split a code (..., D) into (..., shared) and (..., private)."""
        return code[..., : self.shared], code[..., self.shared :]

    def auxiliary(self, w: Tensor) -> Laplace:
        """The priors r_v(w) of all views, in the shape of w (..., L, private)."""
        return mixture.centred(self.widths).map(lambda t: t.expand_as(w))

    def loss(self, batch: Views) -> Terms:
        hp, mask, experts = self.hp, batch.mask, self.experts(batch)
        z, w = (sample_many(q, hp.samples, rows=1) for q in experts)  # (K, B, E, .)
        qz, qw = (mixture.fixed(hp.objective, q) for q in experts)
        errors = mixture.source_errors(batch, torch.cat([z, w], dim=-1), self.errors_from_one)
        ratio = laplace.log_prob(standard_like(z), z)
        ratio = ratio - mixture.log_mixture(mixture.log_probs(qz, z), mask)
        ratio = ratio + laplace.log_prob(standard_like(w), w) - laplace.log_prob(qw, w)
        log_w = hp.beta * ratio - errors  # (K, B, E)
        return {"bound": -mixture.bound(hp.objective, log_w, mask, [z, w]).mean()}

    def errors_from_one(self, samples: Views, codes: Tensor, sources: Tensor) -> Tensor:
        """Errors (K, M, L) of all views, decoded from the codes (K, M, D) of the sources (M,)."""
        (K, M, _), L = codes.shape, len(self.decoders)
        z, private = self.parts(codes.unsqueeze(2).expand(K, M, L, -1))
        fresh = laplace.sample(self.auxiliary(private), rows=1)
        is_source = torch.arange(L, device=sources.device) == sources[:, None]  # (M, L)
        w = torch.where(is_source.unsqueeze(-1), private, fresh)
        return self.errors(samples, torch.cat([z, w], dim=-1))

    def embed(self, batch: Views) -> Tensor:
        return mean_seen(self.experts(batch)[0].loc, batch.mask.unsqueeze(-1), -2)

    def std(self, batch: Views) -> Tensor:
        q = self.experts(batch)[0]
        return mixture_std(q.loc, laplace.variance(q), batch.mask)

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        (qz, qw), seen = self.experts(batch), batch.mask.unsqueeze(-1)
        if draws == 0:
            z, w = mean_seen(qz.loc, seen, -2), torch.where(seen, qw.loc, 0.0)
            return self._decode_parts(z[None], w[None])
        z, private = (sample_many(q, draws) for q in (qz, qw))
        z, own = one_of(z, batch.mask), standard_like(private)
        if self.hp.private == "auxiliary":
            own = self.auxiliary(private)
        return self._decode_parts(z, torch.where(seen, private, laplace.sample(own)))

    def prior(self, n: int) -> list[Tensor]:
        z, w = self.parts(self.weights.new_empty(1, n, len(self.decoders), self.latent_dim))
        return self._decode_parts(*(laplace.sample(standard_like(t)) for t in (z[:, :, 0], w)))

    def _decode_parts(self, z: Tensor, w: Tensor) -> list[Tensor]:
        """Decode (S, B, shared) and (S, B, L, private)."""
        z = z.unsqueeze(2).expand(*w.shape[:3], -1)
        return self.decode_codes(torch.cat([z, w], dim=-1))


@estimator
class MMVAEPlus(VAEEstimator):
    """Mixture-of-experts VAE with shared and private latents."""

    shared_dim: int | None = setting(
        None, "How many of `latent_dim` are shared; None: half of them, rounded up.", at_least=1
    )
    objective: str = choice(mixture.OBJECTIVES, "The bound that is maximised.")
    samples: int = setting(1, "Draws of each expert, K.", at_least=1)
    private: str = choice(("prior", "auxiliary"), "Source of a missing view's private latent.")
    trunks: int = choice((1, 2), "Networks per encoder; of two, one encodes z and one w.")

    paper = "Palumbo et al., ICLR 2023"
    absent = "left out of the mixture"
    model_class = MMVAEPlusModel

    def check_settings(self) -> None:
        super().check_settings()
        hyperparameters.check_shared(self.shared_dim, self.latent_dim)
