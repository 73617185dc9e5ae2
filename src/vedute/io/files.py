"""Output files: written whole or not at all, under names that every system can write.

Names of views, samples and datasets come from untrusted files. A name that would lead to another
folder, or that some system cannot write, is rejected.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import hashlib
import os
import secrets
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from vedute.data.limits import is_special
from vedute.data.lock import try_lock

CWD, EXCHANGE = -100, 2  # of renameat2 on Linux
NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG,
                errno.ELOOP)  # fmt: skip
SCRATCH = ".vedute-part"  # ending of folders that are stale once their process has ended
MAX_NAME_BYTES = 255  # bytes of a file name on every common file system
DEVICES = ["CON", "PRN", "AUX", "NUL", *(f"{d}{i}" for d in ("COM", "LPT") for i in range(10))]
INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # categories of characters
PATH_SEPARATORS = "/\\" if os.name != "nt" else '/\\<>:"|?*'


@contextmanager
def atomic_file(out: str | Path, force: bool = False) -> Iterator[Path]:
    """Yield a path to write to; it becomes `out` if no exception is raised, else it is removed."""
    with _scratch(Path(out), force, folder=False) as (part, target):
        yield part
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(part, target)


@contextmanager
def atomic_folder(
    out: str | Path, force: bool = False, parts: Sequence[str] = (), stale: Sequence[str] = ()
) -> Iterator[Path]:
    """Yield a folder to write to, which becomes `out` likewise, in one step on Linux; another
    process that writes `out` meanwhile gets an error. In a folder that exists, `force` replaces
    files of the same names, removes files of these names in the folders `parts`, and the files
    `stale`; all others stay, and a link to a folder is rejected."""
    with _scratch(Path(out), force, folder=True) as (part, target):
        part.mkdir()
        yield part
        names = sorted(p.relative_to(part) for p in part.rglob("*") if p.is_file())
        old = [*map(Path, stale), *(Path(folder, name) for folder in parts for name in names)]
        for name in [*names, *old]:
            parents = [p for p in (target / name).parents if target in p.parents]
            links = [p for p in parents if p.is_symlink()]
            if links:
                raise FileExistsError(f"{links[-1]} is a link to another folder; remove it first")
            if is_special(target / name):
                raise FileExistsError(f"{target / name} is a pipe or a device; remove it first")
        for path in [part, *part.rglob("*")]:
            sync(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not _put(part, target, {*names, *old}):
            target.mkdir(parents=True, exist_ok=True)
            for path in [target / name for name in old]:
                path.unlink(missing_ok=True)
                home = path.parent
                if home != target and home.is_dir() and not any(home.iterdir()):
                    home.rmdir()
            for name in names:  # one by one, in their order
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (part / name).replace(target / name)
            for path in {(target / name).parent for name in names}:
                sync(path)
        sync(target.parent)


def _put(part: Path, target: Path, dropped: Collection[Path]) -> bool:
    """Rename a folder to `target`. Where that exists, link all its files but those `dropped` into
    `part`, and exchange the two. False where the system cannot: `target` stays unchanged."""
    here = Path.cwd()
    if target == here or target in here.parents:  # a shell would be left in a removed folder
        return False
    try:
        if not target.exists():
            part.rename(target)
            return True
        for folder, inside, files in os.walk(target, topdown=False):
            relative = Path(folder).relative_to(target)
            names = [*files, *(n for n in inside if Path(folder, n).is_symlink())]
            for name in [relative / n for n in names if relative / n not in dropped]:
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                os.link(target / name, part / name, follow_symlinks=False)
            if not (inside or files):
                (part / relative).mkdir(parents=True, exist_ok=True)
            if (part / relative).is_dir():
                shutil.copymode(folder, part / relative)
        return exchange(part, target)
    except (OSError, NotImplementedError):
        return False


def exchange(a: Path, b: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system cannot."""
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(CWD, os.fsencode(a), CWD, os.fsencode(b), EXCHANGE) == 0


def replace(part: Path, target: Path) -> None:
    """Rename a written file to `target`; content and name are on the disk on return."""
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
    """Yield a path named like `out` in a temporary folder beside it, and the full path of `out`."""
    try:
        target = out.resolve()
        place = _beside(out, target, force, folder)
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        problem = f"{out} cannot be written ({error.strerror}); choose another place or name"
        raise OSError(error.errno, problem) from None
    with try_lock(place / "in-use") as acquired:
        if acquired is False:
            fix = "wait for it, or choose another name"
            raise FileExistsError(f"another process is writing {out}; {fix}")
        for path in place.iterdir():  # what a killed process has left
            if path.name != "in-use":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        try:
            yield place / target.name, target
        finally:
            shutil.rmtree(place, ignore_errors=True)
    if sys.platform == "win32":  # where what is open cannot be removed
        with suppress(OSError):
            (place / "in-use").unlink()
            place.rmdir()


def _beside(out: Path, target: Path, force: bool, folder: bool) -> Path:
    """Create the temporary folder; raise where `out` may not be written."""
    if is_special(target):
        raise FileExistsError(f"{out} is a pipe or a device; choose another name")
    if target.exists() and target.is_dir() != folder:
        raise FileExistsError(f"{out} is a {'file' if folder else 'folder'}; choose another name")
    if target.exists() and not force:
        raise FileExistsError(f"{out} exists; choose another name, or --force to replace it")
    parent = next(p for p in target.parents if p.exists())
    for stale in parent.glob(f".{glob.escape(target.name)}.*{SCRATCH}"):
        with suppress(OSError), try_lock(stale / "in-use") as acquired:
            if acquired:  # its process was killed or lost power
                shutil.rmtree(stale)
    path = str(target.relative_to(parent))
    mark = "" if path == target.name else f"-{hashlib.sha256(path.encode()).hexdigest()[:12]}"
    if not folder:  # each file that is written has its own, a folder one for all its writers
        mark = f".{secrets.token_hex(4)}"
    place = parent / f".{target.name}{mark}{SCRATCH}"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def below(folder: Path, name: object, ending: str = "") -> Path:
    """Return folder/name+ending, which does not exist yet; reject names that are not plain, where
    look-alikes of characters count as what they look like."""
    text = str(name)
    looks, kinds = unicodedata.normalize("NFKC", text), {unicodedata.category(c) for c in text}
    length = len((text + ending).encode(errors="replace"))
    problems = {
        "it has no letter or digit": not looks.strip(" .\t"),
        "it has a path separator in it": {*PATH_SEPARATORS} & {*text, *looks},
        "it has a line break or another invisible character in it": kinds & INVISIBLE,
        "files that begin with a dot are hidden": looks.startswith("."),
        "it begins or ends with a blank or a dot": looks != looks.strip() or looks.endswith("."),
        "Windows keeps it for a device": looks.split(".")[0].strip().upper() in DEVICES,
        f"it is longer than {MAX_NAME_BYTES} bytes": length > MAX_NAME_BYTES,
    }
    for problem in (problem for problem, present in problems.items() if present):
        shown = repr(text if len(text) <= 40 else f"{text[:40]}...")
        raise ValueError(f"{shown} cannot name a file: {problem}; rename it, or write an .npz")
    path = folder / (text + ending)
    if os.path.lexists(path):  # also where a file system takes two names for one
        raise ValueError(f"two files would be called {path.name!r}; rename one, or write an .npz")
    return path
