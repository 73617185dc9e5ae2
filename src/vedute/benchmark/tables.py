"""Summaries as text: Markdown, LaTeX and CSV; the best of a column is marked."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import groupby

from vedute.benchmark.summary import SCORES, Cell, Row, Summary


def markdown(summary: Summary) -> str:
    heads = ["dataset", "method", *(f"{rate:g}" for rate in summary.rates), "mean"]
    text = ""
    for score, (title, digits) in SCORES.items():
        rows = summary.rows(score)
        if not rows:
            continue
        text += f"## {title}\n\n| {' | '.join(heads)} |\n|---|---|{'--:|' * (len(heads) - 2)}\n"
        for first, row in _firsts(rows):
            pairs = zip(row.cells, row.marks, strict=True)
            cells = [_bold(_told(c, digits, " ± "), mark) for c, mark in pairs]
            text += f"| {row.dataset if first else ''} | {row.label} | {' | '.join(cells)} |\n"
        notes = [_seeds(rows), "Best **bold**, second best *italic*."]
        notes += [_devices(summary)] if score == "seconds" else []
        told = [summary.against_paper(label, score) for label in summary.labels]
        lines = [f"- {line}\n" for line in told if line is not None]
        text += f"\n{' '.join(notes)}\n\n" + "".join(lines) + ("\n" if lines else "")
    return (text + _pairs(summary)).rstrip("\n") + "\n"


def latex(summary: Summary) -> str:
    """One table environment per score; needs booktabs."""
    heads = ["", "", *(f"{rate:g}" for rate in summary.rates), "mean"]
    text = ""
    for score, (title, digits) in SCORES.items():
        rows = summary.rows(score)
        if not rows:
            continue
        text += (
            f"\\begin{{table}}\n\\centering\n\\caption{{{_escaped(f'{title}. {_seeds(rows)}')}}}\n"
        )
        text += f"\\begin{{tabular}}{{ll{'r' * (len(heads) - 2)}}}\n\\toprule\n"
        text += " & ".join(heads) + " \\\\\n"
        for first, row in _firsts(rows):
            pairs = zip(row.cells, row.marks, strict=True)
            cells = [_underlined(_told(c, digits, " $\\pm$ "), mark) for c, mark in pairs]
            names = [_escaped(row.dataset if first else ""), _escaped(row.label)]
            text += ("\\midrule\n" if first else "") + " & ".join([*names, *cells]) + " \\\\\n"
        text += "\\bottomrule\n\\end{tabular}\n\\end{table}\n\n"
    return text


def comma_separated(summary: Summary) -> str:
    """One line per score, dataset, label and rate."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["score", "dataset", "label", "rate", "mean", "std", "runs"])
    for score in SCORES:
        for row in summary.rows(score):
            for rate, cell in zip(summary.rates, row.cells[:-1], strict=True):
                if cell is not None:
                    numbers = (round(cell.mean, 5), round(cell.std or 0.0, 5), cell.runs or "")
                    writer.writerow([score, row.dataset, row.label, rate, *numbers])
    return file.getvalue()


def _firsts(rows: Iterable[Row]) -> Iterable[tuple[bool, Row]]:
    """Each row, and whether it is the first of its dataset."""
    for _, group in groupby(rows, key=lambda row: row.dataset):
        yield from ((i == 0, row) for i, row in enumerate(group))


def _told(cell: Cell | None, digits: int, between: str) -> str:
    if cell is None:
        return "–"
    std = "" if cell.std is None else f"{between}{cell.std:.{digits}f}"
    return f"{cell.mean:.{digits}f}{std}"


def _bold(text: str, mark: str) -> str:
    star = {"best": "**", "second": "*"}.get(mark, "")
    return f"{star}{text}{star}"


def _underlined(text: str, mark: str) -> str:
    command = {"best": "\\textbf", "second": "\\underline"}.get(mark)
    return text.replace("–", "--") if command is None else f"{command}{{{text}}}"


def _escaped(text: str) -> str:
    return text.replace("_", "\\_").replace("%", "\\%").replace("±", "$\\pm$")


def _seeds(rows: Iterable[Row]) -> str:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row.label, []).extend(c.runs for c in row.cells if c and c.runs)
    fewest = {label: min(counts) for label, counts in found.items() if counts}
    low, high = min(fewest.values()), max(n for counts in found.values() for n in counts)
    many = f"{high} seed{'s' if high > 1 else ''}"
    if low < high:
        some = {n: [k for k, v in fewest.items() if v == n] for n in sorted({*fewest.values()})}
        told = [f"{n} of {', '.join(labels)}" for n, labels in some.items() if n < high]
        many = f"{low} to {many} ({'; '.join(told)})"
    return f"Mean ± population standard deviation over {many}."


def _pairs(summary: Summary) -> str:
    """Which two views, where they were chosen."""
    lines = []
    for dataset in summary.datasets:
        for label in summary.labels:
            runs = [summary.records.get((label, dataset, rate), []) for rate in summary.rates]
            chosen = [rs[0].get("pair") if rs else None for rs in runs]
            if any(chosen):
                told = [" + ".join(pair) if pair else "–" for pair in chosen]
                how = "labels" if summary.redrawn(label) else "stability"
                lines.append(f"| {dataset} | {label} | {how} | {' | '.join(told)} |\n")
    if not lines:
        return ""
    heads = ["dataset", "method", "by", *(f"{rate:g}" for rate in summary.rates)]
    text = (
        f"## Pairs of views\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n{''.join(lines)}\n"
    )
    return text + (
        "Chosen with one seed: by the stability of clusters, on the masks that all methods share; "
        "or, as in the paper, by labels, on masks that are drawn anew for each pair. Such rows see "
        "other data than the others and are not marked among them.\n"
    )


def _devices(summary: Summary) -> str:
    where: dict[str, set[str]] = {}
    jobs: dict[str, set[int]] = {}
    for (label, _, _), runs in summary.records.items():
        for r in runs:
            where.setdefault(r["device"], set()).add(label)
            jobs.setdefault(r["device"], set()).add(r["jobs"])
    told = [
        f"{_list(summary.labels, found)} on {device}{_at_once(jobs[device])}"
        for device, found in where.items()
    ]
    return f"Measured: {'; '.join(told)}."


def _at_once(jobs: set[int]) -> str:
    low, high = min(jobs), max(jobs)
    many = str(high) if low == high else f"{low} to {high}"
    return "" if high == 1 else f", {many} runs at once"


def _list(labels: Sequence[str], found: set[str]) -> str:
    return "all" if found == {*labels} else ", ".join(label for label in labels if label in found)
