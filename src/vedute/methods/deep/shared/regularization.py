"""Regularization of MVP and the multimodal VAEs.

`balance` multiplies the error of view v by share_v = rich_v / mean of rich, where rich_v are its
effective dimensions to this power. A cool-down takes at most a quarter of the training.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from vedute.data.scaling import effective_dimensions
from vedute.data.views import Views
from vedute.estimators.neural import FEW_ROWS
from vedute.training.model import Generative, Stage, Terms


class Regularized(Generative):
    """A model with a cool-down at the end of training, and a weight, `share`, per view."""

    adds_over_rows = True
    hp: Any  # an estimator with `dropout`, `balance` and `cooldown`
    few: bool  # whether samples are few, set when training begins

    def __init__(self, hp: Any, n_views: int, length: int) -> None:
        super().__init__()
        self.hp, self.length = hp, length
        self.share = nn.Buffer(torch.ones(n_views), persistent=False)

    @abstractmethod
    def main_stages(self, length: int) -> Iterator[Stage]:
        """Stages before the cool-down, of this total length."""

    def stages(self, data: Views) -> Iterator[Stage]:
        cool = min(self.hp.cooldown, self.length // 4)
        self._adapt_to(data)
        yield from self.main_stages(self.length - cool)
        yield from self._cooling(cool)
        self.finish(data)

    def stages_again(self, data: Views) -> Iterator[Stage]:
        cool = self.length // 2
        self._adapt_to(data)
        yield self.hp.stage(self.loss, self.length - cool, watch=True, lr=self.hp.lr)
        yield from self._cooling(cool)
        self.finish(data)

    def finish(self, data: Views) -> None:
        """Store what the model needs of the training data, after the last stage."""

    def _adapt_to(self, data: Views) -> None:
        """Set the weights of views, 1 on average."""
        self.few = len(data) < FEW_ROWS
        if self.hp.balance:
            rich = effective_dimensions(data) ** self.hp.balance
            self.share.copy_(rich / rich.mean())

    def _cooling(self, length: int) -> Iterator[Stage]:
        if length > 0:
            yield self.hp.stage(self.cooldown_loss, length, watch=True, lr=self.hp.lr / 10)

    def cooldown_loss(self, batch: Views) -> Terms:
        """The loss without dropout, which gains precision. If dropout was needed, early stopping
        keeps the weights from before the cool-down."""
        stop_dropout(self)
        return self.loss(batch)


def by_rows(rows: int | None) -> dict[str, float]:
    """Defaults of `dropout` and `balance` for this number of rows; empty if unknown."""
    if rows is None:
        return {}
    few = rows < FEW_ROWS
    return {"dropout": 0.4 if few else 0.2, "balance": 0.5 if few else 0.2}


def stop_dropout(model: nn.Module) -> None:
    """Evaluate without dropout until training goes on."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.eval()
