"""vedute bench-tables: tables and figures of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vedute.commands import _options
from vedute.commands._command import Answer, command, say

if TYPE_CHECKING:
    from vedute_bench.runner.records import RunRecord

EXAMPLE = "vedute bench-tables records.jsonl -o tables"


@command
def run(
    source: Annotated[
        Path,
        typer.Argument(metavar="RECORDS", help="A .jsonl or .jsonl.xz file of `vedute bench`."),
    ],
    out: Annotated[Path, "-o --out OUT: The folder of tables to write."],
    force: _options.Force = False,
) -> Answer:
    """Write tables (Markdown, LaTeX, CSV) and figures of the runs in RECORDS.

    Tables show means and population standard deviations over seeds, mark the best method and quote
    the paper's numbers. With enough datasets there are also average ranks, paired tests and a
    critical-difference plot. Generation runs give scores by number of missing views, and images
    of all methods side by side, read from the folder pictures beside RECORDS.
    """
    from importlib.util import find_spec

    from vedute import io
    from vedute_bench.runner import records

    if not source.name.endswith((".jsonl", ".jsonl.xz")):
        raise ValueError(f"{source} is not a .jsonl file of `vedute bench`; name one of these")
    if out.suffix in (".html", ".md", ".csv", ".png"):
        raise ValueError(f"OUT is a folder of several tables, not a file; got {out}")
    runs = records.read(source)
    if not runs:
        raise ValueError(f"{source} has no records; run `vedute bench` first")
    plots = find_spec("matplotlib") is not None
    generation = [r for r in runs if r.get("task") == "generation"]
    clustering = [r for r in runs if r.get("task") != "generation"]
    with io.atomic_folder(out, force) as folder:
        if clustering:
            _clustering(clustering, folder, plots)
        if generation:
            _generation(generation, folder, plots, source.parent / "pictures")
        written = sorted(p.name for p in folder.iterdir())
    if not plots:
        say("no figures: they need matplotlib, pip install 'vedute[plots]'")
    message = f"wrote {', '.join(written)} to {out}"
    return Answer({"wrote": [out / name for name in written]}, lambda: say(message))


def _clustering(runs: list[RunRecord], folder: Path, plots: bool) -> None:
    from vedute_bench.figures import files
    from vedute_bench.metrics import significance
    from vedute_bench.summaries import curves, ranking, tables
    from vedute_bench.summaries.summary import Summary

    summary = Summary.of(runs)
    texts = {
        "tables.md": tables.markdown(summary),
        "tables.tex": tables.latex(summary),
        "tables.csv": tables.comma_separated(summary),
    }
    ranks = significance.compare(summary.comparable("acc"))
    if ranks is not None:
        texts["ranks.md"] = ranking.markdown(ranks)
        texts["tests.csv"] = ranking.comma_separated(ranks)
    _write(folder, texts)
    drawn = plots and summary.by_rate()
    for score in [k for k in ("acc", "error") if drawn and summary.rows(k)]:
        files.save(curves.rate_curves(summary, score), folder / f"{score}.png", 150)
    if plots and ranks is not None:
        files.save(ranking.diagram(ranks), folder / "ranks.png", 150)


def _generation(runs: list[RunRecord], folder: Path, plots: bool, pictures: Path) -> None:
    from vedute import io
    from vedute_bench.figures import files
    from vedute_bench.summaries import generation_tables, method_grid
    from vedute_bench.summaries.summary import Summary

    summary = Summary.of(runs)
    texts = {
        "generation.md": generation_tables.markdown(summary),
        "generation.csv": generation_tables.comma_separated(summary),
    }
    _write(folder, texts)
    summary = Summary.of(_as_planned(runs))
    for dataset, rate in generation_tables.places(summary) if plots else ():
        figure = generation_tables.curves(summary, dataset, rate)
        files.save(figure, io.below(folder, f"{dataset}-{rate:g}", ".png"), 150)
        shown = method_grid.load(summary, dataset, rate, pictures)
        if shown:
            figure = method_grid.draw(shown)
            path = io.below(folder, f"side-by-side-{dataset}-{rate:g}", ".png")
            files.save(figure, path, method_grid.DPI, files.PICTURES)


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _as_planned(runs: list[RunRecord]) -> list[RunRecord]:
    """Leave out runs changed with --set wherever there are unchanged ones."""
    places = {(r["dataset"], r["rate"]) for r in runs if not r["overrides"]}
    return [r for r in runs if not r["overrides"] or (r["dataset"], r["rate"]) not in places]
