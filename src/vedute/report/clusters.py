"""Clusters: their sizes, what makes them, how certain they are, and the labels."""

from __future__ import annotations

from html import escape

import numpy as np

from vedute.report import svg
from vedute.report.charts import feature_name, short
from vedute.report.html import Key, color, figure, legend, table
from vedute.report.run_folder import Array, FittedRun
from vedute.report.svg import Plot, Scale

MOST_CLUSTERS, MOST_CLASSES, TRAITS = 40, 30, 6


def sizes(run: FittedRun) -> str:
    """A bar chart of cluster sizes, the uncertain part of each in a paler color."""
    assert run.labels is not None
    counts = np.bincount(run.labels)
    doubt = np.bincount(run.labels[run.uncertain()], minlength=len(counts))
    shown = len(counts[:MOST_CLUSTERS])
    width, right = 492, 440.0
    height = 20 + 26 * shown
    x = Scale(0, float(counts.max()), 86, right)
    plot = Plot((width, height), x, Scale(0, 1, height, 0), "cluster sizes", zoom=False, axes=False)
    for k in range(shown):
        at, firm = 20.0 + 26 * k, int(counts[k] - doubt[k])
        end, whole = float(x(firm)), float(x(counts[k]))
        share = svg.percent(doubt[k] / max(counts[k], 1))
        tip = (
            f"cluster {k}: {svg.number(counts[k])} samples",
            f"{doubt[k]} of them uncertain ({share})",
        )
        plot.notes.append(svg.text(74, at, f"cluster {k}", "end"))
        plot.notes.append(svg.bar(86, at - 9, end - 86, 18, f"s0 {color(k)}", *tip))
        plot.notes.append(svg.bar(end, at - 9, whole - end, 18, f"s1 pale {color(k)}", *tip))
        plot.notes.append(svg.text(whole + 6, at, svg.number(counts[k]), "small"))
    keys = legend([Key("s0", "ink", "certain"), Key("s1", "ink pale", "uncertain")])
    more = f"; the first {shown} of {len(counts)}" if shown < len(counts) else ""
    note = f"{svg.percent(run.uncertain().mean())} of all samples are uncertain{more}."
    return figure("Cluster sizes", plot, note, keys if len(run.samples.margin) else "")


def matrix(run: FittedRun) -> str:
    """Labels against clusters: the share of each label in each cluster; empty without either."""
    if run.labels is None or not len(run.samples.y):
        return ""
    values, y = np.unique(run.samples.y, return_inverse=True)
    K = int(run.labels.max()) + 1
    if len(values) > MOST_CLASSES or K > MOST_CLASSES:
        return ""
    counts = np.zeros((len(values), K), int)
    np.add.at(counts, (y, run.labels), 1)
    order = _matched(counts)
    left, top, width = 86.0, 40.0, 492
    cell = min((width - left - 12) / K, 40.0)
    tall = min(cell, 30.0)
    size = (width, int(top + tall * len(values) + 10))
    plot = Plot(size, Scale(0, 1, left, width), Scale(0, 1, size[1], 0), "labels and clusters")
    plot.zoom, plot.axes = False, False
    for place, k in enumerate(order):
        plot.notes.append(svg.text(left + cell * (place + 0.5), top - 12, str(k), "mid small"))
    for i, value in enumerate(values):
        name = short(str(value), 11)
        plot.notes.append(svg.text(left - 10, top + tall * (i + 0.5), name, "end small"))
        for place, k in enumerate(order):
            share = counts[i, k] / max(counts[i].sum(), 1)
            tip = (f"label {value}, cluster {k}", f"{counts[i, k]} samples ({svg.percent(share)})")
            box = svg.bar(left + cell * place, top + tall * i, cell - 1.5, tall - 1.5, "cell", *tip)
            plot.notes.append(box.replace("<rect", f'<rect style="--a:{share:.2f}"', 1))
            if counts[i, k] and cell > 24:
                kind = "mid small over" if share > 0.5 else "mid small"
                at = left + cell * (place + 0.5) - 0.75, top + tall * (i + 0.5)
                plot.notes.append(svg.text(*at, str(counts[i, k]), kind))
    plot.notes.append(svg.text(left, 12, "cluster", "name"))
    plot.notes.append(svg.text(left - 10, 12, "label", "name end"))
    note = "The method never saw the labels. Each cluster is placed at the label it matches best."
    return figure("Clusters and labels", plot, note)


def stability(run: FittedRun) -> str:
    """The stability curve over the number of clusters; empty if the user chose the number."""
    if not run.results.stability:
        return ""
    K, stable, error, chance = (
        run.results.stability[k].astype(float)
        for k in ("n_clusters", "stability", "error", "chance")
    )
    x, y = Scale(float(K[0]) - 0.5, float(K[-1]) + 0.5, 58, 480), Scale(0, 1.02, 262, 28)
    names = ("number of clusters", "agreement of two halves")
    plot = Plot((492, 306), x, y, "stability of clusterings", names)
    for i, (word, curve) in enumerate({"these data": stable, "no clusters": chance}.items()):
        plot.marks.append(svg.line(x(K), y(curve), f"s{i} {color(3 * i)}"))
        for k, value, wide in zip(K, curve, error, strict=True):
            sure = f" ± {wide:.2f}" if i == 0 else ""
            tip = (f"{k:.0f} clusters", f"{word}: {value:.2f}{sure}")
            plot.marks.append(svg.dot(x(k), y(value), f"s{i} {color(3 * i)}", *tip))
    keys = legend(
        [Key("s0", color(0), "these data"), Key("s1", color(3), "a cloud without clusters")]
    )
    note = "The number was chosen where clusterings of two halves agree most beyond chance."
    return figure("How many clusters", plot, note, keys)


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
