"""Terminal output of commands."""

from __future__ import annotations

from typing import TextIO

from vedute.data.escaping import escaped


def say(*words: object, file: TextIO | None = None) -> None:
    """Print words with terminal control characters escaped."""
    print(*(escaped(word, keep="\n\t") for word in words), file=file)
