"""Pages about runs: measure what they show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vedute import io
from vedute.commands._command import say
from vedute.data.store import is_store, manifest
from vedute.estimators import progress

MOST = 200_000  # samples of a store: more are not read into memory for a page
Shapes = dict[str, tuple[int, ...]]


@contextmanager
def new(out: Path, force: bool) -> Iterator[Path]:
    """A context with the temporary path of the page `out`; bad paths raise before any work."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a page ends in .html, got {out}")
    with io.atomic_file(out, force) as part:
        yield part


def measure(run: Path, source: str, method: str) -> None:
    """Measure what a page will show, in a subprocess: a crash there cannot damage the RUN."""
    if is_store(source) and manifest(Path(source))["samples"] > MOST:
        say(f"a page about this run will lack its measurements: {source} has over {MOST} samples")
        return
    with progress.shown(), progress.task("measuring the fitted model"):
        failed = _in_a_process(run, source, method)
    if failed:
        say(f"a page about this run will lack its measurements: {failed}")


def _in_a_process(run: Path, source: str, method: str) -> str:
    """Call `measure_here` in a subprocess; return its error, or ''."""
    words = [sys.executable, "-m", __name__, str(run), source, method]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return f"the process that made them ended with signal {-done.returncode}"
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def measure_here(run: Path, source: str, method: str) -> None:
    """Measure a fitted model on its training data, which are read again."""
    from vedute.commands import _data
    from vedute.report.measure import evidence
    from vedute.report.run_folder import keeps

    model, _, entry = _data.open_run(run, source, io.Reading(), method)
    results = evidence(model, entry.views.in_memory()).kept(keeps(run).values)
    with io.atomic_file(run / "report.npz", force=True) as part:
        io.npz.write_npz(part, results.arrays())


def parse(shapes: Iterable[str]) -> Shapes:
    """pix=16x15 -> {"pix": (16, 15)}"""
    parsed: Shapes = {}
    for pair in shapes:
        name, _, size = pair.rpartition("=")
        sides = size.lower().split("x")
        if not name or len(sides) < 2 or not all(s.isdecimal() and int(s) for s in sides):
            raise ValueError(f"--shape takes view=HEIGHTxWIDTH, got {pair!r}")
        parsed[name] = tuple(map(int, sides))
    return parsed


if __name__ == "__main__":
    measure_here(Path(sys.argv[1]), *sys.argv[2:])
