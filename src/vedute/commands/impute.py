"""vedute impute: the views that are missing."""

from __future__ import annotations

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
    interval: Annotated[
        float | None,
        typer.Option(metavar="Q", help="Also write lower and upper ends, e.g. for 0.9."),
    ] = None,
    safe_csv: _options.SafeCsv = False,
    force: _options.Force = False,
) -> Answer:
    """Write DATA with missing views and entries filled in, the rest as it was.

    OUT has the names, units and dtypes of DATA, and a row for every sample. DATA is read as the
    data of RUN were, unless an option says otherwise. A store is read and written piece by piece.
    """
    how = reading.checked()
    source = _data.source_of(run, data)
    with _data.guarded_ids(safe_csv), _data.new_views(out, force, source) as part:
        model, given, entry = _data.open_run(run, source, how)
        views = entry.views
        if given.whole is None:
            _write(part, given, entry, model, interval)
        else:
            _write_store(part, given, model, interval)
    missing = (~views.mask).sum(0).tolist()
    found = {"samples": len(views), "imputed": dict(zip(views.names, missing, strict=True))}
    return Answer(found | {"wrote": [out]})


def _write(
    part: Path, given: io.Data, entry: Entry, model: Estimator, interval: float | None
) -> None:
    """A file or folder like the data."""
    from vedute import io

    ends = _ends(model.impute(entry.views, interval=interval))
    filled = {k: entry.filled([x.numpy() for x in end.x]) for k, end in ends.items()}
    io.write_views(part, given, filled.pop("mean"), filled)
    if part.suffix.lower() in io.ANNOTATED:
        rows = {"embedding": model.transform(entry.views)}
        rows |= {"labels": model.predict(entry.views)} if "labels_" in vars(model) else {}
        io.annotate(part, part, rows)


def _write_store(part: Path, given: io.Data, model: Estimator, interval: float | None) -> None:
    """A store like that of the data, block by block; lower and upper ends are stores inside it."""
    from contextlib import ExitStack

    from vedute.data import store as stored
    from vedute.estimators import progress
    from vedute.io import store

    assert given.whole is not None
    assert given.path is not None
    n, writers = len(given.whole), dict[str, store.Writer]()
    with ExitStack() as whole, progress.shown(), progress.task("imputing", n, "row"):
        for block in store.blocks(given.whole, model.specs):
            for end, views in _ends(model.impute(block, interval=interval)).items():
                if end not in writers:
                    folder = part if end == "mean" else part / end
                    folder.mkdir(exist_ok=True)
                    writers[end] = whole.enter_context(store.Writer(folder, n))
                writers[end].add(store.arrays(views))
            specs = views.specs or ()
            progress.advance(len(block), "row")
        for writer in writers.values():
            writer.finish(specs, given.order, stored.manifest(given.path))


def _ends(imputed: Any) -> dict[str, Views]:
    """mean, lower and upper, where an interval was asked for; else mean only."""
    each = imputed if isinstance(imputed, tuple) else (imputed,)
    return dict(zip(("mean", "lower", "upper"), each, strict=False))
