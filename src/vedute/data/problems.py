"""All problems of an input at once: checks run inside `with noted():`, one block each. By default
the first error is raised; inside `all_at_once`, errors are collected and raised together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

MISTAKES = (ValueError, TypeError, ImportError, FileNotFoundError, FileExistsError, OverflowError)
PROBLEMS_SHOWN = 50


class ProblemsError(ValueError):
    """Several problems, a sentence each."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)


class EnoughError(ValueError):
    """Ends a check whose problems have been noted."""


# Errors, and whether the input lacks a part because of them; None where the first one is raised.
_problems: ContextVar[list[tuple[Exception, bool]] | None] = ContextVar("problems", default=None)


@contextmanager
def all_at_once() -> Iterator[None]:
    """Raise all errors that are noted inside; a single one unchanged."""
    before = _problems.set([])
    try:
        with noted():
            yield
        errors = noted_errors()
    finally:
        _problems.reset(before)
    sentences = dict.fromkeys(" ".join(str(e).split()) for e in errors)
    if len(sentences) > 1:
        raise ProblemsError([*sentences])
    if sentences:
        raise errors[0]


@contextmanager
def noted(part: bool = True) -> Iterator[None]:
    """Collect an error that ends this block, inside `all_at_once`. part: the input then lacks a
    part, so that other checks may fail."""
    try:
        yield
    except MISTAKES as error:
        problems = _problems.get()
        if problems is None:
            raise
        problems.append((error, part))


def noted_errors() -> list[Exception]:
    return [error for error, _ in _problems.get() or () if not isinstance(error, EnoughError)]


def incomplete() -> bool:
    """Whether parts of the input are left out because of errors."""
    return any(part for _, part in _problems.get() or ())
