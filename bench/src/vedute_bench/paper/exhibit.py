"""What every exhibit is made of: its verdict and body, where pictures go, cells of clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vedute_bench.paper.numbers import Results, printed, text
from vedute_bench.summaries.summary import Cell, Summary

RATES = (0.1, 0.3, 0.5, 0.7)
SCORES = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"}
SAME = ("handwritten", "cub", "scene15")  # data that we have as the paper has them
NONE = "Not measured yet."


class Made(NamedTuple):
    """What stands on the page below the words, and the verdict on it."""

    verdict: str
    body: Sequence[str]


@dataclass
class World:
    """Where results are, and where pictures go; None: nowhere."""

    results: Results
    images: Path | None

    def picture(self, name: str, alt: str, make: Callable[[], bytes]) -> str:
        """A link to a picture, which is drawn."""
        if self.images is not None:
            (self.images / f"{name}.png").write_bytes(make())
        return f"![{alt}](../images/{name}.png)"


def one_start(summary: Summary, label: str, dataset: str, rate: float, score: str) -> Cell | None:
    """As the paper has it; of records from before this was scored, ten starts."""
    first = summary.cell(label, dataset, rate, f"one_start_{score}")
    return first or summary.cell(label, dataset, rate, score)


def starts(summary: Summary, sentence: str, label: str = "") -> str:
    """The verdict, with what is not as published in the records that it is on: those of a label,
    or of all."""
    cells = [found for (k, _, _), found in summary.records.items() if label in ("", k)]
    ten = sum(any("one_start_acc" not in r["scores"] for r in found) for found in cells)
    some = "" if ten == len(cells) else f" in {ten} of {len(cells)} cells"
    note = f" Ours with ten k-means starts{some}, the paper's with one." if ten else ""
    return f"{sentence}{note}"


def both_starts(summary: Summary, label: str, dataset: str, rate: float, score: str) -> list[str]:
    """With one start and with ten."""
    one = summary.cell(label, dataset, rate, f"one_start_{score}")
    return [text(one), text(summary.cell(label, dataset, rate, score))]


def as_printed(value: Any, digits: int = 2) -> str:
    mean, std = printed(value)
    return f"{mean:.{digits}f}" + ("" if std is None else f" ± {std:.{digits}f}")
