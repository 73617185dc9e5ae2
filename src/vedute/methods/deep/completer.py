"""Completer: incomplete multi-view clustering by contrastive prediction (Lin et al., CVPR 2021).

Autoencoders with latents on the simplex, z_v = softmax(encoder_v(x_v)), and predictors G_ab of one
latent from the other, trained on samples that have both views:

    L_cl  = -[I(P) + alpha (H(P_1) + H(P_2))],  P = mean of z_1 z_2' over the batch, made symmetric
    L_rec = MSE(x_1, D_1(z_1)) + MSE(x_2, D_2(z_2))
    L_pre = MSE(G_12(z_1), z_2) + MSE(G_21(z_2), z_1)

    warm-up   L_cl + rec_weight L_rec
    then      L_cl + rec_weight L_rec + predict_weight L_pre

A missing z_a is G_ba(z_b); the representation is [z_1, z_2]; D_a(z_a) imputes. Decoders end in a
ReLU, as published: values must not be negative, hence min-max scaling.

Departures. Batches have nearly equal sizes instead of a short last one; a loader that drops it
would not train at all if complete samples are few.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import choice, estimator, length, setting
from vedute.methods.deep.shared import hyperparameters, paired
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import mutual_information
from vedute.training.model import Stage, Terms

PREDICTOR = (128, 256, 128, 256, 128)  # hidden layers of G, as published


def network(*sizes: int) -> list[nn.Module]:
    """Linear layers, each followed by batch norm and ReLU."""
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU()]
    return layers


class CompleterModel(paired.PairDecoder):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: Any, length: int) -> None:
        super().__init__()
        paired.refuse_tokens(hp, likelihoods)
        self.hp, self.length, self.likelihoods, D = hp, length, likelihoods, hp.latent_dim
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for shape, likelihood in zip(shapes, likelihoods, strict=True):
            self.encoders.append(nn.Sequential(*network(prod(shape), *hp.hidden, D)[:-2]))
            positive = hp.output == "relu" and not likelihood.logits
            decoder = network(D, *reversed(hp.hidden), prod(shape))
            decoder = [*(decoder if positive else decoder[:-2]), nn.Unflatten(1, shape)]
            self.decoders.append(nn.Sequential(*decoder))
        maps = (network(D, *hp.map_hidden, D)[:-2] for _ in shapes)
        self.predictors = nn.ModuleList(nn.Sequential(*layers) for layers in maps)

    def stages(self, data: Views) -> Iterator[Stage]:
        warm = min(self.hp.warmup, self.length)
        if warm > 0:
            yield paired.stage(self.hp, data, self.warmup_loss, warm)
        if self.length > warm:
            yield paired.stage(self.hp, data, self.loss, self.length - warm)

    def warmup_loss(self, batch: Views) -> Terms:
        return self.loss(batch, warm=True)

    def loss(self, batch: Views, warm: bool = False) -> Terms:
        hp, z, prediction = self.hp, self.latents(batch), {}
        if not warm:
            off = (self.predicted(z) - z).square().mean((0, 2))  # targets get gradients, too
            prediction = {"prediction": hp.predict_weight * off.sum()}
        errors = self.errors(z, batch, mean=True).sum(1).mean()
        information = -mutual_information(z[:, 0], z[:, 1], hp.alpha)
        return {"information": information, "reconstruction": hp.rec_weight * errors, **prediction}

    def latents(self, batch: Views) -> Tensor:
        """Latents z of both views, (B, 2, D)."""
        parts = [f(x.flatten(1)) for f, x in zip(self.encoders, batch.x, strict=True)]
        return torch.stack(parts, dim=1).softmax(-1)

    def predicted(self, z: Tensor) -> Tensor:
        """Predict each latent from that of the other view: (B, 2, D) -> (B, 2, D)."""
        parts = [g(z[:, 1 - v]) for v, g in enumerate(self.predictors)]
        return torch.stack(parts, dim=1).softmax(-1)

    def completed(self, batch: Views) -> Tensor:
        """Latents z with predictions for missing views, (B, 2, D)."""
        z = self.latents(batch)
        return torch.where(batch.mask.unsqueeze(-1), z, self.predicted(z))

    def embed(self, batch: Views) -> Tensor:
        return self.completed(batch).flatten(1)

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        """Decode both views; latents are points, so all draws are equal."""
        return self.decode_both(self.completed(batch), draws)


@estimator
class Completer(paired.PairedEstimator):
    """Two views that share information, each predicting the other.

    `latent_dim` should be about twice the number of clusters: latents end near the corners of the
    simplex, and k-means can merge a few of them, but not hundreds.
    """

    latent_dim: int = hyperparameters.latent_dim(20, at_least=2)
    hidden: tuple[int, ...] = hyperparameters.hidden((256, 256))
    map_hidden: tuple[int, ...] = setting(PREDICTOR, "Hidden layers of the predictors.", at_least=1)
    alpha: float = setting(9.0, "Weight of the entropies in the contrast.", at_least=0)
    rec_weight: float = hyperparameters.rec_weight(0.1)
    predict_weight: float = setting(0.1, "Weight of the prediction of latents.", at_least=0)
    output: str = choice(("relu", "linear"), "Last layer of decoders; `relu` needs values from 0.")
    scaling: str = "minmax"
    warmup: int = length(200, "Time before the prediction of latents starts.")
    steps: int = 800
    lr: float = 1e-3
    early_stopping: bool = False

    paper = "Lin et al., CVPR 2021"
    absent = "its latent is predicted from the other view's"
    relearns = True
    model_class = CompleterModel

    def check_settings(self) -> None:
        super().check_settings()
        if self.output == "relu" and self.scaling in ("auto", "standard"):
            raise ValueError(
                "output='relu' gives no negative values; choose scaling='minmax' or output='linear'"
            )

    def check(self, raw: Views) -> None:
        super().check(raw)
        if self.output == "relu" and any(x.dtype == torch.uint8 for x in raw.x):
            raise ValueError("output='relu' has no dark pixels; choose output='linear' for images")
