"""Which view informs which, measured where views were hidden before the model learned from them."""

from __future__ import annotations

from html import escape

import numpy as np

from vedute.metrics.scores import share_explained
from vedute.report import svg
from vedute.report.html import table
from vedute.report.run_folder import Array, FittedRun

FEW = 20  # hidden views: a number measured on fewer is uncertain
WORTH, MOST = 0.05, 6


def explained(run: FittedRun) -> Array:
    """(L + 1, L): the share of view v (columns) explained by view u alone, last by all others."""
    error, base, _ = run.results.alone
    view = run.hidden_views()
    total = [(run.errors()[run.method][view == v].sum(), run.base()[view == v].sum())
             for v in range(len(run.names))]  # fmt: skip
    whole = np.array(total).T.reshape(2, -1)
    error, base = np.vstack([error, whole[0]]), np.vstack([base, whole[1]])
    return share_explained(error, base)


def gains(run: FittedRun) -> Array:
    """(L, L): share by which observing u lowers the error of v; NaN if not measured."""
    less, more, count = run.results.without
    ratio = np.divide(more, less, out=np.full_like(less, np.nan), where=(less > 0) & (count >= FEW))
    return np.asarray(1 - np.sqrt(ratio))


def informs(run: FittedRun) -> str:
    """The matrix, the unique share of each view, and the gain of one more view; may be empty."""
    if not len(run.results.alone) or not run.held_out() or not run.results.alone[2].any():
        return ""
    return _matrix(run) + _own(run) + _one_more(run)


def _matrix(run: FittedRun) -> str:
    shares, counts, lines = explained(run), run.results.alone[2], []
    totals = np.vstack([counts, np.bincount(run.hidden_views(), minlength=len(counts))])
    for u, name in enumerate([*run.names, "all others"]):
        cells = []
        for v, share in enumerate(shares[u]):
            cells.append(_cell(float(share), float(totals[u, v])))
        lines.append([escape(name) if u < len(counts) else f"<b>{escape(name)}</b>", *cells])
    heads = ["from ↓ to →", *run.names]
    note = (
        "How much of a hidden view (columns) is explained by each other view alone (rows), and by "
        "all that the sample has, which may be few. Pale: of fewer than 20 hidden views."
    )
    whole = table(heads, lines).replace(
        "<table>", f'<table class="matrix" style="--columns:{len(run.names)}">', 1
    )
    return f'<div class="plain"><h3>From one view alone <small>{note}</small></h3>{whole}</div>'


def _cell(share: float, count: float) -> str:
    if not np.isfinite(share):
        return ""
    kind = f"heat{' few' * (count < FEW)}{' deep' * (share > 0.55)}"
    tip, strength = f"{count:.0f} hidden views", f"--a:{max(share, 0):.2f}"
    return f'<span class="{kind}" title="{tip}" style="{strength}">{svg.percent(share)}</span>'


def _own(run: FittedRun) -> str:
    """A table of views: best predictor, unique share, and largest gain for another view."""
    shares, gain = explained(run), gains(run)
    lines = []
    for v, name in enumerate(run.names):
        from_others = shares[-1, v]
        alone = shares[:-1, v]
        best = int(np.nanargmax(alone)) if np.isfinite(alone).any() else -1
        adds = gain[v][np.isfinite(gain[v])]
        kin = f"{escape(run.names[best])} ({svg.percent(alone[best])})" if best >= 0 else "–"
        unique = svg.percent(max(1 - from_others, 0)) if np.isfinite(from_others) else "–"
        lines.append(
            [escape(name), kin, unique, svg.percent(max(adds.max(), 0)) if len(adds) else "–"]
        )
    heads = ["view", "best predicted by", "of its own", "most that it adds"]
    note = (
        "of its own: what the others do not explain, noise included. Most that it adds: by how "
        "much it lowers the error of another view at most; near 0 % it is redundant for them"
    )
    head = f"<h3>Redundant and unique <small>{note}</small></h3>"
    return f'<div class="plain">{head}{table(heads, lines, 2)}</div>'


def _one_more(run: FittedRun) -> str:
    """A list of the gains from one more measurement, largest first."""
    gain, candidates = gains(run), []
    for u, v in zip(*np.nonzero(np.nan_to_num(gain) >= WORTH), strict=True):
        lacking = int((~run.mask[:, u] & ~run.mask[:, v]).sum())
        if lacking:
            candidates.append((float(gain[u, v]), int(u), int(v), lacking))
    words = [_says(run, *candidate) for candidate in sorted(candidates, reverse=True)[:MOST]]
    none = "There are no samples for which one more view would lower the error of another by 5 %."
    words = words or [none]
    note = (
        "measured where the second view was hidden and the first observed: root mean square error "
        "with and without the first, given all other observed views"
    )
    return (
        f'<div class="plain"><h3>What one more measurement would buy <small>{note}</small></h3>'
        f'<ul class="says">{"".join(f"<li>{sentence}</li>" for sentence in words)}</ul></div>'
    )


def _says(run: FittedRun, gain: float, u: int, v: int, lacking: int) -> str:
    whom = "1 sample that lacks" if lacking == 1 else f"{svg.number(lacking)} samples that lack"
    return (
        f"Measuring <b>{escape(run.names[u])}</b> for the {whom} both lowers the error of "
        f"<b>{escape(run.names[v])}</b> by about {svg.percent(gain)}."
    )
