"""Pages about runs: what they need, and where they go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from vedute import io
from vedute.estimator import Estimator
from vedute.views import Views

Shapes = dict[str, tuple[int, ...]]


@contextmanager
def new(out: Path, force: bool) -> Iterator[Path]:
    """Where to write the page that becomes `out`; refused before any work is done."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a page ends in .html, got {out}")
    with io.atomic_file(out, force) as part:
        yield part


def measure(folder: Path, model: Estimator, views: Views) -> None:
    """Keep what a page will tell in the RUN; a model is never lost to a chart."""
    from vedute.evidence import evidence

    console = Console(stderr=True)
    try:
        with console.status("measuring what was learned"):
            found = evidence(model, views)
    except Exception as error:
        print(f"a page about this run will lack its measurements: {error}")
    else:
        io.write_npz(folder / "report.npz", found)


def write(run: Path, out: Path, ids: bool = True, shapes: Iterable[str] = ()) -> None:
    """The page about a RUN; shapes: view=HxW."""
    from vedute.page import write_page

    write_page(run, out, ids, parse(shapes))


def parse(shapes: Iterable[str]) -> Shapes:
    """pix=16x15 -> {"pix": (16, 15)}"""
    found: Shapes = {}
    for pair in shapes:
        name, _, size = pair.rpartition("=")
        sides = size.lower().split("x")
        if not name or len(sides) < 2 or not all(s.isdecimal() and int(s) for s in sides):
            raise ValueError(f"--shape takes view=HEIGHTxWIDTH, got {pair!r}")
        found[name] = tuple(map(int, sides))
    return found
