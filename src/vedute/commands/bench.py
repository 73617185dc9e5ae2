"""vedute bench: the runs of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedute.commands import _options

EXAMPLE = "vedute bench mvp-clustering --datasets handwritten --rates .5 -o records.jsonl"


def run(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A study by its name, or a .toml file.")
    ],
    out: Annotated[
        Path, _options.out("The .jsonl file to go on with, or to start.", metavar="RECORDS")
    ],
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B|all",
            help="Labels of the study, or methods; all: the study's and every other method.",
            show_default="the study's",
        ),
    ] = None,
    datasets: Annotated[str | None, typer.Option(metavar="A,B", show_default="the study's")] = None,
    rates: Annotated[str | None, typer.Option(metavar=".1,.5", show_default="the study's")] = None,
    seeds: Annotated[str | None, typer.Option(metavar="42,44", show_default="the study's")] = None,
    settings: Annotated[
        list[str] | None, _options.settings("For methods that have it; repeatable.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at once on the CPU.", show_default="half the cores"),
    ] = None,
    gpu_jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at once on a GPU.", show_default="2")
    ] = None,
) -> None:
    """Run a study and add one line per run to RECORDS; finished runs are never repeated.

    Masks are kept in the folder masks beside RECORDS, one per dataset and rate, for all methods
    and seeds. Where the best pair of views is asked for, all pairs run first. Ctrl-C loses the
    runs in flight only: the same command goes on. Exit code 1: some runs failed.
    """
    from vedute.benchmark import plan, records
    from vedute.commands import _bench, _settings

    if out.suffix != ".jsonl":
        raise ValueError(f"RECORDS must end in .jsonl, got {out}")
    wanted = _bench.choose(study, methods, datasets, rates, seeds)
    wanted, overrides = _bench.check(wanted, _settings.parse(settings or []))
    known = records.read(out) if out.exists() else []
    masks = out.parent / "masks"
    runs = plan.plan(wanted, masks, overrides, known)
    todo = plan.unfinished(runs, known)
    print(f"{len(runs)} runs, {len(runs) - len(todo)} of them done before")
    if not todo:
        return
    if out.exists():
        records.mend(out)
    tried, failed = 0, 0
    while todo:
        waiting = plan.lanes(todo, jobs, gpu_jobs)
        failed += _bench.follow(plan.run_all(waiting, masks), waiting, known, out)
        tried += len(todo)
        known = records.read(out) if out.exists() else []
        planned = plan.plan(wanted, masks, overrides, known)
        todo = [run for run in plan.unfinished(planned, known) if run not in runs]
        runs = planned
        if todo:
            print(f"{len(todo)} more runs, on the pairs of views that were the best")
    print(f"{tried - failed} new records in {out}")
    if failed:
        raise typer.Exit(1)
