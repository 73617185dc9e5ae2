"""vedute bench: the runs of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vedute.commands import _engine
from vedute.commands._command import Answer, command, say

if TYPE_CHECKING:
    from vedute_bench.commands._bench import Work

EXAMPLE = "vedute bench mvp-clustering --datasets handwritten --rates .5 -o records.jsonl"


@command
def run(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A study by its name, or a .toml file.")
    ],
    out: Annotated[Path, "-o --out RECORDS: The .jsonl file to go on with, or to start."],
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
    protocols: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Patterns of missing views.", show_default="the study's"),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="42,44", show_default="the study's")] = None,
    settings: Annotated[
        list[str] | None, "--set NAME=VALUE: For methods with this setting; repeatable."
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Parallel runs on the CPU.", show_default="half the cores"),
    ] = None,
    gpu_jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel runs on a GPU.", show_default="2")
    ] = None,
    engine: _engine.Engine = None,
    scheduler: _engine.Scheduler = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat failed runs.")] = False,
) -> Answer:
    """Run a study and add one line per run to RECORDS; finished runs are never repeated.

    Masks are kept in the folder masks beside RECORDS, one per dataset, protocol and rate, for all
    methods and seeds. Where the best pair of views is asked for, all pairs run first. Ctrl-C loses
    the runs in flight only: the same command goes on. Several may share one file, also from several
    machines: each does what no other does, and takes over from those that died. With --engine all
    runs go to its workers, which must see RECORDS at the same path and have the datasets. Exit
    code 1: some runs failed.
    """
    from vedute.commands import _settings
    from vedute_bench.commands import _bench

    if out.suffix != ".jsonl":
        raise ValueError(f"RECORDS must end in .jsonl, got {out}")
    if engine is not None and gpu_jobs is not None:
        raise ValueError("--gpu-jobs is for GPUs of this machine; an engine has workers of its own")
    chosen = _bench.choose(study, methods, datasets, rates, seeds, protocols)
    chosen, overrides = _bench.check(chosen, _settings.parse(settings or []))
    work = _bench.Work(chosen, overrides, out, retry)
    with _engine.running(engine, scheduler, jobs):
        return _all(work, jobs, gpu_jobs)


def _all(work: Work, jobs: int | None, gpu_jobs: int | None) -> Answer:
    from vedute_bench.commands import _bench
    from vedute_bench.runner import plan
    from vedute_bench.runner.run import Run

    out = work.out
    now = work.look()
    earlier = len(now.runs) - len(now.missing)
    say(f"{len(now.runs)} runs, {earlier} of them done before")
    if len(now.missing) > len(now.todo):
        say(f"{len(now.missing) - len(now.todo)} failed before; --retry repeats them")
    new, lost = 0, list[Run]()
    while now.todo:
        lanes = plan.lanes(work.free(now.todo), jobs, gpu_jobs)
        outcomes = plan.run_all(lanes, work.masks, out, work.since)
        tally = _bench.follow(outcomes, lanes, now.known)
        new, lost = new + tally.new, lost + tally.lost
        before, now = now, work.look(lost)
        more = sum(run not in before.runs for run in now.runs)
        if more:
            say(f"{more} more runs, on the pairs of views that were the best")
        if not now.todo:
            say(f"{new} new records in {out}")
    counts = {"runs": len(now.runs), "earlier": earlier, "new": new, "missing": len(now.missing)}
    return Answer(counts | {"wrote": [out]}, code=int(bool(now.missing)))
