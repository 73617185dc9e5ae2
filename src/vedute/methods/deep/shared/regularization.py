"""Regularization of MVP and the multimodal VAEs.

dropout        dropout of encoders; by default higher if samples are few
balance        multiplies the error of view v by share_v = rich_v / mean of rich, where rich_v are
               its effective dimensions to this power
cooldown       the last part of the training, at most a quarter: without dropout, at a tenth of the
               learning rate
view_dropout   share of views hidden in a step, which are predicted from the others
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.scaling import effective_dimensions
from vedute.data.views import Views
from vedute.estimators.neural import FEW_ROWS
from vedute.nn import shards
from vedute.training.model import Generative, Stage, Terms

DROPOUT, BALANCE = {False: 0.2, True: 0.4}, {False: 0.2, True: 0.5}  # True: if samples are few


class Regularized(Generative):
    """A model with a cool-down at the end of training, and a weight, `share`, per view."""

    adds_over_rows = True
    hp: Any  # an estimator with `dropout`, `balance` and `cooldown`
    share: Tensor
    few: bool  # whether samples are few, set when training begins

    def __init__(self, hp: Any, n_views: int, length: int) -> None:
        super().__init__()
        self.hp, self.length = hp, length
        self.register_buffer("share", torch.ones(n_views), persistent=False)

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
        """Set dropout, and weights of views, 1 on average, by the number of samples."""
        hp, few = self.hp, len(data) < FEW_ROWS
        self.few = few
        power = BALANCE[few] if hp.balance is None else hp.balance
        if power != 0:
            rich = effective_dimensions(data) ** power
            self.share.copy_(rich / rich.mean())
        for module in self._dropouts() if hp.dropout is None else ():
            module.p = DROPOUT[few]

    def _cooling(self, length: int) -> Iterator[Stage]:
        if length > 0:
            yield self.hp.stage(self.cooldown_loss, length, watch=True, lr=self.hp.lr / 10)

    def cooldown_loss(self, batch: Views) -> Terms:
        """The loss without dropout, which gains precision. If dropout was needed, early stopping
        keeps the weights from before the cool-down."""
        for module in self._dropouts():
            module.eval()
        return self.loss(batch)

    def _dropouts(self) -> Iterator[nn.Dropout]:
        return (module for module in self.modules() if isinstance(module, nn.Dropout))


def by_rows(rows: int | None) -> dict[str, float]:
    """Defaults of `dropout` and `balance` for this number of rows; empty if unknown."""
    few = rows is not None and rows < FEW_ROWS
    return {} if rows is None else {"dropout": DROPOUT[few], "balance": BALANCE[few]}


def first_dropout(dropout: float | None) -> float:
    """The dropout that encoders are built with, before the number of samples is known."""
    return DROPOUT[False] if dropout is None else dropout


def hide_some(batch: Views, share: float) -> Views:
    """Hide views of a batch at random, with this probability."""
    if share == 0:
        return batch
    return shards.hide(batch, lambda mask: hidden_views(mask, share))


def hidden_views(mask: Tensor, share: float) -> Tensor:
    """Draw views to hide, (B, L): each with this probability, never all of a row."""
    score = torch.rand(mask.shape, device=mask.device).masked_fill(~mask, -1.0)
    return (score < share) & (score < score.amax(1, keepdim=True))
