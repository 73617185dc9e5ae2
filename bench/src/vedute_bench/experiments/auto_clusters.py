"""Numbers of clusters that `n_clusters="auto"` selects on the labelled real sets in VEDUTE_DATA.

    python -m vedute_bench.experiments.auto_clusters [--methods lowrank_fill,mvp] [--keep FOLDER]
    python -m vedute_bench.experiments.auto_clusters --table     print the table of docs/clusters.md

The rule is applied to the representation of each method (random_state 0) on complete data and with
half of the views missing (`bernoulli`, seed 42). With --keep, representations are cached there as
.npz files, so that another rule takes seconds. A record of the same method, set and rate is
replaced. `seconds` is the CPU time of the rule alone.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from vedute import methods
from vedute.data import missing
from vedute.estimators import clustering
from vedute_bench.places import RESULTS
from vedute_bench.rivals import real_sets
from vedute_bench.runner import lines

OUT = RESULTS / "auto_clusters" / "records.jsonl"
RATES, MASK_SEED, PROTOCOL = (0.5, 0.0), 42, "bernoulli"
Record = dict[str, Any]


def representation(method: str, dataset: str, rate: float, keep: Path | None) -> Any:
    """Representation (n, D), fitted or read from the cache folder."""
    path = None if keep is None else keep / f"{method}-{dataset}-{rate:g}.npz"
    if path is not None and path.is_file():
        return np.load(path)["z"]
    views = real_sets.load(dataset)
    views = missing.drop_views(views, rate, MASK_SEED, PROTOCOL) if rate else views
    model = methods.find(method)(random_state=0)
    model.__dict__["_calibrate"] = lambda *_: None  # intervals, which are not needed here
    z = model.fit(views).embedding_
    if path is not None:
        np.savez(path, z=z)
    return z


def measure(method: str, dataset: str, rate: float, keep: Path | None) -> Record:
    z = representation(method, dataset, rate, keep)
    start = process_time()
    chosen, _ = clustering.choose(z, clustering.AUTOMATIC, seed=0)
    seconds = round(process_time() - start, 2)
    true = len(np.unique(real_sets.load(dataset).y))
    place = {"method": method, "dataset": dataset, "rate": rate, "n": len(z), "dim": z.shape[1]}
    return {**place, "true": true, "found": chosen, "seconds": seconds}


def key(record: Record) -> tuple[Any, ...]:
    return record["method"], record["dataset"], record["rate"]


def write(record: Record) -> None:
    """Write a record in place of that of the same run."""
    kept = [r for r in known() if key(r) != key(record)]
    lines.write(OUT, sorted([*kept, record], key=key))


def known() -> list[Record]:
    return lines.read(OUT)


def table() -> str:
    """Table with a row per set, a column per method and rate, and the shares of right numbers."""
    by_key = {key(r): r for r in known()}
    columns = sorted({(m, rate) for m, _, rate in by_key})
    heads = [f"{m}, {'half missing' if rate else 'complete'}" for m, rate in columns]
    lines = [f"| set | classes | {' | '.join(heads)} |", f"|---|--:|{'--:|' * len(columns)}"]
    for name, true in sorted({(r["dataset"], r["true"]) for r in by_key.values()}):
        row = [by_key.get((m, name, rate), {}).get("found", "–") for m, rate in columns]
        lines.append(f"| {name} | {true} | {' | '.join(map(str, row))} |")
    for word, most in (("right", 0), ("right or off by one", 1)):
        row = []
        for column in columns:
            records = [r for k, r in by_key.items() if (k[0], k[2]) == column]
            off = [abs(r["found"] - r["true"]) for r in records]
            row.append(f"{sum(o <= most for o in off)} of {len(off)}")
        lines.append(f"| **{word}** | | {' | '.join(row)} |")
    return "\n".join(lines)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--methods", default="lowrank_fill,mvp")
    parser.add_argument("--sets", default=",".join(real_sets.available()))
    parser.add_argument("--rates", default=",".join(map(str, RATES)))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        return print(table())
    for rate in map(float, options.rates.split(",")):
        for method in options.methods.split(","):
            for dataset in options.sets.split(","):
                record = measure(method, dataset, rate, options.keep)
                write(record)
                print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
