"""Which view informs which, measured where views were hidden before the model learned from them."""

from __future__ import annotations

from html import escape

import numpy as np

from vedute.metrics.scores import share_explained
from vedute.report import svg
from vedute.report.html import table
from vedute.report.run_folder import Array, FittedRun

FEW = 20  # hidden views: with fewer a number is uncertain
ALIKE, WORTH, MOST = 0.7, 0.05, 6


def explained(run: FittedRun) -> Array:
    """(L + 1, L): the share of view v (columns) explained by view u alone, last by all others."""
    error, base, _ = run.found["alone"]
    view = run.hidden_views()
    total = [(run.errors()[run.method][view == v].sum(), run.base()[view == v].sum())
             for v in range(len(run.names))]  # fmt: skip
    whole = np.array(total).T.reshape(2, -1)
    error, base = np.vstack([error, whole[0]]), np.vstack([base, whole[1]])
    return share_explained(error, base)


def gains(run: FittedRun) -> Array:
    """(L, L): by how much the error of v is smaller with u than without it; NaN: not known."""
    less, more, count = run.found["without"]
    ratio = np.divide(more, less, out=np.full_like(less, np.nan), where=(less > 0) & (count >= FEW))
    return np.asarray(1 - np.sqrt(ratio))


def informs(run: FittedRun) -> str:
    """The matrix, what each view has of its own, and what one more would buy; or nothing."""
    if "alone" not in run.found or not run.honest() or not run.found["alone"][2].any():
        return ""
    return _matrix(run) + _own(run) + _one_more(run)


def _matrix(run: FittedRun) -> str:
    shares, counts, lines = explained(run), run.found["alone"][2], []
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
    """Of each view: what the others know of it, what it alone adds, and its nearest relative."""
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
    """Sentences, the largest gains first, on samples that lack two views."""
    gain, found = gains(run), []
    for u, v in zip(*np.nonzero(np.nan_to_num(gain) >= WORTH), strict=True):
        lacking = int((~run.mask[:, u] & ~run.mask[:, v]).sum())
        if lacking:
            found.append((float(gain[u, v]), int(u), int(v), lacking))
    words = [_says(run, *each) for each in sorted(found, reverse=True)[:MOST]]
    none = "There are no samples for which one more view would lower the error of another by 5 %."
    words = words or [none]
    note = (
        "measured where the second view was hidden and the first was there: root mean square error "
        "with it and without it, beside all else that was observed"
    )
    return (
        f'<div class="plain"><h3>What one more measurement would buy <small>{note}</small></h3>'
        f'<ul class="says">{"".join(f"<li>{each}</li>" for each in words)}</ul></div>'
    )


def _says(run: FittedRun, gain: float, u: int, v: int, lacking: int) -> str:
    whom = "1 sample that lacks" if lacking == 1 else f"{svg.number(lacking)} samples that lack"
    return (
        f"Measuring <b>{escape(run.names[u])}</b> for the {whom} both lowers the error of "
        f"<b>{escape(run.names[v])}</b> by about {svg.percent(gain)}."
    )
