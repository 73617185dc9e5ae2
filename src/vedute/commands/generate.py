"""vedute generate: new samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedute.commands import _options
from vedute.commands._command import Answer, command, say

EXAMPLE = "vedute generate run -n 100 -o new.npz"


@command
def run(
    run: _options.RunFolder,
    out: Annotated[Path, "-o --out OUT: The .npz file or the folder of .csv files to write."],
    n: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 100,
    seed: Annotated[int | None, "Same seed, same samples.", "that of the fit"] = None,
    method: _options.OwnMethod = None,
    safe_csv: _options.SafeCsv = False,
    force: _options.Force = False,
) -> Answer:
    """Write new samples with all their views, in the units of the training data."""
    from vedute import io
    from vedute.commands import _data

    if out.suffix:
        with _data.new_file(out, force) as part:
            made, mend = _data.load(run, method).generate(n, seed), "let OUT be a folder"
            arrays = {name: io.npz.numbers(name, view, mend) for name, view in made.items()}
            io.npz.write_npz(part, arrays)
        return Answer({"samples": n, "wrote": [out]})
    with _data.guarded_ids(safe_csv), io.atomic_folder(out, force) as folder:
        io.write_new(folder, _data.load(run, method).generate(n, seed))
    return Answer({"samples": n, "wrote": [out]}, lambda: say(f"wrote {out}"))
