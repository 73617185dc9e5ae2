"""Section 4.1: the datasets and their clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from vedute_bench import studies
from vedute_bench.paper import numbers
from vedute_bench.paper.exhibit import (
    NONE,
    RATES,
    SAME,
    SCORES,
    Made,
    World,
    as_printed,
    both_starts,
    one_start,
    starts,
)
from vedute_bench.paper.numbers import PRINTED, Pair, table, text, verdict
from vedute_bench.summaries.summary import Cell, Summary

PUBLISHED = "mvp (paper)"
STARTS = {"one_start_acc": "one start", "acc": "ten starts"}


def datasets(_: World) -> Made:
    heads = ["", "views", "dimension", "samples", "classes", "here"]
    rows = [
        [f"`{name}`", *(str(facts[k]) for k in heads[1:])]
        for name, facts in PRINTED["datasets"].items()
    ]
    same = ", ".join(SAME)
    sentence = f"Reproduced for {same}, whose sizes agree; the others are not the paper's data."
    return Made(sentence, [table(heads, rows)])


def clustering(world: World) -> Made:
    """Exhibit of MVP's lines in both tables."""
    summary = world.results.summary("mvp-clustering")
    source = numbers.source(world.results, "mvp-clustering")
    first, many = _beside(summary, one_start), _beside(summary, Summary.cell)
    heads = ["", *(h for rate in RATES for h in (f"{rate:g}: printed", "one start", "ten"))]
    body = [table(heads, list(_lines(summary))), _defaults(summary), source]
    if not first:
        return Made(NONE, body)
    ten = f"With ten starts everywhere: {verdict(many)}"
    return Made(starts(summary, verdict(first), PUBLISHED), [ten, *body])


def _lines(summary: Summary) -> Iterator[list[str]]:
    """Rows per dataset and score: the printed number, ours with one start and with ten."""
    for dataset, (score, title) in product(SAME, SCORES.items()):
        row = [f"{dataset} {title}"]
        for rate in RATES:
            known = studies.published("mvp")[dataset, score, rate]
            row += [as_printed(known), *both_starts(summary, PUBLISHED, dataset, rate, score)]
        yield row


def _beside(summary: Summary, find: Callable[..., Cell | None]) -> list[Pair]:
    """Pairs of printed numbers and ours, which `find` looks up."""
    pairs = []
    for dataset, (score, title), rate in product(SAME, SCORES.items(), RATES):
        ours = find(summary, PUBLISHED, dataset, rate, score)
        if ours is not None:
            known = studies.published("mvp")[dataset, score, rate]
            pairs.append(Pair(f"{dataset} {title} at {rate:g}", *known, ours))
    return pairs


def _defaults(summary: Summary) -> str:
    """Table of accuracies with both settings by starts of k-means, also for mvp-clustering.md."""
    rows = []
    for dataset in SAME:
        known = (studies.published("mvp")[dataset, "acc", rate] for rate in RATES)
        rows.append([f"{dataset}: printed, one start", *map(as_printed, known)])
        for label, (score, words) in product((PUBLISHED, "mvp"), STARTS.items()):
            cells = [text(summary.cell(label, dataset, rate, score)) for rate in RATES]
            rows.append([f"{dataset}: {label}, {words}", *cells])
    accuracies = table(["ACC", *(f"{rate:g}" for rate in RATES)], rows)
    return f"<!-- --8<-- [start:starts] -->\n\n{accuracies}\n\n<!-- --8<-- [end:starts] -->"


def rivals(world: World) -> Made:
    """Exhibit of the accuracies of the eight other methods."""
    summary = world.results.summary("clustering", "mvp-clustering")
    sentences, rows, pairs = [], [], []
    for method in ("dcca", "dccae", "dimvc", "dsimvc", "completer", "cpspan", "icmvc", "dvimc"):
        label = next((k for k in _labels(method) if k in summary.labels), None)
        if label is None:
            continue
        source = studies.sources(method)[-1]  # the corrected numbers
        for dataset in SAME:
            row = [f"{label} {dataset}"]
            for rate in RATES:
                ours = summary.cell(label, dataset, rate, "acc")
                row += [as_printed(studies.published(method)[dataset, "acc", rate]), text(ours)]
                if ours is not None:
                    known = studies.published(source)[dataset, "acc", rate]
                    pairs.append(Pair(f"{method} {dataset} at {rate:g}", *known, ours))
            rows.append(row)
        sentences.append(f"- {summary.against_paper(label, 'acc')}")
    heads = ["", *(h for rate in RATES for h in (f"{rate:g}: printed", "ours"))]
    source = numbers.source(world.results, "clustering")
    body = ["\n".join(sentences), table(heads, rows), source]
    return Made(verdict(pairs), body) if pairs else Made(NONE, [source])


def _labels(method: str) -> list[str]:
    """Possible labels of a method, with published settings first."""
    return [f"{method} (redraw + labels)", f"{method} (paper)", method]


EXHIBITS = (datasets, clustering, rivals)
