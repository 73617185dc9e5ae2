"""DCCA: deep canonical correlation analysis (Andrew, Arora, Bilmes & Livescu, ICML 2013).

Two networks give outputs of two views whose canonical correlations are as large as possible,

    max over f_1, f_2 of corr(f_1(x_1), f_2(x_2)) = |S_11^-1/2 S_12 S_22^-1/2|_*

the sum of singular values, by batches of samples that have both views, in float64. Linear CCA of
the outputs follows (see `_cca`). A missing view is by default replaced by its expectation given
the other; comparisons in the literature feed the network with the mean.

Departures. Many ports take another norm of the matrix, or the sum of squared correlations, for
the objective; here it is the paper's. Networks are those of later practice, sigmoids and batch
norms trained with Adam, in place of full batches after a pretraining with denoising.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vedute.data.views import Views
from vedute.estimators.neural import NeuralEstimator
from vedute.methods import _cca
from vedute.nn.likelihoods import Likelihood
from vedute.training.model import Terms


@dataclass(kw_only=True, eq=False, repr=False)
class DCCA(NeuralEstimator):
    """Deep CCA of two views: the representation in which they are most correlated."""

    latent_dim: int = 10
    hidden: tuple[int, ...] = (256, 256)
    ridge: float = 1e-3
    fill: str = "canonical"
    steps: int = 200
    batch_size: int = 800
    lr: float = 1e-3
    weight_decay: float = 1e-5
    early_stopping: bool = False

    paper: ClassVar[str] = "Andrew et al., ICML"
    year: ClassVar[int | None] = 2013
    two_views: ClassVar[bool] = True
    absent: ClassVar[str] = "its canonical variates are expected from the other view's"
    generative: ClassVar[bool] = False

    def build(self, shapes: Sequence[tuple[int, ...]], kinds: Sequence[Likelihood]) -> DCCAModel:
        _cca.check(self, self.fill, self.ridge, self.latent_dim, kinds)
        return DCCAModel(shapes, self, self.hidden, self.latent_dim, self.ridge, self.fill)


class DCCAModel(_cca.DeepCCA):
    def loss(self, batch: Views) -> Terms:
        return {"correlation": self.correlation(self.outputs(batch))}
