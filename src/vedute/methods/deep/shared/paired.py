"""Common parts of two-view methods that learn from samples with both views.

Deep canonical correlation analysis, the common part of DCCA and DCCAE. Networks f_1, f_2 make
outputs h_j = f_j(x_j). On samples with both views, with S_jk the covariances of the outputs and a
ridge r on S_11 and S_22,

    corr = sum of the singular values of S_11^-1/2 S_12 S_22^-1/2

After training, linear CCA of the outputs: u_j = (h_j - mean_j) W_j has unit covariance and
cov(u_1, u_2) = diag(rho). The representation is [u_1, u_2]. A missing u_2 is replaced by:

    canonical    rho u_1 = E[u_2 | u_1], as if the two were jointly Gaussian
    copy         u_1
    mean_input   f_2 of the mean of x_2: the same for all samples without view 2
    zero_input   f_2 of zeros, which are the mean under standard scaling
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.rows import by_row
from vedute.data.views import Shapes, Views
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared import DeepEstimator, hyperparameters
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import cca_corr, view_errors, whitened
from vedute.training.model import Generative, Model, Stage, Terms

Loss = Callable[[Views], Terms]
FEWEST = 2  # one sample has no covariance and no batch statistics
FILL = ("canonical", "copy", "mean_input", "zero_input")
LAST_RIDGE = 1e-4  # ridge of the linear CCA after training
ENCODED_ROWS = 8192  # rows per batch of encoding


@estimator
class PairedEstimator(DeepEstimator):
    """Methods for two views that learn from the samples with both."""

    batch_size: int = setting(256, "Rows per step, nearly equal in all steps.", at_least=FEWEST)

    two_views = True


def stage(hp: NeuralEstimator, data: Views, loss: Loss, amount: int, capture: bool = True) -> Stage:
    """A stage of this length on the samples with both views.

    Batches have nearly equal sizes, at most 1.5 times `batch_size`: in a short last batch,
    correlations and batch statistics would be mostly noise.
    """
    both = data.mask.all(1)
    n = int(both.sum())
    if n < FEWEST:
        raise ValueError(
            f"{type(hp).__name__} learns from samples that have both views; "
            f"X has {n} sample(s) with both, at least {FEWEST} are needed"
        )
    size = -(-n // max(1, round(n / hp.batch_size)))
    while n % size == 1:  # otherwise the last batch would have one sample
        size += 1
    return hp.stage(loss, amount, rows=both, batch_size=size, capture=capture)


def refuse_tokens(hp: NeuralEstimator, likelihoods: Likelihoods) -> None:
    """Refuse views of tokens, which these networks cannot encode."""
    if any(kind.text for kind in likelihoods):
        name = type(hp).__name__
        raise ValueError(f"{name} takes numbers, not tokens; give counts of words instead")


class PairDecoder(Generative):
    """Decoders (B, D) -> (B, *shape_v) of two views, from point latents (B, 2, D)."""

    likelihoods: Likelihoods
    decoders: nn.ModuleList

    def errors(self, z: Tensor, batch: Views, mean: bool) -> Tensor:
        """Errors of both views, decoded from z, (B, 2)."""
        return view_errors(self.likelihoods, self.decoders, z.unbind(1), batch, mean)

    def decode_both(self, z: Tensor, draws: int = 0) -> list[Tensor]:
        """Decode both views, (draws or 1, B, *shape_v)."""
        outs = [decoder(z[:, v]) for v, decoder in enumerate(self.decoders)]
        return [x.expand(max(draws, 1), *x.shape) for x in outs]


# Deep canonical correlation analysis.


def network(*sizes: int) -> nn.Sequential:
    """Linear layers, each but the last followed by a sigmoid and a batch norm without parameters.
    The batch norm fixes the scale of the outputs, and thus the meaning of the ridge."""
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.Sigmoid(), nn.BatchNorm1d(b, affine=False)]
    return nn.Sequential(*layers[:-2])


@estimator
class DeepCCAEstimator(PairedEstimator):
    """The settings that DCCA and DCCAE share."""

    latent_dim: int = hyperparameters.latent_dim(10)
    hidden: tuple[int, ...] = hyperparameters.hidden((256, 256))
    ridge: float = setting(1e-3, "Added to the diagonals of the covariances of a batch.", above=0)
    fill: str = choice(FILL, "What stands for the canonical variates of a missing view.")
    steps: int = 200
    batch_size: int = 800
    lr: float = 1e-3
    weight_decay: float = 1e-5
    early_stopping: bool = False

    absent = "its canonical variates are expected from the other view's"

    def check_settings(self) -> None:
        super().check_settings()
        if self.latent_dim >= self.batch_size:
            both = f"{self.latent_dim} and {self.batch_size}"
            raise ValueError(f"latent_dim must be below batch_size, got {both}")


class LinearCCA(nn.Module):
    """u_j = (h_j - mean_j) W_j for j = 1, 2: unit covariance, and cov(u_1, u_2) = diag(rho)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mean = nn.Buffer(torch.zeros(2, dim))
        self.weight = nn.Buffer(torch.eye(dim).repeat(2, 1, 1))
        self.inverse = nn.Buffer(torch.eye(dim).repeat(2, 1, 1))
        self.rho = nn.Buffer(torch.zeros(dim))

    def fit(self, h: Tensor, ridge: float) -> None:
        """Fit to outputs h (n, 2, D). With S_jj = C_j C_j' and C_1^-1 S_12 C_2^-T = U diag(rho) V',
        the weights are C_1^-T U and C_2^-T V."""
        T, *factors = whitened(h[:, 0], h[:, 1], ridge)
        left, rho, right = torch.linalg.svd(T)
        self.mean.copy_(h.double().mean(0))
        self.rho.copy_(rho)
        for j, (C, U) in enumerate(zip(factors, (left, right.mT), strict=True)):
            self.weight[j] = torch.linalg.solve_triangular(C.mT, U, upper=True)
            self.inverse[j] = (C @ U).mT

    def project(self, h: Tensor) -> Tensor:
        return torch.einsum("bjd,jdk->bjk", h - self.mean, self.weight)

    def restore(self, u: Tensor) -> Tensor:
        """Invert `project`."""
        return torch.einsum("bjk,jkd->bjd", u, self.inverse) + self.mean


class DeepCCA(Model):
    """Two networks, the correlation of their outputs, and linear CCA at the end."""

    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: Any, length: int) -> None:
        super().__init__()
        refuse_tokens(hp, likelihoods)
        self.hp, self.length = hp, length
        self.encoders = nn.ModuleList(network(prod(s), *hp.hidden, hp.latent_dim) for s in shapes)
        self.linear = LinearCCA(hp.latent_dim)
        for v, shape in enumerate(shapes):
            self.register_buffer(f"blank{v}", torch.zeros(shape))

    def stages(self, data: Views) -> Iterator[Stage]:
        if self.hp.fill == "mean_input":
            for v, x in enumerate(data.floating().x):
                self.get_buffer(f"blank{v}").copy_(x[data.mask[:, v]].mean(0))
        # not captured: decompositions synchronise with the GPU to report success
        yield stage(self.hp, data, self.loss, self.length, capture=False)
        both = data[data.mask.all(1)]
        h = torch.cat([self.outputs(part.floating()) for part in both.batches(ENCODED_ROWS)])
        self.linear.fit(h, LAST_RIDGE)

    def outputs(self, batch: Views) -> Tensor:
        """The outputs h, (B, 2, D); a missing view is encoded from its blank input."""
        parts = []
        for v, (encoder, x) in enumerate(zip(self.encoders, batch.x, strict=True)):
            filled = torch.where(by_row(batch.mask[:, v], x), x, self.get_buffer(f"blank{v}"))
            parts.append(encoder(filled.flatten(1)))
        return torch.stack(parts, dim=1)

    def correlation(self, h: Tensor) -> Tensor:
        """The loss -corr of outputs (B, 2, D)."""
        return -cca_corr(h[:, 0], h[:, 1], self.hp.ridge).sum()

    def canonical(self, batch: Views, fill: str) -> Tensor:
        """Canonical variates u, (B, 2, D), with missing ones filled by the rule `fill`."""
        u = self.linear.project(self.outputs(batch))
        if fill.endswith("_input"):
            return u
        other = u.flip(1)
        expected = self.linear.rho * other if fill == "canonical" else other
        return torch.where(batch.mask.unsqueeze(-1), u, expected)

    def embed(self, batch: Views) -> Tensor:
        return self.canonical(batch, self.hp.fill).flatten(1)
