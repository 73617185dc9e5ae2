"""What two-view methods that learn from samples with both views have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from vedute.data.views import Views
from vedute.estimators.neural import NeuralEstimator
from vedute.nn.likelihoods import Likelihood
from vedute.training.model import Stage, Terms

FEWEST = 2  # a covariance, or a batch norm, of one sample is none


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


def check(hp: NeuralEstimator, kinds: Sequence[Likelihood]) -> None:
    """Settings that the networks here cannot work with."""
    if any(kind.text for kind in kinds):
        raise ValueError(
            f"{type(hp).__name__} takes numbers, not tokens; give counts of words instead"
        )
    if hp.batch_size < FEWEST:
        raise ValueError(f"batch_size must be at least {FEWEST}, got {hp.batch_size}")
