"""Comparison of settings of a method by the error of hidden views on real sets in VEDUTE_DATA.

    python -m vedute_bench.experiments.defaults -o records.jsonl [--methods mvae,mvtcae]
        [--variants base,drop] [--sets cub,msrc_v1] [--jobs 14] [--minutes 9]

    python -m vedute_bench.experiments.defaults --table records.jsonl [--against now]

    python -m vedute_bench.experiments.defaults --tables    for docs/defaults.md

`--sets handwritten:500` uses 500 of its rows.

Masks are bernoulli at rate .5 with seeds 7 and 8, which no study uses. Labels are only read to
record `acc`, which is not used for selection. Runs with a record are not repeated; when the time is
up, runs in progress are aborted.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from vedute import drop_views, io
from vedute.metrics import scores
from vedute_bench import paper_mvp
from vedute_bench.places import RESULTS
from vedute_bench.rivals import real_sets
from vedute_bench.runner import lines, records, workers
from vedute_bench.runner.records import RunRecord

Settings = dict[str, Any]
LIGHT = {"steps": 700, "cooldown": 250, "lr": 6e-3, "batch_size": 256}
LIGHTER = LIGHT | {"weight_decay": 0.1, "patience": 200}
FIRST = {"steps": 2300, "cooldown": 300, "lr": 2e-3, "batch_size": 128, "patience": 400}
SHORT = {"steps": 500, "cooldown": 200}
OF_MVP: dict[str, Settings] = {
    "base": FIRST | {"weight_decay": 0.0},  # the defaults of the first release
    "s700": {"steps": 700},  # the defaults of the second
    "now": {},
    "s1200": FIRST | {"steps": 1200, "cooldown": 250},
    "s700lr4": LIGHT | {"lr": 4e-3, "batch_size": 128},
    "s700lr6b256": LIGHT | {"weight_decay": 0.0, "patience": 400},
    "hid256": {"hidden": (256, 256)},
    "rec300": {"rec_weight": 300.0},
    "drop1": {"dropout": 0.1},
    "drop5": {"dropout": 0.5},
    "lat64": {"latent_dim": 64},
    "vd.5": {"view_dropout": 0.5},
    "wide": {"components": None},
    "pca32": {"components": 32},
    "b128": {"batch_size": 128},
    "s500": SHORT,
    "s500b192": SHORT | {"batch_size": 192},
    "b128lr4": {"batch_size": 128, "lr": 4e-3},
}
# The second defaults, and settings tried before the third (results/defaults/layers.jsonl).
LAYERS2 = {"hidden": (128, 128), "map_hidden": (64, 64), "again": None}
LAYERS2 |= {"steps": 500, "batch_size": 256}
FEWER = {"batch_size": 128, "steps": 300}
LAYERS: dict[str, Settings] = {
    "layers2": {},
    **{f"layers2again{n}": {"again": n} for n in (60, 100, 150)},
    "layers2b128s300": FEWER,
    **{f"layers2hid{n}": {"hidden": (n, n)} for n in (64, 96)},
    **{f"layers2m{n}": {"map_hidden": (n,)} for n in (32, 64)},
    "layers2m32x32": {"map_hidden": (32, 32)},
    "layers2lin": {"maps": "linear"},
    "layers2lat24": {"latent_dim": 24},
    **{f"h{n}": {"hidden": (n,)} for n in (128, 256, 512)},
    **{f"h{n}m32": {"hidden": (n,), "map_hidden": (32,)} for n in (128, 256)},
    "h256m64": {"hidden": (256,), "map_hidden": (64,)},
    **{f"h{n}s300": {"hidden": (n,), "steps": 300} for n in (128, 256)},
    **{f"h{n}b128s300": {"hidden": (n,), **FEWER} for n in (128, 256)},
    **{f"h{n}lat48": {"hidden": (n,), "latent_dim": 48} for n in (128, 256)},
    **{
        f"h{n}lat{d}m32": {"hidden": (n,), "latent_dim": d, "map_hidden": (32,)}
        for n, d in ((128, 48), (128, 64), (192, 48))
    },
    **{f"h{n}again60": {"hidden": (n,), "again": 60} for n in (128, 256)},
    "h128lat48again60": {"hidden": (128,), "latent_dim": 48, "again": 60},
    "h128b128s300again60": {"hidden": (128,), "again": 60, **FEWER},
    "h128m64b128s300again60": {"hidden": (128,), "map_hidden": (64,), "again": 60, **FEWER},
}
OF_MVP |= {name: LAYERS2 | settings for name, settings in LAYERS.items()}
PLAIN = FIRST | {"weight_decay": 0.0, "cooldown": 0}  # the VAEs of the first release
PLAIN |= {"dropout": 0.0, "balance": 0.0, "view_dropout": 0.0}
DROP = PLAIN | {"dropout": None}
ALL = DROP | {"balance": None, "cooldown": 250, "view_dropout": 0.3}
OF_VAES: dict[str, Settings] = {
    "base": PLAIN,
    "drop": DROP,
    "bal": DROP | {"balance": None},
    "cool": DROP | {"cooldown": 250},
    "vd": DROP | {"view_dropout": 0.3},
    "all": ALL,
    "light": ALL | LIGHTER,
    "now": {},
    "h128": {"hidden": (128,)},
    "h128lat48": {"hidden": (128,), "latent_dim": 48},
}
FOUR = ("mvp", "lowrank_fill", "kernel_fill", "gaussian_fill")
OF_BLEND: dict[str, Settings] = {
    "now": {},
    "base": {"experts": FOUR},
    "mvae": {"experts": (*FOUR, "mvae")},
    "mvae_light": {
        "experts": (*FOUR, "mvae"),
        "expert_settings": {f"mvae__{k}": v for k, v in LIGHTER.items()},
    },
    "mopoe": {"experts": (*FOUR, "mopoe")},
    **{
        name: {"expert_settings": {f"mvp__{k}": v for k, v in (LAYERS2 | settings).items()}}
        for name, settings in LAYERS.items()
    },
}
FAMILIES = {"mvp": OF_MVP, "blend": OF_BLEND}
DRAWS = ((0, 7), (1, 8))  # random_state, seed of the mask
FOLDER = RESULTS / "defaults"
OLD_NAMES = {"reuters1200_dim10": "reuters1200"}  # former names of sets
VAES = ("mvae", "mvtcae", "mopoe", "mmjsd", "mmvaeplus", "mmvae")
# Tables of docs/defaults.md: the records, the methods, and the variant that errors are divided by.
PAGE: dict[str, tuple[str, tuple[str, ...], str]] = {
    "mvp": ("records", ("mvp",), "base"),
    "vaes": ("records", VAES, "base"),
    "blend": ("records", ("blend",), "base"),
    "layers-mvp": ("layers", ("mvp",), "layers2"),
    "layers-blend": ("layers", ("blend",), "layers2"),
    "layers-vaes": ("layers", VAES[:4], "now"),
}


class Run(NamedTuple):
    """One fit; fields have the names of a record."""

    method: str
    set: str
    variant: str
    seed: int
    mask: int


# Planning.


def variants(method: str) -> dict[str, Settings]:
    """Settings of each variant, without variants that differ only in settings the method lacks."""
    known = {f.name for f in fields(paper_mvp.find(method))}
    settings_of: dict[str, Settings] = {}
    for name, settings in FAMILIES.get(method, OF_VAES).items():
        applicable = {k: v for k, v in settings.items() if k in known}
        if applicable not in settings_of.values():
            settings_of[name] = applicable
    return settings_of


def planned(options: argparse.Namespace) -> list[Run]:
    """All requested runs without a record, longest first."""
    done = {key(r) for r in read(options.out)}
    runs = [
        Run(method, name, variant, *draw)
        for method in options.methods
        for variant in options.variants or variants(method)
        for name in options.sets or real_sets.available()
        for draw in DRAWS
        if variant in variants(method)
    ]
    return sorted((run for run in runs if run not in done), key=work, reverse=True)


def read(path: Path) -> list[RunRecord]:
    return lines.read(path)


def key(record: RunRecord) -> Run:
    """Run of a record; old records have no method, which is MVP, or a former name of a set."""
    run = Run(**{k: record.get(k, "mvp") for k in Run._fields})
    return run._replace(set=OLD_NAMES.get(run.set, run.set))


def work(run: Run) -> int:
    """Estimate the work of a run by the count of values decoded in all steps."""
    model = paper_mvp.find(run.method)(**variants(run.method)[run.variant])
    steps, rows = (vars(model).get(k) or 1 for k in ("steps", "batch_size"))
    return int(steps * rows * _width(run.set))


@cache
def _width(name: str) -> int:
    views = real_sets.load(name)
    return sum(x[0].numel() for x in views.x)


# Running.


def measure(run: Run) -> RunRecord:
    """Fit once, and record the error of hidden views."""
    truth = real_sets.load(run.set)
    views = drop_views(truth, 0.5, run.mask)
    hidden = (truth.mask & ~views.mask).numpy()
    settings = {"n_clusters": len(np.unique(truth.y)), "random_state": run.seed}
    model = paper_mvp.find(run.method)(**settings, **variants(run.method)[run.variant])
    start = perf_counter()
    model.fit(views)
    seconds = perf_counter() - start
    filled = [x.numpy() for x in model.impute(views).x]
    error = scores.imputation_error(list(io.of_views(truth).views.values()), filled, hidden)
    acc = 100 * scores.clustering_scores(truth.y, model.labels_)["acc"]
    results = {"error": round(error, 4), "acc": round(acc, 1), "steps": model.history_[-1]["step"]}
    return {**run._asdict(), **results, "seconds": round(seconds, 1)}


def run_all(runs: Sequence[Run], out: Path, jobs: int, minutes: float) -> None:
    """Run in parallel and append records as they finish; the workers end with this process."""
    limit = Timer(60 * minutes, os._exit, (0,))
    limit.daemon = True
    limit.start()
    for run, outcome in workers.outcomes(measure, [workers.Lane(runs, jobs, 1)]):
        if not isinstance(outcome, BaseException):
            records.append(out, outcome)
        print(*run, outcome, flush=True)
    limit.cancel()


# Tables.


def table(known: Sequence[RunRecord], against: str) -> str:
    """Table of one method: geometric mean over sets of each variant's error ratio to `against`."""
    lines = [f"| variant | sets | error / {against} |", "|---|--:|--:|"]
    for variant, ratios in _ratios(known, against).items():
        lines.append(f"| {variant} | {len(ratios)} | {_mean(ratios):.4f} |")
    return "\n".join(lines) + "\n"


def grid(known: Sequence[RunRecord], against: str) -> str:
    """Table of the same ratios with a row per method; the minimum is bold if it is below 1."""
    rows = {m: _ratios(runs, against) for m, runs in _by_method(known).items()}
    columns = [v for v in next(iter(rows.values())) if v != against]
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "--:|" * len(columns)]
    for method, row in rows.items():
        means = {v: _mean(row[v]) for v in columns}
        least = min(1.0, *means.values())
        cells = (f"**{x:.3f}**" if x == least else f"{x:.3f}" for x in means.values())
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def of_page(name: str) -> str:
    """Text of a table of docs/defaults.md."""
    file, chosen, against = PAGE[name]
    by_method = _by_method(read(FOLDER / f"{file}.jsonl"))
    known = [r for method in chosen for r in by_method[method]]
    return (table if len(chosen) == 1 else grid)(known, against)


def _by_method(known: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    groups = defaultdict(list)
    for r in known:
        groups[key(r).method].append(r)
    return dict(groups)


def _ratios(known: Sequence[RunRecord], against: str) -> dict[str, list[float]]:
    """Ratios by variant, one per set that has both variants."""
    errors: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in known:
        errors[key(r).variant][key(r).set][r["seed"]] = r["error"]
    base = errors.get(against, {})
    return {
        variant: [
            _ratio(draws, base[s]) for s, draws in by_set.items() if draws.keys() & base.get(s, {})
        ]
        for variant, by_set in errors.items()
    }


def _mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def _ratio(errors: dict[int, float], base: dict[int, float]) -> float:
    """Ratio of the mean errors over the draws that both have."""
    both = errors.keys() & base.keys()
    return sum(errors[d] for d in both) / sum(base[d] for d in both)


def main() -> None:
    names = dict(type=lambda text: text.split(","))
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--methods", "--method", default=["mvp"], **names)
    parser.add_argument("--variants", **names)
    parser.add_argument("--sets", **names)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e5)
    parser.add_argument("--table", type=Path, help="print a table of these records")
    parser.add_argument(
        "--tables", action="store_true", help="write the tables of docs/defaults.md"
    )
    parser.add_argument("--against", default="base", help="the reference variant of the ratios")
    options = parser.parse_args()
    if options.table:
        for method, known in _by_method(read(options.table)).items():
            print(f"{method}\n\n{table(known, options.against)}")
        return
    if options.tables:
        for name in PAGE:
            (FOLDER / f"{name}.md").write_text(of_page(name), encoding="utf-8")
        return
    run_all(planned(options), options.out, options.jobs, options.minutes)


if __name__ == "__main__":
    main()
