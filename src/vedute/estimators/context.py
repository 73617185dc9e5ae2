"""The context of one fit: what is handed down to everything that learns in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import Tensor

from vedute.training.history import Record


@dataclass
class FitContext:
    """One fit, of which nothing is kept on a model.

    seed         the seed of all random numbers
    groups       (n,) codes of samples that belong together; None: every sample by itself
    number       which training this is: 1, or 2 for the one with the views that were hidden
    checkpoint   the folder that trainings are kept in; None: nowhere
    callbacks    the functions to be called with every record of the history
    interrupted  whether the user has interrupted it; set by what learns
    """

    seed: int
    groups: Tensor | None = None
    number: int = 1
    checkpoint: Path | None = None
    callbacks: Sequence[Callable[[Record], object]] = ()
    interrupted: bool = False

    @classmethod
    def of(cls, model: Any, seed: int, groups: Tensor | None = None) -> Self:
        """The context of a fit with the settings of a method."""
        folder, callbacks = (getattr(model, k, None) for k in ("checkpoint", "callbacks"))
        checkpoint = None if folder is None else Path(folder)
        return cls(seed, groups, checkpoint=checkpoint, callbacks=callbacks or ())

    def second(self) -> FitContext:
        """The context of the second training, with all views."""
        return replace(self, number=2)

    def child(self, model: Any, name: str, number: int = 1) -> FitContext:
        """The context of a method inside another one, in a folder of this name; the other one
        hides views for it, so that it needs no groups."""
        own = FitContext.of(model, self.seed)
        folder = own.checkpoint if self.checkpoint is None else self.checkpoint / name
        callbacks = self.callbacks if hasattr(model, "callbacks") else ()
        callbacks = callbacks or own.callbacks
        return replace(own, number=number, checkpoint=folder, callbacks=callbacks)


def seed_of(random_state: Any) -> int:
    """An integer from what scikit-learn accepts as random_state."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, (int, np.integer)) and abs(int(random_state)) < 2**63:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise ValueError(
        f"random_state is a whole number below 2**63, a generator of numpy or None, got "
        f"{random_state!r}"
    )
