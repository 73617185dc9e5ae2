"""Records of studies, and the rule by which a printed number counts as reproduced."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vedute_bench import studies
from vedute_bench.runner import lines, records
from vedute_bench.runner.records import RunRecord
from vedute_bench.summaries.summary import Cell, Summary

HERE = Path(__file__).parent
PRINTED: dict[str, Any] = tomllib.loads((HERE / "printed.toml").read_text(encoding="utf-8"))
UNKNOWN = "unknown"  # the commit of records that name none
NEAR = 1.0  # percentage points, if no standard deviation is printed
RULE = (
    "A printed number is *reached* if our mean is not below it by more than its printed standard "
    "deviation, and *exceeded* if ours is above it by more than that; where none is printed, by "
    f"more than {NEAR:g} percent point. **Better**: all are reached, and more than half exceeded. "
    "**Reproduced**: all are reached. **Partly reproduced**: at least half. **Not reproduced**: "
    "fewer. Of variants that the paper compares (ablation, latent sizes), a number that is "
    "exceeded is not reproduced either. For claims without printed numbers the verdict itself says "
    "what was compared. Numbers on other data than the paper's are never compared."
)


@dataclass(frozen=True)
class Results:
    """Folder of results, with a folder per study."""

    folder: Path

    def file(self, study: str) -> Path:
        return self.folder / study / "records.jsonl"

    def all(self, study: str) -> list[RunRecord]:
        return lines.read(self.file(study))

    def summary(self, *names: str) -> Summary:
        """Summary of the successful runs of studies."""
        return Summary.of(records.finished(r for name in names for r in self.all(name)))


class Pair(NamedTuple):
    """Pair of a printed number and ours."""

    name: str
    printed: float
    std: float | None
    ours: Cell

    @property
    def near(self) -> float:
        return NEAR if self.std is None else self.std

    @property
    def reached(self) -> bool:
        return self.ours.mean >= self.printed - self.near

    @property
    def exceeded(self) -> bool:
        return self.ours.mean > self.printed + self.near


def verdict(pairs: Sequence[Pair], variants: bool = False) -> str:
    """Sentence on all numbers of an exhibit, by `RULE`."""
    good = [p for p in pairs if p.reached and not (variants and p.exceeded)]
    above = [p for p in pairs if p.exceeded]
    if len(good) < len(pairs):
        word = "Partly reproduced" if 2 * len(good) >= len(pairs) else "Not reproduced"
    else:
        word = "Better" if 2 * len(above) > len(pairs) else "Reproduced"
    far = [p for p in pairs if p not in good]
    others = f", not {_names(far)}" if far else ""
    reached = "near what is printed" if variants else "reached"
    more = f", {len(above)} exceeded" if above and not variants else ""
    return f"{word}: {len(good)} of {len(pairs)} numbers are {reached}{more}{others}."


def _names(pairs: Sequence[Pair]) -> str:
    """Names of up to four pairs, farthest first, with our number and the printed one."""
    farthest = sorted(pairs, key=lambda p: -abs(p.ours.mean - p.printed) / (p.near or 1))
    shown = [f"{p.name} ({p.ours.mean:.1f}; {p.printed:.1f})" for p in farthest[:4]]
    rest = [f"{len(pairs) - 4} more"] if len(pairs) > 4 else []
    return ", ".join([*shown, *rest])


def source(results: Results, study: str) -> str:
    """Line with the command that makes the records of a study, their seeds, devices and commits."""
    command = f"vedute bench {study} -o bench/results/{study}/records.jsonl"
    return facts(results.all(study), command, _planned(study) if study.startswith("paper-") else 0)


def _planned(study: str) -> int:
    plan = studies.load(study)
    per_seed = len(plan.datasets) * len(plan.hidden())
    return per_seed * sum(len(entry.seeds or plan.seeds) for entry in plan.entries)


def facts(known: Sequence[RunRecord], command: str, planned: int = 0) -> str:
    """Line on records and their command; planned: number of records when all runs are done."""
    if not known:
        return f"No record yet: `{command}`"
    done = [r for r in known if "failed" not in r]
    total = f" of {planned}" if len(done) < planned else ""
    lost = len(known) - len(done)
    parts = [f"`{command}`", f"{len(done)}{total} records"]
    parts += [f"{lost} failed"] if lost else []
    parts += [f"seeds {', '.join(_several(done, 'seed'))}"] if _several(done, "seed") else []
    parts += ["; ".join(_several(done, "device"))]
    named = {str(r.get("commit", UNKNOWN)) for r in done} - {UNKNOWN}
    commits = sorted(commit[:7] for commit in named)
    parts += [f"commit {', '.join(commits)}"] if commits else []
    return " · ".join(part for part in parts if part)


def _several(known: Iterable[RunRecord], key: str) -> list[str]:
    values = {r[key] for r in known if r.get(key) is not None}
    return [str(v) for v in sorted(values)]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(cell: Cell | None, digits: int = 2) -> str:
    if cell is None:
        return "–"
    spread = f" ± {cell.std:.{digits}f}" if cell.std is not None and cell.runs > 1 else ""
    return f"{cell.mean:.{digits}f}{spread}"


def printed(value: Any) -> tuple[float, float | None]:
    """Mean and standard deviation of a printed number, None if it has none."""
    return (value, None) if isinstance(value, float) else (value[0], value[1])
