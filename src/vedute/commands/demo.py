"""vedute demo: handwritten digits with half their rows incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedute.commands import _options
from vedute.commands._command import Answer, command

EXAMPLE = "vedute demo -o demo-out"


@command
def run(
    out: Annotated[Path, _options.out("Folder to write.", show_default=True)] = Path("vedute-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the models; the data stay the same.")] = 0,
    force: _options.Force = False,
) -> Answer:
    """Cluster handwritten digits and infer their missing views, against three simple fills.

    2000 digits in six views (bundled); half of them lack about half their views. No labels
    are used but for the scores. Takes two minutes on two cores.
    """
    from time import perf_counter

    start = perf_counter()
    import json

    from rich.console import Console

    from vedute import io
    from vedute.commands import _demo_digits

    console = Console(highlight=False)
    with io.atomic_folder(out, force) as folder:
        console.print(_demo_digits.TITLE)
        result = _demo_digits.run(folder, seed)
        scores = result.scores() | {"seconds": round(perf_counter() - start, 1)}
        (folder / "scores.json").write_text(f"{json.dumps(scores)}\n", encoding="utf-8")
    return Answer(scores, lambda: result.show(console, out))
