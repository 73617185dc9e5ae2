"""Pack records: merge `records.jsonl` into `records.jsonl.xz`.

    python -m vedute_bench.runner.pack [FILE ...]    all files of records in results, or these

Outdated runs of a study are dropped: failures that were repeated, and runs that the tables leave
out because a later run of the same label has other settings or another mask. Comparisons with
other libraries record a checksum of their code; only the last record of each method, dataset, rate
and seed is kept. Each record names its commit, or `unknown`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from vedute_bench.places import RESULTS
from vedute_bench.runner import lines, plan, records
from vedute_bench.runner.records import RunRecord
from vedute_bench.summaries.summary import Summary


def main(words: Sequence[str]) -> None:
    for path in map(Path, words) if words else sorted(RESULTS.rglob("*.jsonl")):
        known = lines.read(path)
        kept = named(current(known))
        lines.pack(path, kept)
        print(f"{lines.packed(path)}: {len(kept)} of {len(known)} records")


def current(known: list[RunRecord]) -> list[RunRecord]:
    """Records in their order, without outdated ones."""
    if all("code" in r and "label" not in r for r in known):
        last = {_place(r): r for r in known}
        return [r for r in known if r is last[_place(r)]]
    if not all("mask" in r and "label" in r for r in known):
        return known  # records of a script, with other keys
    summary = Summary.of(records.finished(known))
    used = {id(r) for runs in (summary.records, summary.tried) for rs in runs.values() for r in rs}
    done = {plan.key(r) for r in known if id(r) in used}
    return [r for r in known if id(r) in used or ("failed" in r and plan.key(r) not in done)]


def _place(r: RunRecord) -> tuple[object, ...]:
    return r["method"], r["dataset"], r.get("rate"), r["seed"]


def named(known: list[RunRecord]) -> list[RunRecord]:
    return [r | {"commit": r.get("commit") or "unknown"} for r in known]


if __name__ == "__main__":
    main(sys.argv[1:])
