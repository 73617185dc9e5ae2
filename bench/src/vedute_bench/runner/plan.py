"""The runs of a study: what is to be done, how many at once, and how long it will take."""

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
    """All runs of a study. Its masks are read from the folder `masks`, or drawn and saved there.

    An override is for the methods that have such a setting. Where a pair of views is to be chosen,
    those on the best one are planned only when the scores of all pairs are `known`.
    """
    for entry in study.entries:  # before any mask is written
        if entry.pair and not methods.find(entry.method).two_views:
            problem = f"{entry.label!r} has a pair, but {entry.method} takes all views at once"
            raise ValueError(problem)
    done = {key(record): record for record in records.finished(known)}
    runs = (_runs_on(dataset, study, masks, overrides, done) for dataset in study.datasets)
    return list(chain.from_iterable(runs))


def applicable(entry: Entry, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides that the method of an entry has a setting for."""
    known = {f.name for f in fields(methods.find(entry.method)) if f.init}
    return {k: v for k, v in overrides.items() if k in known}


def unfinished(runs: Iterable[Run], known: Iterable[RunRecord], since: int = 0) -> list[Run]:
    """Those without a record of the same label, data, mask, pair, seed and settings.

    Failures among the first records, `since` in number, do not count: they are repeated.
    """
    done = {key(r) for i, r in enumerate(known) if i >= since or "failed" not in r}
    return [run for run in runs if key(asdict(run)) not in done]


def lanes(runs: Sequence[Run], jobs: int | None, gpu_jobs: int | None) -> list[Lane[Run]]:
    """Runs that train go to the GPU, if there is one; the others run beside them on the CPU.
    Where a joblib backend is set, its workers do all."""
    if backends.elsewhere():
        return [Lane(runs, backends.size(), 1)]
    on_gpu = [run for run in runs if _wants_gpu(run)]
    on_cpu = [run for run in runs if not _wants_gpu(run)]
    n = workers.cores()
    jobs = jobs or (1 if n <= 2 else min(n // 2, MOST_JOBS))
    gpu_jobs = gpu_jobs or GPU_JOBS
    free = n - jobs if on_cpu else n
    found = [Lane(on_gpu, gpu_jobs, max(1, free // gpu_jobs)), Lane(on_cpu, jobs, 1)]
    return [lane for lane in found if lane.tasks]


def run_all(
    waiting: Sequence[Lane[Run]], masks: Path, out: Path, since: int = 0
) -> Iterator[tuple[Run, RunRecord | BaseException | None]]:
    """Every run with its new record in `out`, as they finish; None if another process does it.

    An exception means that there is no record: a worker was killed, or the disk is full.
    """
    jobs = sum(min(lane.jobs, len(lane.tasks)) for lane in waiting)
    out, masks = out.resolve(), masks.resolve()  # workers may stand in other folders
    work = partial(_once, measured=partial(measure, masks=masks, jobs=jobs), out=out, since=since)
    if backends.elsewhere():
        tasks = [run for lane in waiting for run in lane.tasks]
        return zip(tasks, backends.outcomes(_on_worker, (work, out), tasks), strict=True)
    if jobs == 1:
        return workers.outcomes_here(work, waiting[0].tasks)
    return workers.outcomes(work, waiting)


def unclaimed(runs: Iterable[Run], out: Path) -> list[Run]:
    """Those that no process does."""
    with locked(out):
        return [run for run in runs if claims.is_free(out, key(asdict(run)))]


def time_left(waiting: Iterable[Lane[Run]], known: Sequence[RunRecord]) -> float:
    """Seconds, from what runs of the same method took, on the same dataset if there were any."""
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
    """Do a run and append its record, unless somebody did, or does: then None."""
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
    """The same on a worker, which may be on another machine."""
    work, out = shared
    if not lines.exist(out):
        raise FileNotFoundError(
            f"{out} is not there on {platform.node()}; give RECORDS in a folder that all machines "
            "of the engine share"
        )
    return work(run)


def _is_open(run: Run, out: Path, since: int) -> bool:
    """Whether a run is still unfinished; few records are compared in full."""
    place = (run.label, run.dataset, run.seed)
    known = [
        r
        for i, r in enumerate(records.read_all(out))
        if (r["label"], r["dataset"], r["seed"]) == place and (i >= since or "failed" not in r)
    ]
    return bool(unfinished([run], known))


def _asked(
    entry: Entry, study: Study, dataset: str, truth: Views, overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """What an entry of a study asks for on a dataset, for the seed of its searches."""
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
            f"the study shows view {study.shown_view!r}, which {dataset} has not; its views are "
            f"{', '.join(truth.names)}"
        )
    samples = dataset if split is None else f"{dataset}-{split}"
    for protocol, rate in study.hidden():
        if study.patterns and truth.shape[1] < patterns.FEWEST_VIEWS.get(protocol, 2):
            continue
        file = f"{samples}-{protocol}-{rate:g}-seed{study.mask_seed}.npz"
        here: dict[str, Any] = {
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
            asked = _asked(entry, study, dataset, truth, overrides)
            run = Run(**asked, **here, mask=missing.fingerprint(drawn))
            tried = _tried(run, entry, truth, masks)
            yield from tried
            best = _best(tried, done) if tried else run
            for seed in entry.seeds or study.seeds:
                if best is not None and not (tried and seed == study.pair_seed):
                    yield _with_seed(best, seed)


def _tried(run: Run, entry: Entry, truth: Views, masks: Path) -> list[Run]:
    """A run for each pair of views, where one of them is to be chosen."""
    found = []
    for pair in combinations(truth.names, 2) if entry.pair and len(truth.names) > 2 else ():
        one = replace(run, pair=pair, search=True)
        if entry.pair == studies.REDRAW:
            file = f"{Path(run.mask_file).stem}-{'+'.join(pair)}.npz"
            how = run.protocol, run.rate, run.mask_seed
            seen = missing.fingerprint(_mask(masks / file, pick(truth, pair), *how))
            one = replace(one, redraw=True, mask=seen, mask_file=file)
        found.append(one)
    return found


def _best(tried: Sequence[Run], done: Mapping[str, RunRecord]) -> Run | None:
    """The run on the best pair, once there are records of all."""
    found = [done.get(key(asdict(run))) for run in tried]
    known = [record for record in found if record is not None]
    pair = best_pair(known) if len(known) == len(tried) else None
    return next((replace(run, search=False) for run in tried if run.pair == pair), None)


def _with_seed(run: Run, seed: int) -> Run:
    return replace(run, seed=seed, settings={**run.settings, "random_state": seed})


def _mask(path: Path, truth: Views, protocol: str, rate: float, seed: int) -> missing.Mask:
    if not path.exists():
        seen = missing.drop_views(truth, rate, seed, protocol).mask.numpy()
        with io.atomic_file(path, force=True) as part:  # another process may draw the same
            missing.save_mask(part, seen, truth.ids, protocol, rate, seed)
    return missing.load_mask(path, truth)


def _clusters(entry: Entry, study: Study, truth: Views) -> int | None:
    """As many as classes; none where neither the task nor the method needs clusters."""
    asked = study.task == "clustering" or methods.find(entry.method).soft
    return len(np.unique(truth.y)) if asked and truth.y is not None else None


def _complete(method: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = methods.find(method)(**wanted).get_params(deep=False)
    return settings


def key(record: Mapping[str, Any]) -> str:
    """What identifies a run. Settings at their defaults are left out, so that records stay valid
    when a method gets a new setting whose default changes nothing."""
    parts = ("label", "dataset", "rate", "seed", "mask")
    rest = {"task": "clustering", "pair": None, "drawn": False, "curves": False}
    rest |= {"protocol": BERNOULLI}
    first = [record.get(k, v) for k, v in rest.items()]  # where records do not say
    changed = recipes.changed(record["method"], record["settings"])
    return json.dumps([*first, *(record[k] for k in parts), changed], sort_keys=True)


def _wants_gpu(run: Run) -> bool:
    trained = issubclass(methods.find(run.method), NeuralEstimator)
    return trained and torch.cuda.is_available() and run.settings["device"] != "cpu"
