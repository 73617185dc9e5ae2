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

from vedute.report import html, plane, sections
from vedute.report.run_folder import FittedRun, Keep

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
    """Write the page of the RUN folder that `vedute fit` wrote.

    ids: whether samples are named. values: whether values and labels of samples are shown.
    shapes: of views that are pictures, {"pix": (16, 15)}.
    """
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
    from vedute.report import run_folder

    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a page ends in .html, got {path}")
    run = run_folder.of_model(model, X, Keep(ids, values))
    path.write_text(page(run, shapes or {}), encoding="utf-8")


def page(run: FittedRun, shapes: Mapping[str, Sequence[int]]) -> str:
    """The HTML of the page, deterministic for a given run."""
    script = _file("charts.js") + _file("samples.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    body = sections.all_of(run, shapes)
    titles = re.findall(r'<section id="(\w+)"><h2>([^<]*)</h2>', body)
    style = (
        _file("style.css") + html.palette() + (plane.rules(run) if len(run.samples.plane) else "")
    )
    return Template(_file("template.html")).substitute(
        title=escape(f"{run.source} · {run.method} · vedute"),
        policy=f"{POLICY}; script-src 'sha256-{digest}'",
        style=style,
        head=sections.head(run),
        contents="".join(f'<a href="#{name}">{title}</a>' for name, title in titles),
        body=body,
        version=escape(str(run.facts["versions"]["vedute"])),
        script=script,
    )


def _file(name: str) -> str:
    return (files("vedute.report") / name).read_text(encoding="utf-8")
