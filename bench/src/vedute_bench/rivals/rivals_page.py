"""Tables of docs/rivals.md from the records of `rivals.py`: means over seeds, sets in rows.

The text above the mark in the page is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from vedute_bench.rivals import rival_imputers

Record = dict[str, Any]
MARK = "<!-- made by bench/src/vedute_bench/rivals/rivals.py --table -->"
RATE, ENOUGH = 0.5, 100  # ENOUGH: minimum number of hidden instances of a listed view
NO_VALUE = "–"


class Table(NamedTuple):
    """Records by (method, dataset, rate), the latest of each seed."""

    cells: dict[tuple[str, str, float], list[Record]]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Table:
        latest = {}
        for r in records:
            if "stopped" not in r:
                latest[r["method"], r["dataset"], r["rate"], r["seed"]] = r
        cells = defaultdict(list)
        for (*place, _), r in sorted(latest.items()):
            cells[tuple(place)].append(r)
        return cls(dict(cells))

    def mean(self, method: str, dataset: str, score: str, rate: float = RATE) -> float | None:
        values = [_value(r, score) for r in self.cells.get((method, dataset, rate), [])]
        known = [v for v in values if v is not None]
        return fmean(known) if known else None

    def reason(self, method: str, dataset: str, rate: float = RATE) -> str:
        """Reason why there is no number."""
        runs = self.cells.get((method, dataset, rate), [])
        if any("timed_out" in r for r in runs):
            return f"> {max(r['limit'] for r in runs if 'timed_out' in r):g} s"
        return "failed" if any("failed" in r for r in runs) else NO_VALUE

    @property
    def sets(self) -> list[str]:
        return sorted({dataset for _, dataset, _ in self.cells})

    @property
    def groups(self) -> dict[str, list[str]]:
        """Methods by the title of their table."""
        known = {method for method, _, _ in self.cells}
        others = [name for name in rival_imputers.RIVALS if name in known]
        fills = sorted(name for name in known if name.endswith("_fill"))
        first = [name for name in ("blend", "mvp") if name in known]
        rest = sorted(known - {*others, *fills, *first})
        return {"Blend, MVP, the fills and what others offer": first + fills + others} | (
            {"The other methods of this library": rest} if rest else {}
        )

    @property
    def methods(self) -> list[str]:
        return [name for group in self.groups.values() for name in group]

    @property
    def default(self) -> str:
        return "blend" if "blend" in self.methods else "mvp"

    def best_other(self, dataset: str) -> tuple[float, str] | None:
        """Least error of all methods but the default, and the method."""
        errors = [(self.mean(m, dataset, "error"), m) for m in self.methods if m != self.default]
        return min(((e, m) for e, m in errors if e is not None), default=None)


def write(page: Path, records: Sequence[Record], is_current: Callable[[Record], bool]) -> None:
    """Write the page with new tables, and the number of records with older code."""
    table = Table.of(sorted(records, key=is_current))  # current ones replace older ones
    old = sum(not is_current(r) for runs in table.cells.values() for r in runs)
    total = sum(map(len, table.cells.values()))
    text = page.read_text(encoding="utf-8") if page.exists() else f"# Rivals\n\n{MARK}\n"
    devices = sorted({r["device"] for r in records if "device" in r})
    made = f"{total} runs, {old} of them with older code, on {', '.join(devices)}."
    parts = [text.partition(MARK)[0] + MARK, f"{made} {_seeds(table)}"]
    page.write_text("\n\n".join([*parts, *sections(table)]) + "\n", encoding="utf-8")


def _seeds(t: Table) -> str:
    """Sentence on the numbers of seeds at RATE."""
    fewest: dict[int, list[str]] = defaultdict(list)
    for method in t.methods:
        seeds = [len(t.cells[method, d, RATE]) for d in t.sets if (method, d, RATE) in t.cells]
        if seeds:
            fewest[min(seeds)].append(method)
    counts = [f"{', '.join(names)}: {n}" for n, names in sorted(fewest.items(), reverse=True)]
    return f"Seeds at rate {RATE:g}, on every set at least: {'; '.join(counts)}."


def sections(t: Table) -> list[str]:
    if not t.cells:
        return []
    return [
        "## Who infers hidden views best\n\nError of hidden views at rate "
        f"{RATE:g}, 1 is about that of the mean; the best of all methods in bold.",
        *_scores(t, "error", 3, min),
        "### Blend against the best other method",
        _ratios(t),
        "### Every method beside MVP\n\nOf methods that have a number on every set: geometric mean "
        "of the errors over those of MVP, and mean accuracy in percent.",
        _beside_mvp(t),
        "## Other rates",
        *_rates(t),
        "## Clusters\n\nAccuracy in percent.",
        *_scores(t, "acc", 1, max),
        "## Intervals\n\nShare of hidden values inside 90 % and 50 % intervals, in percent.",
        *_coverages(t),
        f"### {t.default} by view\n\nViews with at least {ENOUGH} hidden instances.",
        _views(t),
        "## Seconds\n\nOf fit and imputation, on one core; of networks on what the record says.",
        *_scores(t, "seconds", 1, None),
    ]


def _scores(t: Table, score: str, digits: int, best: Callable[..., float] | None) -> list[str]:
    """Tables per group of methods, the best of each row in bold."""
    tables = []
    for title, names in t.groups.items():
        rows = []
        for dataset in t.sets:
            values = [t.mean(m, dataset, score) for m in t.methods]
            known = [round(v, digits) for v in values if v is not None]
            top = best(known) if best and known else None
            rows.append([dataset, *(_cell(t, m, dataset, score, digits, top) for m in names)])
        tables.append(f"**{title}**\n\n{markdown(['', *names], rows)}")
    return tables


def _cell(t: Table, method: str, dataset: str, score: str, digits: int, top: float | None) -> str:
    value = t.mean(method, dataset, score)
    if value is None:
        return t.reason(method, dataset)
    text = f"{value:.{digits}f}"
    return f"**{text}**" if round(value, digits) == top else text


def _ratios(t: Table) -> str:
    """Table of the default's error over the least other one per set, and the geometric mean."""
    rows, ratios = [], []
    for dataset in t.sets:
        error, other = t.mean(t.default, dataset, "error"), t.best_other(dataset)
        if error is not None and other is not None:
            ratios.append(error / other[0])
            rows.append([dataset, f"{error:.3f}", f"{other[0]:.3f}", other[1], f"{ratios[-1]:.3f}"])
    if ratios:
        mean = exp(fmean(map(log, ratios)))
        rows.append(["geometric mean", "", "", "", f"**{mean:.3f}**"])
    return markdown(["", t.default, "best other", "which", "ratio"], rows)


def _beside_mvp(t: Table) -> str:
    rows = []
    for method in t.methods:
        scores = [
            [t.mean(m, s, k) for s in t.sets]
            for m, k in ((method, "error"), ("mvp", "error"), (method, "acc"))
        ]
        if all(v is not None for values in scores for v in values):
            errors, of_mvp, acc = scores
            ratio = exp(fmean(log(a / b) for a, b in zip(errors, of_mvp, strict=True)))
            rows.append([method, f"{ratio:.3f}", f"{fmean(acc):.1f}"])
    return markdown(["", "error / MVP's", "accuracy"], rows)


def _rates(t: Table) -> list[str]:
    """Tables of errors at other rates, for the methods that have them."""
    tables = []
    for rate in sorted({r for _, _, r in t.cells} - {RATE}):
        names = [m for m in t.methods if any((m, s, rate) in t.cells for s in t.sets)]
        rows = []
        for dataset in t.sets:
            values = {m: t.mean(m, dataset, "error", rate) for m in names}
            known = [round(v, 3) for v in values.values() if v is not None]
            texts = {m: t.reason(m, dataset, rate) for m in names}
            texts |= {m: f"{v:.3f}" for m, v in values.items() if v is not None}
            top = f"{min(known):.3f}" if known else None
            rows.append([dataset, *(f"**{s}**" if s == top else s for s in texts.values())])
        tables.append(f"**Rate {rate:g}**\n\n{markdown(['', *names], rows)}")
    return tables


def _coverages(t: Table) -> list[str]:
    tables = []
    for title, names in t.groups.items():
        able = [m for m in names if any(t.mean(m, s, "coverage") is not None for s in t.sets)]
        rows = [[s, *(_coverage(t, m, s) for m in able)] for s in t.sets]
        tables += [f"**{title}**\n\n{markdown(['', *able], rows)}"] if able else []
    return tables


def _coverage(t: Table, method: str, dataset: str) -> str:
    values = [t.mean(method, dataset, score) for score in ("coverage", "coverage_50")]
    known = [f"{v:.1f}" for v in values if v is not None]
    return " / ".join(known) or t.reason(method, dataset)


def _views(t: Table) -> str:
    rows = []
    for dataset in t.sets:
        runs = [r for r in t.cells.get((t.default, dataset, RATE), []) if r.get("by_view")]
        for view, first in runs[0]["by_view"].items() if runs else ():
            if first["hidden"] >= ENOUGH:
                by_seed = [r["by_view"][view] for r in runs]
                scores = [("error", 3), ("coverage", 1), ("coverage_50", 1)]
                texts = [f"{fmean(s[k] for s in by_seed):.{d}f}" for k, d in scores if k in first]
                rows.append([f"{dataset}: {view}", str(first["hidden"]), *texts])
    return markdown(["", "hidden", "error", "90 %", "50 %"], rows)


def _value(record: Record, score: str) -> float | None:
    value = record.get("seconds") if score == "seconds" else record["scores"].get(score)
    return None if value is None else float(value)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)
