"""vedute demo: handwritten digits with half their rows incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedute.commands import _options

EXAMPLE = "vedute demo -o demo-out"


def run(
    out: Annotated[Path, _options.out("Folder to write.", show_default=True)] = Path("vedute-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
    seed: Annotated[int, typer.Option(help="Of the models; the data stay the same.")] = 0,
    force: _options.Force = False,
    images: Annotated[
        bool, typer.Option("--images", help="Objects from five sides, instead of digits.")
    ] = False,
) -> None:
    """Cluster handwritten digits and infer their missing views, against three simple fills.

    2000 digits in six views (bundled); half of them lack about half their views. No labels
    are used but for the scores. Takes two minutes on two cores. With --images: 2000 objects made
    on the spot, each seen from five sides; the missing sides are inferred.
    """
    from time import perf_counter

    start = perf_counter()
    from rich.console import Console
    from rich.table import Table

    from vedute import io
    from vedute.commands import _demo_digits
    from vedute.commands._progress import following

    console = Console(highlight=False)
    if images:
        _images(out, as_json, seed, force)
        return
    with io.atomic_folder(out, force) as folder:
        console.print("Handwritten digits, six views; half of the rows lack some of them.")
        result = _demo_digits.run(folder, seed, following)
        scores = _write_scores(folder, result.scores(), perf_counter() - start)
    table = Table(header_style="bold")
    for head in ("method", "ACC %", "NMI %", "ARI %", "hidden-view error", "seconds"):
        table.add_column(head, justify="left" if head == "method" else "right")
    for row in result.rows:
        percent = [f"{100 * x:.1f}" for x in row.scores.values()]
        table.add_row(row.method, *percent, f"{row.error:.3f}", f"{row.seconds:.1f}")
    console.print(table)
    console.print(
        "Hidden-view error: mean squared error of the views it never saw, in standard deviations; "
        f"1 is the mean. MVP's 90 % intervals cover {result.coverage:.1%} of the hidden values."
    )
    console.print(f"In {out}:")
    for name, what in {**result.files, "scores.json": "these numbers"}.items():
        console.print(f"  {name:22} {what}")
    if as_json:
        print(scores)


def _write_scores(folder: Path, scores: dict[str, float], seconds: float) -> str:
    """Keep scores.json, and return its text."""
    import json

    text = json.dumps(scores | {"seconds": round(seconds, 1)})
    (folder / "scores.json").write_text(f"{text}\n", encoding="utf-8")
    return text


def _images(out: Path, as_json: bool, seed: int, force: bool) -> None:
    from rich.console import Console

    from vedute import io
    from vedute.commands import _demo_images
    from vedute.commands._progress import following

    console = Console(highlight=False)
    with io.atomic_folder(out, force) as folder:
        console.print("Tables, chairs, cars, airplanes and rifles; half of them lack some sides.")
        result = _demo_images.run(folder, seed, following)
        scores = _write_scores(folder, result.scores(), result.seconds)
    for given, ssim in result.ssim.items():
        scored = f"SSIM {ssim:.3f}, a side's mean image {result.mean_ssim[given]:.3f}"
        console.print(f"inferred from {given} of 5 sides: {scored}")
    console.print(
        f"In {out}: inferred.png (each object from its last side alone; below, the truth)"
    )
    if as_json:
        print(scores)
