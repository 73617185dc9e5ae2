"""Commands that write one row per sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vedute.commands import _options
from vedute.commands._command import Answer, command

if TYPE_CHECKING:
    from vedute.commands._data import Columns

Out = Annotated[
    Path, "-o --out OUT: The .csv, .parquet or .npz file to write (.h5mu, .h5ad if DATA is one)."
]


def writes_rows(columns: Columns, doc: str) -> Callable[..., None]:
    """A command that writes computed columns as a table, or into a copy of annotated data."""

    def run(
        reading: _options.ReadingOptions,
        run: _options.RunFolder,
        out: Out,
        data: _options.OptionalSource = None,
        method: _options.OwnMethod = None,
        safe_csv: _options.SafeCsv = False,
        force: _options.Force = False,
    ) -> Answer:
        from vedute import io
        from vedute.commands import _data

        how, source, ending = reading.checked(), _data.source_of(run, data), out.suffix.lower()
        _data.check_place(out, source)
        annotated = ending in io.ANNOTATED
        if annotated and ending != Path(source).suffix.lower():
            raise ValueError(f"OUT may end in {out.suffix} only if DATA does, got {source}")
        endings = [ending] if annotated else [*io.RESULT_FORMATS]
        with _data.guarded_ids(safe_csv), _data.new_file(out, force, endings) as part:
            model, given, entry = _data.open_run(run, source, how, method)
            ids, table = _data.computed(columns, model, given, entry.views)
            if annotated:
                io.mudata.annotate(part, Path(source), table)
            else:
                io.write_rows(part, ids, given.id_name, table)
        shapes = {name: column.shape for name, column in table.items()}
        return Answer({"samples": len(entry.views), "columns": shapes, "wrote": [out]})

    run.__doc__ = doc
    return command(run)
