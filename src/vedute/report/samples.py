"""The sections on samples: one by one, in the plane, and in clusters.

The list of samples is to search and sort, each line opens to inferred values. Without scripts every
line that has values opens, too, and the others are plain text, from which samples.js makes the same
lines. A line is: name, uncertainty, cluster, what is missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from string import Template
from typing import NamedTuple

import numpy as np

from vedute.figures import plots
from vedute.metrics.scores import clustering_scores
from vedute.report import html
from vedute.report.html import chart, color, number, percent, plain, table
from vedute.report.measure import Array, Cell
from vedute.report.run_folder import FittedRun

FIRST = 6  # lines visible at first
NONE = "–"
HIGH = 3.0  # standard deviations at the ends of a bar
MOST_COLORED = 20  # labels with a color of their own
MOST_CLUSTERS, MOST_CLASSES, MOST_SCORED, TRAITS = 40, 30, 100, 6
PLANE_SIZE, EDGE = np.array([1000, 640]), 10
BOX = 'x="10" y="10" width="980" height="620"'
FRAME = Template(
    '<svg class="plot" viewBox="0 0 1000 640" role="img" aria-label="samples in the plane" '
    f'data-box="10 10 990 630"><svg {BOX} viewBox="10 10 980 620">'
    f'<rect class="ground" {BOX}/><g class="marks">$dots</g></svg></svg>'
)
PRESSED = "background:var(--ink);color:var(--paper);border-color:var(--ink)"


def samples(run: FittedRun) -> str:
    """The section of samples; empty if they were not measured."""
    results, how = run.results, ""
    if not len(results.doubt) and not len(results.margin):
        return ""
    if len(results.doubt):
        left = (~run.mask | (run.gap_counts > 0)).any(1) & np.isnan(results.doubt)
        unmeasured = f", and for {number(left.sum())} that were not measured" * bool(left.any())
        how += (
            "<b>Uncertainty</b> is averaged over all values of a sample, and views count alike: an "
            "observed value counts 0 %, an inferred one up to 100 %, where no more is known than "
            f"the mean of the feature; – where nothing is missing{unmeasured}. "
        )
    if run.labels is not None and len(results.margin):
        how += "Two clusters are named where either is about as near. "
    if len(results.cells):
        how += (
            f"Values are those of the {len(results.listed)} most uncertain samples: up to 30 "
            "features, those that are missing and those farthest from the mean. Bars reach from "
            "three standard deviations below the mean of a feature to three above."
        )
    lead = "All samples, one line each, the most uncertain first. "
    if len(results.cells):
        lead += "Open a line to see values in your units, inferred ones <b>bold</b>. "
    key = html.fold("How to read the list", f"<p>{how}</p>") if how else ""
    return html.section("samples", "Samples", lead, _list(run), key)


def _list(run: FittedRun) -> str:
    order, names = ordered(run).tolist(), dict[int, str]()
    for place, row in enumerate(order, 1):
        names[row] = f"no. {place}" if run.private else " ".join(run.sample(row).split())
    cells: dict[int, list[Cell]] = defaultdict(list)
    for record in run.results.cells.tolist():
        cells[record[0]].append(Cell(*record))
    shown = {row: i for i, row in enumerate(run.results.listed.tolist())}
    listed, rest = [], []
    for row in order:
        fields = line(run, row, names[row])
        if row not in shown:
            rest.append("\t".join(fields.values()))
            continue
        spans = "".join(f"<span>{escape(field)}</span>" for field in fields.values())
        inside = _about(run, row, shown[row], names) + _values(run, cells[shown[row]])
        head = f'<summary class="line">{spans}</summary>'
        listed.append(f'<details class="sample">{head}{inside}</details>')
    body, more = "".join(listed[:FIRST]), "".join(listed[FIRST:])
    if more:
        count = f"{len(listed) - FIRST} more"
        body += f'<details class="more"><summary>{count}</summary>{more}</details>'
    if rest:
        words = f"{number(len(rest))}{' other' if shown else ''} samples, one line each"
        text = escape("\n".join(rest))
        body += f'<details class="rest"><summary>{words}</summary><pre>{text}</pre></details>'
    buttons = "".join(f'<button type="button" data-by="{h}">{h}</button>' for h in fields)
    body = f'<div class="line heads">{buttons}</div>{body}'
    return f'<div class="samples" data-heads="{",".join(fields)}">{body}</div>'


def ordered(run: FittedRun) -> Array:
    """Rows of all samples, the most uncertain first; ties are shuffled in a private run."""
    n = len(run.mask)
    doubt = run.results.doubt.astype(float) if len(run.results.doubt) else np.full(n, np.nan)
    margin = run.results.margin.astype(float) if len(run.results.margin) else np.zeros(n)
    last = np.random.default_rng(0).permutation(n) if run.private else np.arange(n)
    return np.lexsort((last, margin, np.where(np.isnan(doubt), 1.0, -doubt)))


def line(run: FittedRun, row: int, name: str) -> dict[str, str]:
    """The fields of one sample, as text by heading."""
    fields = {"sample": name}
    if len(run.results.doubt):
        doubt = float(run.results.doubt[row])
        fields["uncertainty"] = NONE if np.isnan(doubt) else percent(doubt)
    if run.labels is not None:
        other = f" or {run.results.runner_up[row]}" if run.uncertain[row] else ""
        fields["cluster"] = f"{int(run.labels[row])}{other}"
    gaps, views = run.gaps(row), zip(run.names, run.mask[row], strict=True)
    lost = [gaps.get(name, name) for name, seen in views if name in gaps or not seen]
    fields["missing"] = ", ".join(" ".join(words.split()) for words in lost) or "nothing"
    return fields


def _about(run: FittedRun, row: int, place: int, names: dict[int, str]) -> str:
    """The views, cluster and nearest neighbors of a sample, which is listed at `place`."""
    gaps = "".join(f"; {words} missing" for words in run.gaps(row).values())
    parts = [escape(f"{run.views_of(row).capitalize()}{gaps}.")]
    if run.labels is not None and len(run.results.margin):
        k, other = int(run.labels[row]), int(run.results.runner_up[row])
        margin = _margin(run, row, "with {} of {} views left out")
        parts.append(f'<i class="{color(k)}"></i>Cluster {k}; next is {other}, {margin}.')
    near = [escape(names[int(r)]) for r in run.results.nearest[place]]
    if near:
        buttons = " ".join(f'<button type="button">{name}</button>' for name in near)
        parts.append(f'Nearest in the representation: <span class="near">{buttons}</span>')
    return f"<p>{' '.join(parts)}</p>"


def _margin(run: FittedRun, row: int, how: str) -> str:
    """The margin of a sample, and how often it stays in its cluster."""
    stays, tries = int(run.results.stays[row]), int(run.results.tries[row])
    kept = f", kept {how.format(stays, tries)}" if tries else ""
    return f"margin {run.results.margin[row]:.2f}{kept}"


def _values(run: FittedRun, cells: Sequence[Cell]) -> str:
    """A table of inferred values with intervals, followed by observed ones, each with a bar."""
    rows = []
    for cell in sorted(cells, key=lambda cell: cell.seen):
        wide = not cell.seen and not cell.word and cell.high > cell.low
        text = escape(cell.word) or number(cell.value)
        interval = f"{number(cell.low)} to {number(cell.high)}" if wide else NONE
        at, *ends = (round(50 + 48 * float(np.clip(z, -HIGH, HIGH)) / HIGH) for z in cell.z)
        low, high = ends if wide else (at, at)
        bar = f'<i class="iv{"" if wide else " was"}" style="--m:{at};--a:{low};--b:{high}"></i>'
        feature = escape(run.names[cell.view]), escape(html.feature_name(cell.name))
        shown = [text, "observed"] if cell.seen else [f"<b>{text}</b>", interval]
        rows.append([*feature, *shown, "" if cell.word else bar])
    return table(["view", "feature", "value", "90 % interval", ""], rows, 99) if rows else ""


class Coloring(NamedTuple):
    """A way to color samples: names of classes, shades of one color if ordered; which (n,)."""

    question: str
    words: list[str]
    which: Array
    ordered: bool = False


def colorings(run: FittedRun) -> list[Coloring]:
    """All ways to color the samples of a run."""
    choices = []
    if run.labels is not None:
        names = [f"cluster {k}" for k in range(int(run.labels.max()) + 1)]
        choices.append(Coloring("cluster", names, run.labels.astype(int)))
    y = run.results.y
    values, which = np.unique(y, return_inverse=True)
    if len(values) > MOST_COLORED and y.dtype.kind in "iuf":  # by quintile
        edges = np.quantile(y, np.linspace(0, 1, 6))
        words = [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)]
        choices.append(Coloring("label", words, np.searchsorted(edges[1:-1], y), ordered=True))
    elif len(values):
        words = [str(value) for value in values]
        if len(values) > MOST_COLORED:  # by the most frequent
            common = [k for k, _ in Counter(which.tolist()).most_common(MOST_COLORED - 1)]
            place = {k: i for i, k in enumerate(common)}
            words = [*(words[k] for k in common), "others"]
            which = np.array([place.get(int(k), len(common)) for k in which])
        choices.append(Coloring("label", words, which))
    patterns, which = np.unique(run.mask, axis=0, return_inverse=True)
    if len(patterns) <= 10:
        order = np.argsort(-np.bincount(which.ravel()), kind="stable")
        words = [run.views_of(int(np.flatnonzero(which.ravel() == k)[0])) for k in order]
        choices.append(Coloring("missing pattern", words, np.argsort(order)[which.ravel()]))
    else:  # by the number of observed views
        counts, which = np.unique(run.mask.sum(1), return_inverse=True)
        words = [f"{c} view{'' if c == 1 else 's'} observed" for c in counts]
        choices.append(Coloring("missing pattern", words, which, ordered=True))
    if len(run.results.margin):
        words, sure = ["certain", "uncertain"], run.uncertain.astype(int)
        choices.append(Coloring("certainty", words, sure))
    return choices


def representation(run: FittedRun) -> str:
    """The section on the representation: one set of dots in two dimensions, which charts.js pans
    and zooms; empty if it was not measured. The browser shows the <title> of a dot as a tooltip."""
    points, rows = run.results.plane.astype(float), run.results.plane_rows
    if not len(points):
        return ""
    order = np.lexsort(points.T) if run.private else np.arange(len(rows))  # which identifies, too
    points, rows = points[order], rows[order]
    low, high = points.min(0), points.max(0)
    reach = np.maximum((high - low) / 2, 1e-6) * 1.05
    unit = (reach / (PLANE_SIZE / 2 - EDGE)).max()  # the same on both axes
    places = PLANE_SIZE / 2 + (points - (low + high) / 2) / unit * [1, -1]
    asked, dots = colorings(run), ""
    for (x, y), row in zip(places, rows.tolist(), strict=True):
        kinds, tip = "", [run.sample(row)]
        for q, c in enumerate(asked):
            kinds += f" {'cqrt'[q]}{c.which[row]}"
            if c.question in ("cluster", "label"):
                tip.append("label " * (c.question == "label") + c.words[c.which[row]])
        if len(run.results.margin):
            tip.append(_margin(run, row, "in {} of {} tries"))
        words = escape("\n".join(filter(None, [*tip, run.views_of(row)])))
        # a line without length under a round cap: zooming is one transform of all dots
        dot = f'd="M{x:.1f} {y:.1f}h.01"><title>{words}</title></path>'
        dots += f'<path class="dot{kinds}" {dot}'
    kind = "t-SNE" if len(points) >= 10 else "principal axes"
    of = "" if len(rows) == len(run.mask) else f"{len(rows)} of {len(run.mask)} samples. "
    note = (
        f"{of}{kind} of the representation: neighbors here are neighbors in it; distances between "
        "groups mean little. Point at a sample to see what it is."
    )
    plot = _switch(asked) + _features(run, order) + FRAME.substitute(dots=dots)
    lead = "One representation per sample, learned from whatever views it has."
    body = html.figure("The samples in the plane", plot, note, kind="wide map")
    return html.section("map", "Representation", lead, body)


def _features(run: FittedRun, order: Array) -> str:
    """A choice of features to color by, which charts.js shows: their shades, one digit per dot."""
    options = ""
    for key, codes in run.results.shades.items():
        view, _, name = key.partition(".")
        words = "|".join(run.results.shade_names[key].tolist())
        digits = "".join(map(str, codes[order].tolist()))
        data = f'value="{digits}" data-words="{escape(words)}"'
        options += f"<option {data}>{escape(html.feature_name(name))} · {escape(view)}</option>"
    first = '<option value="">a feature</option>'
    label = 'class="paint" aria-label="Color by a feature"'
    return f"<select {label} hidden>{first}{options}</select>" if options else ""


def _switch(asked: list[Coloring]) -> str:
    """Radio buttons, each with its legend; charts.js makes the keys show and hide a class."""
    buttons, legends = "", ""
    for q, c in enumerate(asked):
        checked, keys = " checked" if q == 0 else "", ""
        buttons += f'<input type="radio" name="by" id="by{q}"{checked}>'
        buttons += f'<label for="by{q}">{escape(c.question)}</label>'
        for series, word in ((f"{'cqrt'[q]}{i}", word) for i, word in enumerate(c.words)):
            keys += f'<button type="button" data-series="{series}" aria-pressed="true">'
            keys += f'<i class="{series}"></i>{escape(word)}</button>'
        legends += f'<div class="legend by by{q}">{keys}</div>'
    return f'<span class="ask">Color by</span>{buttons}{legends}'


def rules(run: FittedRun) -> str:
    """The color of each class of dots under each coloring, as CSS."""
    css = ""
    for q, c in enumerate(colorings(run) if len(run.results.plane) else ()):
        for i in range(len(c.words)):
            name = f"r{round(8 * i / max(len(c.words) - 1, 1))}" if c.ordered else color(i)
            name = ("line", "k2")[i] if c.question == "certainty" else name
            dot = f".{'cqrt'[q]}{i}"
            css += f"#by{q}:checked~svg {dot},.by{q} {dot}{{--c:var(--{name})}}"
        css += f"#by{q}:checked~.by{q}{{display:flex}}#by{q}:checked+label{{{PRESSED}}}"
    return css


def clusters(run: FittedRun) -> str:
    """The section on clusters: sizes, features, certainty, labels; empty without any."""
    if run.labels is None:
        return ""
    lead = "Which samples belong together. "
    if len(run.results.margin):
        lead += "A sample is <b>uncertain</b> when its cluster changes if one of its views is left "
        lead += "out, or when the next cluster is about as near (margin under 0.05; 0 is halfway "
        lead += "between two clusters, 1 at the center of one)."
    scored = ", ".join(f"{k.upper()} {percent(s, 1)}" for k, s in agreement(run).items())
    words = f"<p>Against the labels, which no method ever sees: {scored}.</p>" if scored else ""
    counts, uncertain = np.bincount(run.labels), run.uncertain
    shown = min(len(counts), MOST_CLUSTERS)
    bars = counts[:shown], np.bincount(run.labels[uncertain], minlength=len(counts))[:shown]
    more = f"; the first {shown} of {len(counts)}" if shown < len(counts) else ""
    note = f"{percent(uncertain.mean())} of all samples are uncertain{more}."
    pair = chart("Cluster sizes", note, 1.0 + 0.26 * shown, plots.sizes, *bars)
    pair += _matrix(run, run.labels)
    if run.results.stability:  # the user did not choose the number
        note = "The number was chosen where clusterings of two halves agree most beyond chance."
        pair += chart("How many clusters", note, 3.0, plots.stability, run.results.stability)
    by_cluster = f'<div class="two">{pair}</div>', _by_cluster(run, run.labels)
    parts = words, _traits(run), html.fold("Sizes, stability and missing views", *by_cluster)
    return html.section("clusters", "Clusters", lead, *parts)


def agreement(run: FittedRun) -> dict[str, float]:
    """Scores of the clusters against labels; empty without labels."""
    y = run.results.y
    if run.labels is None or not len(y) or len(np.unique(y)) > MOST_SCORED:
        return {}
    return clustering_scores(y, run.labels)


def _matrix(run: FittedRun, labels: Array) -> str:
    """A figure of the share of each label in each cluster; empty without labels."""
    values, y = np.unique(run.results.y, return_inverse=True)
    K = int(labels.max()) + 1
    if not len(values) or len(values) > MOST_CLASSES or K > MOST_CLASSES:
        return ""
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((len(values), K), int)
    np.add.at(counts, (y, labels), 1)
    matched = linear_sum_assignment(counts, maximize=True)[1].tolist()
    order, names = [*matched, *sorted({*range(K)} - {*matched})], [str(value) for value in values]
    note = "The method never saw the labels. Each cluster is placed at the label it matches best."
    shown = counts[:, order], names, order
    return chart("Clusters and labels", note, 1.0 + 0.3 * len(values), plots.labels, *shown)


def _traits(run: FittedRun) -> str:
    """The features that differ most in each cluster, with their effect sizes."""
    profiles, lines = run.results.profiles, []
    for k, effects in enumerate(profiles["effect"].T[:MOST_CLUSTERS] if len(profiles) else ()):
        words = ""
        for f in np.argsort(-np.abs(np.nan_to_num(effects)), kind="stable")[:TRAITS]:
            if np.isfinite(effects[f]):
                kind, sign = ("up", "+") if effects[f] > 0 else ("down", "")
                name = html.feature_of(profiles["feature"][f], profiles["view"][f])
                mine, others = profiles["share"][f][k], profiles["share_of_others"][f][k]
                text = f"{sign}{number(effects[f])}"
                if np.isfinite(mine):
                    text = f"{percent(mine)} against {percent(others)}"
                words += f'<span class="{kind}">{name} <b>{text}</b></span> '
        if words:
            lines.append([f'<i class="{color(k)}"></i>{k}', f'<span class="traits">{words}</span>'])
    note = (
        "mean of a cluster minus that of all other samples in standard deviations of the feature, "
        "or shares of yes in the cluster and in the others; of observed values; they describe "
        "clusters and test nothing"
    )
    whole = table(["cluster", "features that differ most"], lines, 9)
    return plain("What makes a cluster", note, whole) if len(profiles) else ""


def _by_cluster(run: FittedRun, labels: Array) -> str:
    """A table of cluster size, stability and share of samples that lack each view."""
    lacking, lines = (~run.mask).mean(0), []
    error = np.sqrt(np.maximum(lacking * (1 - lacking), 1e-12))  # of one sample
    for k in np.unique(labels[labels < MOST_CLUSTERS]):
        mine = labels == k
        tried = run.results.tries[mine].sum() if len(run.results.tries) else 0
        sure = percent(run.results.stays[mine].sum() / tried) if tried else NONE
        shares = (~run.mask[mine]).mean(0)
        far = np.abs(shares - lacking) > np.maximum(3 * error / np.sqrt(mine.sum()), 0.1)
        shown = zip(map(percent, shares), far, strict=True)
        cells = (f"<b>{share}</b>" if unlike else share for share, unlike in shown)
        lines.append([f'<i class="{color(k)}"></i>{k}', number(mine.sum()), sure, *cells])
    heads = ["cluster", "samples", "kept", *(f"no {name}" for name in run.names)]
    note = "kept: how often samples stay in it when one of their views is left out. Then the share "
    note += "of its samples that lack each view; bold where that is far from the share in all "
    note += "samples"
    return plain("Stability and missing views", note, table(heads, lines))
