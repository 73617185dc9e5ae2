"""Parts of every exhibit: verdict and body, folder of pictures, cells of clustering scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vedute_bench.paper.numbers import Results, printed, text
from vedute_bench.summaries.summary import Cell, Summary

RATES = (0.1, 0.3, 0.5, 0.7)
SCORES = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"}
SAME = ("handwritten", "cub", "scene15")  # datasets equal to the paper's
NONE = "Not measured yet."


class Made(NamedTuple):
    """Verdict on an exhibit, and the parts of the page below its text."""

    verdict: str
    body: Sequence[str]


@dataclass
class World:
    """Folders of results and of pictures; None: pictures are not drawn."""

    results: Results
    images: Path | None

    def picture(self, name: str, alt: str, make: Callable[[], bytes]) -> str:
        """Draw a picture, and return a link to it."""
        if self.images is not None:
            (self.images / f"{name}.png").write_bytes(make())
        return f"![{alt}](../images/{name}.png)"


def one_start(summary: Summary, label: str, dataset: str, rate: float, score: str) -> Cell | None:
    """Score with one k-means start as in the paper; ten starts in records that lack it."""
    first = summary.cell(label, dataset, rate, f"one_start_{score}")
    return first or summary.cell(label, dataset, rate, score)


def starts(summary: Summary, sentence: str, label: str = "") -> str:
    """Verdict, with a note if records of a label, or of all, have ten k-means starts."""
    cells = [runs for (k, _, _), runs in summary.records.items() if label in ("", k)]
    ten = sum(any("one_start_acc" not in r["scores"] for r in runs) for runs in cells)
    share = "" if ten == len(cells) else f" in {ten} of {len(cells)} cells"
    note = f" Ours with ten k-means starts{share}, the paper's with one." if ten else ""
    return f"{sentence}{note}"


def both_starts(summary: Summary, label: str, dataset: str, rate: float, score: str) -> list[str]:
    """Texts of a score with one k-means start and with ten."""
    one = summary.cell(label, dataset, rate, f"one_start_{score}")
    return [text(one), text(summary.cell(label, dataset, rate, score))]


def as_printed(value: Any, digits: int = 2) -> str:
    mean, std = printed(value)
    return f"{mean:.{digits}f}" + ("" if std is None else f" ± {std:.{digits}f}")
