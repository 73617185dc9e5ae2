"""The sections on hidden views: how well they are inferred, by view and by feature, whether
intervals cover what they should, which view informs which; and examples beside the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from vedute.figures import plots
from vedute.figures.png import picture
from vedute.metrics.scores import share_explained
from vedute.report import html
from vedute.report.html import chart, feature_of, figure, number, percent, plain, section, table
from vedute.report.measure import Array
from vedute.report.run_folder import FittedRun

FEW = 100  # hidden views: with fewer, scores by view are uncertain
NOMINAL = (0.5, 0.8, 0.9, 0.95)
FEWEST, ENDS = 10, 8  # hidden values of a feature; rows of a table
FEWEST_TO_INFORM = 20  # hidden views: a number measured on fewer is uncertain
WORTH, MOST_GAINS = 0.05, 6
UNKNOWN = (
    "<b>No view was hidden from this training</b>, so it is not known how well views are inferred: "
    "on views that were learned from, errors look smaller and intervals better than they are. "
    "Where <code>early_stopping</code> is on, about a tenth of the views is hidden."
)
SHOWN_AT = 0.9  # of intervals
WIDTH = 1.645  # deviations: so much of a normal distribution lies within
MOST_NAMED = 16  # features of a view that are named one by one
SHOWN_FEATURES = 120  # features: more are thinned out
UNLIKE = 20  # features whose deviations differ more have no common unit
SHARES = ("bernoulli", "categorical")  # values between 0 and 1
PROFILE_KEY = (
    '<span><i class="was"></i>truth, never shown</span>'
    '<span><i class="is"></i>inferred</span><span><i class="may"></i>90 % interval</span>'
)
WHICH = {0.1: "easy", 0.5: "typical", 0.9: "hard"}


def hidden(run: FittedRun) -> str:
    """The section on hidden views; empty where a method never hides any."""
    if not len(run.hidden.get("row", ())):
        return ""
    count = len(run.hidden_views())
    if not count:
        return section("hidden", "Hidden views", UNKNOWN)
    lead = f"{number(count)} observed views were hidden, inferred from the other views of their "
    lead += "sample by a model that had not seen them, and compared with the truth. "
    if count < FEW:
        lead += f"<b>{count} are few</b>: these numbers are uncertain. "
    if run.watched():
        lead += "They also ended the training: errors on new views may be a little larger. "
    if run.results.refitted:
        lead += "The saved model was then refit with them. "
    error = run.errors()[run.method]
    share = np.cumsum(-np.sort(-error)) / max(float(error.sum()), 1e-300)
    note = f"{int(np.searchsorted(share, 0.5)) + 1} of {len(error)} hidden views make half of the "
    note += "whole error. Where mean and median differ much, a few samples make most of the error."
    title, height = f"Errors of {run.method} one by one", 1.0 + 0.36 * len(_rows(run))
    shown = error, run.base(), run.hidden_views(), run.names
    one_by_one = chart(title, note, height, plots.hidden, *shown, wide=True)
    lines, experts = [], [""]
    for name, weights in run.facts.get("weights", {}).items():
        experts, shares = list(weights), [*weights.values(), max(0.0, 1 - sum(weights.values()))]
        lines.append([escape(name), *map(percent, shares)])
    note = "weights learned on hidden views; the rest is the mean of each feature"
    trust = plain("Expert weights", note, table(["view", *experts, "mean"], lines))
    features = html.fold("Features one by one", _by_feature(run))
    errors = html.fold("Errors one by one", _errors(run), one_by_one, trust if lines else "")
    return section(
        "hidden", "Hidden views", lead, _explained(run), features, errors, intervals(run)
    )


def r2(error: Array, base: Array) -> float:
    """One minus the error over that of the mean."""
    return float(1 - error.sum() / base.sum()) if base.sum() else 0.0


def _rows(run: FittedRun) -> list[tuple[str, Array]]:
    """All views, then each that has hidden instances, and which instances these are."""
    view = run.hidden_views()
    by_view = [(name, view == v) for v, name in enumerate(run.names)]
    return [("all views", view >= 0), *((name, at) for name, at in by_view if at.any())]


def _explained(run: FittedRun) -> str:
    """A figure of R2 by view, for the model and the simple fills."""
    base, (names, at) = run.base(), zip(*_rows(run), strict=True)
    scores = {k: [r2(e[mine], base[mine]) for mine in at] for k, e in run.errors().items()}
    note = "Right is better. 0 % is the mean of each feature, 100 % the truth."
    shares = zip(run.names, run.results.in_units, strict=False)
    said = ", ".join(f"{name} {percent(share)}" for name, share in shares if np.isfinite(share))
    if said:
        scale = "Bars are on the scale of the kind of a view (logarithms of counts, say); in units"
        note += f" {scale} {run.method} explains {said}."
    title, height = "Hidden views explained (R²), against simple fills", 1.0 + 0.32 * len(names)
    return chart(title, note, height, plots.explained, scores, names, wide=True)


def _by_feature(run: FittedRun) -> str:
    """Chart and tables of the features that were hidden often enough; empty without two."""
    results, ranked, shares = run.results, [], dict[str, Array]()
    for v in results.known if run.held_out() else ():
        explained, off = results.explained[v], results.off[v]
        r = results.correlation.get(v, np.full(len(off), np.nan))
        enough = np.flatnonzero((results.known[v] >= FEWEST) & np.isfinite(explained))
        if len(enough):
            shares[run.names[v]] = np.sort(explained[enough])[::-1]
        names = [feature_of(str(name), run.names[v]) for name in results.features[v]]
        ranked += [(explained[f], r[f], off[f], names[f]) for f in enough]
    ranked.sort(key=lambda row: -row[0])
    if len(ranked) < 2:
        return _categories(run)
    note = (
        "How much of each feature is explained where its view was hidden: one bump per view, "
        "taller where many features are; the line is the median. 0 % is the mean of the feature."
    )
    pair, half = "", min(ENDS, len(ranked) // 2)
    for title, rows in (("Best inferred", ranked), ("Worst inferred", ranked[::-1])):
        lines = [
            [
                name,
                percent(share),
                "–" if np.isnan(r) else f"{r:.2f}".replace("-", "−"),
                number(off),
            ]
            for share, r, off, name in rows[:half]
        ]
        pair += plain(title, "", table(["feature", "explained", "correlation", "off"], lines))
    height = 0.9 + 0.5 * len(shares)
    drawn = chart("Features one by one", note, height, plots.ridges, shares, wide=True)
    unit = (
        "Off: half of the inferred values are nearer to the truth than this, in your units. "
        f"Features with fewer than {FEWEST} hidden values are left out."
    )
    return f'{drawn}<div class="two">{pair}</div><p class="hint">{unit}</p>{_categories(run)}'


def _categories(run: FittedRun) -> str:
    """A line for each column of categories that was hidden often enough: how often the inferred
    category is right, and which ones are confused."""
    lines, results = [], run.results
    for key, counts in results.confusions.items():
        v, _, name = key.partition(".")
        total, words = int(counts.sum()), [escape(str(k)) for k in results.categories[key]]
        if total < FEWEST:
            continue
        wrong = counts * ~np.eye(len(counts), dtype=bool)
        pairs = sorted(((n, i, j) for (i, j), n in np.ndenumerate(wrong) if n), reverse=True)[:3]
        said = ", ".join(f"{words[i]} as {words[j]} ({n})" for n, i, j in pairs) or "none"
        right, common = np.trace(counts) / total, counts.sum(1).max() / total
        feature = feature_of(name, run.names[int(v)])
        lines.append([feature, number(total), percent(right), percent(common), said])
    heads = ["column", "hidden", "right", "most frequent", "most often confused"]
    note = "most frequent: how often it would be right to take the most frequent category always"
    return plain("Categories", note, table(heads, lines)) if lines else ""


def by_group(run: FittedRun, name: str, groups: Array) -> str:
    """The section on the groups of samples (n,) that a column makes; empty without hidden views."""
    if not len(run.hidden_views()):
        return ""
    which, lines = groups[run.hidden_rows()], []
    error, base, inside = run.errors()[run.method], run.base(), run.results.inside
    for group in np.unique(groups):
        mine = which == group
        share = percent(r2(error[mine], base[mine])) if mine.sum() >= FEWEST else "–"
        known = len(inside) and np.isfinite(inside[mine]).sum() >= FEWEST
        covered = percent(np.nanmean(inside[mine])) if known else "–"
        lines.append(
            [
                escape(str(group)),
                number((groups == group).sum()),
                number(mine.sum()),
                share,
                covered,
            ]
        )
    heads = [name, "samples", "hidden views", "explained", "inside 90 % intervals"]
    lead = (
        "Hidden views of each group of samples. Where a group is inferred worse, or its intervals "
        f"cover less, its imputed values deserve less trust. – for fewer than {FEWEST}."
    )
    return section("groups", f"By {name}", escape(lead), table(heads, lines))


def _errors(run: FittedRun) -> str:
    """A table of imputation errors by view and method: means, the least in bold, and medians."""
    errors, lines = run.errors(), []
    for name, at in _rows(run):
        means = [e[at].mean() for e in errors.values()]
        cells = [f"<b>{mean:.3f}</b>" if mean == min(means) else f"{mean:.3f}" for mean in means]
        medians = [f"<small>{np.median(e[at]):.3f}</small>" for e in errors.values()]
        lines.append([escape(name), number(at.sum()), *map(str.__add__, cells, medians)])
    note = "mean squared error in standard deviations, medians beside the means; 1 is the mean "
    note += "of each feature"
    return plain("Imputation error", note, table(["view", "hidden", *errors], lines))


def intervals(run: FittedRun) -> str:
    """The coverage of intervals, folded; empty if it was not measured."""
    if np.isnan(coverage(run, 0.9)):
        return ""
    lead = "Inferred values come with intervals. Here they are checked on hidden views: the width "
    lead += "of an interval was set without the views it is checked on (five folds)."
    curves, levels, rows = _averaged(run, run.results.covered), run.results.levels, []
    note = "On the dashed line intervals cover what they should; above it they are too wide."
    drawn = chart("Interval calibration", note, 3.6, plots.calibration, levels, curves)
    for name, curve in curves:
        rows.append([escape(name), *(percent(p, 1) for p in np.interp(NOMINAL, levels, curve))])
    heads, note = ["values inside", *map(percent, NOMINAL)], "by nominal level of the interval"
    if len(run.results.crps):
        averages = _averaged(run, run.results.crps[:, None])
        rows = [[*row, f"{x.item():.3f}"] for row, (_, x) in zip(rows, averages, strict=True)]
        heads.append("CRPS")
        note += "; CRPS is the error of the whole predicted distribution in standard deviations: "
        note += "0.564 where only mean and spread of a normal feature are known, 0 at best"
    pair = f'<div class="two">{drawn}{plain("Coverage", note, table(heads, rows))}</div>'
    title = f"Intervals: {percent(coverage(run, 0.9))} of hidden values are inside 90 % intervals"
    return html.fold(title, f'<p class="lead">{lead}</p>{pair}')


def coverage(run: FittedRun, level: float) -> float:
    """The share of hidden values inside intervals of this level; NaN if none was hidden."""
    if not np.isfinite(run.results.covered).any():
        return float("nan")
    return float(np.interp(level, run.results.levels, _averaged(run, run.results.covered)[0][1]))


def _averaged(run: FittedRun, values: Array) -> list[tuple[str, Array]]:
    """The average of values (L, q) over hidden instances, then every view that is known, (q,)."""
    view = run.hidden_views()
    shown = [v for v in range(len(values)) if np.isfinite(values[v]).any()]
    weight = np.array([(view == v).sum() for v in shown], float)
    average = weight @ values[shown] / weight.sum()
    return [("all views", average), *((run.names[v], values[v]) for v in shown)]


def informs(run: FittedRun) -> str:
    """The matrix, the unique share of each view, and the gain of one more view; may be empty."""
    if not len(run.results.alone) or not run.held_out() or not run.results.alone[2].any():
        return ""
    lead = "Measured on hidden views, by the model before it learned from them. Which view is "
    lead += "worth measuring, and which ones are redundant?"
    view = run.hidden_views()
    totals = run.errors()[run.method], run.base(), np.ones(len(view))
    error, base, count = (
        np.vstack([one, np.bincount(view, total, len(run.names))])
        for one, total in zip(run.results.alone, totals, strict=True)
    )
    less, more, tries = run.results.without
    enough = (less > 0) & (tries >= FEWEST_TO_INFORM)
    ratio = np.divide(more, less, out=np.full_like(less, np.nan), where=enough)
    # the share by which observing view u (row) lowers the error of v; NaN if not measured
    shares, gain = share_explained(error, base), np.asarray(1 - np.sqrt(ratio))
    lacking = (~run.mask).T.astype(int) @ ~run.mask  # (L, L) samples
    worth, words = (np.nan_to_num(gain) >= WORTH) & (lacking > 0), ""
    candidates = [(gain[u, v], u, v, lacking[u, v]) for u, v in np.argwhere(worth)]
    for lower, u, v, n in sorted(candidates, reverse=True)[:MOST_GAINS]:
        both = "1 sample that lacks both" if n == 1 else f"{number(n)} samples that lack both"
        first, second = escape(run.names[u]), escape(run.names[v])
        words += f"<li>Measuring <b>{first}</b> for the {both} lowers the "
        words += f"error of <b>{second}</b> by about {percent(lower)}.</li>"
    none = "There are no samples for which one more view would lower the error of another by 5 %."
    words = f'<ul class="says">{words or f"<li>{none}</li>"}</ul>'
    note = "measured where the second view was hidden and the first observed: root mean square "
    note += "error with and without the first, given all other observed views"
    one_more = plain("What one more measurement would buy", note, words)
    more = html.fold("Redundant views, and what to measure next", _own(run, shares, gain), one_more)
    return section("views", "Which view informs which", lead, _matrix(run, shares, count), more)


def _matrix(run: FittedRun, shares: Array, counts: Array) -> str:
    """A table of shares explained (L + 1, L) of each view by each other one, last by all others."""
    lines = [[escape(name)] for name in run.names] + [["<b>all others</b>"]]
    for (u, v), share in np.ndenumerate(shares):
        few = " few" if counts[u, v] < FEWEST_TO_INFORM else ""
        kind, strength = f"heat{few}{' deep' if share > 0.55 else ''}", f"{max(share, 0):.2f}"
        tip = f'title="{counts[u, v]:.0f} hidden views" style="--a:{strength}"'
        cell = f'<span class="{kind}" {tip}>{percent(share)}</span>' if np.isfinite(share) else ""
        lines[u].append(cell)
    note = "How much of a hidden view (columns) is explained by each other view alone (rows), and "
    note += "by all that the sample has, which may be few. Pale: of fewer than 20 hidden views."
    kind = f'<table class="matrix" style="--columns:{len(run.names)}">'
    whole = table(["from ↓ to →", *run.names], lines).replace("<table>", kind, 1)
    return plain("From one view alone", note, whole)


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
    note = "of its own: what the others do not explain, noise included. Most that it adds: by how "
    note += "much it lowers the error of another view at most; near 0 % it is redundant for them"
    return plain("Redundant and unique", note, table(heads, lines, 2))


def examples(run: FittedRun, shapes: Mapping[str, Sequence[int]]) -> str:
    """Examples of every view, if any; `shapes` of views that hold pictures as rows of numbers."""
    unknown = [k for k in shapes if k not in run.names]
    if unknown:
        raise ValueError(f"no view {unknown[0]!r}; views are {', '.join(run.names)}")
    narrow = parts = ""
    for v, name in enumerate(run.names):
        stored = tuple(run.facts["shapes"][v])
        shape = tuple(shapes.get(name, stored))
        if np.prod(shape) != np.prod(stored):
            sides = "x".join(map(str, shape))
            raise ValueError(f"view {name!r} has {np.prod(stored)} numbers per sample, not {sides}")
        if v in run.results.truth:
            if len(shape) == 1 and shape[0] <= MOST_NAMED:
                narrow += _named(run, v)
            else:
                parts += _pictures(run, v, shape) if len(shape) > 1 else _profiles(run, v)
    lead = (
        "Hidden views of single samples, inferred from the others before the model learned from "
        "them: a sample with the median error, and for wide views an easy and a hard one as well."
    )
    tables = f'<div class="two">{narrow}</div>' if narrow else ""
    return section("examples", "Inferred views", lead, tables, parts) if narrow + parts else ""


def _pictures(run: FittedRun, v: int, shape: Sequence[int]) -> str:
    """Pictures of truth, inferred values and uncertainty of some instances, easiest first."""
    results = run.results
    measured = results.truth[v], results.mean[v], results.std[v]
    truth, mean, std = (images.reshape(-1, *shape) for images in measured)
    ends = float(np.nanmin(truth)), float(np.nanmax(truth))
    doubt = std.mean(1 if std.shape[1] in (1, 3) else -1) if std.ndim > 3 else std  # of colors
    low, high = (float(q) for q in np.nanquantile(doubt, (0.02, 0.98)))
    rows, names = "", [escape(run.sample(int(row))) for row in results.at[v]]
    lines = {"truth, never shown": (truth, *ends), "inferred": (mean, *ends)}
    for word, (images, *limits) in (lines | {"uncertainty": (doubt, low, high)}).items():
        cells = (
            f'<td><img alt="{word}" title="{who}" src="{picture(image, *limits)}"></td>'
            for image, who in zip(images, names, strict=True)
        )
        rows += f"<tr><th>{word}</th>{''.join(cells)}</tr>"
    note = f"{len(names)} hidden instances, easiest first; in the last row bright is uncertain."
    body = f'<div class="table"><table class="pictures">{rows}</table></div>'
    return figure(run.names[v], body, note, kind="wide")


def _named(run: FittedRun, v: int) -> str:
    """A table of a typical instance of a narrow view: truth, inferred value and 90 % interval of
    each feature, by name and in the user's units."""
    results, lines = run.results, []
    i = round(0.5 * (len(results.at[v]) - 1))
    truth, mean, std = (a[v][i].ravel() for a in (results.truth, results.mean, results.std))
    reach = results.reach.get(v)
    wide = WIDTH if reach is None else float(np.interp(SHOWN_AT, results.levels, reach[i]))
    share = str(results.likelihoods[v]) in SHARES
    names = results.column.get(v, np.arange(len(truth)).astype(str))
    done = set[str]()
    for f in np.flatnonzero(~np.isnan(truth)):
        name, categories = html.feature_name(names[f]), results.categories.get(f"{v}.{names[f]}")
        if categories is not None and name not in done:
            words, mine = [str(k) for k in categories], names == names[f]
            true, inferred = (
                a[mine] if len(words) > 2 else np.array([1 - a[f], a[f]]) for a in (truth, mean)
            )
            best = f"{words[int(inferred.argmax())]} ({percent(inferred.max())})"
            lines.append(
                [escape(name), escape(words[int(true.argmax())]), f"<b>{escape(best)}</b>", "–"]
            )
            done.add(name)
        if categories is not None:
            continue
        ends = mean[f] - wide * std[f], mean[f] + wide * std[f]
        within = "–" if share else f"{number(ends[0])} to {number(ends[1])}"
        inferred = percent(mean[f]) if share else number(mean[f])
        lines.append([escape(name), number(truth[f]), f"<b>{inferred}</b>", within])
    who = run.sample(int(results.at[v][i]))
    note = f"a typical hidden sample{f', {escape(who)}' if who else ''}; the truth was never shown"
    heads = ["feature", "truth", "inferred", "90 % interval"]
    return plain(escape(run.names[v]), note, table(heads, lines))


def _profiles(run: FittedRun, v: int) -> str:
    """Charts of an easy, a typical and a hard instance of a view, with 90 % intervals."""
    results, count, charts = run.results, len(run.results.at[v]), ""
    center, scale = results.center[v].ravel(), results.scale[v].ravel()
    unit = np.where(scale > 0, scale.astype(float), 1.0)
    least, most = np.quantile(unit[scale > 0], (0.05, 0.95)) if (scale > 0).any() else (1.0, 1.0)
    unlike = most > UNLIKE * max(least, 1e-300)  # no common scale: in standard deviations
    stride = -(-scale.size // SHOWN_FEATURES)
    shown = np.arange(0, scale.size, stride)
    instances = {round(q * (count - 1)): word for q, word in WHICH.items()}
    for i, word in instances.items():
        word = word if len(instances) > 2 else ""
        truth, mean, std = (a[v][i].ravel() for a in (results.truth, results.mean, results.std))
        known = (scale > 0) & ~np.isnan(truth - mean)
        error = np.mean(((truth - mean)[known] / scale[known]) ** 2) if known.any() else np.nan
        reach = results.reach.get(v)  # in standard deviations; normal if it was not measured
        wide = WIDTH if reach is None else float(np.interp(SHOWN_AT, results.levels, reach[i]))
        if unlike:
            truth, mean, std = (truth - center) / unit, (mean - center) / unit, std / unit
        ends = mean - wide * std, mean + wide * std
        if results.likelihoods[v] in SHARES:
            ends = ends[0].clip(0, 1), ends[1].clip(0, 1)
        drawn = shown, truth[shown], tuple(a[shown] for a in (mean, *ends))
        title = f"{run.names[v]}, {word or 'an'} instance"
        body = html.drawing(plots.instance, title, html.THIRD, 1.9, *drawn)
        words = word, run.sample(int(results.at[v][i])), f"error {error:.2f}"
        head = escape(" · ".join(filter(None, words)))
        charts += f'<div><p class="instance">{head}</p>{body}</div>'
    thin = f"{len(shown)} of " if stride > 1 else ""
    note = f"{thin}{scale.size} features, in {'standard deviations' if unlike else 'your units'}"
    body = f'<div class="legend key">{PROFILE_KEY}</div><div class="three">{charts}</div>'
    return figure(run.names[v], body, note, kind="wide")
