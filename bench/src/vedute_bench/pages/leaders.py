"""Short tables of MVP, MVTCAE and mmJSD on images after full trainings, for docs/pictures.md.

    python -m vedute_bench.pages.leaders

This writes results/leaders-*/short.md from the records there, and results/leaders-choice.md, and
prints a table.

The tables show the studies `leaders-polymnist` and `leaders-shapes`, with MVTCAE as published from
`polymnist` and `shapes`; `vedute bench-tables` writes the full tables. In docs/index.md, MVTCAE has
dropout and weight decay where they reduce its error on views hidden from training.

leaders-choice.md has the scores of MVP's settings that need no labels, each as a ratio to the best
other method. The defaults have the largest minimum of these ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vedute_bench.places import RESULTS
from vedute_bench.runner import records
from vedute_bench.summaries.generation_tables import cell_text
from vedute_bench.summaries.summary import Cell, Summary

Row = dict[str, Cell | None]
SETS, RATE = ("polymnist", "shapes"), 0.5
COLUMNS = {  # score: head, digits
    "coherence_missing_1": ("right class, % from 1 view", 1),
    "coherence_missing_4": ("from 4", 1),
    "ssim_missing_1": ("SSIM from 1", 3),
    "ssim_missing_4": ("from 4", 3),
    "nmi_ten_1": ("NMI from 1", 1),
    "nmi_ten_4": ("from 4", 1),
    "same_clusters_1": ("same clusters from 1", 1),
    "generated_coherence": ("samples of one class, %", 1),
    "hidden_ssim": ("hidden SSIM", 4),
    "hidden_error": ("hidden error", 4),
}
SHOWN = {  # on the first page
    "coherence_missing": ("right class, %", 1),
    "nmi_ten": ("NMI of k-means, ten starts", 1),
    "ssim_missing": ("SSIM", 3),
}
CHOOSE = ("hidden_error", "hidden_ssim", "same_clusters_1")  # without labels
MVP, PLAIN = "mvp", "MVTCAE"
OTHERS = {PLAIN: (PLAIN, "MVTCAE (regularised)"), "mmJSD": ("mmJSD",)}  # settings of each method


def folder(dataset: str) -> Path:
    return RESULTS / f"leaders-{dataset}"


def runs(dataset: str) -> Summary:
    known = records.read(RESULTS / dataset / "records.jsonl")
    plain = [r for r in known if (r["label"], r["rate"]) == (PLAIN, RATE) and not r["overrides"]]
    return Summary.of([*records.read(folder(dataset) / "records.jsonl"), *plain])


def rows_of(dataset: str) -> dict[str, Row]:
    """Cells by label, that is, by method and settings."""
    summary = runs(dataset)
    return {label: _cells(summary, label, dataset) for label in summary.labels}


def table(dataset: str) -> str:
    """Table of all labels on a dataset, best in bold."""
    rows = rows_of(dataset)
    lines = [
        f"| | seeds | {' | '.join(head for head, _ in COLUMNS.values())} |",
        "|---|" + "--:|" * (1 + len(COLUMNS)),
    ]
    for label, cells in rows.items():
        texts = [_shown(name, cells[name], list(rows.values())) for name in COLUMNS]
        seeds = max(cell.runs for cell in cells.values() if cell is not None)
        lines.append(f"| {label} | {seeds} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def choice() -> str:
    """Table of ratios of MVP's settings that were run on all datasets; minima in bold."""
    rows_on = {dataset: rows_of(dataset) for dataset in SETS}
    heads = [f"{d}: {COLUMNS[k][0]}" for d in SETS for k in CHOOSE]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "--:|" * len(heads)]
    for label in rows_on[SETS[0]]:
        if label.startswith(MVP) and all(label in rows for rows in rows_on.values()):
            ratios = [_ratio(rows_on[d], label, k) for d in SETS for k in CHOOSE]
            texts = (f"**{x:.3f}**" if x == min(ratios) else f"{x:.3f}" for x in ratios)
            lines.append(f"| {label} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def first_page() -> str:
    """Table of default MVP with the others below it, from one to four views; best in bold."""
    lines = ["| inferred from | 1 view | 2 | 3 | 4 |", "|---|--:|--:|--:|--:|"]
    for dataset in SETS:
        summary = runs(dataset)
        labels = [MVP, *(_best(summary, dataset, offered) for offered in OTHERS.values())]
        for score, (head, digits) in SHOWN.items():
            first_row, others = [f"MVP, {dataset}: {head}"], [", ".join(OTHERS)]
            for n in range(1, 5):
                cells = (summary.cell(k, dataset, RATE, f"{score}_{n}") for k in labels)
                first, *rest = _bold([f"{c.mean:.{digits}f}".lstrip("0") for c in cells if c])
                first_row.append(first)
                others.append(", ".join(rest))
            lines += [f"| {' | '.join(row)} |" for row in (first_row, others)]
    return "\n".join(lines) + "\n"


def _best(summary: Summary, dataset: str, labels: Sequence[str]) -> str:
    """Label with the least error on views hidden from training."""
    cells = {label: summary.cell(label, dataset, RATE, "hidden_error") for label in labels}
    errors = {label: cell.mean for label, cell in cells.items() if cell is not None}
    return min(errors, key=errors.__getitem__)


def _bold(texts: list[str]) -> list[str]:
    best = max(texts, key=float)
    return [f"**{x}**" if x == best else x for x in texts]


def _ratio(rows: dict[str, Row], label: str, score: str) -> float:
    """Ratio of a score to the best other method, above 1 if MVP is better."""
    means = {k: cell.mean for k, row in rows.items() if (cell := row[score]) is not None}
    others = [mean for k, mean in means.items() if not k.startswith(MVP)]
    if score == "hidden_error":
        return min(others) / means[label]
    return means[label] / max(others)


def _cells(summary: Summary, label: str, dataset: str) -> Row:
    return {name: summary.cell(label, dataset, RATE, name) for name in COLUMNS}


def _shown(name: str, cell: Cell | None, rows: list[Row]) -> str:
    digits = COLUMNS[name][1]
    means = [round(c.mean, digits) for row in rows if (c := row[name]) is not None]
    best = min(means) if name == "hidden_error" else max(means)
    marked = cell is not None and round(cell.mean, digits) == best
    return f"**{cell_text(cell, digits)}**" if marked else cell_text(cell, digits)


if __name__ == "__main__":
    for name in SETS:
        (folder(name) / "short.md").write_text(table(name), encoding="utf-8")
    (RESULTS / "leaders-choice.md").write_text(choice(), encoding="utf-8")
    print(first_page(), end="")
