"""vedute convert: write data as a store, from which rows are read when needed."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vedute.commands import _options
from vedute.commands._command import Answer, command, say

if TYPE_CHECKING:
    from vedute import io
    from vedute.data.views import Views

EXAMPLE = "vedute convert data/ -o store/"


@command
def run(
    reading: _options.ReadingOptions,
    data: _options.Source,
    out: Annotated[Path, _options.out("The store to write, a folder.", "STORE")],
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
        views, id_name = _opened(data, how)
        with progress.shown(), progress.task("writing", len(views), "row"):
            counted = partial(progress.advance, unit="row")
            store.write(part, views, None if keep_order else seed, id_name, counted)
    shapes = dict(zip(views.names, views.shapes, strict=True))

    def show() -> None:
        say(f"{views!r}")
        say(f"wrote {out}")

    return Answer({"samples": len(views), "views": shapes, "wrote": [out]}, show)


def _opened(source: str, how: io.Reading) -> tuple[Views, str | None]:
    """The views of DATA, streamed if they are large, and the name of their ids."""
    from vedute import datasets, io
    from vedute.commands import _data
    from vedute.io import streaming

    whole = ""
    if io.mudata.is_zarr(Path(source)):
        io.check_options(how, io.mudata.OPTIONS, source)
        kept = io.mudata.read(Path(source), how)
        return io.enter(kept, dtype=None).views, kept.id_name
    if Path(source).exists() and not datasets.has(source) and not io.store.is_store(source):
        try:
            streamed = streaming.opened(Path(source), how)
            if streamed is not None:
                return streamed
        except streaming.NotPlainError as e:
            whole = f"vedute: {source} was read into memory as a whole: {e}"
    given = _data.open_data(source, how)
    if given.whole is not None:
        raise ValueError(f"{source} is a store already; copy the folder")
    views = io.enter(given, dtype=None).views
    if whole:
        say(whole, file=sys.stderr)
    return views, given.id_name
