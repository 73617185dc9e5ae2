"""The interface of a method's model: a loss of named terms, a schedule of stages, an embedding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from vedute.data.holdout import HoldOut
from vedute.data.views import Views

Terms = dict[str, Tensor]
"""Named, weighted, batch-averaged scalars. The loss is their sum; there is no other total."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A phase of training with one loss of fixed structure. Fields depend on data and settings
    only, never on weights. Yielding the same Stage again continues with its optimizer."""

    loss: Callable[[Views], Terms]
    steps: int | None = None  # its length in steps
    epochs: int | None = None  # or in epochs; neither: that of the estimator
    lr: float | None = None  # None: unchanged; set on the running optimizer
    fresh: bool = False  # start a new optimizer
    rates: tuple[tuple[str, float], ...] = ()  # (prefix of parameter names, lr): exceptions from lr
    decay: float = 1.0  # lr is multiplied by this after every epoch
    rows: Tensor | None = None  # (n,) bool or long, the samples; None: all
    batch_size: int | None = None  # None: the estimator's; 0: all rows in order, one batch
    watch: bool = False  # early stopping checks the hidden views in this stage
    # Decides, instead of the mean squared error, whether to keep the weights of the stage (lower is
    # better), from hidden views and predictions of all views; without them the stage is skipped.
    measure: Callable[[HoldOut, Sequence[Tensor]], float] | None = None
    capture: bool = True  # the step may be recorded once and replayed on a GPU


class Model(nn.Module, ABC):
    """Networks and objective of a method, in scaled units."""

    fusible: ClassVar[tuple[str, ...]] = ()  # methods compiled together with the networks
    adds_over_rows: ClassVar[bool] = False  # is the loss a mean over rows? (`nn.shards`)
    table_numbers: int = 1  # of a row, in the largest table that decoding makes

    @abstractmethod
    def loss(self, batch: Views) -> Terms:
        """Return the terms to minimise on this batch."""

    @abstractmethod
    def embed(self, batch: Views) -> Tensor:
        """Return the representation, (B, D), deterministically."""

    def std(self, batch: Views) -> Tensor:
        """Return the standard deviation of the posterior whose mean is the representation, (B, D);
        models with a posterior override it."""
        raise NotImplementedError

    def stages(self, data: Views) -> Iterator[Stage]:
        """Yield the training schedule. Code between two yields runs between two stages, in eval
        mode and without gradients; code after the last one runs with the best weights."""
        yield Stage(self.loss, watch=True)

    def stages_again(self, data: Views) -> Iterator[Stage]:
        """Yield the short schedule of a refit, from weights that were learned without the hidden
        views; models that can be refitted override it."""
        raise NotImplementedError


class Generative(Model):
    """A model that can also decode the views of a sample, missing ones included."""

    @abstractmethod
    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        """Return decoder outputs of all views, L tensors (draws or 1, B, *shape_v): at the
        posterior means (draws = 0), or at draws of the posterior."""

    def prior(self, n: int) -> list[Tensor]:
        """Decode n draws of the prior, L tensors (1, n, *shape_v), in models that generate."""
        raise NotImplementedError


class Clusterer(Model):
    """A model with its own clustering rule."""

    @abstractmethod
    def assign(self, batch: Views) -> Tensor:
        """Return soft cluster labels, (B, K)."""


def load_state(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load a state dict; buffers whose size depends on the training data are resized."""
    for key, buffer in module.named_buffers():
        if key in state and buffer.shape != state[key].shape:
            owner, _, leaf = key.rpartition(".")
            setattr(module.get_submodule(owner), leaf, torch.empty_like(state[key]))
    module.load_state_dict(state)
