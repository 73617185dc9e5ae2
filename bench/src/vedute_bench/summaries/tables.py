"""Tables of summaries in Markdown, LaTeX and CSV, with the best of a column marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import pandas as pd

from vedute_bench.summaries.summary import PAIRS, SCORES, Cell, Summary, TableRow


def markdown(summary: Summary) -> str:
    heads = ["dataset", "method", *_columns(summary)]
    text = ""
    for score, rows in _tables(summary):
        title = SCORES[score].title
        text += f"## {title}\n\n| {' | '.join(heads)} |\n|---|---|{'--:|' * (len(heads) - 2)}\n"
        for dataset, label, *cells in _cells(rows, score, " ± ", _bold):
            text += f"| {dataset} | {label} | {' | '.join(cells)} |\n"
        notes = [_seeds(rows), "Best **bold**, second best *italic*."]
        notes += [_over_pairs(summary)] if any(row.label.endswith(PAIRS) for row in rows) else []
        notes += [_devices(summary)] if score == "seconds" else []
        compared = [summary.against_paper(label, score) for label in summary.labels]
        lines = [f"- {line}\n" for line in compared if line is not None]
        text += f"\n{' '.join(notes)}\n\n" + "".join(lines) + ("\n" if lines else "")
    return (text + _pairs(summary)).rstrip("\n") + "\n"


def latex(summary: Summary) -> str:
    """LaTeX with a table environment per score; needs booktabs."""
    tables = []
    for score, rows in _tables(summary):
        table = pd.DataFrame(_cells(rows, score, " $\\pm$ ", _underlined))
        table[[0, 1]] = table[[0, 1]].map(_escaped)
        table.loc[1:, 0] = table.loc[1:, 0].map(lambda name: name and f"\\midrule\n{name}")
        table.columns = pd.Index(["", "", *_columns(summary)])
        text = table.style.hide(axis=0).to_latex(
            caption=_escaped(f"{SCORES[score].title}. {_seeds(rows)}"),
            column_format=f"ll{'r' * len(_columns(summary))}",
            position_float="centering",
            hrules=True,
        )
        tables.append(f"{text}\n")
    return "".join(tables)


def comma_separated(summary: Summary) -> str:
    """CSV with a line per score, dataset, label and rate."""
    lines = [
        (score, row.dataset, row.label, rate, *cell.rounded(), cell.runs or "")
        for score in SCORES
        for row in summary.rows(score)
        for rate, cell in zip(summary.rates, row.cells[:-1], strict=True)
        if cell is not None
    ]
    heads = ["score", "dataset", "label", "rate", "mean", "std", "runs"]
    return pd.DataFrame(lines, columns=heads).to_csv(index=False, lineterminator="\n")


def _tables(summary: Summary) -> Iterator[tuple[str, list[TableRow]]]:
    """Scores with at least one row, and their rows."""
    tables = ((score, summary.rows(score)) for score in SCORES)
    return ((score, rows) for score, rows in tables if rows)


def _columns(summary: Summary) -> list[str]:
    return [*_rates(summary), "mean"]


def _rates(summary: Summary) -> list[str]:
    return [rate if isinstance(rate, str) else f"{rate:g}" for rate in summary.rates]


def _cells(
    rows: Iterable[TableRow], score: str, between: str, marked: Callable[[str, str], str]
) -> Iterator[list[str]]:
    """Texts of each row: the dataset in its first row only, the label and the cells."""
    digits = SCORES[score].digits
    for _, group in groupby(rows, key=lambda row: row.dataset):
        for i, row in enumerate(group):
            pairs = zip(row.cells, row.marks, strict=True)
            cells = [marked(_text(cell, digits, between), mark) for cell, mark in pairs]
            yield ["" if i else row.dataset, row.label, *cells]


def _text(cell: Cell | None, digits: int, between: str) -> str:
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


def _seeds(rows: Iterable[TableRow]) -> str:
    runs: dict[str, list[int]] = {}
    for row in rows:
        runs.setdefault(row.label, []).extend(c.runs for c in row.cells if c and c.runs)
    fewest = {label: min(counts) for label, counts in runs.items() if counts}
    low, high = min(fewest.values()), max(n for counts in runs.values() for n in counts)
    many = f"{high} seed{'s' if high > 1 else ''}"
    if low < high:
        below = sorted({n for n in fewest.values() if n < high})
        fewer = [f"{n} of {', '.join(k for k, v in fewest.items() if v == n)}" for n in below]
        many = f"{low} to {many} ({'; '.join(fewer)})"
    return f"Mean ± population standard deviation over {many}."


def _over_pairs(summary: Summary) -> str:
    seeds = sorted({str(r["seed"]) for runs in summary.tried.values() for r in runs})
    words = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"
    return (
        f'"{PAIRS[2:].capitalize()}": mean ± standard deviation over all pairs of views, {words}.'
    )


def _pairs(summary: Summary) -> str:
    """Table of the chosen pairs of views, if any were chosen."""
    lines = []
    for dataset in summary.datasets:
        for label in summary.labels:
            runs = [summary.records.get((label, dataset, rate), []) for rate in summary.rates]
            chosen = [rs[0].get("pair") if rs else None for rs in runs]
            if any(chosen):
                pairs = [" + ".join(pair) if pair else "–" for pair in chosen]
                how = "labels" if summary.redrawn(label) else "stability"
                lines.append(f"| {dataset} | {label} | {how} | {' | '.join(pairs)} |\n")
    if not lines:
        return ""
    heads = ["dataset", "method", "by", *_rates(summary)]
    text = (
        f"## Pairs of views\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n{''.join(lines)}\n"
    )
    return text + (
        "Chosen with one seed: by the stability of clusters, on the masks that all methods share; "
        "or, as in the paper, by labels, on masks that are drawn anew for each pair. Such rows see "
        "other data than the others and are not marked among them.\n"
    )


def _devices(summary: Summary) -> str:
    labels: dict[str, set[str]] = {}
    jobs: dict[str, set[int]] = {}
    for (label, _, _), runs in summary.records.items():
        for r in runs:
            labels.setdefault(r["device"], set()).add(label)
            jobs.setdefault(r["device"], set()).add(r["jobs"])
    measured = [
        f"{_list(summary.labels, on_device)} on {device}{_in_parallel(jobs[device])}"
        for device, on_device in labels.items()
    ]
    return f"Measured: {'; '.join(measured)}."


def _in_parallel(jobs: set[int]) -> str:
    low, high = min(jobs), max(jobs)
    many = str(high) if low == high else f"{low} to {high}"
    return "" if high == 1 else f", {many} runs at once"


def _list(labels: Sequence[str], chosen: set[str]) -> str:
    return "all" if chosen == {*labels} else ", ".join(label for label in labels if label in chosen)
