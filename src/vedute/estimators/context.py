"""The context of one fit: what is handed down to everything that learns in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor


@dataclass
class FitContext:
    """One fit, of which nothing is kept on a model.

    seed         the seed of all random numbers
    groups       (n,) codes of samples that belong together; None: every sample by itself
    number       which training this is: 1, or 2 for the one with the views that were hidden
    interrupted  whether the user has interrupted it; set by what learns
    """

    seed: int
    groups: Tensor | None = None
    number: int = 1
    interrupted: bool = False

    def second(self) -> FitContext:
        """The context of the second training, with all views."""
        return replace(self, number=2)

    def child(self, number: int = 1) -> FitContext:
        """The context of a method inside another one, which hides views for it: it needs no
        groups."""
        return FitContext(self.seed, number=number)
