"""Clusters: their sizes, what makes them, how certain they are, and the labels."""

from __future__ import annotations

from html import escape

import numpy as np

from vedute.figures import page_axes
from vedute.report import svg
from vedute.report.charts import feature_name
from vedute.report.drawing import HALF, drawing
from vedute.report.html import color, figure, table
from vedute.report.run_folder import Array, FittedRun

MOST_CLUSTERS, MOST_CLASSES, TRAITS = 40, 30, 6


def sizes(run: FittedRun) -> str:
    """A figure of cluster sizes, the uncertain part of each in a paler color."""
    assert run.labels is not None
    counts = np.bincount(run.labels)
    uncertain = np.bincount(run.labels[run.uncertain()], minlength=len(counts))
    shown = min(len(counts), MOST_CLUSTERS)
    height, parts = 1.0 + 0.26 * shown, (counts[:shown], uncertain[:shown])
    body = drawing(lambda ax: page_axes.sizes(ax, *parts), "cluster sizes", HALF, height)
    more = f"; the first {shown} of {len(counts)}" if shown < len(counts) else ""
    note = f"{svg.percent(run.uncertain().mean())} of all samples are uncertain{more}."
    return figure("Cluster sizes", body, note)


def matrix(run: FittedRun) -> str:
    """A figure of the share of each label in each cluster; empty without either."""
    if run.labels is None or not len(run.samples.y):
        return ""
    values, y = np.unique(run.samples.y, return_inverse=True)
    K = int(run.labels.max()) + 1
    if len(values) > MOST_CLASSES or K > MOST_CLASSES:
        return ""
    counts = np.zeros((len(values), K), int)
    np.add.at(counts, (y, run.labels), 1)
    order, names = _matched(counts), [str(value) for value in values]
    body = drawing(
        lambda ax: page_axes.labels(ax, counts[:, order], names, order),
        "labels and clusters",
        HALF,
        1.0 + 0.3 * len(values),
    )
    note = "The method never saw the labels. Each cluster is placed at the label it matches best."
    return figure("Clusters and labels", body, note)


def stability(run: FittedRun) -> str:
    """A figure of stability over the number of clusters; empty if the user chose the number."""
    curve = run.results.stability
    if not curve:
        return ""
    body = drawing(lambda ax: page_axes.stability(ax, curve), "stability", HALF, 3.0)
    note = "The number was chosen where clusterings of two halves agree most beyond chance."
    return figure("How many clusters", body, note)


def traits(run: FittedRun) -> str:
    """The features that differ most in each cluster, with their effect sizes."""
    if not len(run.results.profile) or run.labels is None:
        return ""
    effects, lines = run.results.profile, []
    for k in range(min(effects.shape[1], MOST_CLUSTERS)):
        effect = effects[:, k]
        order = np.argsort(-np.abs(np.nan_to_num(effect)), kind="stable")[:TRAITS]
        chosen = [i for i in order if np.isfinite(effect[i])]
        if chosen:
            words = "".join(_trait(run, int(i), float(effect[i])) for i in chosen)
            lines.append([f'<i class="{color(k)}"></i>{k}', f'<span class="traits">{words}</span>'])
    note = (
        "mean of a cluster minus that of all other samples, observed values only, in standard "
        "deviations of the feature; they describe clusters and test nothing"
    )
    head = f"<h3>What makes a cluster <small>{note}</small></h3>"
    whole = table(["cluster", "features that differ most"], lines, 9)
    return f'<div class="plain">{head}{whole}</div>'


def _trait(run: FittedRun, i: int, effect: float) -> str:
    name = feature_name(str(run.results.profile_feature[i]))
    view = escape(str(run.results.profile_view[i]))
    kind = "up" if effect > 0 else "down"
    size = f"{'+' if effect > 0 else ''}{svg.number(effect)}"
    return f'<span class="{kind}">{escape(name)}<small>{view}</small> <b>{size}</b></span> '


def by_pattern(run: FittedRun) -> str:
    """A table of cluster size, stability and share of samples that lack each view."""
    assert run.labels is not None
    K, lacking = int(run.labels.max()) + 1, (~run.mask).mean(0)
    tries = run.samples.tries if len(run.samples.tries) else np.zeros(len(run.mask))
    lines = []
    for k in range(min(K, MOST_CLUSTERS)):
        mine = run.labels == k
        if not mine.any():
            continue
        kept = run.samples.stays[mine].sum() / tries[mine].sum() if tries[mine].sum() else np.nan
        shares = (~run.mask[mine]).mean(0)
        cells = [
            f"<b>{svg.percent(s)}</b>" if _unlike(s, all_, int(mine.sum())) else svg.percent(s)
            for s, all_ in zip(shares, lacking, strict=True)
        ]
        sure = "–" if np.isnan(kept) else svg.percent(kept)
        lines.append([f'<i class="{color(k)}"></i>{k}', svg.number(mine.sum()), sure, *cells])
    heads = ["cluster", "samples", "kept", *(f"no {name}" for name in run.names)]
    note = (
        "kept: how often samples stay in it when one of their views is left out. Then the share of "
        "its samples that lack each view; bold where that is far from the share in all samples"
    )
    whole = f"<h3>Stability and missing views <small>{note}</small></h3>{table(heads, lines)}"
    return f'<div class="plain">{whole}</div>'


def _unlike(share: float, among_all: float, n: int) -> bool:
    """Whether a share of n samples is off by more than three standard errors and by 0.1."""
    error = np.sqrt(max(among_all * (1 - among_all), 1e-12) / n)
    return bool(abs(share - among_all) > max(3 * error, 0.1))


def _matched(counts: Array) -> list[int]:
    """Clusters in the order of the labels they match best."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(counts, maximize=True)
    first = [int(c) for _, c in sorted(zip(rows, columns, strict=True))]
    return first + [k for k in range(counts.shape[1]) if k not in first]
