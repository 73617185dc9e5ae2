"""The best methods on images after whole trainings, in short: for docs/pictures.md.

    python benchmarks/leaders.py    benchmarks/results/leaders-*/short.md, from the records there

The studies `leaders-polymnist` and `leaders-shapes`; the long tables are those of `vedute report`.
"""

from __future__ import annotations

from pathlib import Path

from vedute.benchmark import records
from vedute.benchmark.generation_tables import told
from vedute.benchmark.summary import Cell, Summary

FOLDER = Path(__file__).parent / "results"
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


def folder(dataset: str) -> Path:
    return FOLDER / f"leaders-{dataset}"


def table(dataset: str) -> str:
    """A row per method, and per setting that was tried; best in bold."""
    summary = Summary.of(records.read(folder(dataset) / "records.jsonl"))
    rows = {label: _cells(summary, label, dataset) for label in summary.labels}
    lines = [
        f"| | {' | '.join(head for head, _ in COLUMNS.values())} |",
        "|---|" + "--:|" * len(COLUMNS),
    ]
    for label, cells in rows.items():
        texts = [_shown(name, cells[name], list(rows.values())) for name in COLUMNS]
        lines.append(f"| {label} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def _cells(summary: Summary, label: str, dataset: str) -> dict[str, Cell | None]:
    return {name: summary.cell(label, dataset, RATE, name) for name in COLUMNS}


def _shown(name: str, cell: Cell | None, rows: list[dict[str, Cell | None]]) -> str:
    digits = COLUMNS[name][1]
    means = [round(c.mean, digits) for row in rows if (c := row[name]) is not None]
    best = min(means) if name == "hidden_error" else max(means)
    marked = cell is not None and round(cell.mean, digits) == best
    return f"**{told(cell, digits)}**" if marked else told(cell, digits)


if __name__ == "__main__":
    for name in SETS:
        (folder(name) / "short.md").write_text(table(name), encoding="utf-8")
