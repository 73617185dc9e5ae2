"""Ids that a spreadsheet takes for formulas, and runs.

In a .csv file they may stand behind an apostrophe, which makes them text: '=x is the id =x. Both
forms are read as the same id; which one is written, `guarded` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from vedute.data.frames import is_number

STARTS = ("=", "+", "@", "\t")


class Guard(NamedTuple):
    """safe: write an apostrophe before formulas; found: those that were written as they are."""

    safe: bool
    found: list[str]


_guard: ContextVar[Guard | None] = ContextVar("guard", default=None)


@contextmanager
def guarded(safe: bool) -> Iterator[list[str]]:
    """How ids are written inside; the formulas among them, unless `safe`."""
    guard = Guard(safe, [])
    before = _guard.set(guard)
    try:
        yield guard.found
    finally:
        _guard.reset(before)


def is_formula(text: str) -> bool:
    return text.startswith(STARTS) and not is_number(text)


def written(text: str) -> str:
    """An id as it is written into a .csv file."""
    guard = _guard.get()
    if guard is None or not is_formula(text):
        return text
    if guard.safe:
        return f"'{text}"
    guard.found.append(text)
    return text


def read(text: str) -> str:
    """An id without the apostrophe that makes it text."""
    return text[1:] if text.startswith("'") and is_formula(text[1:]) else text
