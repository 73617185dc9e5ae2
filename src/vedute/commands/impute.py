"""vedute impute: fill in missing views."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vedute.commands import _options
from vedute.commands._command import Answer, command

if TYPE_CHECKING:
    from vedute import io
    from vedute.data.views import Entry, Views
    from vedute.estimators.base import Estimator

EXAMPLE = "vedute impute run data/ -o filled/ --interval 0.9"


@command
def run(
    reading: _options.ReadingOptions,
    run: _options.RunFolder,
    out: _options.OutViews,
    data: _options.OptionalSource = None,
    method: _options.OutsideMethod = None,
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
            ids, columns = _data.computed(_probabilities, model, given, views)
            io.write_rows(table, ids, given.id_name, columns)
        if tables:
            io.parquet.check_writable(out, model.specs)
        if given.whole is None:
            _write(part, given, entry, model, interval, scale)
        else:
            _write_blocks(part, given, model, interval, scale, tables)
    missing = (~views.mask).sum(0).tolist()
    result = {"samples": len(views), "imputed": dict(zip(views.names, missing, strict=True))}
    return Answer(result | {"wrote": [out, *([] if proba is None else [proba])]})


def _probabilities(model: Estimator, views: Views) -> dict[str, Any]:
    """Probabilities of all categories, (n,) by view, column and category."""
    columns = {}
    for view, p in model.impute_proba(views).items():
        pairs = [*p.columns] if p.columns.nlevels > 1 else [(None, label) for label in p.columns]
        for (column, category), chances in zip(pairs, p.to_numpy().T, strict=True):
            name = view if column is None else f"{view}.{column}"
            columns[f"{name}={category}"] = chances
    return columns


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


def _write(
    part: Path, given: io.Data, entry: Entry, model: Estimator, interval: float | None, scale: str
) -> None:
    """Write a file or folder like the data."""
    from vedute import io
    from vedute.estimators import filling

    ends = _ends(model.impute(entry.views, interval, scale))
    anew = {end: filling.written_whole(model.views_, scale, end != "mean") for end in ends}
    filled = {
        name: entry.in_floats(anew[name]).filled([end.filled(v) for v in range(len(end.x))])
        for name, end in ends.items()
    }
    given = given.unknown([entry.views.names[v] for v in anew["mean"]])
    io.write_views(part, given, filled.pop("mean"), filled)
    if part.suffix.lower() in io.ANNOTATED:
        rows = {"embedding": model.transform(entry.views)}
        rows |= {"labels": model.predict(entry.views)} if hasattr(model, "labels_") else {}
        io.annotate(part, part, rows)


def _write_blocks(
    part: Path, given: io.Data, model: Estimator, interval: float | None, scale: str, tables: bool
) -> None:
    """Write the rows of a store in blocks, as a store or as one table per view; lower and upper
    ends into folders inside it. Samples without ids have the row numbers of the original data."""
    import numpy as np

    from vedute.commands import _data
    from vedute.data import store as stored
    from vedute.io import parquet, store

    assert given.whole is not None
    assert given.path is not None
    n, writers = len(given.whole), dict[str, Any]()
    row_ids = np.arange(n) if given.order is None else given.order
    ids = row_ids if given.ids is None else given.ids
    with ExitStack() as files:
        for rows, block in _data.blocks(given.whole, model, "imputing"):
            for end, views in _ends(model.impute(block, interval, scale)).items():
                if end not in writers:
                    folder = part if end == "mean" else part / end
                    folder.mkdir(exist_ok=True)
                    new = (
                        parquet.Writer(folder, given.id_name) if tables else store.Writer(folder, n)
                    )
                    writers[end] = files.enter_context(new)
                writers[end].add(views, ids[rows])
        for writer in () if tables else writers.values():
            writer.finish(given.order, stored.manifest(given.path))


def _ends(imputed: Any) -> dict[str, Views]:
    """The views by name: mean, and with an interval lower and upper."""
    parts = imputed if isinstance(imputed, tuple) else (imputed,)
    return dict(zip(("mean", "lower", "upper"), parts, strict=False))
