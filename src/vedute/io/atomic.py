"""Results are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def atomic_file(out: str | Path, force: bool = False) -> Iterator[Path]:
    """Where to write a file that becomes `out` when all went well, and is gone otherwise."""
    with _scratch(Path(out), force, folder=False) as (part, target):
        yield part
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)


@contextmanager
def atomic_folder(
    out: str | Path, force: bool = False, parts: Sequence[str] = ()
) -> Iterator[Path]:
    """The same for a folder. In one that exists, `force` replaces files of the same names, and
    those of these names in the folders `parts`, which are gone where nothing new comes."""
    with _scratch(Path(out), force, folder=True) as (part, target):
        part.mkdir()
        yield part
        target.mkdir(parents=True, exist_ok=True)
        names = [p.relative_to(part) for p in part.rglob("*") if p.is_file()]
        for stale in [target / folder / name for folder in parts for name in names]:
            stale.unlink(missing_ok=True)
            if stale.parent.is_dir() and not any(stale.parent.iterdir()):
                stale.parent.rmdir()
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).replace(target / name)


@contextmanager
def _scratch(out: Path, force: bool, folder: bool) -> Iterator[tuple[Path, Path]]:
    """A path beside `out`, whose name it has, in a folder that goes away; and `out` in full."""
    target = out.resolve()
    if target.exists() and target.is_dir() != folder:
        raise FileExistsError(f"{out} is a {'file' if folder else 'folder'}; choose another name")
    if target.exists() and not force:
        raise FileExistsError(f"{out} exists; choose another name, or --force to replace it")
    home = next(p for p in target.parents if p.exists())
    with TemporaryDirectory(prefix=f".{target.name}.", dir=home, ignore_cleanup_errors=True) as d:
        yield Path(d) / target.name, target
