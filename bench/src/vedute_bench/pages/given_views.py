"""Scores of inferred images over the number of given views, as a table and as a figure.

Rows are named by the label and by the rule that decodes given views: "50 %, own".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from vedute.figures.plots import COLORS, panels, styled
from vedute_bench.figures.lines import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
Curves = dict[tuple[str, str], dict[int, float]]  # (label, rule) -> number of given views -> score
DASHES = ("-", "--", ":")


def curves(by_rule: Mapping[str, Sequence[Record]], score: str) -> Curves:
    """Means over seeds by label and rule."""
    means_of: Curves = {}
    for rule, records in by_rule.items():
        for label in dict.fromkeys(r["label"] for r in records):
            runs = [r["scores"] for r in records if r["label"] == label]
            sizes = sorted(int(k.rpartition("_")[2]) for k in runs[0] if _name(k) == score)
            means = {n: fmean(scores[f"{score}_{n}"] for scores in runs) for n in sizes}
            if means:
                means_of[label, rule] = means
    return dict(sorted(means_of.items(), key=lambda kv: _order(kv[0], by_rule)))


def markdown(by_rule: Mapping[str, Sequence[Record]], score: str, title: str) -> str:
    rows = curves(by_rule, score)
    sizes = sorted({n for row in rows.values() for n in row})
    lines = [f"**{title}, by the number of given views**", ""]
    lines += [f"| | {' | '.join(map(str, sizes))} |", f"|---|{'--:|' * len(sizes)}"]
    for (label, rule), row in rows.items():
        cells = [_text(row[n], score) if n in row else "–" for n in sizes]
        lines.append(f"| {label}, {rule} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@styled
def figure(by_rule: Mapping[str, Sequence[Record]], titles: Mapping[str, str]) -> Figure:
    """Draw a panel per score, with a color per label and a dash pattern per rule."""
    labels = list(dict.fromkeys(r["label"] for records in by_rule.values() for r in records))
    colors = dict(zip(labels, COLORS, strict=False))
    dashes = dict(zip(by_rule, DASHES, strict=False))
    drawn, axes = panels(len(titles), (8.6, 3.6))
    for ax, (score, title) in zip(axes, titles.items(), strict=True):
        for (label, rule), row in curves(by_rule, score).items():
            look: dict[str, Any] = {"color": colors[label], "linestyle": dashes[rule]}
            name = f"{label}, {rule}"
            ax.plot([*row], [*row.values()], marker="o", markersize=3.5, label=name, **look)
        ax.set(title=title, xlabel="given views")
        ax.xaxis.get_major_locator().set_params(integer=True)
    legend_below(drawn, {str(k.get_label()): k for k in axes[0].get_lines()})
    return drawn


def _name(score: str) -> str:
    return score.rpartition("_")[0] if score.rpartition("_")[2].isdigit() else ""


def _order(key: tuple[str, str], by_rule: Mapping[str, Sequence[Record]]) -> tuple[int, int]:
    """Sort key of a label and a rule, by the order of the records."""
    labels = list(dict.fromkeys(r["label"] for records in by_rule.values() for r in records))
    return labels.index(key[0]), list(by_rule).index(key[1])


def _text(value: float, score: str) -> str:
    return f"{value:.3f}" if "ssim" in score else f"{value:.1f}"
