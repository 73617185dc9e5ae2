"""vedute convert: write data as a store, from which rows are read when needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from vedute.commands import _options
from vedute.commands._command import Answer, command, say

EXAMPLE = "vedute convert data/ -o store/"


@command
def run(
    reading: _options.ReadingOptions,
    data: _options.Source,
    out: Annotated[Path, "-o --out STORE: The store to write, a folder."],
    seed: Annotated[int, "Seed of the order of rows."] = 0,
    keep_order: Annotated[bool, "Do not shuffle the rows."] = False,
    force: _options.Force = False,
) -> Answer:
    """Write DATA as a store: one array per view, which is read piece by piece.

    fit, embed, cluster, impute and Views.open take STORE as DATA. A large folder of arrays or
    tables of numbers, or one such table, is read piece by piece. Numbers are kept in single
    precision, in double where that would lose what tells samples apart. Rows are shuffled once;
    what is written about a STORE later has the order of DATA again.
    """
    from vedute.commands import _data
    from vedute.estimators import progress
    from vedute.io import store

    how = reading.checked()
    _data.check_place(out, data)
    with store.new_store(out, force) as part:
        views, id_name = _data.streamed(data, how)
        with progress.shown(), progress.task("writing", len(views), "row"):
            counted = partial(progress.advance, unit="row")
            store.write(part, views, None if keep_order else seed, id_name, counted)
    shapes = dict(zip(views.names, views.shapes, strict=True))

    def show() -> None:
        say(f"{views!r}")
        say(f"wrote {out}")

    return Answer({"samples": len(views), "views": shapes, "wrote": [out]}, show)
