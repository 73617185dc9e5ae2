"""Results are written whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Any

from vedute.io.paths import through_link

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SCRATCH = ".vedute-part"  # how folders end that nobody needs once their process is gone
YOUNG = 60.0  # seconds in which one without a lock may be one that is being made
HERE, SWAP = -100, 2  # AT_FDCWD; RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS


@contextmanager
def atomic_file(out: str | Path, force: bool = False) -> Iterator[Path]:
    """A path to write to; the file becomes `out` if no exception is raised, else it is removed."""
    with _scratch(Path(out), force, folder=False) as (part, target):
        yield part
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(part, target)


@contextmanager
def atomic_folder(
    out: str | Path, force: bool = False, parts: Sequence[str] = (), stale: Sequence[str] = ()
) -> Iterator[Path]:
    """The same for a folder. In one that exists, `force` replaces files of the same names, and
    removes files of these names in the folders `parts`, and the `stale` ones. A folder in it that
    is a link is refused: nothing is written or removed elsewhere."""
    with _scratch(Path(out), force, folder=True) as (part, target):
        part.mkdir()
        yield part
        names = sorted(p.relative_to(part) for p in part.rglob("*") if p.is_file())
        gone = [*map(Path, stale), *(Path(folder, name) for folder in parts for name in names)]
        for name in [*names, *gone]:
            link = through_link(target, name)
            if link is not None:
                raise FileExistsError(f"{link} is a link to another folder; remove it first")
        for path in (*(part / name for name in names), *_folders(part)):
            sync(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not _renamed(part, target) and not _swapped(part, target, gone):
            _moved(part, target, names, gone)
        sync(target.parent)


def _folders(path: Path) -> list[Path]:
    return [path, *(p for p in path.rglob("*") if p.is_dir())]


def _renamed(part: Path, target: Path) -> bool:
    """Where nothing is there yet, the folder appears whole."""
    if target.exists():
        return False
    try:
        part.rename(target)
    except OSError:  # another process was faster
        return False
    return True


def _swapped(part: Path, target: Path, gone: Sequence[Path]) -> bool:
    """Add everything else in `target` to `part`, as other names of the same files, and swap the
    two in one step; False where the system cannot. Somebody who stands in it would be left in the
    old one."""
    if Path.cwd().is_relative_to(target):
        return False

    def left_out(folder: str, names: list[str]) -> list[str]:
        inside = Path(folder).relative_to(target)
        new = {name for name in names if (part / inside / name).is_file()}
        return [name for name in names if name in new or inside / name in gone]

    same = partial(os.link, follow_symlinks=False)
    try:
        shutil.copytree(target, part, True, left_out, same, dirs_exist_ok=True)
        for folder in sorted({(part / name).parent for name in gone}, reverse=True):
            if folder != part and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        for folder in _folders(part):
            sync(folder)
        _exchange(part, target)
    except OSError:  # shutil.Error is one
        return False
    return True


def _exchange(one: Path, other: Path) -> None:
    """Swap two names: of Linux and macOS, and of most file systems there."""
    names = os.fsencode(one), os.fsencode(other)
    try:
        libc: Any = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = libc.renamex_np(*names, SWAP)
        else:
            failed = libc.renameat2(HERE, names[0], HERE, names[1], SWAP)
    except (AttributeError, TypeError):  # an old one, or Windows
        failed = True
    if failed:
        raise OSError(ctypes.get_errno(), "folders cannot be swapped")


def _moved(part: Path, target: Path, names: Sequence[Path], gone: Sequence[Path]) -> None:
    """One file after the other: whole each, but somebody may see old and new ones together."""
    for old in [target / name for name in gone]:
        old.unlink(missing_ok=True)
        if old.parent != target and old.parent.is_dir() and not any(old.parent.iterdir()):
            old.parent.rmdir()
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (part / name).replace(target / name)
    for folder in {(target / name).parent for name in names}:
        sync(folder)


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
        with suppress(OSError):
            if not (folder / "in-use").exists() and time() - folder.stat().st_mtime > YOUNG:
                shutil.rmtree(folder)  # killed before it was locked, or while it was removed
                continue
            with _locked(folder / "in-use", new=False) as mine:
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
