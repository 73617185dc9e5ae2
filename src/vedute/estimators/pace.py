"""An estimate of the duration of training from its first steps, reported once if it is long."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

MEASURED = 5.0  # seconds of steps for the estimate
LONG = 120.0  # seconds from which on it is reported


class Pace:
    """The pace of training, called after every step. say: called with the seconds per step and of
    all remaining steps. The first step includes preparation and is not counted."""

    def __init__(self, steps: int, say: Callable[[float, float], None]) -> None:
        self.left, self.say = steps, say
        self.start: float | None = None
        self.counted, self.measured = 0, False

    def __call__(self) -> None:
        self.left -= 1
        if self.measured:
            return
        if self.start is None:
            self.start = monotonic()
            return
        self.counted += 1
        took = monotonic() - self.start
        self.measured = took >= MEASURED
        step = took / self.counted
        if self.measured and step * self.left >= LONG:
            self.say(step, step * self.left)
