"""vedute report: a page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vedute.commands import _options
from vedute.commands._command import Answer, command, say

EXAMPLE = "vedute report run -o page.html"


@command
def run(
    run: _options.RunFolder,
    out: Annotated[Path, "-o --out OUT: The page to write, .html."],
    ids: _options.Ids = True,
    values: _options.Values = True,
    shapes: Annotated[
        list[str] | None, "--shape VIEW=HxW: Show this view as pictures; repeatable."
    ] = None,
    title: _options.Title = "",
    split: Annotated[
        str | None, "COLUMN: Show errors and coverage by the values of this column, too."
    ] = None,
    force: _options.Force = False,
) -> Answer:
    """Write one self-contained page about RUN: its data, training, map, clusters, inferred views.

    The page needs no network, reads without scripts and prints. --no-ids leaves out the names
    of samples, files and folders, --no-values the values and labels of single samples.
    """
    if not run.is_dir():
        raise ValueError(f"{run} is not a folder that `vedute fit` wrote; name one of these")
    from vedute import io
    from vedute.commands import _data, _pages
    from vedute.report import run_folder
    from vedute.report.columns import column_values
    from vedute.report.page import write_page

    with _pages.new(out, force) as part:
        groups = None
        if split is not None:
            run_folder.FittedRun.of(run)  # a folder that is none is refused as such
            entry = _data.open_run(run, run_folder.source_of(run), io.Reading(), None)[2]
            groups = split, column_values(entry.views, split)
        write_page(run, part, ids, _pages.parse(shapes or ()), values, title, groups)
    return Answer({"wrote": [out]}, lambda: say(f"wrote {out}"))
