"""Error and time of the methods that a newcomer chooses between, and of README's two commands.

    python -m vedute_bench.speed.first_use [METHOD ...]   fits; records in results/first-use
    python -m vedute_bench.speed.first_use --commands     time `make demo`, `make test`

The data are those of `vedute demo`: handwritten digits, half of the rows incomplete, mask seed 42.
Seconds are wall time of fit and imputation on an otherwise idle machine.
"""

from __future__ import annotations

import os
import platform
import subprocess
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Any

from vedute_bench.places import RESULTS, ROOT
from vedute_bench.rivals.rivals_page import markdown
from vedute_bench.runner import lines

FILE = RESULTS / "first-use" / "records.jsonl"
METHODS = {  # method: when to take it
    "blend": "the default: good imputations and clusters",
    "mvp": "the paper's method, draws, images",
    "lowrank_fill": "seconds count, or views are nearly linear in each other",
    "mvtcae": "comparing methods; five more VAEs, eight methods for clustering",
}
COMMANDS = ("demo", "test")
RATE, MASK_SEED = 0.5, 42


def measure(method: str) -> dict[str, Any]:
    from vedute import datasets, drop_views, methods
    from vedute.metrics.scores import clustering_accuracy, imputation_error

    truth = datasets.load("handwritten")
    views = drop_views(truth, RATE, MASK_SEED)
    start = perf_counter()
    model = methods.find(method)(n_clusters=10, random_state=0).fit(views)
    filled = model.impute(views)
    seconds = round(perf_counter() - start, 1)
    error = imputation_error(truth.x, filled.x, (~views.mask).numpy())
    accuracy = clustering_accuracy(truth.y, model.labels_)
    return {"method": method, "error": error, "acc": 100 * accuracy, "seconds": seconds}


def timed(command: str) -> dict[str, Any]:
    start = perf_counter()
    subprocess.run(["make", "-C", str(ROOT), command], check=True)
    return {"command": command, "seconds": round(perf_counter() - start, 1)}


def write(record: dict[str, Any]) -> None:
    """Keep the newest record of each method and command."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    record |= {"commit": commit.stdout.strip(), "machine": _processor(), "cores": os.cpu_count()}
    kept = [r for r in known() if _key(r) != _key(record)]
    lines.pack(FILE, [*kept, record])


def known() -> list[dict[str, Any]]:
    return lines.read(FILE)


def _key(record: dict[str, Any]) -> str:
    return str(record.get("method", record.get("command")))


def _processor() -> str:
    with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table() -> str:
    """A row per method: when to take it, error of hidden views, accuracy of clusters, seconds."""
    by_method = {_key(r): r for r in known()}
    rows = []
    for method, when in METHODS.items():
        r = by_method[method]
        rows.append(
            [f"`{method}`", when, f"{r['error']:.2f}", f"{r['acc']:.0f} %", f"{r['seconds']:.0f} s"]
        )
    table = markdown(["method", "take it for", "error", "clusters", "time"], rows)
    return table.replace("---|--:", "---|---", 1)


def minutes(command: str) -> str:
    """Minutes of a command, rounded up."""
    seconds = next(r["seconds"] for r in known() if _key(r) == command)
    return str(-int(-seconds // 60))


def machine() -> str:
    record = next(r for r in known() if _key(r) == "blend")
    return f"{record['cores']} cores of {record['machine']}"


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("methods", nargs="*", default=list(METHODS))
    parser.add_argument("--commands", action="store_true", help="time make demo and make test")
    options = parser.parse_args()
    for name in COMMANDS if options.commands else options.methods:
        record = timed(name) if options.commands else measure(name)
        write(record)
        print(record, flush=True)


if __name__ == "__main__":
    main()
