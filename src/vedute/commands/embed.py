"""vedute embed: one representation per sample."""

from __future__ import annotations

from vedute.commands import _data, _options

EXAMPLE = "vedute embed run new/ -o embedding.csv"


@_data.reads
def run(
    reading: _data.ReadingOptions,
    run: _options.RunFolder,
    out: _data.OutRows,
    data: _data.OptionalSource = None,
    safe_csv: _options.SafeCsv = False,
    force: _options.Force = False,
) -> None:
    """Write one representation per sample, whatever views it has.

    DATA is read as the data of RUN were, unless an option says otherwise.
    """
    _data.write_rows(
        run,
        data,
        reading,
        out,
        force,
        safe_csv,
        lambda model, views: {"embedding": model.transform(views)},
    )
