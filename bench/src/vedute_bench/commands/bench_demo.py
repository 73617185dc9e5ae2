"""vedute bench-demo: objects from five sides, half of them incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedute.commands import _options
from vedute.commands._command import Answer, command

EXAMPLE = "vedute bench-demo -o demo-out"


@command
def run(
    out: Annotated[Path, "-o --out OUT: Folder to write."] = Path("vedute-demo"),
    seed: Annotated[int, typer.Option(help="Random state of the model, not of the data.")] = 0,
    force: _options.Force = False,
) -> Answer:
    """Infer the missing sides of 2000 rendered objects.

    The objects are generated, each seen from five sides; half of them lack some. MVP infers
    the missing sides from the observed ones. Takes a few minutes without a GPU.
    """
    import json

    from rich.console import Console

    from vedute import io
    from vedute_bench.commands import _demo_images

    console = Console(highlight=False)
    with io.atomic_folder(out, force) as folder:
        console.print(_demo_images.TITLE)
        result = _demo_images.run(folder, seed)
        scores = result.scores() | {"seconds": round(result.seconds, 1)}
        (folder / "scores.json").write_text(f"{json.dumps(scores)}\n", encoding="utf-8")
    return Answer(scores, lambda: result.show(console, out))
