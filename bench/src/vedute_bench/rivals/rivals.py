"""Comparison of all our methods with other imputers on every real set in VEDUTE_DATA.

    python -m vedute_bench.rivals.rivals [--jobs 14] [--gpu-jobs 8] [--minutes 9] [--limit 900]
                                [--only methods=mvp,mofa,sets=cub,seeds=0,rates=.5]

    python -m vedute_bench.rivals.rivals --merge FILE     add the records of another machine

    python -m vedute_bench.rivals.rivals --table          write the tables of docs/rivals.md

All methods run at rate .5, and MVP, Blend and the fills also at .1, .3 and .7. Seeds 0 to 2 are the
methods' random_state; all share the same mask. Each run has a process with one thread, which is
killed at the time limit: the record then has `timed_out`, and other seeds are skipped. A record is
current if it has the same data, settings and code (`source_digest`; ignored with --any-code); runs
without a current record are made. When the total time is up, runs in progress are `stopped`, to be
made another time. Networks share the GPU if there is one (bench/mps.sh), the rest runs on the CPU.

Scores are the error of hidden views as in `vedute bench`, the coverage of 90 % and 50 % intervals,
and ACC, NMI and ARI of clusters in percent. `by_view` has them by view, with the number of hidden
instances. The clusters of an imputer are those of k-means on its completed, z-scored table.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from itertools import pairwise
from multiprocessing import connection, get_context
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.cluster import KMeans

from vedute import methods
from vedute.data import missing
from vedute.data.views import Views
from vedute.methods import best_pair
from vedute.metrics import scores
from vedute_bench.places import DOCS, RESULTS
from vedute_bench.rivals import real_sets, rival_imputers, rivals_page
from vedute_bench.runner import lines, records, run, source_digest, workers
from vedute_bench.runner.lock import locked
from vedute_bench.runner.records import RunRecord

OUT = RESULTS / "rivals" / "records.jsonl"
PAGE = DOCS / "rivals.md"
RATES, SEEDS, MASK_SEED, PROTOCOL = (0.5, 0.1, 0.3, 0.7), (0, 1, 2), 42, "bernoulli"
LEVELS = {"coverage": 0.9, "coverage_50": 0.5}  # of intervals
FIRST = ("blend", "mvp")  # run before others, and at every rate
LOOSE = ("n_clusters", "random_state", "verbose", "callbacks")  # settings not compared
PRELOAD = ["vedute_bench.runner.run", "sklearn.ensemble", "sklearn.impute", "sklearn.linear_model"]
WORTH_A_RECORD = 30  # seconds after which a stopped run is recorded


class Run(NamedTuple):
    """One fit on one set; fields have the names of a record."""

    method: str
    dataset: str
    rate: float
    seed: int

    def __str__(self) -> str:
        return f"{self.method} on {self.dataset} at {self.rate:g}, seed {self.seed}"


# Planning.


def planned(only: Mapping[str, Sequence[str]]) -> list[Run]:
    """All selected runs, important and cheap ones first."""
    rates = [r for r in RATES if r in map(float, only.get("rates", RATES))]
    seeds = [s for s in SEEDS if s in map(int, only.get("seeds", SEEDS))]
    names = [*methods.available(), *rival_imputers.available()]
    names = [n for n in names if n in only.get("methods", names)]
    sets = [s for s in real_sets.available() if s in only.get("sets", [s])]
    runs = [Run(n, s, r, i) for n in names for s in sets for r in rates for i in seeds]
    return sorted((r for r in runs if r.rate == RATES[0] or is_first(r.method)), key=_turn)


def is_first(method: str) -> bool:
    return method in FIRST or method.endswith("_fill")


def _turn(r: Run) -> tuple[Any, ...]:
    """Sort key of a run: by seed, rate, importance and size."""
    ours = r.method not in rival_imputers.RIVALS
    kind = 0 if is_first(r.method) else 1 if not ours else 2 + methods.find(r.method).two_views
    return r.seed, RATES.index(r.rate), kind, _size(r.dataset), r.method


@cache
def _size(dataset: str) -> int:
    return sum(x.numel() for x in real_sets.load(dataset).x)


@cache
def current_facts(method: str, dataset: str) -> RunRecord:
    """Facts that a record must have to be current; data: None if they are not available."""
    data = real_sets.digest(dataset) if dataset in real_sets.available() else None
    if method in rival_imputers.RIVALS:
        file, others = Path(rival_imputers.__file__), tuple(rival_imputers.RIVALS)
        code = source_digest.of_function(method, file, others)
        return {"data": data, "settings": {}, "code": code}
    cls = methods.find(method)
    settings = {k: v for k, v in cls().get_params(deep=False).items() if k not in LOOSE}
    return {
        "data": data,
        "settings": json.loads(json.dumps(settings, default=str)),
        "code": source_digest.of_method(method),
    }


def is_current(record: RunRecord, any_code: bool = False) -> bool:
    """Whether a record has the current data, settings and code."""
    if record["method"] not in [*methods.available(), *rival_imputers.RIVALS]:
        return False
    current = current_facts(record["method"], record["dataset"])
    compared = [k for k in current if current[k] is not None and not (any_code and k == "code")]
    known = {**record, "settings": current["settings"] | record["settings"]}
    return all(known.get(k) == current[k] for k in compared)


def is_settled(record: RunRecord, limit: float, retry: bool) -> bool:
    """Whether the run of a current record need not be repeated."""
    if "timed_out" in record:
        return bool(record["limit"] >= limit)
    return "stopped" not in record and not (retry and "failed" in record)


# Runs, each in a separate process.


class Job:
    """A run in progress."""

    def __init__(self, fit: Run, lane: str, context: Any) -> None:
        self.run, self.lane, self.start = fit, lane, monotonic()
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(fit, theirs))
        self.process.start()
        theirs.close()

    @property
    def seconds(self) -> float:
        return monotonic() - self.start

    def result(self) -> RunRecord:
        """Receive the result, and give the process time to release the GPU."""
        try:
            result: RunRecord = self.pipe.recv()
            self.process.join(10)
            return result
        except EOFError:
            self.process.join()
            return {"failed": f"its process ended with exit code {self.process.exitcode}"}

    def end(self) -> None:
        """Kill the process and its children."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended or not started
            self.process.kill()
        self.process.join()
        self.pipe.close()


def _child(fit: Run, pipe: connection.Connection) -> None:
    os.setsid()
    workers.begin(1)
    try:
        result = records.without_nan(measure(fit))
    except (Exception, SystemExit) as error:
        result = {"failed": " ".join(f"{type(error).__name__}: {error}".split())}
    pipe.send(result)


class Lanes:
    """Parallel runs on the GPU and on the CPU, until all are done or the time is up."""

    def __init__(self, todo: list[Run], known: list[RunRecord], options: Namespace) -> None:
        self.todo, self.known, self.options = todo, known, options
        for r in todo:
            current_facts(r.method, r.dataset)  # cached now: the code may change during runs
        self.end = monotonic() + 60 * options.minutes
        for kind in ("OMP", "OPENBLAS", "MKL"):  # read when a process loads these libraries
            os.environ[f"{kind}_NUM_THREADS"] = "1"
        self.context = get_context("forkserver")
        self.context.set_forkserver_preload(PRELOAD)
        self.size = {"gpu": options.gpu_jobs, "cpu": options.jobs}
        self.jobs: list[Job] = []

    def work(self) -> None:
        try:
            while self._begin() or self.jobs:
                left = min([self.end - monotonic(), *(self._left(j) for j in self.jobs)])
                ready = connection.wait([j.pipe for j in self.jobs], max(0.0, left))
                for job in [j for j in self.jobs if j.pipe in ready]:
                    self._finish(job, job.result())
                for job in [j for j in self.jobs if self._left(j) <= 0]:
                    self._finish(job, {"timed_out": True, "limit": self.options.limit})
                if monotonic() >= self.end:
                    for job in list(self.jobs):
                        self._stop(job)
        finally:
            for job in self.jobs:
                job.end()

    def _begin(self) -> bool:
        """Start all runs that can be started; return whether there were any."""
        before = len(self.jobs)
        while (fit := next(self._startable(), None)) is not None:
            self.todo.remove(fit)
            if self._hopeless(fit):
                skipped = {"timed_out": True, "limit": self.options.limit, "skipped": True}
                self._write(fit, skipped)
                continue
            self.jobs.append(Job(fit, lane(fit.method), self.context))
        return len(self.jobs) > before

    def _startable(self) -> Iterator[Run]:
        """Yield runs with a free slot that will probably end in time, and hopeless runs.

        Later seeds wait for the first.
        """
        left = self.end - monotonic()
        busy = {j.run for j in self.jobs}
        for r in self.todo:
            free = sum(j.lane == lane(r.method) for j in self.jobs) < self.size[lane(r.method)]
            ready = free and r._replace(seed=SEEDS[0]) not in busy
            if self._hopeless(r) or (ready and self._expected(r) < left):
                yield r

    def _hopeless(self, r: Run) -> bool:
        """Whether the run with the first seed timed out."""
        first = r._replace(seed=SEEDS[0])
        timed_out = [k for k in self.known if place(k) == first and "timed_out" in k]
        return r != first and any(k["limit"] >= self.options.limit for k in timed_out)

    def _expected(self, r: Run) -> float:
        """Most seconds that this method has taken on this set before."""
        like = [k for k in self.known if (k["method"], k["dataset"]) == (r.method, r.dataset)]
        took = (k.get(word, 0.0) for k in like for word in ("wall", "stopped", "limit"))
        return max(map(float, took), default=0.0)

    def _left(self, job: Job) -> float:
        return float(self.options.limit) - job.seconds

    def _finish(self, job: Job, result: RunRecord) -> None:
        self.jobs.remove(job)
        job.end()
        self._write(job.run, result)

    def _stop(self, job: Job) -> None:
        """Stop a run; the record of a long one prevents its repetition with less time."""
        self.todo.append(job.run)
        if job.seconds > WORTH_A_RECORD:
            self._finish(job, {"stopped": round(job.seconds, 1)})

    def _write(self, r: Run, result: RunRecord) -> None:
        jobs = len(self.jobs) + 1  # in parallel
        record = {**r._asdict(), **current_facts(r.method, r.dataset), **run.code(), "jobs": jobs}
        record |= {"scores": {}, **result}
        self.known.append(record)
        with locked(self.options.out):
            records.append(self.options.out, record)
        print(f"{r}: {outcome(record)}; {len(self.todo)} to do", flush=True)


def outcome(record: RunRecord) -> str:
    for word in ("failed", "stopped", "timed_out"):
        if word in record:
            return f"{word.replace('_', ' ')} ({record.get('limit', record[word])})"
    shown = ", ".join(f"{k} {v:.4g}" for k, v in record["scores"].items() if k in ("error", "acc"))
    return f"{shown}, {record['seconds']:.1f} s"


def place(record: RunRecord) -> Run:
    return Run(*(record[k] for k in Run._fields))


@cache
def lane(method: str) -> str:
    """Lane of a method: the GPU if it, or one of its parts, has a setting `device`."""
    if method in rival_imputers.RIVALS or not torch.cuda.is_available():
        return "cpu"
    known = methods.find(method)().get_params()
    return "gpu" if any(k.rpartition("__")[2] == "device" for k in known) else "cpu"


# One run.


class Result(NamedTuple):
    """Result of a fit.

    labels: (n,) by rule; ends: mean, lower and upper values of all views by level, or the mean
    alone; empty if the method cannot impute.
    """

    labels: dict[str, Any]
    ends: dict[str, list[list[Any]]]
    seconds: float
    steps: int | None = None


def measure(fit: Run) -> RunRecord:
    """Fit, score, and return the record without the run's fields."""
    start = perf_counter()
    truth = real_sets.load(fit.dataset)
    views = missing.drop_views(truth, fit.rate, MASK_SEED, PROTOCOL)
    rival = fit.method in rival_imputers.RIVALS
    if lane(fit.method) == "gpu":
        torch.zeros(1, device="cuda")  # initializes it, not timed
        torch.cuda.reset_peak_memory_stats()
    result = (imputer_result if rival else method_result)(fit, truth, views)
    on_gpu = torch.cuda.is_initialized() and torch.cuda.max_memory_allocated() > 512
    return {
        "protocol": PROTOCOL,
        "mask_seed": MASK_SEED,
        "mask": missing.fingerprint(views.mask),
        "scores": {**_clusters(truth, result), **_errors(truth, views, result)},
        "by_view": _by_view(truth, views, result),
        "seconds": round(result.seconds, 3),
        "wall": round(perf_counter() - start, 3),
        "steps": result.steps,
        "device": torch.cuda.get_device_name() if on_gpu else workers.cpu_name(),
        "cores": workers.cores(),
        "threads": torch.get_num_threads(),
        **({"mofapy2": version("mofapy2")} if fit.method == "mofa" else {}),
    }


def method_result(fit: Run, truth: Views, views: Views) -> Result:
    """Fit one of our methods with its defaults."""
    K, seed = len(np.unique(truth.y)), fit.seed
    model = methods.find(fit.method)(n_clusters=K, random_state=seed)
    model = best_pair.for_views(model, len(truth.x))
    start = perf_counter()
    model.fit(views)
    ends: dict[str, list[list[Any]]] = {}
    seconds = perf_counter() - start
    for name, level in LEVELS.items() if model.generative else ():
        ends[name] = _ends(model, views, level, seed)
        seconds = seconds if len(ends) > 1 else perf_counter() - start
    labels = {"": model.labels_}
    if "centers_" not in vars(model):  # the labels are not k-means'
        labels["kmeans_"] = KMeans(K, n_init=10, random_state=seed).fit_predict(model.embedding_)
    history = vars(model).get("history_")
    return Result(labels, ends, seconds, history[-1]["step"] if history else None)


def _ends(model: Any, views: Views, level: float, seed: int) -> list[list[Any]]:
    """Mean, lower and upper ends of all views."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return [[x.numpy() for x in end.x] for end in model.impute(views, interval=level)]


def imputer_result(fit: Run, truth: Views, views: Views) -> Result:
    """Fit an imputer of tables on the z-scored columns of all views."""
    known = [x.reshape(len(x), -1).astype(np.float64) for x in views.arrays()]
    edges = np.cumsum([0, *(x.shape[1] for x in known)])
    table = np.hstack(known)
    mean, std = np.nanmean(table, 0), np.nanstd(table, 0)
    std[std == 0] = 1.0
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    start = perf_counter()
    filled = rival_imputers.RIVALS[fit.method]((table - mean) / std, blocks, fit.seed)
    seconds = perf_counter() - start
    kmeans = KMeans(len(np.unique(truth.y)), n_init=10, random_state=fit.seed)
    values = filled * std + mean
    shapes = zip(blocks, truth.shapes, strict=True)
    imputed = [values[:, b].reshape(len(values), *shape) for b, shape in shapes]
    return Result({"": kmeans.fit_predict(filled)}, {"coverage": [imputed]}, seconds)


def _clusters(truth: Views, result: Result) -> dict[str, float]:
    return {
        f"{rule}{k}": round(100 * v, 3)
        for rule, labels in result.labels.items()
        for k, v in scores.clustering_scores(truth.y, labels).items()
    }


def _errors(
    truth: Views, views: Views, result: Result, only: int | None = None
) -> dict[str, float]:
    """Error and coverages of hidden views, all or the view `only`; empty if nothing was hidden."""
    hidden = (truth.mask & ~views.mask).numpy()
    if only is not None:
        hidden = hidden & (np.arange(hidden.shape[1]) == only)
    if not result.ends or not hidden.any():
        return {}
    true = truth.arrays()
    error = scores.imputation_error(true, result.ends["coverage"][0], hidden)
    ranges = {k: ends[1:] for k, ends in result.ends.items() if ends[1:]}
    covered = {k: scores.coverage(true, *ends, hidden) for k, ends in ranges.items()}
    return {"error": round(error, 5), **{k: round(100 * v, 3) for k, v in covered.items()}}


def _by_view(truth: Views, views: Views, result: Result) -> dict[str, dict[str, float]]:
    count = (truth.mask & ~views.mask).sum(0).tolist()
    by_view = {}
    for v, name in enumerate(truth.names):
        if count[v]:
            errors = _errors(truth, views, result, v)
            finite = {k: error for k, error in errors.items() if np.isfinite(error)}
            by_view[name] = {"hidden": count[v], **finite}
    return by_view


# The command line.


def main(words: Sequence[str] | None = None) -> None:
    options = parsed(words)
    known = lines.read(options.out)
    if options.merge:
        merge(options.merge, options.out, known)
    elif options.table:
        current = partial(is_current, any_code=False)
        loosely = partial(is_current, any_code=True)
        rivals_page.write(options.page, [r for r in known if loosely(r)], current)
    else:
        up_to_date = [r for r in known if is_current(r, options.any_code)]
        done = {place(r) for r in up_to_date if is_settled(r, options.limit, options.retry)}
        runs = planned(options.only)
        todo = [r for r in runs if r not in done]
        print(f"{len(runs)} runs, {len(runs) - len(todo)} of them done before", flush=True)
        Lanes(todo, up_to_date, options).work()
        print(f"{len(todo)} runs are left" if todo else "all done", flush=True)


def merge(source: Path, out: Path, known: list[RunRecord]) -> None:
    """Append new records."""
    seen = {json.dumps(r, sort_keys=True) for r in known}
    new = [r for r in records.read_all(source) if json.dumps(r, sort_keys=True) not in seen]
    with locked(out):
        for record in new:
            records.append(out, record)
    print(f"{len(new)} new records in {out}")


def parsed(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--jobs", type=int, default=max(1, workers.cores() - 1), help="parallel runs on the CPU"
    )
    parser.add_argument("--gpu-jobs", type=int, default=4, help="parallel runs on the GPU")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="total time limit")
    parser.add_argument(
        "--limit", type=float, default=900.0, help="time limit of a run, in seconds"
    )
    parser.add_argument("--only", type=selection, default={}, help="methods=,sets=,seeds=,rates=")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--any-code", action="store_true", help="do not compare the code")
    parser.add_argument("--retry", action="store_true", help="repeat failed runs")
    parser.add_argument("--merge", type=Path, metavar="FILE", help="add these records")
    parser.add_argument("--table", action="store_true", help="write the page of tables")
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(words)


def selection(text: str) -> dict[str, list[str]]:
    """Parse a selection: methods=a,b,seeds=0 -> {"methods": ["a", "b"], "seeds": ["0"]}."""
    chosen: dict[str, list[str]] = {}
    key = ""
    for word in text.split(","):
        name, sign, value = word.rpartition("=")
        key = name if sign else key
        chosen.setdefault(key, []).append(value)
    if unknown := chosen.keys() - {"methods", "sets", "seeds", "rates"}:
        sys.exit(f"--only has {min(unknown)!r}; choose from methods=, sets=, seeds=, rates=")
    return chosen


if __name__ == "__main__":
    main()
