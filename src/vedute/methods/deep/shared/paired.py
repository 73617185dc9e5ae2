"""Common parts of two-view methods that learn from samples with both views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import estimator, setting
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import view_errors
from vedute.training.model import Generative, Stage, Terms

Loss = Callable[[Views], Terms]
FEWEST_PAIRS = 2  # one sample has no covariance and no batch statistics


@estimator
class PairedEstimator(NeuralEstimator):
    """Methods for two views that learn from the samples with both."""

    batch_size: int = setting(
        256, "Rows per step, nearly equal in all steps.", at_least=FEWEST_PAIRS
    )

    two_views = True


def stage(hp: NeuralEstimator, data: Views, loss: Loss, amount: int, capture: bool = True) -> Stage:
    """A stage of this length on the samples with both views.

    Batches have nearly equal sizes, at most 1.5 times `batch_size`: in a short last batch,
    correlations and batch statistics would be mostly noise.
    """
    both = data.mask.all(1)
    n = int(both.sum())
    if n < FEWEST_PAIRS:
        raise ValueError(
            f"{type(hp).__name__} learns from samples that have both views; "
            f"X has {n} sample(s) with both, at least {FEWEST_PAIRS} are needed"
        )
    size = -(-n // max(1, round(n / hp.batch_size)))
    while n % size == 1:  # otherwise the last batch would have one sample
        size += 1
    return replace(hp.stage(loss, amount), rows=both, batch_size=size, capture=capture)


def refuse_tokens(hp: NeuralEstimator, likelihoods: Likelihoods) -> None:
    """Refuse views of tokens, which these networks cannot encode."""
    if any(kind.text for kind in likelihoods):
        name = type(hp).__name__
        raise ValueError(f"{name} takes numbers, not tokens; give counts of words instead")


class PairDecoder(Generative):
    """One decoder for each of two views, from point latents (B, 2, D)."""

    likelihoods: Likelihoods
    shapes: Shapes
    decoders: nn.ModuleList

    def decode_view(self, v: int, z: Tensor) -> Tensor:
        """Decode view v: (B, 2, D) -> (1, B, *shape_v)."""
        out: Tensor = self.decoders[v](z[:, v])
        return out.reshape(1, len(z), *self.shapes[v])

    def errors(self, z: Tensor, batch: Views, mean: bool) -> Tensor:
        """Errors of both views, decoded from z, (B, 2)."""
        return view_errors(
            self.likelihoods, lambda v, rows: self.decode_view(v, z[rows]), batch, mean=mean
        )[0]

    def decode_both(self, z: Tensor, draws: int = 0) -> list[Tensor]:
        """Decode both views, (draws or 1, B, *shape_v)."""
        views = (self.decode_view(v, z) for v in (0, 1))
        return [x.expand(max(draws, 1), *x.shape[1:]) for x in views]
