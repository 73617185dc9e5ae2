"""Comparison of our methods with imputers of tables on a tenth of the entries missing.

    python -m vedute_bench.rivals.gaps [--only methods=blend,knn_imputer,sets=wine,seeds=0]
    python -m vedute_bench.rivals.gaps --table    write the table of docs/gaps.md

The data are tables of scikit-learn split into views, with seeds 0 to 2, and sets of VEDUTE_DATA
with seed 0. At most ROWS rows and WIDTH columns of the latter are used (every k-th column of views
with more than ten), so that imputers that work by column take minutes. The seed draws the missing
entries and is the random_state. A run with a current record (same code, see `source_digest`) is not
repeated; the table has the newest record of each run.

`error` is the mean squared error of the hidden entries, in standard deviations of their columns,
and `coverage` the share of them inside the 90 % interval, in percent.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import datasets

from vedute import methods
from vedute.data.missing import drop_entries
from vedute.data.views import Views
from vedute_bench.places import RESULTS
from vedute_bench.rivals import forest_imputer, real_sets, rival_imputers
from vedute_bench.rivals.rivals import selection
from vedute_bench.runner import lines, records, run, source_digest, workers

OUT = RESULTS / "gaps" / "records.jsonl"
TABLE = "table.md"  # beside the records
RATE, LEVEL = 0.1, 0.9
ROWS, WIDTH = 1000, 128
OURS = (
    *("mean_fill", "knn_fill", "lowrank_fill", "ridge_fill", "gaussian_fill", "kernel_fill"),
    *("mvp", "blend"),
)
TABLES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {  # with the edges of the views
    "breast_cancer": (datasets.load_breast_cancer, (0, 10, 20, 30)),  # mean, error, worst
    "wine": (datasets.load_wine, (0, 5, 9, 13)),
    "diabetes": (datasets.load_diabetes, (0, 4, 10)),  # the person, the serum
}
SETS = ("reuters1200", "wikipedia", "tcga_brca", "msrc_v1", "prokaryotic")
SLOW = ("forest",)  # not run on these
Floats = NDArray[np.float64]


class Run(NamedTuple):
    """One fit; fields have the names of a record."""

    method: str
    dataset: str
    seed: int


RIVALS = {
    "knn_imputer": rival_imputers.knn_imputer,
    "iterative_imputer": rival_imputers.iterative_imputer,
    "forest": forest_imputer.forest,
}


def load(name: str) -> Views:
    if name in TABLES:
        table, edges = TABLES[name][0]().data, TABLES[name][1]
        return Views.of([table[:, a:b] for a, b in pairwise(edges)])
    whole = real_sets.load(name)[:: -(-len(real_sets.load(name)) // ROWS)].bare()
    step = -(-sum(s[0] for s in whole.shapes) // WIDTH)
    parts = zip(whole.names, whole.arrays(), strict=True)
    return Views.of({k: x if x.shape[1] <= 10 else x[:, ::step] for k, x in parts})


# One run.


def measure(fit: Run) -> dict[str, Any]:
    truth = load(fit.dataset)
    views = drop_entries(truth, RATE, fit.seed)
    start = perf_counter()
    ends = (_by_rival if fit.method in RIVALS else _by_method)(fit, views)
    seconds = round(perf_counter() - start, 2)
    hidden = np.hstack([(truth.seen(v) & ~views.seen(v)).numpy() for v in range(len(truth.x))])
    true = np.hstack(truth.arrays()).astype(np.float64)
    std = np.nanstd(true, 0)
    hidden &= std > 0
    off = ((ends[0] - true) / np.where(std > 0, std, 1.0))[hidden]
    scores = {"error": round(float((off**2).mean()), 5)}
    if ends[1:]:
        inside = ((ends[1] <= true) & (true <= ends[2]))[hidden]
        scores["coverage"] = round(100 * float(inside.mean()), 2)
    return {
        "scores": scores,
        "seconds": seconds,
        "hidden": int(hidden.sum()),
        "device": workers.cpu_name(),
        "threads": torch.get_num_threads(),
        **run.code(),
    }


def _by_method(fit: Run, views: Views) -> list[Floats]:
    """Mean, lower and upper ends (n, p) of our method."""
    model = methods.find(fit.method)(random_state=fit.seed).fit(views)
    return [np.hstack([x.numpy() for x in end.x]) for end in model.impute(views, interval=LEVEL)]


def _by_rival(fit: Run, views: Views) -> list[Floats]:
    """Values (n, p) of an imputer of tables, fitted on z-scored columns."""
    table = np.hstack(views.arrays()).astype(np.float64)
    edges = np.cumsum([0, *(x.shape[1] for x in views.x)])
    mean, std = np.nanmean(table, 0), np.nanstd(table, 0)
    std[std == 0] = 1.0
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    return [RIVALS[fit.method]((table - mean) / std, blocks, fit.seed) * std + mean]


def code(method: str) -> str:
    if method == "forest":
        return source_digest.of_function(method, Path(forest_imputer.__file__), ())
    if method in RIVALS:
        file, others = Path(rival_imputers.__file__), tuple(rival_imputers.RIVALS)
        return source_digest.of_function(method, file, others)
    return source_digest.of_method(method)


def _place(record: dict[str, Any]) -> Run:
    return Run(*(record[k] for k in Run._fields))


def planned(only: dict[str, list[str]]) -> list[Run]:
    """All selected runs, set by set, slow methods last."""
    sets = [s for s in (*TABLES, *SETS) if s in only.get("sets", [s])]
    names = [m for m in (*OURS, *RIVALS) if m in only.get("methods", [m])]
    runs = [Run(m, s, i) for s in sets for m in names for i in ((0, 1, 2) if s in TABLES else (0,))]
    runs = [r for r in runs if r.dataset in TABLES or r.method not in SLOW]
    runs = [r for r in runs if str(r.seed) in only.get("seeds", [str(r.seed)])]
    return sorted(runs, key=lambda r: r.method in SLOW)


# Table.


def page(known: Sequence[dict[str, Any]]) -> str:
    """Part of docs/gaps.md from the newest record of each run."""
    newest = list({_place(r): r for r in known}.values())
    return "\n".join([*table(newest), "", *origins(newest)]) + "\n"


def origins(known: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Numbers of runs by commit, machine and releases."""
    for text, runs in Counter(map(_origin, known)).items():
        yield f"{runs} runs: {text}."


def _origin(r: dict[str, Any]) -> str:
    releases = ", ".join(f"{k} {v}" for k, v in r["versions"].items() if k != "vedute")
    threads = "one thread" if r["threads"] == 1 else f"{r['threads']} threads"
    return f"commit `{r['commit'][:7]}`, {threads} of {r['device']}, {releases}"


def table(known: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table of errors, with coverages for our methods.

    The minima of our methods and of the others are bold. A row uses the seeds that all have.
    """
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for r in known:
        runs.setdefault((r["dataset"], r["method"]), []).append(r)
    names = [m for m in (*RIVALS, *OURS) if any(m == method for _, method in runs)]
    yield "| | " + " | ".join(names) + " |"
    yield "|---|" + "--:|" * len(names)
    for s in dict.fromkeys(s for s in (*TABLES, *SETS) if any(s == d for d, _ in runs)):
        row = {m: runs[s, m] for m in names if (s, m) in runs}
        seeds = set.intersection(*({r["seed"] for r in rs} for rs in row.values()))
        row = {m: [r for r in rs if r["seed"] in seeds] for m, rs in row.items()}
        errors = {m: np.mean([r["scores"]["error"] for r in rs]) for m, rs in row.items()}
        sides = ([m for m in errors if (m in RIVALS) == theirs] for theirs in (True, False))
        best = {min(side, key=errors.__getitem__) for side in sides if side}
        yield (
            f"| {s}, {len(seeds)} seed{'s'[: len(seeds) > 1]} | "
            + " | ".join(_cell(row.get(m), m in best) for m in names)
            + " |"
        )


def _cell(runs: Sequence[dict[str, Any]] | None, bold: bool) -> str:
    if runs is None:
        return "–"
    text = f"{np.mean([r['scores']['error'] for r in runs]):.3f}".replace("0.", ".", 1)
    text = f"**{text}**" if bold else text
    covered = [r["scores"]["coverage"] for r in runs if "coverage" in r["scores"]]
    seconds = f"{np.mean([r['seconds'] for r in runs]):.0f} s"
    return f"{text} ({np.mean(covered):.0f} %, {seconds})" if covered else f"{text} ({seconds})"


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=selection, default={}, help="methods=,sets=,seeds=")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="write the table")
    options = parser.parse_args()
    known = lines.read(options.out)
    if options.table:
        options.out.with_name(TABLE).write_text(page(known), encoding="utf-8")
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {_place(r) for r in known if r["code"] == code(r["method"])}
    for fit in planned(options.only):
        if fit not in done:
            record = {**fit._asdict(), "code": code(fit.method), **measure(fit)}
            records.append(options.out, record)
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
