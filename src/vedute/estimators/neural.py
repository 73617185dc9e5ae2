"""Methods that train networks: their settings, and what a method may decide of its training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from vedute.data.holdout import HoldOut
from vedute.data.views import Shapes, Views
from vedute.estimators.context import FitContext
from vedute.estimators.networks import NetworkEstimator, models
from vedute.estimators.neural_training import Training
from vedute.estimators.settings import Range, choice, estimator, setting
from vedute.nn import coders, convolutions
from vedute.scale import ranks
from vedute.training.history import Record
from vedute.training.model import Stage, Terms

FEW_ROWS = 1000  # below, hidden views only decide the length of training, and are refitted


@estimator
class NeuralEstimator(NetworkEstimator):
    """An estimator trained for `steps`, or `epochs` if set, with early stopping on hidden views."""

    steps: int = setting(2300, "Most steps of optimisation.", at_least=1, length=True)
    epochs: int | None = setting(
        None, "Most passes over the data; stages then count these.", at_least=1, length=True
    )
    batch_size: int = setting(
        128, "Rows per step; a last batch below an eighth of it is left out.", at_least=1
    )
    lr: float = setting(2e-3, "Learning rate.", above=0, tune=Range(3e-4, 1e-2, log=True))
    weight_decay: float = setting(0.0, "Weight decay of the optimizer.", at_least=0)
    clip: float | None = setting(None, "Largest norm of the gradient; None: no limit.", above=0)
    early_stopping: bool = setting(True, "Hide about a tenth of observed views to end training.")
    patience: int = setting(400, "Steps to wait for a smaller hidden error.", at_least=1)
    components: int | None = setting(
        64, "Principal components that replace wide text or counts; None: all.", at_least=1
    )
    device: str | torch.device = setting("auto", "`cpu`, `cuda`, `mps`; `auto`: a GPU if any.")
    precision: str = choice(
        ("auto", "float32", "bf16"), "Precision of networks; `auto`: bf16 for images on a GPU."
    )
    checkpoint: str | Path | None = setting(None, "A folder to resume from; needs `random_state`.")
    checkpoint_minutes: float = setting(5.0, "Minutes between two checkpoints.", at_least=0)
    callbacks: Sequence[Callable[[Record], object]] | None = setting(
        None, "Functions that are called with every record of the history; not saved."
    )

    attributes: ClassVar[dict[str, str]] = {
        "history_": "Per epoch: step, stage, terms, hidden error; last also why training ended.",
        "model_": "The trained networks, a `torch.nn.Module`.",
        "settings_": "Settings as used: as passed or, for None and `auto`, as decided by data.",
        "front_": "Per view, the principal components as input of networks; None: all columns.",
    }
    streams = True

    def stage(self, loss: Callable[[Views], Terms], amount: int, **fields: Any) -> Stage:
        """Return a stage of this length, in the unit of training: steps or epochs."""
        steps, epochs = (amount, None) if self.epochs is None else (None, amount)
        return Stage(loss, steps, epochs, **fields)

    def hides(self) -> bool:
        return self.generative and self.early_stopping

    def learns_again(self, rows: int) -> bool:
        few = self.hides() and self.epochs is None and rows < FEW_ROWS
        return self.relearns or few

    def check(self, raw: Views) -> None:
        if getattr(self, "network", "mlp") != "mlp":
            for name, shape, part in zip(raw.names, raw.shapes, raw.parts, strict=True):
                coders.check_image(name, shape, part.dtype == torch.uint8)
        self.torch_device()
        if ranks.size() > 1 and not all(m.adds_over_rows for m in models(type(self))):
            raise ValueError(
                f"{type(self).__name__} compares the samples of a batch with each other, which "
                "ranks that have a part of it each cannot; fit it in one process, without torchrun"
            )

    def amounts(self, shapes: Shapes, rows: int) -> tuple[int, int]:
        """Return steps and batch size of training on `rows` rows of these shapes."""
        return self.steps, self.batch_size

    def settled(self, shapes: Shapes, length: int, rows: int | None = None) -> Self:
        """Return the estimator with settings that depend on data and device filled in. shapes: of
        the views; length: of training, in steps, or in epochs if these are set; rows: their number,
        or None if unknown."""
        auto = getattr(self, "network", "mlp") == convolutions.AUTO
        if auto and any(map(coders.by_convolution, shapes)):
            return self.having({"network": convolutions.chosen(self.torch_device().type)})
        return self

    def patience_for(self, shapes: Shapes, steps: int) -> int:
        """Return the patience of early stopping in a training of this many steps."""
        return self.patience

    def refit_length(self, steps: int) -> int | None:
        """Return the steps of a refit that continues from the first training of up to `steps`;
        None: it starts over."""
        return None

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        first = (self.history_, self.length_) if context.number > 1 else ()
        Training(self, context, *first).learn(data, held)
