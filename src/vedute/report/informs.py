"""The section on which view informs which, measured where views were hidden before the model
learned from them."""

from __future__ import annotations

from html import escape

import numpy as np

from vedute.metrics.scores import share_explained
from vedute.report.html import number, percent, plain, section, table
from vedute.report.results import Array
from vedute.report.run_folder import FittedRun

FEW = 20  # hidden views: a number measured on fewer is uncertain
WORTH, MOST = 0.05, 6


def informs(run: FittedRun) -> str:
    """The matrix, the unique share of each view, and the gain of one more view; may be empty."""
    if not len(run.results.alone) or not run.held_out() or not run.results.alone[2].any():
        return ""
    lead = (
        "Measured on hidden views, by the model before it learned from them. Which view is worth "
        "measuring, and which ones are redundant?"
    )
    error, base, count = run.results.alone
    view = run.hidden_views()
    totals = run.errors()[run.method], run.base(), np.ones(len(view))
    error, base, count = (
        np.vstack([one, np.bincount(view, total, len(run.names))])
        for one, total in zip((error, base, count), totals, strict=True)
    )
    shares, gain = share_explained(error, base), _gains(run)
    parts = _matrix(run, shares, count), _own(run, shares, gain), _one_more(run, gain)
    return section("views", "Which view informs which", lead, *parts)


def _gains(run: FittedRun) -> Array:
    """(L, L): share by which observing u lowers the error of v; NaN if not measured."""
    less, more, count = run.results.without
    ratio = np.divide(more, less, out=np.full_like(less, np.nan), where=(less > 0) & (count >= FEW))
    return np.asarray(1 - np.sqrt(ratio))


def _matrix(run: FittedRun, shares: Array, counts: Array) -> str:
    """A table of shares explained (L + 1, L) of each view by each other one, last by all others."""
    names = [*map(escape, run.names), "<b>all others</b>"]
    lines = [
        [name, *map(_cell, share, count)]
        for name, share, count in zip(names, shares, counts, strict=True)
    ]
    note = (
        "How much of a hidden view (columns) is explained by each other view alone (rows), and by "
        "all that the sample has, which may be few. Pale: of fewer than 20 hidden views."
    )
    kind = f'<table class="matrix" style="--columns:{len(run.names)}">'
    whole = table(["from ↓ to →", *run.names], lines).replace("<table>", kind, 1)
    return plain("From one view alone", note, whole)


def _cell(share: float, count: float) -> str:
    if not np.isfinite(share):
        return ""
    kind = f"heat{' few' if count < FEW else ''}{' deep' if share > 0.55 else ''}"
    tip, strength = f"{count:.0f} hidden views", f"--a:{max(share, 0):.2f}"
    return f'<span class="{kind}" title="{tip}" style="{strength}">{percent(share)}</span>'


def _own(run: FittedRun, shares: Array, gain: Array) -> str:
    """A table of views: best predictor, unique share, and largest gain for another view."""
    lines = []
    for v, name in enumerate(run.names):
        *alone, from_others = shares[:, v]
        kin = unique = adds = "–"
        if np.isfinite(alone).any():
            best = int(np.nanargmax(alone))
            kin = f"{escape(run.names[best])} ({percent(alone[best])})"
        if np.isfinite(from_others):
            unique = percent(max(1 - from_others, 0))
        if np.isfinite(gain[v]).any():
            adds = percent(max(np.nanmax(gain[v]), 0))
        lines.append([escape(name), kin, unique, adds])
    heads = ["view", "best predicted by", "of its own", "most that it adds"]
    note = (
        "of its own: what the others do not explain, noise included. Most that it adds: by how "
        "much it lowers the error of another view at most; near 0 % it is redundant for them"
    )
    return plain("Redundant and unique", note, table(heads, lines, 2))


def _one_more(run: FittedRun, gain: Array) -> str:
    """A list of the gains from one more measurement, largest first."""
    lacking = (~run.mask).T.astype(int) @ ~run.mask  # (L, L) samples
    worth = (np.nan_to_num(gain) >= WORTH) & (lacking > 0)
    candidates = [(gain[u, v], u, v, lacking[u, v]) for u, v in np.argwhere(worth)]
    words = [
        f"Measuring <b>{escape(run.names[u])}</b> for the "
        f"{'1 sample that lacks' if n == 1 else f'{number(n)} samples that lack'} both lowers the "
        f"error of <b>{escape(run.names[v])}</b> by about {percent(share)}."
        for share, u, v, n in sorted(candidates, reverse=True)[:MOST]
    ]
    none = "There are no samples for which one more view would lower the error of another by 5 %."
    note = (
        "measured where the second view was hidden and the first observed: root mean square error "
        "with and without the first, given all other observed views"
    )
    body = "".join(f"<li>{sentence}</li>" for sentence in words or [none])
    return plain("What one more measurement would buy", note, f'<ul class="says">{body}</ul>')
