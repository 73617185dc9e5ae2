"""Single missing entries: our methods beside imputers of tables, with a tenth of the entries gone.

    python -m vedute_bench.rivals.gaps [--only methods=blend,knn_imputer,sets=wine,seeds=0]
    python -m vedute_bench.rivals.gaps --table    write the table of docs/gaps.md

Tables of scikit-learn cut into views, seeds 0 to 2, and sets of VEDUTE_DATA, seed 0, of which at
most ROWS rows and WIDTH columns are used, so that imputers that go column by column end in
minutes: every k-th column of each view, a view of ten columns as it is. The seed chooses the
entries and is the random_state. A run with a current record (same code, see `source_digest`) is
not made again; the table has the newest record of each run.

error: mean squared error of the hidden entries, in standard deviations of their columns.
coverage: how many of them are inside the 90 % interval, in percent.
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
TABLES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {  # and where their views begin
    "breast_cancer": (datasets.load_breast_cancer, (0, 10, 20, 30)),  # mean, error, worst
    "wine": (datasets.load_wine, (0, 5, 9, 13)),
    "diabetes": (datasets.load_diabetes, (0, 4, 10)),  # the person, the serum
}
SETS = ("reuters1200", "wikipedia", "tcga_brca", "msrc_v1", "prokaryotic")
SLOW = ("forest",)  # on these
Floats = NDArray[np.float64]


class Run(NamedTuple):
    """One fit; the names are those of a record."""

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


def measure(what: Run) -> dict[str, Any]:
    truth = load(what.dataset)
    views = drop_entries(truth, RATE, what.seed)
    start = perf_counter()
    ends = (_by_rival if what.method in RIVALS else _by_method)(what, views)
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
    return {"scores": scores, "seconds": seconds, "hidden": int(hidden.sum())} | _here()


def _here() -> dict[str, Any]:
    """Where a run is made and with which code."""
    return {"device": workers.cpu_name(), "threads": torch.get_num_threads(), **run.code()}


def _by_method(what: Run, views: Views) -> list[Floats]:
    """Mean, lower and upper end, (n, p)."""
    model = methods.find(what.method)(random_state=what.seed).fit(views)
    return [np.hstack([x.numpy() for x in end.x]) for end in model.impute(views, interval=LEVEL)]


def _by_rival(what: Run, views: Views) -> list[Floats]:
    """On z-scored columns."""
    table = np.hstack(views.arrays()).astype(np.float64)
    edges = np.cumsum([0, *(x.shape[1] for x in views.x)])
    mean, std = np.nanmean(table, 0), np.nanstd(table, 0)
    std[std == 0] = 1.0
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    return [RIVALS[what.method]((table - mean) / std, blocks, what.seed) * std + mean]


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
    """Set by set, and what is slow after all."""
    sets = [s for s in (*TABLES, *SETS) if s in only.get("sets", [s])]
    names = [m for m in (*OURS, *RIVALS) if m in only.get("methods", [m])]
    runs = [Run(m, s, i) for s in sets for m in names for i in ((0, 1, 2) if s in TABLES else (0,))]
    runs = [r for r in runs if r.dataset in TABLES or r.method not in SLOW]
    runs = [r for r in runs if str(r.seed) in only.get("seeds", [str(r.seed)])]
    return sorted(runs, key=lambda r: r.method in SLOW)


# The table.


def page(known: Sequence[dict[str, Any]]) -> str:
    """What docs/gaps.md has of the newest record of each run."""
    newest = list({_place(r): r for r in known}.values())
    return "\n".join([*table(newest), "", *origins(newest)]) + "\n"


def origins(known: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How many runs were made by which commit, machine and releases."""
    for text, runs in Counter(map(_origin, known)).items():
        yield f"{runs} runs: {text}."


def _origin(r: dict[str, Any]) -> str:
    releases = ", ".join(f"{k} {v}" for k, v in r["versions"].items() if k != "vedute")
    threads = "one thread" if r["threads"] == 1 else f"{r['threads']} threads"
    return f"commit `{r['commit'][:7]}`, {threads} of {r['device']}, {releases}"


def table(known: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Errors, with the coverage of ours; the least error of ours and of the others is bold. A row
    has the seeds that all its methods have."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for r in known:
        found.setdefault((r["dataset"], r["method"]), []).append(r)
    names = [m for m in (*RIVALS, *OURS) if any(m == method for _, method in found)]
    yield "| | " + " | ".join(names) + " |"
    yield "|---|" + "--:|" * len(names)
    for s in dict.fromkeys(s for s in (*TABLES, *SETS) if any(s == d for d, _ in found)):
        mine = {m: found[s, m] for m in names if (s, m) in found}
        seeds = set.intersection(*({r["seed"] for r in rs} for rs in mine.values()))
        mine = {m: [r for r in rs if r["seed"] in seeds] for m, rs in mine.items()}
        errors = {m: np.mean([r["scores"]["error"] for r in rs]) for m, rs in mine.items()}
        sides = ([m for m in errors if (m in RIVALS) == theirs] for theirs in (True, False))
        best = {min(side, key=errors.__getitem__) for side in sides if side}
        yield (
            f"| {s}, {len(seeds)} seed{'s'[: len(seeds) > 1]} | "
            + " | ".join(_cell(mine.get(m), m in best) for m in names)
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
    for what in planned(options.only):
        if what not in done:
            record = {**what._asdict(), "code": code(what.method), **measure(what)}
            records.append(options.out, record)
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
