"""Memory of a fit by the number of rows, and memory of MVP's verbs.

    python -m vedute_bench.speed.memory                 fits; records in bench/results/memory

    python -m vedute_bench.speed.memory --verbs ROWS    verbs of MVP on ROWS rows

    python -m vedute_bench.speed.memory --table         the tables in docs/costs.md

The data are three views of 50 numbers, half of the rows incomplete. Every fit has a separate
process with one thread. The score is its peak resident memory less that of a process that loads the
library and fits 50 rows. Methods that train do 20 steps, since more steps need no more memory.

Verbs take float32 with NaN in missing rows, made in blocks, or a Views of it. `transform` and
`impute` follow a fit on the first 5000 rows. The score is the peak less that of the same verb with
5000 rows, data included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from argparse import ArgumentParser
from itertools import product
from pathlib import Path
from typing import Any

from vedute_bench.places import RESULTS
from vedute_bench.runner import lines

FOLDER = RESULTS / "memory"
FILE, VERB_FILE = FOLDER / "records.jsonl", FOLDER / "verbs.jsonl"
ROWS, METHODS, LEAST = (1000, 10_000, 50_000), ("blend", "mvp", "lowrank_fill"), 50
VERBS, KINDS, FITTED, BLOCK, VIEWS, WIDTH = (
    ("fit", "transform", "impute"),
    ("arrays", "views"),
    5000,
    10_000,
    3,
    50,
)


def peak(method: str, rows: int) -> float:
    """Peak MiB of this process after a fit."""
    import numpy as np
    import torch

    from vedute import drop_views, methods

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(rows, 10))
    views = drop_views([np.tanh(z @ rng.normal(size=(10, 50))) for _ in range(3)], 0.5, 42)
    short = {"blend": {"expert_settings": {"mvp__steps": 20}}, "mvp": {"steps": 20}}
    methods.find(method)(random_state=0, **short.get(method, {})).fit(views)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def verb_peak(verb: str, kind: str, rows: int) -> float:
    """Peak MiB of this process after a verb of MVP."""
    import torch

    from vedute import MVP, Views

    torch.set_num_threads(1)
    X: Any = incomplete(rows)
    few = [x[:FITTED].copy() for x in X]
    X = Views.of(X) if kind == "views" else X
    model = MVP(steps=20, random_state=0).fit(X if verb == "fit" else few)
    result = getattr(model, verb)(X) if verb != "fit" else model  # alive at the peak
    assert result is not None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def incomplete(rows: int) -> list[Any]:
    """Views (rows, WIDTH) in float32, each missing in a quarter of the rows."""
    import numpy as np

    rng = np.random.default_rng(0)
    weights = rng.normal(size=(VIEWS, 10, WIDTH))
    X = [np.empty((rows, WIDTH), np.float32) for _ in range(VIEWS)]
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        z, gone = rng.normal(size=(n, 10)), rng.integers(VIEWS + 1, size=n)
        for v, x in enumerate(X):
            x[start : start + n] = np.tanh(z @ weights[v])
            x[start : start + n][gone == v] = np.nan
    return X


def in_subprocess(*arguments: object) -> float:
    words = [sys.executable, __file__, "--one", *map(str, arguments)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def measure_verbs(rows: int) -> None:
    kept = [r for r in read(VERB_FILE) if r["rows"] != rows]
    for verb, kind in product(VERBS, KINDS):
        base, data = in_subprocess(verb, kind, FITTED), rows * VIEWS * WIDTH * 4 / 2**20
        mib = in_subprocess(verb, kind, rows) - base
        kept.append({"verb": verb, "given": kind, "rows": rows, "data_mib": data, "mib": mib})
        lines.write(VERB_FILE, kept)


def measure() -> None:
    kept = list[dict[str, Any]]()
    for method in METHODS:
        base = in_subprocess(method, LEAST)
        for rows in ROWS if method == "mvp" else ROWS[:2]:  # others take long
            mib = in_subprocess(method, rows) - base
            kept.append({"method": method, "rows": rows, "mib": mib, "base_mib": base})
            lines.write(FILE, kept)


def read(file: Path) -> list[dict[str, Any]]:
    return lines.read(file)


def table() -> str:
    cells = {(r["method"], r["rows"]): f"{r['mib']:.0f}" for r in read(FILE)}
    lines = [["rows", *(f"`{m}`" for m in METHODS)], ["--:"] * (1 + len(METHODS))]
    lines += [[f"{n:,}", *(cells.get((m, n), "–") for m in METHODS)] for n in ROWS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verb_table() -> str:
    """Table of memory as a multiple of the data's size."""
    known = read(VERB_FILE)
    cells = {(r["rows"], r["verb"], r["given"]): f"{r['mib'] / r['data_mib']:.1f}" for r in known}
    sizes = {r["rows"]: f"{r['data_mib']:.0f}" for r in known}
    columns = [*product(VERBS, KINDS)]
    lines = [["rows", "data, MiB", *(f"`{v}`, {k}" for v, k in columns)]]
    lines += [["--:"] * (2 + len(columns))]
    for n, size in sorted(sizes.items()):
        lines.append([f"{n:,}", size, *(cells.get((n, *c), "–") for c in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="print the tables of the records")
    parser.add_argument(
        "--verbs", type=int, metavar="ROWS", help="measure the verbs of MVP on ROWS rows"
    )
    parser.add_argument("--one", nargs="+", help="METHOD ROWS or VERB KIND ROWS; print MiB")
    options = parser.parse_args()
    if options.one:
        *words, rows = options.one
        print(verb_peak(*words, int(rows)) if len(words) > 1 else peak(*words, int(rows)))
    elif options.table:
        print(table(), verb_table(), sep="\n\n")
    elif options.verbs:
        measure_verbs(options.verbs)
    else:
        measure()


if __name__ == "__main__":
    main()
