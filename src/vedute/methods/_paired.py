"""What two-view methods that learn from samples with both views have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from vedute.data.views import Views
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import estimator, setting
from vedute.training.model import Stage, Terms

FEWEST = 2  # a covariance, or a batch norm, of one sample is none


@estimator
class PairedEstimator(NeuralEstimator):
    """Methods for two views that learn from the samples with both."""

    batch_size: int = setting(
        256, "Rows per step; all batches are of nearly equal size.", at_least=FEWEST
    )

    two_views: ClassVar[bool] = True


def stage(
    hp: NeuralEstimator,
    data: Views,
    loss: Callable[[Views], Terms],
    amount: int,
    capture: bool = True,
) -> Stage:
    """A stage of this length on the samples with both views.

    Its batches are of nearly equal size, up to half as large again as `batch_size`: of a short last
    one neither correlations nor the statistics of batch norms could be told from noise.
    """
    both = data.mask.all(1)
    n = int(both.sum())
    if n < FEWEST:
        raise ValueError(
            f"{type(hp).__name__} learns from samples that have both views; "
            f"X has {n} sample(s) of that kind, it takes {FEWEST} or more"
        )
    size = -(-n // max(1, round(n / hp.batch_size)))
    while n % size == 1:  # the last would be one sample
        size += 1
    return replace(hp.stage(loss, amount), rows=both, batch_size=size, capture=capture)


def refuse_tokens(hp: NeuralEstimator, kinds: Sequence[str]) -> None:
    """The networks of these methods take numbers."""
    if "tokens" in kinds:
        raise ValueError(
            f"{type(hp).__name__} takes numbers, not tokens; give counts of words instead"
        )
