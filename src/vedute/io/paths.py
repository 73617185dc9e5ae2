"""Paths below an output folder: each is made here, from one plain file name.

Names of views, samples and datasets come from files of unknown origin. A name that would lead to
another folder, or that some system cannot write, is refused.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

LONGEST = 255  # bytes of a file name on every common file system
DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{d}{i}" for d in ("COM", "LPT") for i in range(10))}
SEPARATORS = "/\\" if os.name != "nt" else '/\\<>:"|?*'


def below(folder: Path, name: object, ending: str = "") -> Path:
    """folder/name+ending, a path that does not exist yet; a name that is not plain is refused."""
    text = str(name)
    problem = complaint(text, ending)
    if problem:
        shown = repr(text if len(text) <= 40 else f"{text[:40]}...")
        raise ValueError(
            f"{shown} cannot name a file: {problem}; rename it, or let OUT end in .npz"
        )
    path = folder / (text + ending)
    if os.path.lexists(path):  # also where a file system takes two names for one
        raise ValueError(f"two files would be called {path.name!r}; rename one, or write an .npz")
    return path


def complaint(name: str, ending: str = "") -> str | None:
    """Why a name is no plain file name, or None. Look-alikes are judged by what they look like."""
    looks = unicodedata.normalize("NFKC", name)
    if not looks.strip(" .\t"):
        return "it has no letter or digit"
    if any(s in text for text in (name, looks) for s in SEPARATORS):
        return "it has a path separator in it"
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in name):
        return "it has a line break or another invisible character in it"
    if looks.startswith("."):
        return "files that begin with a dot are hidden"
    if looks != looks.strip() or looks.endswith("."):
        return "it begins or ends with a blank or a dot"
    if looks.split(".")[0].strip().upper() in DEVICES:
        return "Windows keeps it for a device"
    if len((name + ending).encode()) > LONGEST:
        return f"it is longer than {LONGEST} bytes"
    return None


def literal(path: Path) -> Path:
    """The same place for pandas, which takes a path that begins with ~ for the home folder."""
    return path.absolute()


def through_link(target: Path, name: Path) -> Path | None:
    """The first folder of target/name, below target, that is a link to somewhere else."""
    for parent in reversed((target / name).parents):
        if parent != target and target in parent.parents and parent.is_symlink():
            return parent
    return None
