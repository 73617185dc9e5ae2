"""MVAE: a product of experts, the prior among them (Wu & Goodman, NeurIPS 2018).

    q(z | x_S) ~ p(z) prod_{v in S} q(z | x_v)                                      p(z) = N(0, 1)

    ELBO(S) = E_q(z | x_S) [ sum_{v in S} log p(x_v | z) ] - beta KL(q(z | x_S) || p)

    loss = -[ ELBO(O) + sum_{v in O} ELBO({v}) + sum_{j=1..k} ELBO(S_j) ]

O are the observed views of a sample, S_j random subsets: first a size in 2 ... |O| - 1 is drawn,
then that many views; none if |O| < 3. Inference: q(z | x_O), from which all views are decoded.

`subsample`      terms of the loss. unimodal+k: all, as published, k = `subsets`; unimodal: the
                 first two; none: the first, the default, since incomplete data are subsets already
`prior_expert`   always, as published; several: only with two or more other experts; never
`warmup`         as published, a fifth of the training. With full beta from the start, deep networks
                 may collapse: with the prior as an expert, only ignoring views has no divergence
`view_dropout`   O are the views kept in a step; ELBO(O) sums log p over all observed ones

Departs from the released code: subsets are drawn per sample, not per batch; beta grows in steps.
"""

from collections.abc import Iterator
from functools import cache, partial

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import choice, estimator, length, setting
from vedute.methods.deep.shared import hyperparameters
from vedute.methods.deep.shared.vae import GaussianVAE, VAEEstimator, product_with_prior
from vedute.nn import gaussian, noise, shards
from vedute.nn.gaussian import Gaussian, kl, standard_like
from vedute.nn.likelihoods import Likelihoods
from vedute.training.model import Stage, Terms

SUBSETS = ("none", "unimodal", "unimodal+k")
PRIORS = ("always", "several", "never")
WARMUP_STAGES = 20  # values of beta during the warm-up


class MVAEModel(GaussianVAE):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "MVAE", length: int) -> None:
        super().__init__(shapes, likelihoods, hp, length)
        self.grown = nn.Buffer(torch.ones(()), persistent=False)  # current share of beta

    def main_stages(self, length: int) -> Iterator[Stage]:
        hp, warm = self.hp, min(self.hp.warmup, length)
        stage = cache(partial(hp.stage, self.loss))  # the same object keeps its captured step
        rungs = min(WARMUP_STAGES, warm)
        for i in range(rungs):
            self.grown.fill_(i / rungs)
            yield stage((i + 1) * warm // rungs - i * warm // rungs)
        self.grown.fill_(1.0)
        if length > warm:
            yield hp.stage(self.loss, length - warm, watch=True)

    def loss(self, batch: Views) -> Terms:
        kept = shards.hide(batch, self.hp.view_dropout)
        sets, counts = self.subsets(kept.mask)  # (B, S, L), (B, S)
        q = self.posterior(self.experts(kept).map(lambda t: t.unsqueeze(1)), sets)
        divergence = torch.where(counts, kl(q, standard_like(q)), 0.0)
        targets = sets & counts.unsqueeze(-1)
        targets[:, 0] = batch.mask  # including hidden views
        z, decoded = gaussian.sample(q).transpose(0, 1).unsqueeze(2), targets.transpose(0, 1)
        if self.hp.subsample != "none":  # a single view is decoded to itself: one code per view
            L = targets.shape[2]
            single = z[1 : L + 1, :, 0].transpose(0, 1)[None]  # (1, B, L, D)
            alone = decoded[1 : L + 1].diagonal(dim1=0, dim2=2)[None]  # (1, B, L)
            joint = torch.cat([z[:1], z[L + 1 :]]).expand(-1, -1, L, -1)
            z = torch.cat([joint, single])  # (S', B, L, D)
            decoded = torch.cat([decoded[:1], decoded[L + 1 :], alone])
        errors = torch.where(decoded, self.errors(batch, z), 0.0)
        return {
            "reconstruction": errors.sum((0, 2)).mean(),
            "kl": self.hp.beta * self.grown * divergence.sum(1).mean(),
        }

    def subsets(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The S subsets whose bounds are summed: O, then every single view, then k random ones.

        mask (B, L) -> members (B, S, L), never empty; counts (B, S), whether the bound exists
        """
        B, L = mask.shape
        sets, counts = [mask.unsqueeze(1)], [mask.new_ones(B, 1)]
        if self.hp.subsample != "none":
            sets.append(torch.eye(L, dtype=torch.bool, device=mask.device).expand(B, L, L))
            counts.append(mask)
        if self.hp.subsample == "unimodal+k":
            sets.append(random_subsets(mask, self.hp.subsets))
            counts.append((mask.sum(1, keepdim=True) > 2).expand(B, self.hp.subsets))
        return torch.cat(sets, dim=1), torch.cat(counts, dim=1)

    def posterior(self, q: Gaussian, mask: Tensor) -> Gaussian:
        """q(z | x_S): experts (B, ..., L, D), members of S (B, ..., L) -> (B, ..., D)."""
        least = {"always": 0, "several": 2, "never": len(self.decoders) + 1}[self.hp.prior_expert]
        return product_with_prior(q, mask, mask.sum(-1) >= least)


@estimator
class MVAE(VAEEstimator):
    """Multimodal VAE: the product of experts of the observed views."""

    dropout: float | None = None
    balance: float | None = None
    cooldown: int = 250
    subsample: str = choice(SUBSETS, "Which subsets are trained as well; published: `unimodal+k`.")
    subsets: int = setting(1, "Random subsets, the k of `unimodal+k`.", at_least=0)
    prior_expert: str = choice(PRIORS, "Whether the prior is an expert; published: always.")
    warmup: int = length(0, "Time over which beta grows from 0.")
    view_dropout: float = hyperparameters.view_dropout(0.3)

    paper = "Wu & Goodman, NeurIPS 2018"
    absent = "left out of the product"
    model_class = MVAEModel


def random_subsets(mask: Tensor, k: int) -> Tensor:
    """Draw k subsets of 2 ... |O| - 1 observed views, sizes uniform, or O if |O| < 3: (B, L) ->
    (B, k, L)."""
    B, L = mask.shape
    empty = partial(torch.empty, B, k, device=mask.device)
    order, share = (noise.like(empty(last), Tensor.uniform_) for last in (L, 1))
    order = order.masked_fill(~mask[:, None], 2.0)  # observed first
    rank = order.argsort(-1).argsort(-1)
    n = mask.sum(1)[:, None, None]
    size = 2 + (share * (n - 2)).floor()
    return mask[:, None] & (rank < torch.where(n > 2, size, n))
