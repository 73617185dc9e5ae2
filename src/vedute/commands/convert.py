"""vedute convert: data as a store, from which rows are read when they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedute.commands import _answer, _data, _options
from vedute.commands._answer import Answer

EXAMPLE = "vedute convert data/ -o store/"


@_answer.offers_json
@_data.reads
def run(
    reading: _data.ReadingOptions,
    data: _data.Source,
    out: Annotated[Path, _options.out("The store to write, a folder.", "STORE")],
    seed: Annotated[int, typer.Option(help="Of the order of rows.")] = 0,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Do not shuffle the rows.")
    ] = False,
    force: _options.Force = False,
) -> Answer:
    """Write DATA as a store: one array per view, which is read piece by piece.

    fit, embed, cluster, impute and Views.open take STORE as DATA. Numbers are kept in single
    precision, in double where that would lose what tells samples apart. Rows are shuffled once;
    what is written about a STORE later has the order of DATA again.
    """
    from vedute import io
    from vedute.io import store

    how = reading.checked()
    _data.check_place(out, data)
    with store.new_store(out, force) as part:
        given = _data.open_data(data, how)
        if given.whole is not None:
            raise ValueError(f"{data} is a store already; copy the folder")
        views = io.enter(given, dtype=None).views
        store.write(part, views, None if keep_order else seed, given.id_name)
    shapes = dict(zip(views.names, views.shapes, strict=True))

    def show() -> None:
        print(f"{views!r}")
        print(f"wrote {out}")

    return Answer({"samples": len(views), "views": shapes, "wrote": [out]}, show)
