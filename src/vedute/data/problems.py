"""All problems of an input at once, each with its fix.

Checks run inside `with noted():`, one block each. By default the first error is raised. Inside
`all_at_once`, errors are collected and the remaining checks still run, as far as they can; then all
are raised together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

MISTAKES = (ValueError, TypeError, ImportError, FileNotFoundError, FileExistsError, OverflowError)
PROBLEMS_SHOWN = 50


class ProblemsError(ValueError):
    """Several problems, a sentence each."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)


class EnoughError(ValueError):
    """Ends a check whose problems have been noted."""


@dataclass
class _Problems:
    """Errors, and whether the input lacks parts because of them."""

    errors: list[Exception] = field(default_factory=list)
    incomplete: bool = False


_problems: ContextVar[_Problems | None] = ContextVar("problems", default=None)


@contextmanager
def all_at_once() -> Iterator[None]:
    """Raise all errors that are noted inside; a single one unchanged."""
    problems = _Problems()
    before = _problems.set(problems)
    try:
        with noted():
            yield
    finally:
        _problems.reset(before)
    sentences = dict.fromkeys(" ".join(str(e).split()) for e in problems.errors)
    if len(sentences) > 1:
        raise ProblemsError([*sentences])
    if sentences:
        raise problems.errors[0]


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
        if not isinstance(error, EnoughError):
            problems.errors.append(error)
        problems.incomplete |= part


def noted_any() -> bool:
    problems = _problems.get()
    return problems is not None and bool(problems.errors)


def incomplete() -> bool:
    """Whether parts of the input are left out because of errors."""
    problems = _problems.get()
    return problems is not None and problems.incomplete
