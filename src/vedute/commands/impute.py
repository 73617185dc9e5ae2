"""vedute impute: fill in missing views."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from vedute.commands import _options
from vedute.commands._command import Answer, command

EXAMPLE = "vedute impute run data/ -o filled/ --interval 0.9"


@command
def run(
    reading: _options.ReadingOptions,
    run: _options.RunFolder,
    out: _options.OutViews,
    data: _options.OptionalSource = None,
    method: _options.OwnMethod = None,
    interval: Annotated[float | None, "Q: Also write lower and upper ends, e.g. for 0.9."] = None,
    scale: Annotated[
        str, "units|kind: kind: counts, text and positive values on the scale of the model."
    ] = "units",
    proba: Annotated[
        Path | None, "FILE: Also write the probability of each category: .csv, .parquet or .npz."
    ] = None,
    form: Annotated[
        str | None,
        "--format store|parquet: If DATA is a store: parquet writes a folder with one table per "
        "view.",
    ] = None,
    safe_csv: _options.SafeCsv = False,
    force: _options.Force = False,
) -> Answer:
    """Write DATA with missing views and entries filled in, the rest as it was.

    OUT has the names, units and dtypes of DATA, and a row for every sample. Lower and upper ends of
    three or more categories are empty: they have no order. DATA is read as the
    data of RUN were, unless an option says otherwise. A store is read and written piece by piece.
    """
    from vedute import io
    from vedute.commands import _data

    how, formats = reading.checked(), [*io.RESULT_FORMATS]
    source = _data.source_of(run, data)
    tables = _tables(form, scale, proba, out, source)
    with (
        _data.guarded_ids(safe_csv),
        _data.new_views(out, force, source, tables) as part,
        nullcontext() if proba is None else _data.new_file(proba, force, formats) as table,
    ):
        model, given, entry = _data.open_run(run, source, how, method)
        views = entry.views
        if table is not None:
            ids, columns = _data.computed(_data.probabilities, model, given, views)
            io.write_rows(table, ids, given.id_name, columns)
        if tables:
            io.parquet.check_writable(out, model.specs)
        if given.whole is None:
            _data.write_filled(part, given, entry, model, interval, scale)
        else:
            _data.write_filled_blocks(part, given, model, interval, scale, tables)
    missing = (~views.mask).sum(0).tolist()
    result = {"samples": len(views), "imputed": dict(zip(views.names, missing, strict=True))}
    return Answer(result | {"wrote": [out, *([] if proba is None else [proba])]})


def _tables(form: str | None, scale: str, proba: Path | None, out: Path, source: str) -> bool:
    """Check options, and return whether --format asks for tables."""
    from vedute.commands import _data
    from vedute.estimators.base import SCALES
    from vedute.io import store

    if scale not in SCALES:
        raise ValueError(f"--scale takes {' or '.join(SCALES)}, got {scale!r}")
    if proba is not None:
        if out.resolve() in (proba.resolve(), *proba.resolve().parents):
            raise ValueError(f"--proba {proba} is OUT, or inside it; write it outside {out}")
        _data.check_place(proba, source)
    if form not in (None, "store", "parquet"):
        raise ValueError(f"--format takes store or parquet, got {form!r}")
    if form is not None and not store.is_store(source):
        raise ValueError(f"--format is for a store, {source} is written as it is; leave it out")
    return form == "parquet"
