"""Results are written whole or not at all."""

from __future__ import annotations

import errno
import glob
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vedute.io.paths import through_link

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SCRATCH = ".vedute-part"  # how folders end that nobody needs once their process is gone


@contextmanager
def atomic_file(out: str | Path, force: bool = False) -> Iterator[Path]:
    """A path to write to; the file becomes `out` if no exception is raised, else it is removed."""
    with _scratch(Path(out), force, folder=False) as (part, target):
        yield part
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(part, target)


@contextmanager
def atomic_folder(
    out: str | Path, force: bool = False, parts: Sequence[str] = ()
) -> Iterator[Path]:
    """The same for a folder. In one that exists, `force` replaces files of the same names, and
    removes files of these names in the folders `parts`. A folder in it that is a link is refused:
    nothing is written or removed elsewhere."""
    with _scratch(Path(out), force, folder=True) as (part, target):
        part.mkdir()
        yield part
        target.mkdir(parents=True, exist_ok=True)
        names = sorted(p.relative_to(part) for p in part.rglob("*") if p.is_file())
        for name in [*names, *(Path(folder, name) for folder in parts for name in names)]:
            link = through_link(target, name)
            if link is not None:
                raise FileExistsError(f"{link} is a link to another folder; remove it first")
        for stale in [target / folder / name for folder in parts for name in names]:
            stale.unlink(missing_ok=True)
            if stale.parent.is_dir() and not any(stale.parent.iterdir()):
                stale.parent.rmdir()
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            sync(part / name)
            (part / name).replace(target / name)
        for place in {(target / name).parent for name in names}:
            sync(place)


def replace(part: Path, target: Path) -> None:
    """Rename a written file to `target`; content and name are on the disk when this returns."""
    sync(part)
    part.replace(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Flush to the disk, where the system can (Windows has no handles for folders)."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(handle)


@contextmanager
def _scratch(out: Path, force: bool, folder: bool) -> Iterator[tuple[Path, Path]]:
    """A path with the name of `out` in a temporary folder beside it; and the full path of `out`."""
    target = out.resolve()
    if target.exists() and target.is_dir() != folder:
        raise FileExistsError(f"{out} is a {'file' if folder else 'folder'}; choose another name")
    if target.exists() and not force:
        raise FileExistsError(f"{out} exists; choose another name, or --force to replace it")
    home = next(p for p in target.parents if p.exists())
    _collect(home, target.name)
    ours: Any = {"prefix": f".{target.name}.", "suffix": SCRATCH, "ignore_cleanup_errors": True}
    with TemporaryDirectory(dir=home, **ours) as d, _locked(Path(d) / "in-use"):
        yield Path(d) / target.name, target


def _collect(home: Path, name: str) -> None:
    """Remove scratch folders of this output whose process is gone: killed, or the power failed."""
    for folder in home.glob(f".{glob.escape(name)}.*{SCRATCH}"):
        with suppress(OSError), _locked(folder / "in-use", new=False) as mine:
            if mine:
                shutil.rmtree(folder)


@contextmanager
def _locked(path: Path, new: bool = True) -> Iterator[bool]:
    """Hold a lock that ends with this process; whether it could be had."""
    if fcntl is None:  # Windows refuses to remove files that are open, which is enough
        with path.open("a" if new else "r+"):
            yield new
        return
    with path.open("a" if new else "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
