"""SIGTERM and SIGHUP: training writes a checkpoint and ends, everything else ends at once.

Only where `terminable` is entered, as the command line does: in Python signals stay the user's.
Needs no torch.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class TerminatedError(BaseException):
    """A signal asked this process to end; `number` says which. mend: how to go on, if one can."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.mend = number, ""

    def sentence(self) -> str:
        """ended by SIGTERM; ..."""
        ended = f"ended by {signal.Signals(self.number).name}"
        return f"{ended}; {self.mend}" if self.mend else ended


class _State:
    training = False  # an epoch is under way: its end is the next moment to stop at
    requested: int | None = None


def _handle(number: int, _frame: FrameType | None) -> None:
    again = _State.requested is not None
    _State.requested = number
    if again or not _State.training:
        raise TerminatedError(number)


@contextmanager
def terminable() -> Iterator[None]:
    """While inside, these signals raise `TerminatedError`, in training after the epoch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _handle) for number in SIGNALS}
    _State.requested = None
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """While inside, a signal waits until `requested` is asked."""
    _State.training = True
    try:
        yield
    finally:
        _State.training = False


def requested() -> int | None:
    """The signal that came, if one did."""
    return _State.requested
