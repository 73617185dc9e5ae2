"""Regular files: reading from a pipe or a device may block forever."""

from __future__ import annotations

from pathlib import Path


def is_special(path: Path) -> bool:
    """Whether a path exists, and is neither a file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


def plain_file(path: str | Path) -> Path:
    """Return the path of a file to read; reject pipes and devices."""
    path = Path(path)
    if is_special(path):
        raise ValueError(f"{path} is a pipe or a device; write it to a file, and name that")
    return path
