"""Densities of a model's codes c: q(c | x) of a sample, and the prior p(c).

MVP               Consensus and latents, [w, z]; p is the mixture from which it generates.

Gaussian VAEs     z of the joint posterior; p = N(0, 1).

mmVAE, MMVAE+     z of the mixture of experts, and in MMVAE+ the private w of all views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.methods.deep.mmvae import MMVAEModel
from vedute.methods.deep.mmvaeplus import MMVAEPlusModel
from vedute.methods.deep.shared import mixture
from vedute.methods.deep.shared.vae import GaussianVAE
from vedute.methods.mvp import MVPModel
from vedute.nn import gaussian, laplace, noise
from vedute.nn.gaussian import Gaussian
from vedute.nn.laplace import Laplace

Density = Callable[[Tensor], Tensor]


class GaussianCodes:
    """A model with one Gaussian posterior for all views."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        views: list[Tensor] = self.model.decode(batch, draws)
        return views

    def decode_code(self, code: Tensor) -> list[Tensor]:
        views: list[Tensor] = self.model.decode_codes(code[None, :, None])
        return views

    def posterior(self, batch: Views) -> Gaussian:
        q: Gaussian = self.model.posterior(self.model.experts(batch), batch.mask)
        return q

    def codes(self, batch: Views, draws: int) -> tuple[Tensor, Tensor]:
        q = self.posterior(batch)
        code = gaussian.draws(q, draws)
        return code, gaussian.log_prob(q, code)

    def log_prior(self) -> Density:
        return lambda z: gaussian.log_prob(gaussian.standard_like(gaussian.Gaussian(z, z)), z)


class MVPCodes(GaussianCodes):
    def decode_code(self, code: Tensor) -> list[Tensor]:
        views: list[Tensor] = self.model.decode_code(code)
        return views

    def posterior(self, batch: Views) -> Gaussian:
        parts = zip(*self.model.fuse(batch), strict=True)
        return Gaussian(*(torch.cat([w, z.flatten(1)], dim=-1) for w, z in parts))

    def log_prior(self) -> Density:
        rows = self.model.posteriors.cpu().double().numpy()
        fitted = clustering.mixture(rows, noise.seed())

        def density(code: Tensor) -> Tensor:
            flat = code.flatten(0, -2).cpu().double().numpy()
            return torch.from_numpy(fitted.score_samples(flat)).view(code.shape[:-1]).to(code)

        return density


class MixtureCodes(GaussianCodes):
    def codes(self, batch: Views, draws: int) -> tuple[Tensor, Tensor]:
        return drawn(self.model.experts(batch), batch.mask, draws)

    def log_prior(self) -> Density:
        return lambda z: laplace.log_prob(mixture.centred(self.model.widths), z)


class PrivateCodes(GaussianCodes):
    """Codes (n, shared + L private)."""

    def decode_code(self, code: Tensor) -> list[Tensor]:
        z, w = self.model.parts(code[None])  # (1, n, shared), (1, n, L private)
        w = w.reshape(1, len(code), len(self.model.decoders), -1)
        z = z.unsqueeze(2).expand(*w.shape[:3], -1)
        views: list[Tensor] = self.model.decode_codes(torch.cat([z, w], dim=-1))
        return views

    def codes(self, batch: Views, draws: int) -> tuple[Tensor, Tensor]:
        """Draw codes and their log density; private codes of missing views come from the prior."""
        (qz, qw), mask = self.model.experts(batch), batch.mask
        seen = mask.unsqueeze(-1)
        qw = Laplace(torch.where(seen, qw.loc, 0.0), torch.where(seen, qw.scale, 1.0))
        z, log_q = drawn(qz, mask, draws)
        w = mixture.sample_many(qw, draws)
        code = torch.cat([z, w.flatten(2)], dim=-1)
        return code, log_q + laplace.log_prob(qw, w).sum(-1)

    def log_prior(self) -> Density:
        return lambda code: laplace.log_prob(laplace.standard_like(code), code)


KINDS = {
    MVPModel: MVPCodes,
    MMVAEPlusModel: PrivateCodes,
    MMVAEModel: MixtureCodes,
    GaussianVAE: GaussianCodes,
}


def of(model: nn.Module) -> GaussianCodes | None:
    """Codes of a model with their densities; None if it has no densities."""
    return next((codes(model) for kind, codes in KINDS.items() if isinstance(model, kind)), None)


def drawn(q: Laplace, mask: Tensor, draws: int) -> tuple[Tensor, Tensor]:
    """Draw from the mixture of observed experts (B, L, D): (draws, B, D), and their log density."""
    z = mixture.one_of(mixture.sample_many(q, draws), mask)
    return z, mixture.log_mixture(mixture.log_probs(q, z.unsqueeze(2)), mask)[..., 0]
