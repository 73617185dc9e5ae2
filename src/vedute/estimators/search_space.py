"""The values that `vedute tune` tries of a setting: the `tune` of its declaration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator


class Choice(NamedTuple):
    """One of these values, which have an order."""

    values: tuple[Any, ...]
    factor: None = None

    def draw(self, rng: Generator) -> Any:
        return self.values[int(rng.integers(len(self.values)))]

    def suggest(self, trial: Any, name: str) -> Any:
        return self.values[trial.suggest_int(name, 0, len(self.values) - 1)]

    def has(self, value: Any) -> bool:
        return value in self.values

    def place(self, value: Any) -> int:
        return self.values.index(value)


class Range(NamedTuple):
    """A number from low to high. With `factor`: the defaults of all settings that share its name
    are multiplied by the same number."""

    low: float
    high: float
    log: bool = False
    factor: str | None = None

    def draw(self, rng: Generator) -> float:
        ends = np.log([self.low, self.high]) if self.log else [self.low, self.high]
        value = float(rng.uniform(*ends))
        return rounded(np.exp(value) if self.log else value)

    def suggest(self, trial: Any, name: str) -> float:
        return rounded(trial.suggest_float(name, self.low, self.high, log=self.log))

    def has(self, value: float | None) -> bool:
        return value is not None and self.low <= value <= self.high

    def place(self, value: float) -> float:
        return value


def rounded(x: float) -> float:
    """Round to two digits."""
    return float(f"{x:.2g}")
