"""Handling of SIGTERM and SIGHUP: training writes a checkpoint and ends, all else ends at once.

Active only inside `terminable`, which the command line enters: from Python, signals are the
caller's. This module needs no torch.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class TerminatedError(BaseException):
    """A request by signal `number` to end this process; `advice` says how to resume, if known."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.advice = number, ""

    def sentence(self) -> str:
        """Return 'ended by SIGTERM', with the advice."""
        ended = f"ended by {signal.Signals(self.number).name}"
        return f"{ended}; {self.advice}" if self.advice else ended


class State:
    """The signal that arrived, 0 before, and whether training can stop for it after its epoch."""

    training, requested = False, 0


def _handle(number: int, _frame: FrameType | None) -> None:
    repeated = State.requested > 0
    State.requested = number
    if repeated or not State.training:
        raise TerminatedError(number)


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `TerminatedError` on these signals, in training after the current epoch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _handle) for number in SIGNALS}
    State.requested = 0
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Defer signals: `State.requested` holds them."""
    State.training = True
    try:
        yield
    finally:
        State.training = False
