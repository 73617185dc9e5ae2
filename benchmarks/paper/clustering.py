"""Section 4.1: the datasets, and clusters found in them."""

from __future__ import annotations

from paper import numbers
from paper.exhibit import (
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
from paper.numbers import PRINTED, Pair, table, text, verdict
from vedute.benchmark import studies


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
    """MVP's lines of both tables."""
    summary = world.results.summary("mvp-clustering")
    rows, pairs = [], []
    for dataset in (*SAME, "reuters1200"):
        for score, title in SCORES.items():
            row = [f"{dataset} {title}"]
            for rate in RATES:
                known = studies.published("mvp").get((dataset, score, rate))
                ours = one_start(summary, "mvp (paper)", dataset, rate, score)
                both = both_starts(summary, "mvp (paper)", dataset, rate, score)
                row += ["–" if known is None else as_printed(known), *both]
                if known is not None and ours is not None:
                    pairs.append(Pair(f"{row[0]} at {rate:g}", *known, ours))
            rows.append(row)
    heads = ["", *(h for rate in RATES for h in (f"{rate:g}: printed", "one start", "ten"))]
    source = numbers.source(world.results, "mvp-clustering")
    sentence = starts(summary, verdict(pairs)) if pairs else NONE
    return Made(sentence, [table(heads, rows), source])


def rivals(world: World) -> Made:
    """Accuracy of the eight other methods, and what is said of each."""
    summary = world.results.summary("clustering", "mvp-clustering")
    sentences, rows, pairs = [], [], []
    for method in ("dcca", "dccae", "dimvc", "dsimvc", "completer", "cpspan", "icmvc", "dvimc"):
        label = next((k for k in _labels(method) if k in summary.labels), None)
        if label is None:
            continue
        source = studies.sources(method)[-1]  # as it is to be read
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
    """As published first."""
    return [f"{method} (redraw + labels)", f"{method} (paper)", method]


EXHIBITS = (datasets, clustering, rivals)
