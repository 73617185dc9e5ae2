"""What commands print for people."""

from __future__ import annotations

from typing import TextIO

from vedute.data.escaping import escaped


def say(*words: object, file: TextIO | None = None) -> None:
    """Print words; what a terminal would obey is written out."""
    print(*(escaped(word, keep="\n\t") for word in words), file=file)
