"""vedute cluster: one label per sample."""

from __future__ import annotations

from vedute.commands import _data, _options

EXAMPLE = "vedute cluster run new/ -o labels.csv"


@_data.reads
def run(
    reading: _data.ReadingOptions,
    run: _options.RunFolder,
    out: _data.OutRows,
    data: _data.OptionalSource = None,
    safe_csv: _options.SafeCsv = False,
    force: _options.Force = False,
) -> None:
    """Write the cluster of each sample, whatever views it has.

    RUN must have been fitted with --clusters. DATA is read as the data of RUN were, unless an
    option says otherwise.
    """
    _data.write_rows(
        run,
        data,
        reading,
        out,
        force,
        safe_csv,
        lambda model, views: {"labels": model.predict(views)},
    )
