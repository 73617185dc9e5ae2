"""Every method of ours beside what else one would impute with, on every real set in VEDUTE_DATA.

    python -m vedute_bench.rivals.rivals [--jobs 14] [--gpu-jobs 8] [--minutes 9] [--limit 900]
                                [--only methods=mvp,mofa,sets=cub,seeds=0,rates=.5]
    python -m vedute_bench.rivals.rivals --merge FILE     take over the records of another machine
    python -m vedute_bench.rivals.rivals --table          write the tables of docs/rivals.md

At rate .5 all methods, at .1 .3 .7 MVP, Blend and the fills; seeds 0 to 2 are the methods'
random_state, the mask is the same for all. Each run has a process with one thread, which is killed
at the limit: its record says `timed_out`, and other seeds are not tried. A run without a current
record is made: one with the same data, settings and code (`source_digest`; not compared
with --any-code). When the time is up, runs in progress are `stopped` and made another time.
Networks share the GPU where there is one (bench/mps.sh), the rest runs on the CPU.

Scores: error of hidden views as `vedute bench` has it, coverage of 90 % and 50 % intervals and acc,
nmi, ari of clusters in percent; `by_view` the same by view, with the number of hidden instances.
The clusters of an imputer are those of k-means on its completed, z-scored table.
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
FIRST = ("blend", "mvp")  # of all, and at every rate
LOOSE = ("n_clusters", "random_state", "verbose", "callbacks")  # settings that are not the method's
PRELOAD = ["vedute_bench.runner.run", "sklearn.ensemble", "sklearn.impute", "sklearn.linear_model"]
WORTH_A_RECORD = 30  # seconds of a run that was stopped


class Run(NamedTuple):
    """One fit on one set; the names are those of a record."""

    method: str
    dataset: str
    rate: float
    seed: int

    def __str__(self) -> str:
        return f"{self.method} on {self.dataset} at {self.rate:g}, seed {self.seed}"


# What is to be done.


def planned(only: Mapping[str, Sequence[str]]) -> list[Run]:
    """All runs that are asked for, those first that are important or cheap."""
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
    """Seed 0 of everything first; then by rate, importance and size."""
    ours = r.method not in rival_imputers.RIVALS
    kind = 0 if is_first(r.method) else 1 if not ours else 2 + methods.find(r.method).two_views
    return r.seed, RATES.index(r.rate), kind, _size(r.dataset), r.method


@cache
def _size(dataset: str) -> int:
    return sum(x.numel() for x in real_sets.load(dataset).x)


@cache
def asked(method: str, dataset: str) -> RunRecord:
    """What a record must say to be current; data: None where they are not here."""
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
    """Whether a record is of these data, settings and code."""
    if record["method"] not in [*methods.available(), *rival_imputers.RIVALS]:
        return False
    wanted = asked(record["method"], record["dataset"])
    compared = [k for k in wanted if wanted[k] is not None and not (any_code and k == "code")]
    known = {**record, "settings": wanted["settings"] | record["settings"]}
    return all(known.get(k) == wanted[k] for k in compared)


def is_settled(record: RunRecord, limit: float, retry: bool) -> bool:
    """Whether a current record says all that there is to know."""
    if "timed_out" in record:
        return bool(record["limit"] >= limit)
    return "stopped" not in record and not (retry and "failed" in record)


# Runs, each in its own process.


class Job:
    """A run in progress."""

    def __init__(self, what: Run, lane: str, context: Any) -> None:
        self.run, self.lane, self.start = what, lane, monotonic()
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(what, theirs))
        self.process.start()
        theirs.close()

    @property
    def seconds(self) -> float:
        return monotonic() - self.start

    def result(self) -> RunRecord:
        """What it sent; it is given time to leave the GPU."""
        try:
            found: RunRecord = self.pipe.recv()
            self.process.join(10)
            return found
        except EOFError:
            self.process.join()
            return {"failed": f"its process ended with exit code {self.process.exitcode}"}

    def end(self) -> None:
        """Kill it with all processes that it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended, or has not begun
            self.process.kill()
        self.process.join()
        self.pipe.close()


def _child(what: Run, pipe: connection.Connection) -> None:
    os.setsid()
    workers.begin(1)
    try:
        found = records.without_nan(measure(what))
    except (Exception, SystemExit) as error:
        found = {"failed": " ".join(f"{type(error).__name__}: {error}".split())}
    pipe.send(found)


class Lanes:
    """Runs on the GPU and on the CPU at once, until all are made or the time is up."""

    def __init__(self, todo: list[Run], known: list[RunRecord], options: Namespace) -> None:
        self.todo, self.known, self.options = todo, known, options
        for r in todo:
            asked(r.method, r.dataset)  # of the code as it is now
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
        """Start what can be started; False where nothing was."""
        before = len(self.jobs)
        while (found := next(self._startable(), None)) is not None:
            self.todo.remove(found)
            if self._hopeless(found):
                skipped = {"timed_out": True, "limit": self.options.limit, "skipped": True}
                self._write(found, skipped)
                continue
            self.jobs.append(Job(found, lane(found.method), self.context))
        return len(self.jobs) > before

    def _startable(self) -> Iterator[Run]:
        """Those that find a place and are likely to end in time, after the first seed of theirs;
        and those that need not be tried."""
        left = self.end - monotonic()
        busy = {j.run for j in self.jobs}
        for r in self.todo:
            free = sum(j.lane == lane(r.method) for j in self.jobs) < self.size[lane(r.method)]
            ready = free and r._replace(seed=SEEDS[0]) not in busy
            if self._hopeless(r) or (ready and self._expected(r) < left):
                yield r

    def _hopeless(self, r: Run) -> bool:
        """Whether the first seed timed out."""
        first = r._replace(seed=SEEDS[0])
        mine = [k for k in self.known if place(k) == first and "timed_out" in k]
        return r != first and any(k["limit"] >= self.options.limit for k in mine)

    def _expected(self, r: Run) -> float:
        """Seconds that this method took on this set before, at least."""
        like = [k for k in self.known if (k["method"], k["dataset"]) == (r.method, r.dataset)]
        took = (k.get(word, 0.0) for k in like for word in ("wall", "stopped", "limit"))
        return max(map(float, took), default=0.0)

    def _left(self, job: Job) -> float:
        return float(self.options.limit) - job.seconds

    def _finish(self, job: Job, found: RunRecord) -> None:
        self.jobs.remove(job)
        job.end()
        self._write(job.run, found)

    def _stop(self, job: Job) -> None:
        """Its time is up; the record of a long run keeps it from being tried in less time."""
        self.todo.append(job.run)
        if job.seconds > WORTH_A_RECORD:
            self._finish(job, {"stopped": round(job.seconds, 1)})

    def _write(self, r: Run, found: RunRecord) -> None:
        jobs = len(self.jobs) + 1  # at once
        record = {**r._asdict(), **asked(r.method, r.dataset), **run.code(), "jobs": jobs}
        record |= {"scores": {}, **found}
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
    """What has a setting `device`, its own or that of a part, goes to the GPU."""
    if method in rival_imputers.RIVALS or not torch.cuda.is_available():
        return "cpu"
    known = methods.find(method)().get_params()
    return "gpu" if any(k.rpartition("__")[2] == "device" for k in known) else "cpu"


# One run.


class Result(NamedTuple):
    """labels: (n,) by the rule of each name; ends: by level mean, lower and upper values of all
    views, or the mean alone; empty where the method cannot impute."""

    labels: dict[str, Any]
    ends: dict[str, list[list[Any]]]
    seconds: float
    steps: int | None = None


def measure(what: Run) -> RunRecord:
    """The scores of a run, and how it was made."""
    start = perf_counter()
    truth = real_sets.load(what.dataset)
    views = missing.drop_views(truth, what.rate, MASK_SEED, PROTOCOL)
    rival = what.method in rival_imputers.RIVALS
    if lane(what.method) == "gpu":
        torch.zeros(1, device="cuda")  # opens it, not timed
        torch.cuda.reset_peak_memory_stats()
    found = (imputer_result if rival else method_result)(what, truth, views)
    on_gpu = torch.cuda.is_initialized() and torch.cuda.max_memory_allocated() > 512
    return {
        "protocol": PROTOCOL,
        "mask_seed": MASK_SEED,
        "mask": missing.fingerprint(views.mask),
        "scores": {**_clusters(truth, found), **_errors(truth, views, found)},
        "by_view": _by_view(truth, views, found),
        "seconds": round(found.seconds, 3),
        "wall": round(perf_counter() - start, 3),
        "steps": found.steps,
        "device": torch.cuda.get_device_name() if on_gpu else workers.cpu_name(),
        "cores": workers.cores(),
        "threads": torch.get_num_threads(),
        **({"mofapy2": version("mofapy2")} if what.method == "mofa" else {}),
    }


def method_result(what: Run, truth: Views, views: Views) -> Result:
    """By one of our methods at its defaults."""
    K, seed = len(np.unique(truth.y)), what.seed
    model = methods.find(what.method)(n_clusters=K, random_state=seed)
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
    """Mean, lower and upper end, as `vedute bench` asks for them."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return [[x.numpy() for x in end.x] for end in model.impute(views, interval=level)]


def imputer_result(what: Run, truth: Views, views: Views) -> Result:
    """By an imputer of tables, on the z-scored columns of all views."""
    known = [x.reshape(len(x), -1).astype(np.float64) for x in views.arrays()]
    edges = np.cumsum([0, *(x.shape[1] for x in known)])
    table = np.hstack(known)
    mean, std = np.nanmean(table, 0), np.nanstd(table, 0)
    std[std == 0] = 1.0
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    start = perf_counter()
    filled = rival_imputers.RIVALS[what.method]((table - mean) / std, blocks, what.seed)
    seconds = perf_counter() - start
    kmeans = KMeans(len(np.unique(truth.y)), n_init=10, random_state=what.seed)
    values = filled * std + mean
    shapes = zip(blocks, truth.shapes, strict=True)
    imputed = [values[:, b].reshape(len(values), *shape) for b, shape in shapes]
    return Result({"": kmeans.fit_predict(filled)}, {"coverage": [imputed]}, seconds)


def _clusters(truth: Views, found: Result) -> dict[str, float]:
    every = {
        f"{rule}{k}": round(100 * v, 3)
        for rule, labels in found.labels.items()
        for k, v in scores.clustering_scores(truth.y, labels).items()
    }
    return every


def _errors(truth: Views, views: Views, found: Result, only: int | None = None) -> dict[str, float]:
    """Error and coverages of what was hidden, in all views or in one; {} where nothing was."""
    hidden = (truth.mask & ~views.mask).numpy()
    if only is not None:
        hidden = hidden & (np.arange(hidden.shape[1]) == only)
    if not found.ends or not hidden.any():
        return {}
    true = truth.arrays()
    error = scores.imputation_error(true, found.ends["coverage"][0], hidden)
    ranges = {k: ends[1:] for k, ends in found.ends.items() if ends[1:]}
    covered = {k: scores.coverage(true, *ends, hidden) for k, ends in ranges.items()}
    return {"error": round(error, 5), **{k: round(100 * v, 3) for k, v in covered.items()}}


def _by_view(truth: Views, views: Views, found: Result) -> dict[str, dict[str, float]]:
    count = (truth.mask & ~views.mask).sum(0).tolist()
    errors = partial(_errors, truth, views, found)
    finite = lambda found: {k: v for k, v in found.items() if np.isfinite(v)}  # noqa: E731
    each = enumerate(truth.names)
    return {name: {"hidden": count[v], **finite(errors(v))} for v, name in each if count[v]}


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
        mine = [r for r in known if is_current(r, options.any_code)]
        done = {place(r) for r in mine if is_settled(r, options.limit, options.retry)}
        runs = planned(options.only)
        todo = [r for r in runs if r not in done]
        print(f"{len(runs)} runs, {len(runs) - len(todo)} of them done before", flush=True)
        Lanes(todo, mine, options).work()
        print(f"{len(todo)} runs are left" if todo else "all done", flush=True)


def merge(source: Path, out: Path, known: list[RunRecord]) -> None:
    """Append the records that are not there yet."""
    seen = {json.dumps(r, sort_keys=True) for r in known}
    new = [r for r in records.read_all(source) if json.dumps(r, sort_keys=True) not in seen]
    with locked(out):
        for record in new:
            records.append(out, record)
    print(f"{len(new)} new records in {out}")


def parsed(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=max(1, workers.cores() - 1), help="on the CPU")
    parser.add_argument("--gpu-jobs", type=int, default=4, help="on the GPU, if there is one")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="until all is stopped")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of one run")
    parser.add_argument("--only", type=selection, default={}, help="methods=,sets=,seeds=,rates=")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--any-code", action="store_true", help="do not compare the code")
    parser.add_argument("--retry", action="store_true", help="what failed is tried again")
    parser.add_argument("--merge", type=Path, metavar="FILE", help="take over these records")
    parser.add_argument("--table", action="store_true", help="write the page of tables")
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(words)


def selection(text: str) -> dict[str, list[str]]:
    """methods=a,b,seeds=0 -> {"methods": ["a", "b"], "seeds": ["0"]}"""
    found: dict[str, list[str]] = {}
    key = ""
    for word in text.split(","):
        name, sign, value = word.rpartition("=")
        key = name if sign else key
        found.setdefault(key, []).append(value)
    if strange := found.keys() - {"methods", "sets", "seeds", "rates"}:
        sys.exit(f"--only has {min(strange)!r}; choose from methods=, sets=, seeds=, rates=")
    return found


if __name__ == "__main__":
    main()
