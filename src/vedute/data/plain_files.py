"""Files that end: reading from a pipe or a device may wait for ever."""

from __future__ import annotations

from pathlib import Path


def is_special(path: Path) -> bool:
    """Whether it is there, and neither a file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


def plain_file(path: str | Path) -> Path:
    """The path of a file to read; a pipe or a device is refused."""
    path = Path(path)
    if is_special(path):
        raise ValueError(f"{path} is a pipe or a device; write it to a file, and name that")
    return path
