"""One page about one fit: self-contained HTML, readable without scripts. Nothing here trains."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from vedute.report import html
from vedute.report.data import data, depends, repeat, training, unconnected
from vedute.report.hidden import FEW, coverage, examples, hidden, informs, intervals, r2
from vedute.report.run_folder import FittedRun, Keep, of_model
from vedute.report.samples import agreement, clusters, representation, rules, samples

if TYPE_CHECKING:
    from vedute.estimators.base import Estimator

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # nothing is ever loaded


def write_page(
    run: Path,
    out: Path,
    ids: bool = True,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: bool = True,
) -> None:
    """Write the page of a RUN folder; options as of `write_report`."""
    out.write_text(page(FittedRun.of(run, Keep(ids, values)), shapes or {}), encoding="utf-8")


def write_report(
    model: Estimator,
    X: Any,
    path: str | Path,
    *,
    ids: bool = True,
    values: bool = True,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Write one self-contained page (.html) about a fitted model and the X that it was fitted on.

    ids: whether samples are named. values: whether values of samples are shown. shapes: of views
    that are pictures, {"pix": (16, 15)}. The measurements that the page shows take some seconds.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a page ends in .html, got {path}")
    run = of_model(model, X, Keep(ids, values))
    Path(path).write_text(page(run, shapes or {}), encoding="utf-8")


def page(run: FittedRun, shapes: Mapping[str, Sequence[int]]) -> str:
    """The HTML of the page: my samples, how good, the rest; deterministic for a given run."""
    script = _file("charts.js") + _file("samples.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rest = (intervals, informs, representation, clusters, data, training, repeat)
    body = samples(run) + hidden(run) + examples(run, shapes) + "".join(part(run) for part in rest)
    titles = re.findall(r'<section id="(\w+)"><h2>([^<]*)</h2>', body)
    return Template(_file("template.html")).substitute(
        title=escape(f"{run.source} · {run.method} · vedute"),
        policy=f"{POLICY}; script-src 'sha256-{digest}'",
        style=_file("style.css") + html.palette() + rules(run),
        head=_head(run),
        contents="".join(f'<a href="#{name}">{title}</a>' for name, title in titles),
        body=body,
        version=escape(str(run.facts["versions"]["vedute"])),
        script=script,
    )


def _file(name: str) -> str:
    return (files("vedute.report") / name).read_text(encoding="utf-8")


def _head(run: FittedRun) -> str:
    """The title, one sentence, the numbers that matter, and what to know first."""
    lacking, lost = (html.percent(run.facts[k]) for k in ("missing_rows", "missing_slots"))
    n, L, cards = html.number(len(run.mask)), len(run.names), []
    hidden_views, inside, scored = len(run.hidden_views()), coverage(run, 0.9), agreement(run)
    if hidden_views:
        shares = {k: r2(e, run.base()) for k, e in run.errors().items()}
        cards.append((html.percent(shares.pop(run.method)), "of hidden views explained"))
        if shares:
            best = max(shares, key=lambda k: shares[k])
            cards.append((html.percent(shares[best]), f"by {best}, the best simple fill"))
    if inside == inside:
        cards.append((html.percent(inside), "of values inside 90 % intervals"))
    if run.labels is not None:
        K = int(run.labels.max()) + 1
        cards.append((str(K), f"cluster{'s' * (K > 1)}"))
        if len(run.results.margin):
            cards.append((html.percent(run.uncertain.mean()), "of samples uncertain"))
    if scored:
        cards.append((html.percent(scored["acc"]), "clustering accuracy"))
    advice = run.advice() or ""
    said = [advice[:1].upper() + advice[1:], unconnected(run)]
    if 0 < hidden_views < FEW:
        said.insert(1, f"Only {hidden_views} views were hidden: errors are uncertain")
    if len(depends(run)):
        said.append("What is missing depends on what is observed: see Data")
    says = "".join(f"<li>{escape(sentence)}.</li>" for sentence in said if sentence)
    numbers = "".join(f"<div><b>{k}</b><span>{escape(words)}</span></div>" for k, words in cards)
    return (
        f'<h1>{escape(run.source)}</h1><p class="lead">{escape(run.method)} on {n} samples seen in '
        f"{L} view{'s' * (L > 1)}; {lacking} of the samples lack a view, {lost} of all views are "
        f'missing.</p><div class="cards">{numbers}</div>'
        + (f'<ul class="says">{says}</ul>' if says else "")
    )
