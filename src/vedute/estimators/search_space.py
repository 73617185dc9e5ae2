"""Search spaces of `vedute tune`, the `tune` of the declaration of a setting."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator


class Choice(NamedTuple):
    """A choice of one of these ordered values."""

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
    """A range of numbers from low to high. `factor`: a name; the defaults of all settings with the
    same name are multiplied by the same number."""

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
