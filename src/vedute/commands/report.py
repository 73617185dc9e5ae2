"""vedute report: a page about a run, or tables and figures of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedute.commands import _options

EXAMPLE = "vedute report run -o page.html"


def run(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A folder that `vedute fit` wrote, or a .jsonl file that `vedute bench` wrote.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT",
            help="The page (.html), or the folder of tables, to write.",
        ),
    ],
    ids: Annotated[
        bool, typer.Option("--ids/--no-ids", help="Name samples and folders on the page.")
    ] = True,
    shapes: Annotated[
        list[str] | None,
        typer.Option("--shape", metavar="VIEW=HxW", help="Show this view as pictures; repeatable."),
    ] = None,
    force: _options.Force = False,
) -> None:
    """Write one self-contained page about RUN: its data, training, map, clusters, inferred views.

    The page needs no network, reads without scripts and prints. --no-ids leaves out the names of
    samples and folders; the values of some samples are still shown. From records of `vedute
    bench`: tables (Markdown, LaTeX, CSV) and figures, means and population standard deviations
    over seeds, the best marked, the paper's beside.
    """
    if source.is_dir():
        from vedute.commands import _pages

        with _pages.new(out, force) as part:
            _pages.write(source, part, ids, shapes or ())
        print(f"wrote {out}")
        return
    if source.suffix != ".jsonl":
        raise ValueError(
            f"{source} is neither a folder that `vedute fit` wrote nor a .jsonl file of `vedute "
            "bench`; name one of these"
        )
    _study(source, out, force)


def _study(source: Path, out: Path, force: bool) -> None:
    from importlib.util import find_spec

    from vedute import curves, io, records, tables
    from vedute.summary import Summary

    summary = Summary.of(records.read(source))
    if not summary.records:
        raise ValueError(f"{source} has no records; run `vedute bench` first")
    writers = {
        "tables.md": tables.markdown,
        "tables.tex": tables.latex,
        "tables.csv": tables.comma_separated,
    }
    with io.atomic_folder(out, force) as folder:
        for name, write in writers.items():
            (folder / name).write_text(write(summary), encoding="utf-8")
        figures = [k for k in ("acc", "error") if summary.rows(k)]
        if find_spec("matplotlib") is None:
            print("no figures: they need matplotlib, pip install 'vedute[plots]'")
            figures = []
        for score in figures:
            curves.rate_curves(summary, score).savefig(folder / f"{score}.png", dpi=150)
    print(f"wrote {', '.join([*writers, *(f'{k}.png' for k in figures)])} to {out}")
