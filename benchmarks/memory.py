"""How much memory a fit takes by the number of rows.

    python benchmarks/memory.py            measures; records in benchmarks/results/memory
    python benchmarks/memory.py --table    the table in docs/costs.md

Three views of 50 numbers, half of the rows incomplete. Every fit has a process of its own, and one
thread; what counts is its peak of resident memory less that of a process that loads the library
and fits 50 rows. Methods that train do 20 steps: more steps take no more memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

FILE = Path(__file__).parent / "results" / "memory" / "records.jsonl"
ROWS, METHODS, LEAST = (1000, 10_000, 50_000), ("blend", "mvp", "lowrank_fill"), 50


def peak(method: str, rows: int) -> float:
    """MiB of this process after a fit."""
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


def apart(method: str, rows: int) -> float:
    words = [sys.executable, __file__, "--one", method, str(rows)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def measure() -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with FILE.open("w", encoding="utf-8") as file:
        for method in METHODS:
            base = apart(method, LEAST)
            for rows in ROWS if method == "mvp" else ROWS[:2]:  # others take long
                found = {"method": method, "rows": rows, "mib": apart(method, rows) - base}
                file.write(json.dumps(found | {"base_mib": base}) + "\n")
                file.flush()


def table() -> str:
    found = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    cells = {(r["method"], r["rows"]): f"{r['mib']:.0f}" for r in found}
    lines = [["rows", *(f"`{m}`" for m in METHODS)], ["--:"] * (1 + len(METHODS))]
    lines += [[f"{n:,}", *(cells.get((m, n), "–") for m in METHODS)] for n in ROWS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="print the table of what is recorded")
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "ROWS"), help="one fit, in MiB")
    options = parser.parse_args()
    if options.one:
        print(peak(options.one[0], int(options.one[1])))
    elif options.table:
        print(table())
    else:
        measure()


if __name__ == "__main__":
    main()
