"""Columns to leave out, in whatever table they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vedute.data.frames import close_to
from vedute.io.contents import Reading


class Unwanted:
    """The columns that `how` drops, and all columns of the tables so far."""

    def __init__(self, how: Reading) -> None:
        self.how = how
        self.known: dict[str, None] = {}

    def rest(self, columns: list[Any]) -> list[Any]:
        """Filter out the dropped columns of a table."""
        if not self.how.drop:
            return columns
        names = [str(c) for c in columns]
        self.known |= dict.fromkeys(names)
        dropped = {name for word in self.how.drop for name in _names(word, names)}
        return [c for c in columns if str(c) not in dropped]

    def check(self, path: Path) -> None:
        """Reject a name that no table has."""
        if self.how.lenient:
            return
        names = [*self.known]
        for word in self.how.drop or ():
            absent = [name for name in _names(word, names) if name not in self.known]
            if word == self.how.label:
                raise ValueError(f"--label and --drop both name {word!r}; leave out one of them")
            if absent:
                raise ValueError(
                    f"{path} has no column {absent[0]!r} for --drop; {close_to(absent[0], names)}"
                )


def _names(word: str, known: list[str]) -> list[str]:
    """Split several names at commas, where the whole is not one name."""
    return [word] if word in known else [name.strip() for name in word.split(",")]
