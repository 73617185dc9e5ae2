"""Sections 4.2, B.1 and B.2: images and captions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import fmean

from vedute_bench import studies
from vedute_bench.paper import numbers
from vedute_bench.paper.exhibit import (
    NONE,
    Made,
    World,
)
from vedute_bench.paper.numbers import PRINTED, table, text
from vedute_bench.summaries.summary import Summary

PRINTED_AS = {"mvp (paper)": "mvp (100 epochs)"}  # our label: the label of the printed numbers
_GIVEN = (4, 3, 2, 1)  # given views, so that one to four are missing


def lines(world: World) -> Made:
    """Exhibit of NMI, coherence and SSIM by the number of missing views."""
    summary = world.results.summary("polymnist")
    entries = studies.load("polymnist").entries
    labels = [entry.label for entry in entries]
    alike = [entry.label for entry in entries if entry.settings.get("epochs") == 100]
    parts = []
    for score, title, digits in (
        ("nmi", "NMI, one k-means start, %", 1),
        ("coherence_all", "coherence, all views, %", 1),
        ("ssim_all", "SSIM, all views", 3),
    ):
        rows = [
            [k, *(text(summary.cell(k, "polymnist", 0.5, f"{score}_{g}"), digits) for g in _GIVEN)]
            for k in labels
            if k in summary.labels
        ]
        parts.append(f"**{title}**\n\n{table(['missing views', *'1234'], rows)}")
    source = numbers.source(world.results, "polymnist")
    best = _first(summary, alike)
    picture = "![All methods by missing views](../images/vaes-polymnist.png)"
    return Made(best or NONE, [picture, *parts, source] if best else [source])


def _first(summary: Summary, labels: Sequence[str]) -> str:
    """Sentence on whether MVP leads, as the paper claims."""
    claims = []
    for score, title in (("nmi", "NMI"), ("coherence_all", "coherence"), ("ssim_all", "SSIM")):
        means = {
            k: [summary.cell(k, "polymnist", 0.5, f"{score}_{g}") for g in _GIVEN] for k in labels
        }
        whole = {k: [c.mean for c in v if c] for k, v in means.items() if all(v)}
        if not whole:
            return ""
        leads = [max(whole, key=lambda k: whole[k][i]).startswith("mvp") for i in range(4)]
        claims.append(f"for {sum(leads)} of them in {title}")
    return (
        "Not possible here: other backgrounds, and the printed numbers are in a picture. After 100 "
        f"epochs, of the four numbers of missing views, MVP is first {', '.join(claims)}."
    )


def from_view_2(world: World) -> Made:
    summary = world.results.summary("polymnist")
    shares = {}
    for entry in studies.load("polymnist").entries:
        runs = summary.records.get((entry.label, "polymnist", 0.5), [])
        given = [s for r in runs for s in r["subsets"] if s["given"] == [1]]
        if given:
            shares[entry.label] = 100 * fmean(s["coherence_all"] for s in given)
    source = numbers.source(world.results, "polymnist")
    if not shares:
        return Made(NONE, [source])
    published = PRINTED["text"]["from_view_2"]
    ours = ", ".join(f"{v:.2f} % ({k})" for k, v in shares.items() if k.startswith("mvp"))
    sentence = (
        f"Not possible here: other backgrounds. Printed for MVP: {published} %; ours: {ours}."
    )
    rows = [[k, f"{v:.2f}"] for k, v in shares.items()]
    picture = "![Digits inferred from view 2](../images/inferred-polymnist-by-all.png)"
    return Made(sentence, [picture, table(["from view 2", "right digits, %"], rows), source])


def shapes(world: World) -> Made:
    """Exhibit of the table of MVShapeNet beside `shapes`."""
    summary, rows = world.results.summary("shapes"), []
    scores = {"coherence_all": ("ACC", 2), "angle_all": ("View", 2), "ssim_all": ("SSIM", 4)}
    for rate in (0.1, 0.5):
        for entry in studies.load("shapes").entries:
            for score, (title, digits) in scores.items():
                name = PRINTED_AS.get(entry.label, entry.label)
                known = studies.references(name, "shapes", rate, score)
                ours = [summary.cell(entry.label, "shapes", rate, f"{score}_{g}") for g in _GIVEN]
                if known and any(ours):
                    theirs = reversed(next(iter(known.values())))
                    cells = zip(theirs, ours, strict=True)
                    both = [h for a, b in cells for h in (f"{a:.{digits}f}", text(b, digits))]
                    rows.append([f"{rate:g} {entry.label} {title}", *both])
    heads = ["", *(h for m in range(1, 5) for h in (f"missing {m}: printed", "ours"))]
    source = numbers.source(world.results, "shapes")
    sentence = (
        "Not possible here: MVShapeNet is made of ShapeNet, which may not be passed on. Ours are "
        "on `shapes` and stand beside the printed numbers, not against them."
    )
    return Made(sentence, [table(heads, rows), source] if rows else [source])


def captions(world: World) -> Made:
    files = sorted(world.results.folder.glob("captions-*.json"))
    command = "python -m vedute_bench.experiments.captions"
    sentence = (
        "Not possible here: photographs and captions of CUB have to be fetched by hand, and the "
        "paper prints pictures, no numbers."
    )
    if not files:
        return Made(sentence, [f"No record yet: `{command}`"])
    facts = json.loads(files[0].read_text(encoding="utf-8"))
    names = {
        "captions_class": "sentences that name the right class",
        "captions_colour": "sentences that name the right colour",
        "pictures_class": "pictures of the right class",
        "pictures_pixels_agreement": "pictures whose pixels have the colour",
        "pictures_pixels_chance": "the same by chance",
    }
    rows = [[title, f"{facts[k]:.1f}"] for k, title in names.items() if k in facts]
    line = f"`{command}` · {facts['steps']} steps · {facts['device']}"
    return Made(sentence, [table(["on `captions`", "%"], rows), line])


EXHIBITS = (lines, from_view_2, shapes, captions)
