"""vedute impute: fill in missing views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vedute.commands import _answer, _data, _options
from vedute.commands._answer import Answer

if TYPE_CHECKING:
    from vedute import io
    from vedute.data.views import Entry, Views
    from vedute.estimators.base import Estimator

EXAMPLE = "vedute impute run data/ -o filled/ --interval 0.9"


@_answer.offers_json
@_data.reads
def run(
    reading: _data.ReadingOptions,
    run: _options.RunFolder,
    out: _data.OutViews,
    data: _data.OptionalSource = None,
    method: _options.OutsideMethod = None,
    interval: Annotated[
        float | None,
        typer.Option(metavar="Q", help="Also write lower and upper ends, e.g. for 0.9."),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="units|kind",
            help="kind: counts, text and positive values on the scale of the model.",
        ),
    ] = "units",
    proba: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the probability of each category: .csv, .parquet or .npz.",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="store|parquet",
            help="If DATA is a store: parquet writes a folder with one table per view.",
        ),
    ] = None,
    safe_csv: _options.SafeCsv = False,
    force: _options.Force = False,
) -> Answer:
    """Write DATA with missing views and entries filled in, the rest as it was.

    OUT has the names, units and dtypes of DATA, and a row for every sample. Lower and upper ends of
    three or more categories are empty: they have no order. DATA is read as the
    data of RUN were, unless an option says otherwise. A store is read and written piece by piece.
    """
    how = reading.checked()
    source = _data.source_of(run, data)
    _check_scale(scale)
    _check_apart(proba, out)
    tables = _as_tables(form, source)
    with (
        _data.guarded_ids(safe_csv),
        _data.new_views(out, force, source, tables) as part,
        nullcontext() if proba is None else _data.new_table(proba, force, source) as table,
    ):
        model, given, entry = _data.open_run(run, source, how, method)
        views = entry.views
        if proba is not None and table is not None:
            _data.write_table(table, _probabilities, model, given, views)
        if given.whole is None:
            _write(part, given, entry, model, interval, scale)
        elif tables:
            _write_tables(part, out, given, model, interval, scale)
        else:
            _write_store(part, given, model, interval, scale)
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


def _check_apart(proba: Path | None, out: Path) -> None:
    if proba is not None and out.resolve() in (proba.resolve(), *proba.resolve().parents):
        raise ValueError(f"--proba {proba} is OUT, or inside it; write it outside {out}")


def _check_scale(scale: str) -> None:
    from vedute.estimators.base import SCALES

    if scale not in SCALES:
        raise ValueError(f"--scale takes {' or '.join(SCALES)}, got {scale!r}")


def _as_tables(form: str | None, source: str) -> bool:
    """Whether --format asks for tables."""
    from vedute.io import store

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


def _write_store(
    part: Path, given: io.Data, model: Estimator, interval: float | None, scale: str
) -> None:
    """Write a store like that of the data in blocks; lower and upper ends are stores inside it."""
    from contextlib import ExitStack

    from vedute.data import store as stored
    from vedute.io import store

    assert given.whole is not None
    assert given.path is not None
    n, writers, specs = len(given.whole), dict[str, store.Writer](), dict[str, Any]()
    with ExitStack() as whole:
        for _, block in _blocks(given.whole, model, interval, scale):
            for end, views in block.items():
                if end not in writers:
                    writers[end] = whole.enter_context(store.Writer(_folder(part, end), n))
                writers[end].add(store.arrays(views))
                specs[end] = views.specs or ()
        for end, writer in writers.items():
            writer.finish(specs[end], given.order, stored.manifest(given.path))


def _write_tables(
    part: Path, out: Path, given: io.Data, model: Estimator, interval: float | None, scale: str
) -> None:
    """Write one table per view in blocks, lower and upper ends into separate folders. Samples
    without ids have the row numbers of the original data."""
    from contextlib import ExitStack

    import numpy as np

    from vedute.io import parquet

    assert given.whole is not None
    parquet.check_writable(out, model.specs)
    rows = np.arange(len(given.whole)) if given.order is None else given.order
    ids, writers = rows if given.ids is None else given.ids, dict[str, parquet.Writer]()
    with ExitStack() as whole:
        for at, block in _blocks(given.whole, model, interval, scale):
            for end, views in block.items():
                if end not in writers:
                    writer = parquet.Writer(_folder(part, end), given.id_name)
                    writers[end] = whole.enter_context(writer)
                writers[end].add(views, ids[at])


def _blocks(
    whole: Views, model: Estimator, interval: float | None, scale: str
) -> Iterator[tuple[slice, dict[str, Views]]]:
    """Consecutive blocks of rows of a store, each with its imputed views."""
    from vedute.estimators import progress
    from vedute.io import store

    start = 0
    with progress.shown(), progress.task("imputing", len(whole), "row"):
        for block in store.blocks(whole, model.specs):
            imputed = _ends(model.impute(block, interval, scale))
            yield slice(start, start + len(block)), imputed
            start += len(block)
            progress.advance(len(block), "row")


def _folder(part: Path, end: str) -> Path:
    folder = part if end == "mean" else part / end
    folder.mkdir(exist_ok=True)
    return folder


def _ends(imputed: Any) -> dict[str, Views]:
    """The views by name: mean, and with an interval lower and upper."""
    parts = imputed if isinstance(imputed, tuple) else (imputed,)
    return dict(zip(("mean", "lower", "upper"), parts, strict=False))
