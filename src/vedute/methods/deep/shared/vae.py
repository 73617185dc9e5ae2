"""The common part of the multimodal VAEs: an encoder and a decoder per view, one latent space.

    -log p(x_v | z) = r_v / s  sum_features error + constant

s = 2 scale^2 (normal), scale (laplace) or 1 (the others). r_v = W / dim_v: every view counts as W
features, however many it has. W is the number `rescale`, which makes the balance with the
divergences independent of the width of the data; or max_u dim_u (True), the rule of the literature;
or dim_v (False), a plain sum. Divergences are summed over latent dimensions, all is averaged over
the batch.

MVP's regularization (see `regularization`) is on by default where it lowers the error of hidden
views: MVAE, MoPoE, MVTCAE. Only MVAE and MVTCAE have `view_dropout`: the others decode all observed
views from a subset or a single view in every step, and so learn to predict other views anyway.
"""

from abc import abstractmethod
from collections.abc import Iterator
from math import prod
from operator import call
from typing import Any, Self

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared import DeepEstimator, hyperparameters
from vedute.methods.deep.shared.regularization import Regularized, by_rows
from vedute.nn import gaussian, noise
from vedute.nn.coders import Decoder, Encoder, encode
from vedute.nn.gaussian import Gaussian, product
from vedute.nn.likelihoods import Likelihood, Likelihoods
from vedute.nn.losses import view_errors
from vedute.training.model import Stage


@estimator
class VAEEstimator(DeepEstimator):
    """The settings that all multimodal VAEs have."""

    latent_dim: int = hyperparameters.latent_dim(32)
    hidden: tuple[int, ...] = hyperparameters.hidden((128, 128))
    beta: float = hyperparameters.beta(1.0, meaning="Weight of the divergences against -log p.")
    scale: float = setting(1.0, "Scale of normal and laplace likelihoods.", above=0)
    rescale: bool | float = setting(
        200.0,
        "Number of features each view counts as; True: that of the widest, False: its own.",
        above=0,
    )
    dropout: float | None = hyperparameters.layer_dropout(0.0)
    balance: float | None = hyperparameters.balance(0.0)
    cooldown: int = hyperparameters.cooldown(0)
    linear_paths: bool = setting(True, "Linear shortcuts through decoders.")
    output: str = choice(("linear", "tanh"), "Last layer of decoders.")
    network: str = hyperparameters.network()

    def settled(self, shapes: Shapes, length: int, rows: int | None = None) -> Self:
        unset = {k: v for k, v in by_rows(rows).items() if getattr(self, k) is None}
        return super().settled(shapes, length, rows).having(unset)


class VAE(Regularized):
    """Networks and weighted errors of a multimodal VAE. encoder_dim: latent dimensions per encoder,
    if other encoders provide the rest; 0: all."""

    def __init__(
        self, shapes: Shapes, likelihoods: Likelihoods, hp: Any, length: int, encoder_dim: int = 0
    ) -> None:
        super().__init__(hp, len(shapes), length)
        self.likelihoods, self.latent_dim = likelihoods, hp.latent_dim
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for shape, kind in zip(shapes, likelihoods, strict=True):
            output = "linear" if kind.logits else hp.output
            paths = (output, hp.linear_paths, hp.network, kind)
            self.encoders.append(trunk(shape, kind, hp, encoder_dim or hp.latent_dim))
            self.decoders.append(Decoder(hp.latent_dim, hp.hidden, shape, *paths))
        dims = [s[0] if k.text else prod(s) for s, k in zip(shapes, likelihoods, strict=True)]
        width = max(dims) if hp.rescale is True else hp.rescale
        counts = [width / dim if width else 1.0 for dim in dims]
        weights = [r / k.spread(hp.scale) for r, k in zip(counts, likelihoods, strict=True)]
        self.weights = nn.Buffer(torch.tensor(weights))  # turn summed errors into -log p

    def main_stages(self, length: int) -> Iterator[Stage]:
        yield self.hp.stage(self.loss, length, watch=True)

    def errors(self, batch: Views, z: Tensor) -> Tensor:
        """-log p(x_v | z_v) up to a constant, times the share of v; zero if v is missing. z
        (S, B, L, D), or (S, B, 1, D) where all views are decoded from one code -> (S, B, L)."""
        z = z.expand(-1, -1, len(self.decoders), -1)
        errors = view_errors(self.likelihoods, self.decoders, z.unbind(2), batch, mean=False)
        return torch.where(batch.mask, self.share * self.weights * errors, 0.0)

    def decode_codes(self, z: Tensor) -> list[Tensor]:
        """Decode z, shaped as in `errors`, to L tensors (S, B, *shape_v)."""
        return list(map(call, self.decoders, z.expand(-1, -1, len(self.decoders), -1).unbind(2)))


class GaussianVAE(VAE):
    """Gaussian experts q(z | x_v), the prior N(0, 1), and a Gaussian q(z | observed views)."""

    @abstractmethod
    def posterior(self, q: Gaussian, mask: Tensor) -> Gaussian:
        """q(z | observed views): q (B, L, D), mask (B, L) -> (B, D)."""

    def experts(self, batch: Views) -> Gaussian:
        """q(z | x_v) of every view, (B, L, D); N(0, 1) where it is missing."""
        seen = batch.mask.unsqueeze(-1)
        return encode(self.encoders, batch).map(lambda t: torch.where(seen, t, 0.0))

    def draw(self, q: Gaussian, mask: Tensor, draws: int) -> Tensor:
        """Draw z from the posterior, (draws or 1, B, D); without draws, its mean."""
        return gaussian.draws(self.posterior(q, mask), draws)

    def embed(self, batch: Views) -> Tensor:
        return self.posterior(self.experts(batch), batch.mask).mean

    def std(self, batch: Views) -> Tensor:
        return gaussian.std(self.posterior(self.experts(batch), batch.mask))

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        return self.decode_codes(self.draw(self.experts(batch), batch.mask, draws).unsqueeze(2))

    def prior(self, n: int) -> list[Tensor]:
        return self.decode_codes(noise.like(self.weights.new_empty(1, n, 1, self.latent_dim)))


def trunk(shape: tuple[int, ...], likelihood: Likelihood, hp: VAEEstimator, width: int) -> Encoder:
    """Build the encoder of a view, with `width` latent dimensions."""
    how = (hp.dropout or 0.0, hp.network, likelihood)
    return Encoder(shape, hp.hidden, width, *how, bounded=False)


def with_prior(q: Gaussian) -> Gaussian:
    """Append N(0, 1) as the last expert: (..., L, D) -> (..., L + 1, D)."""
    return q.map(lambda t: torch.cat([t, torch.zeros_like(t[..., :1, :])], dim=-2))


def product_with_prior(q: Gaussian, members: Tensor, prior: Tensor) -> Gaussian:
    """The product of the experts in a set, including N(0, 1) where `prior` is True: q
    (B, ..., L, D), members (B, ..., L) and prior (B, ...) bool -> (B, ..., D)."""
    chosen = torch.cat([members, prior.unsqueeze(-1)], dim=-1)
    return product(with_prior(q), -2, chosen.unsqueeze(-1))


def any_of(available: Tensor, rows: int = 0) -> Tensor:
    """Draw an available index uniformly, (..., C) bool -> (...) long; rows: axis of the samples."""
    order = noise.like(available.float(), Tensor.uniform_, rows)
    return order.masked_fill(~available, -1).argmax(-1)
