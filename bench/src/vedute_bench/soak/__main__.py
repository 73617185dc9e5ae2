"""Soak test: thousands of kills, crashes, odd inputs and damaged files.

    python -m vedute_bench.soak                        missing batches, in this checkout

    python -m vedute_bench.soak --parts fuzz --again   a part from its beginning

    python -m vedute_bench.soak --quick                two minutes, fixed seeds, no records

    python -m vedute_bench.soak --share 0/2            every second batch, if another process
                                                       runs 1/2

    python -m vedute_bench.soak --table                the table in docs/soak.md, from the records

Every batch of cases is a line in bench/results/soak/records.jsonl. The exit code is 1 if any case
failed. `--case fuzz/123` repeats a case by its name.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # processes are forked, so there must be no threads

from vedute_bench.places import RESULTS, SUPPORT
from vedute_bench.runner import lines

RECORDS = RESULTS / "soak" / "records.jsonl"
sys.path[:0] = [str(SUPPORT)]
sys.dont_write_bytecode = True
if Path("/dev/shm").is_dir():  # memory is faster than a disk
    tempfile.tempdir = "/dev/shm"

PARTS = {  # description of the cases, and their minimum number
    "kills": ("`kill -9` of a fit at a random moment, then resumed: the same bytes", 300),
    "crashes": ("end at a step on the disk, in `save`, `fit`, `impute`, `bench`", 500),
    "fuzz": ("odd inputs: arrays, frames, files, the command line", 20_000),
    "fits": ("odd inputs to tiny fits of every method", 1500),
    "folders": ("altered folders of saved models", 200),
    "files": ("damaged files of every format that is read", 100),
    "answers": ("properties of answers, such as observed cells that stay", 1000),
}
LONGEST = 1500.0  # maximum seconds of a batch
QUICK = 75.0  # total seconds for --quick
MOST_CASES = 2000  # cases of a batch that are searched by name


def main() -> None:
    options = _options()
    if options.table:
        return print(table(_recorded()))
    warnings.simplefilter("ignore")
    if options.case:
        return _repeat(options.case)
    if options.again:
        _forget(options.parts)
    done = {(r["part"], r["batch"]) for r in _recorded()}
    failures = sum(
        _soak(part, options, {b for p, b in done if p == part}) for part in options.parts
    )
    sys.exit(failures > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[*PARTS])
    for name in ("quick", "again", "table"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--case", metavar="PART/NAME")
    parser.add_argument("--share", default="0/1", help="i/n: every n-th batch, from the i-th on")
    return parser.parse_args()


def _soak(part: str, options: argparse.Namespace, done: set[int]) -> int:
    """Run all batches of a part that are not done; return the number of failures."""
    from vedute_bench.runner.run import commit
    from vedute_bench.soak.watching import in_subprocess

    module: Any = import_module(f"vedute_bench.soak.{part}")
    getattr(module, "warm", lambda: None)()
    first, stride = map(int, options.share.split("/"))
    batches = module.QUICK if options.quick else range(first, module.BATCHES, stride)
    until = time.monotonic() + QUICK / len(options.parts) if options.quick else None
    failures = 0
    for batch in batches:
        if not options.quick and batch in done:
            continue
        start = time.monotonic()
        try:
            result = in_subprocess(lambda b=batch: _batch(module.cases(b), until), LONGEST, None)
        except AssertionError as error:  # the process itself ended
            result = {"cases": 0, "outcomes": {}, "failures": [["all", str(error)]]}
        seconds = round(time.monotonic() - start, 1)
        record = {"part": part, "batch": batch, **result, "seconds": seconds}
        record |= {"commit": commit(), "machine": _machine(), "time": time.strftime("%F %T")}
        failures += len(result["failures"])
        _report(record)
        if not options.quick:
            RECORDS.parent.mkdir(parents=True, exist_ok=True)
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    return failures


def _batch(cases: Iterable[tuple[str, Any]], until: float | None) -> dict[str, Any]:
    """Run every case of a batch in a separate folder; until: time at which to stop."""
    outcomes, failures = Counter[str](), list[list[str]]()
    home = Path.cwd()
    for name, case in cases:
        if until is not None and time.monotonic() > until:
            break
        with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as place:
            os.chdir(place)
            try:
                outcomes[case(Path(place))] += 1
            except Exception as error:
                outcomes["wrong"] += 1
                failures.append([name, f"{type(error).__name__}: {error}"[:500]])
            os.chdir(home)
    return {"cases": outcomes.total(), "outcomes": dict(outcomes), "failures": failures}


def _repeat(name: str) -> None:
    """Repeat one case, with its traceback."""
    part, _, requested = name.partition("/")
    module: Any = import_module(f"vedute_bench.soak.{part}")
    for batch in range(module.BATCHES):
        for known, case in islice(module.cases(batch), MOST_CASES):
            if known == requested:
                with tempfile.TemporaryDirectory() as place:
                    os.chdir(place)
                    return print(case(Path(place)))
    sys.exit(f"no case {name}")


def _recorded() -> list[dict[str, Any]]:
    return lines.read(RECORDS)


def _forget(parts: list[str]) -> None:
    lines.write(RECORDS, [r for r in _recorded() if r["part"] not in parts])


def _report(record: dict[str, Any]) -> None:
    words = ", ".join(f"{n} {word}" for word, n in sorted(record["outcomes"].items()))
    print(f"{record['part']} {record['batch']}: {words}; {record['seconds']} s", flush=True)
    for name, error in record["failures"]:
        print(f"  {record['part']}/{name}: {error}", flush=True)


def _machine() -> str:
    models = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{models[0] if models else platform.machine()}, Python {platform.python_version()}"


def table(records: list[dict[str, Any]]) -> str:
    """Markdown table of cases, outcomes, failures, time and commits by part."""
    rows = ["| what | cases | of these | wrong | time | code |", "|---|---|---|---|---|---|"]
    by_part = defaultdict(list)
    for record in records:
        by_part[record["part"]].append(record)
    for part, (meaning, _) in PARTS.items():
        batches = by_part[part]
        if not batches:
            continue
        outcomes = Counter[str]()
        for word, n in ((w, n) for r in batches for w, n in r["outcomes"].items()):
            outcomes[word.rpartition(": ")[2]] += n  # summed over containers, methods and formats
        words = ", ".join(f"{n} {w}" for w, n in outcomes.most_common() if w != "wrong")
        minutes = sum(r["seconds"] for r in batches) / 60
        commits = ", ".join(sorted({f"`{(r['commit'] or '?')[:8]}`" for r in batches}))
        failed = sum(len(r["failures"]) for r in batches)
        cells = (meaning, f"{outcomes.total():,}", words, failed, f"{minutes:.0f} min", commits)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    machines = "; ".join(sorted({r["machine"] for r in records}))
    return "\n".join([*rows, "", f"Machine: {machines}, one core."])


if __name__ == "__main__":
    main()
