"""vedute impute: the views that are missing."""

from __future__ import annotations

from typing import Annotated

import typer

from vedute.commands import _answer, _data, _options
from vedute.commands._answer import Answer

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
    data of RUN were, unless an option says otherwise.
    """
    from vedute import io

    how = reading.checked()
    source = _data.source_of(run, data)
    with _data.guarded_ids(safe_csv), _data.new_views(out, force, source) as part:
        model, given, entry = _data.open_run(run, source, how)
        views, imputed = entry.views, model.impute(entry.views, interval=interval)
        ends = {"mean": imputed} if interval is None else imputed._asdict()
        filled = {k: entry.filled([x.numpy() for x in end.x]) for k, end in ends.items()}
        io.write_views(part, given, filled.pop("mean"), filled)
        if part.suffix.lower() in io.ANNOTATED:
            rows = {"embedding": model.transform(views)}
            rows |= {"labels": model.predict(views)} if "labels_" in vars(model) else {}
            io.annotate(part, part, rows)
    missing = (~views.mask).sum(0).tolist()
    found = {"samples": len(views), "imputed": dict(zip(views.names, missing, strict=True))}
    return Answer(found | {"wrote": [out]})
