"""Runs of a study: which are to be done, how many in parallel, and the remaining time."""

from __future__ import annotations

import json
import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from vedute import io, methods
from vedute.data import missing, patterns
from vedute.data.views import Views
from vedute.estimators.neural import NeuralEstimator
from vedute.methods import presets
from vedute.scale import backends
from vedute_bench import studies
from vedute_bench.runner import claims, lines, recipes, records, workers
from vedute_bench.runner.lock import locked
from vedute_bench.runner.records import BERNOULLI, RunRecord, best_pair
from vedute_bench.runner.run import SPLIT, Run, failure, load, measure, pick
from vedute_bench.runner.workers import Lane
from vedute_bench.studies import Entry, Study

MOST_JOBS, GPU_JOBS = 8, 2
MOST_DEATHS = 3  # then a run is recorded as failed; Dask itself gives up after the fourth


def plan(
    study: Study, masks: Path, overrides: Mapping[str, Any], known: Iterable[RunRecord] = ()
) -> list[Run]:
    """Plan all runs of a study; its masks are read from the folder `masks`, or drawn and saved.

    An override applies to methods with that setting. If a pair of views is to be chosen, runs on
    the best pair are planned only once the scores of all pairs are `known`.
    """
    for entry in study.entries:  # before any mask is written
        if entry.pair and not methods.find(entry.method).two_views:
            problem = f"{entry.label!r} has a pair, but {entry.method} takes all views at once"
            raise ValueError(problem)
    done = {key(record): record for record in records.finished(known)}
    runs = (_runs_on(dataset, study, masks, overrides, done) for dataset in study.datasets)
    return list(chain.from_iterable(runs))


def applicable(entry: Entry, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides of settings that the method of an entry has."""
    known = {f.name for f in fields(methods.find(entry.method)) if f.init}
    return {k: v for k, v in overrides.items() if k in known}


def unfinished(runs: Iterable[Run], known: Iterable[RunRecord], since: int = 0) -> list[Run]:
    """Runs without a record of the same label, data, mask, pair, seed and settings.

    Failures among the first `since` records are repeated.
    """
    done = {key(r) for i, r in enumerate(known) if i >= since or "failed" not in r}
    return [run for run in runs if key(asdict(run)) not in done]


def lanes(runs: Sequence[Run], jobs: int | None, gpu_jobs: int | None) -> list[Lane[Run]]:
    """Assign runs with training to a GPU, if there is one, and the others to the CPU in parallel.

    If a joblib backend is set, its workers do all runs.
    """
    if backends.elsewhere():
        return [Lane(runs, backends.size(), 1)]
    on_gpu = [run for run in runs if _wants_gpu(run)]
    on_cpu = [run for run in runs if not _wants_gpu(run)]
    n = workers.cores()
    jobs = jobs or (1 if n <= 2 else min(n // 2, MOST_JOBS))
    gpu_jobs = gpu_jobs or GPU_JOBS
    free = n - jobs if on_cpu else n
    both = [Lane(on_gpu, gpu_jobs, max(1, free // gpu_jobs)), Lane(on_cpu, jobs, 1)]
    return [lane for lane in both if lane.tasks]


def run_all(
    waiting: Sequence[Lane[Run]], masks: Path, out: Path, since: int = 0
) -> Iterator[tuple[Run, RunRecord | BaseException | None]]:
    """Yield every finished run with its new record in `out`, None if another process does it.

    An exception means that there is no record: a worker was killed, or the disk is full.
    """
    jobs = sum(min(lane.jobs, len(lane.tasks)) for lane in waiting)
    out, masks = out.resolve(), masks.resolve()  # workers may have other working directories
    work = partial(_once, measured=partial(measure, masks=masks, jobs=jobs), out=out, since=since)
    if backends.elsewhere():
        tasks = [run for lane in waiting for run in lane.tasks]
        return zip(tasks, backends.outcomes(_on_worker, (work, out), tasks), strict=True)
    if jobs == 1:
        return workers.outcomes_here(work, waiting[0].tasks)
    return workers.outcomes(work, waiting)


def unclaimed(runs: Iterable[Run], out: Path) -> list[Run]:
    """Runs that no process has claimed."""
    with locked(out):
        return [run for run in runs if claims.is_free(out, key(asdict(run)))]


def time_left(waiting: Iterable[Lane[Run]], known: Sequence[RunRecord]) -> float:
    """Estimate the remaining seconds from runs of the same method, if possible on the same data."""
    took: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for r in known:
        for kind in ((r["label"], r["dataset"]), (r["method"],), ()):
            took[kind].append(r["wall"])
    mean = {kind: fmean(seconds) for kind, seconds in took.items()} | {None: 0.0}
    left = [0.0]
    for lane in waiting:
        kinds = [((run.label, run.dataset), (run.method,), ()) for run in lane.tasks]
        total = sum(mean[next((k for k in kind if k in mean), None)] for kind in kinds)
        left.append(total / max(1, min(lane.jobs, len(lane.tasks))))
    return max(left)


def _once(
    run: Run, measured: Callable[[Run], RunRecord], out: Path, since: int
) -> RunRecord | None:
    """Do a run and append its record; None if another process did it or is doing it."""
    name = key(asdict(run))
    with locked(out):
        if not _is_open(run, out, since) or not claims.is_free(out, name):
            return None
        deaths = claims.deaths(out, name)
        mine = claims.take(out, name)
    with claims.held(out, name, mine):
        try:
            if deaths >= MOST_DEATHS:
                raise RuntimeError(f"killed {deaths} times while it ran; out of memory, perhaps")
            record = records.without_nan(measured(run))
        except Exception as error:
            record = failure(run, error)
        with locked(out):
            if not claims.is_mine(out, name, mine) or not _is_open(run, out, since):
                return None
            records.append(out, record)
    return record


def _on_worker(
    shared: tuple[Callable[[Run], RunRecord | None], Path], run: Run
) -> RunRecord | None:
    """Do a run on a worker, which may be on another machine."""
    work, out = shared
    if not lines.exist(out):
        raise FileNotFoundError(
            f"{out} does not exist on {platform.node()}; put RECORDS in a folder that all machines "
            "of the engine share"
        )
    return work(run)


def _is_open(run: Run, out: Path, since: int) -> bool:
    """Whether a run is still unfinished; only records of the same place are compared in full."""
    place = (run.label, run.dataset, run.seed)
    known = [
        r
        for i, r in enumerate(records.read_all(out))
        if (r["label"], r["dataset"], r["seed"]) == place and (i >= since or "failed" not in r)
    ]
    return bool(unfinished([run], known))


def _specification(
    entry: Entry, study: Study, dataset: str, truth: Views, overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Fields of the run of an entry on a dataset, with the seed for the search of pairs."""
    mine = applicable(entry, overrides)
    preset = entry.table if entry.preset is None else dataset
    published = "mvp" if entry.method == "paper_mvp" else entry.method
    wanted = {} if preset is None else presets.find(published, preset)
    wanted |= {"n_clusters": _clusters(entry, study, truth), **entry.settings, **mine}
    return dict(
        study=study.name,
        label=entry.label,
        method=entry.method,
        preset=preset,
        overrides=mine,
        seed=study.pair_seed,
        mask_seed=study.mask_seed,
        settings=_complete(entry.method, wanted | {"random_state": study.pair_seed}),
        task=study.task,
        judges=tuple(study.judges),
        shown_view=study.shown_view,
        drawn=study.drawn,
        curves=study.curves,
    )


def _runs_on(
    dataset: str,
    study: Study,
    masks: Path,
    overrides: Mapping[str, Any],
    done: Mapping[str, RunRecord],
) -> Iterator[Run]:
    split = SPLIT.get(study.task)
    truth = load(dataset, split, study.files.get(dataset, ""))
    if study.shown_view and study.shown_view not in truth.names:
        raise ValueError(
            f"the study shows view {study.shown_view!r}, which {dataset} does not have; its views "
            f"are {', '.join(truth.names)}"
        )
    samples = dataset if split is None else f"{dataset}-{split}"
    for protocol, rate in study.hidden():
        if study.patterns and truth.shape[1] < patterns.FEWEST_VIEWS.get(protocol, 2):
            continue
        file = f"{samples}-{protocol}-{rate:g}-seed{study.mask_seed}.npz"
        place: dict[str, Any] = {
            "dataset": dataset,
            "protocol": protocol,
            "rate": rate,
            "mask_file": file,
            "file": study.files.get(dataset, ""),
        }
        drawn = _mask(masks / file, truth, protocol, rate, study.mask_seed)
        for entry in study.entries:
            if entry.datasets and dataset not in entry.datasets:
                continue
            specification = _specification(entry, study, dataset, truth, overrides)
            run = Run(**specification, **place, mask=missing.fingerprint(drawn))
            tried = _tried(run, entry, truth, masks)
            yield from tried
            best = _best(tried, done) if tried else run
            for seed in entry.seeds or study.seeds:
                if best is not None and not (tried and seed == study.pair_seed):
                    yield _with_seed(best, seed)


def _tried(run: Run, entry: Entry, truth: Views, masks: Path) -> list[Run]:
    """Plan a run per pair of views, if one of the pairs is to be chosen."""
    runs = []
    for pair in combinations(truth.names, 2) if entry.pair and len(truth.names) > 2 else ():
        one = replace(run, pair=pair, search=True)
        if entry.pair == studies.REDRAW:
            file = f"{Path(run.mask_file).stem}-{'+'.join(pair)}.npz"
            how = run.protocol, run.rate, run.mask_seed
            seen = missing.fingerprint(_mask(masks / file, pick(truth, pair), *how))
            one = replace(one, redraw=True, mask=seen, mask_file=file)
        runs.append(one)
    return runs


def _best(tried: Sequence[Run], done: Mapping[str, RunRecord]) -> Run | None:
    """Run on the best pair, once there are records of all pairs."""
    known = [done[k] for k in (key(asdict(run)) for run in tried) if k in done]
    pair = best_pair(known) if len(known) == len(tried) else None
    return next((replace(run, search=False) for run in tried if run.pair == pair), None)


def _with_seed(run: Run, seed: int) -> Run:
    return replace(run, seed=seed, settings={**run.settings, "random_state": seed})


def _mask(path: Path, truth: Views, protocol: str, rate: float, seed: int) -> missing.Mask:
    if not path.exists():
        seen = missing.drop_views(truth, rate, seed, protocol).mask.numpy()
        with io.atomic_file(path, force=True) as part:  # another process may draw the same mask
            missing.save_mask(part, seen, truth.ids, protocol, rate, seed)
    return missing.load_mask(path, truth)


def _clusters(entry: Entry, study: Study, truth: Views) -> int | None:
    """Number of classes; None if neither the task nor the method needs clusters."""
    needed = study.task == "clustering" or methods.find(entry.method).soft
    return len(np.unique(truth.y)) if needed and truth.y is not None else None


def _complete(method: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = methods.find(method)(**wanted).get_params(deep=False)
    return settings


def key(record: Mapping[str, Any]) -> str:
    """Identifier of a run.

    Settings at their defaults are left out, so that records stay valid when a method gets a new
    setting whose default changes nothing.
    """
    parts = ("label", "dataset", "rate", "seed", "mask")
    optional = {"task": "clustering", "pair": None, "drawn": False, "curves": False}
    optional |= {"protocol": BERNOULLI}  # old records lack some of these
    first = [record.get(k, v) for k, v in optional.items()]
    changed = recipes.changed(record["method"], record["settings"])
    return json.dumps([*first, *(record[k] for k in parts), changed], sort_keys=True)


def _wants_gpu(run: Run) -> bool:
    trained = issubclass(methods.find(run.method), NeuralEstimator)
    return trained and torch.cuda.is_available() and run.settings["device"] != "cpu"
