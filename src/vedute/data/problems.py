"""All problems of an input at once, each with what to do about it.

Whoever checks several things does so `with noted():`, one block each. As a rule the first error is
raised as ever. Inside `all_at_once`, errors are kept and what follows is checked, too, as far as it
can be; then they are raised together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

MISTAKES = (ValueError, TypeError, ImportError, FileNotFoundError, FileExistsError, OverflowError)
MOST_SHOWN = 50


class ProblemsError(ValueError):
    """Several problems, a sentence each."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)


class EnoughError(ValueError):
    """Ends a check whose problems have been noted."""


@dataclass
class _Found:
    """errors, and whether the input lacks parts because of them."""

    errors: list[Exception] = field(default_factory=list)
    incomplete: bool = False


_found: ContextVar[_Found | None] = ContextVar("problems", default=None)


@contextmanager
def all_at_once() -> Iterator[None]:
    """Raise all errors that are noted inside: a single one as it is."""
    found = _Found()
    before = _found.set(found)
    try:
        with noted():
            yield
    finally:
        _found.reset(before)
    sentences = dict.fromkeys(" ".join(str(e).split()) for e in found.errors)
    if len(sentences) > 1:
        raise ProblemsError([*sentences])
    if sentences:
        raise found.errors[0]


@contextmanager
def noted(part: bool = True) -> Iterator[None]:
    """Keep an error that ends this block, where all are gathered. part: the input lacks a part
    then, so that others may seem to be wrong."""
    try:
        yield
    except MISTAKES as error:
        found = _found.get()
        if found is None:
            raise
        if not isinstance(error, EnoughError):
            found.errors.append(error)
        found.incomplete |= part


def noted_any() -> bool:
    found = _found.get()
    return found is not None and bool(found.errors)


def incomplete() -> bool:
    """Whether parts of the input are left out because of errors."""
    found = _found.get()
    return found is not None and found.incomplete
