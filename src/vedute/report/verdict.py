"""The verdict: which views can be inferred, in words, and what that means for their values."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import numpy as np

from vedute.report.hidden import FEW, coverage, r2
from vedute.report.html import number, percent
from vedute.report.run_folder import FittedRun

FEWEST_GRADED = 10  # hidden samples of a view that is graded
OFF = 0.04  # coverage this far from 90 % is worth a sentence
UNKNOWN = "It is not known how well missing views are inferred: no view was hidden from the fit"


class Grade(NamedTuple):
    """A grade of views: the least share of variance explained, its name, and the advice."""

    least: float
    name: str
    advice: str


GRADES = (
    Grade(0.6, "Inferred well", "imputed values may be analysed, with their intervals"),
    Grade(0.25, "Inferred in part", "use imputed values with their intervals, or draw them"),
    Grade(0.05, "Hardly inferred", "do not analyse imputed values of single samples"),
    Grade(-np.inf, "Not inferred", "leave these views missing"),
)


def shares(run: FittedRun) -> dict[str, float]:
    """The share of variance explained by view; views with few hidden samples are left out."""
    view, error, base = run.hidden_views(), run.errors()[run.method], run.base()
    mine = {name: view == v for v, name in enumerate(run.names)}
    return {k: r2(error[at], base[at]) for k, at in mine.items() if at.sum() >= FEWEST_GRADED}


def verdict(run: FittedRun) -> str:
    """A list of the views by grade, each with the advice, as HTML."""
    if not len(run.hidden_views()):
        return f'<ul class="verdict"><li>{UNKNOWN}.</li></ul>' if run.hidden else ""
    explained, lines = shares(run), ""
    left = dict(explained)
    for i, (least, name, advice) in enumerate(GRADES):
        graded = {k: share for k, share in left.items() if share >= least}
        left = {k: share for k, share in left.items() if k not in graded}
        views = ", ".join(f"<b>{escape(k)}</b> {percent(s)}" for k, s in graded.items())
        if views:
            lines += f'<li class="g{i}"><span>{name}</span> {views}: {advice}.</li>'
    unknown = [name for name in run.names if name not in explained]
    if unknown:
        few = f"fewer than {FEWEST_GRADED} of their samples were hidden"
        lines += f"<li><span>Not known</span> {escape(', '.join(unknown))}: {few}.</li>"
    note = "Shares of the variance of hidden views that the other views explain."
    return f'<ul class="verdict">{lines}</ul><p class="hint">{note}</p>'


def remarks(run: FittedRun) -> list[str]:
    """Sentences on what else to know of the verdict."""
    count, inside = len(run.hidden_views()), coverage(run, 0.9)
    said = [f"Only {number(count)} views were hidden, so these numbers are uncertain"]
    said = said if 0 < count < FEW else []
    if abs(inside - 0.9) > OFF:
        word = "too narrow" if inside < 0.9 else "wider than needed"
        said.append(f"90 % intervals cover {percent(inside)} of the hidden values: they are {word}")
    return said
