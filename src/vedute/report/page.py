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

from vedute.data.views import Views
from vedute.report import html, samples, verdict
from vedute.report.columns import Array, column_values
from vedute.report.data import data, depends, repeat, training, unconnected
from vedute.report.hidden import by_group, coverage, examples, hidden, informs, r2
from vedute.report.run_folder import FittedRun, Keep, of_model

if TYPE_CHECKING:
    from vedute.estimators.base import Estimator

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # nothing is ever loaded


def write_page(
    run: Path,
    out: Path,
    ids: bool = True,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: bool = True,
    title: str = "",
    groups: tuple[str, Array] | None = None,
) -> None:
    """Write the page of a RUN folder; options as of `write_report` and `page`."""
    text = page(FittedRun.of(run, Keep(ids, values)), shapes or {}, title, groups)
    out.write_text(text, encoding="utf-8")


def write_report(
    model: Estimator,
    X: Any,
    path: str | Path,
    *,
    ids: bool = True,
    values: bool = True,
    shapes: Mapping[str, Sequence[int]] | None = None,
    title: str = "",
    split: str | None = None,
) -> None:
    """Write one self-contained page (.html) about a fitted model and the X that it was fitted on.

    ids: whether samples are named. values: whether values of samples are shown. shapes: of views
    that are pictures, {"pix": (16, 15)}. title: the heading, instead of the name of the data.
    split: a column of X, by which errors and coverage are shown as well. The measurements that the
    page shows take some seconds.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a page ends in .html, got {path}")
    run = of_model(model, X, Keep(ids, values))
    split_by = None
    if split is not None:
        split_by = split, column_values(Views.of(X, None, model.columns), split)
    Path(path).write_text(page(run, shapes or {}, title, split_by), encoding="utf-8")


def page(
    run: FittedRun,
    shapes: Mapping[str, Sequence[int]],
    title: str = "",
    groups: tuple[str, Array] | None = None,
) -> str:
    """The HTML of the page: the verdict, hidden views, what is imputed, clusters, samples, the
    rest; deterministic for a given run. groups: name and values (n,) of a column to split by."""
    script = _file("charts.js") + _file("samples.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rest = samples.clusters, samples.representation, samples.samples, data, training, repeat
    split = "" if groups is None else by_group(run, *groups)
    good = hidden(run) + split + examples(run, shapes) + informs(run)
    body = good + "".join(part(run) for part in rest)
    title = title or run.source
    titles = re.findall(r'<section id="(\w+)"><h2>([^<]*)</h2>', body)
    return Template(_file("template.html")).substitute(
        title=escape(f"{title} · {run.method} · vedute"),
        policy=f"{POLICY}; script-src 'sha256-{digest}'",
        style=_file("style.css") + html.palette() + samples.rules(run),
        head=_head(run, title),
        contents="".join(f'<a href="#{name}">{title}</a>' for name, title in titles),
        body=body,
        version=escape(str(run.facts["versions"]["vedute"])),
        script=script,
    )


def _file(name: str) -> str:
    return (files("vedute.report") / name).read_text(encoding="utf-8")


def _head(run: FittedRun, title: str) -> str:
    """The title, what was done, the numbers that matter, the verdict, and what else to know."""
    lacking, lost = (html.percent(run.facts[k]) for k in ("missing_rows", "missing_slots"))
    n, L = html.number(len(run.mask)), len(run.names)
    advice = run.advice() or ""
    said = [*verdict.remarks(run), advice[:1].upper() + advice[1:], unconnected(run)]
    if len(depends(run)):
        said.append("What is missing depends on what is observed: see Data")
    says = "".join(f"<li>{escape(sentence)}.</li>" for sentence in said if sentence)
    numbers = "".join(
        f"<div><b>{k}</b><span>{escape(words)}</span></div>" for k, words in cards(run)
    )
    day = f"<time>{escape(str(run.facts['date']))}</time>" if run.facts.get("date") else ""
    done = "fitted, clustered and filled" if run.labels is not None else "fitted and filled"
    return (
        f'{day}<h1>{escape(title)}</h1><p class="lead">{n} samples in {L} view{"s" * (L > 1)}, '
        f"{done} by {escape(run.method)}; {lacking} of the samples lack a view, {lost} of all "
        f'views are missing.</p>{verdict.verdict(run)}<div class="cards">{numbers}</div>'
        + (f'<ul class="says">{says}</ul>' if says else "")
    )


def cards(run: FittedRun) -> list[tuple[str, str]]:
    """The headline numbers, each with its caption."""
    numbers, inside, scored = [], coverage(run, 0.9), samples.agreement(run)
    if len(run.hidden_views()):
        shares = {k: r2(e, run.base()) for k, e in run.errors().items()}
        numbers.append((html.percent(shares.pop(run.method)), "of hidden views explained"))
        if shares:
            best = max(shares, key=lambda k: shares[k])
            numbers.append((html.percent(shares[best]), f"by {best}, the best simple fill"))
    if inside == inside:
        numbers.append((html.percent(inside), "of values inside 90 % intervals"))
    if run.labels is not None:
        K = int(run.labels.max()) + 1
        numbers.append((str(K), f"cluster{'s' * (K > 1)}"))
        if len(run.results.margin):
            numbers.append((html.percent(run.uncertain.mean()), "of samples uncertain"))
    return numbers + ([(html.percent(scored["acc"]), "clustering accuracy")] if scored else [])
