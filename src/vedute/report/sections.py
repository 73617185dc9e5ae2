"""The sections of the page, in order: text around the charts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from vedute.data import missing
from vedute.report import charts, clusters, examples, features, plane, samples, scores, svg
from vedute.report import informs as views_
from vedute.report.html import section, table
from vedute.report.run_folder import FittedRun, public, used_settings

MOST_CLASSES = 100
FEW = 100  # hidden views: with fewer, scores by view are uncertain


def head(run: FittedRun) -> str:
    """The title, one sentence, and the numbers that matter."""
    rates, n, L = run.facts, len(run.mask), len(run.names)
    sentence = (
        f"{escape(run.method)} on {svg.number(n)} samples seen in {L} view{'s' * (L > 1)}; "
        f"{svg.percent(rates['missing_rows'])} of the samples lack a view, "
        f"{svg.percent(rates['missing_slots'])} of all views are missing."
    )
    cards = "".join(
        f"<div><b>{number}</b><span>{escape(words)}</span></div>" for number, words in figures(run)
    )
    title = f'<h1>{escape(run.source)}</h1><p class="lead">{sentence}</p>'
    return f'{title}<div class="cards">{cards}</div>{_first(run)}'


def _first(run: FittedRun) -> str:
    """A list of what to know first; may be empty."""
    said = []
    advice = run.advice()
    if advice is not None:
        said.append(advice[:1].upper() + advice[1:])
    if 0 < len(run.hidden_views()) < FEW:
        said.append(f"Only {len(run.hidden_views())} views were hidden: errors are uncertain")
    apart = missing.components_warning(missing.components(run.mask, run.names))
    said += [] if apart is None else [apart[:1].upper() + apart[1:]]
    p, size = run.results.depends_p, run.results.depends_difference
    if ((p < charts.SURE) & (np.abs(size) >= charts.SMALL)).any():
        said.append("What is missing depends on what is observed: see Data")
    words = "".join(f"<li>{escape(sentence)}.</li>" for sentence in said)
    return f'<ul class="says">{words}</ul>' if words else ""


def own(run: FittedRun) -> str:
    """The section of samples."""
    body = samples.samples(run)
    lead = "All samples, one line each. "
    if len(run.samples.doubt):
        lacking = ~run.mask | (run.gap_counts() > 0)
        left = lacking.any(1) & np.isnan(run.samples.doubt)
        unmeasured = f", and for {svg.number(left.sum())} that were not measured" * bool(left.any())
        lead += (
            "<b>Uncertainty</b> is averaged over all values of a sample, and views count alike: an "
            "observed value counts 0 %, an inferred one up to 100 %, where no more is known than "
            f"the mean of the feature; – where nothing is missing{unmeasured}. "
        )
    if run.labels is not None and len(run.samples.margin):
        lead += "Two clusters are named where either is about as near. "
    if len(run.samples.cell_of) and len(run.samples.cell_of):
        lead += (
            "Open a line to see values in your units, inferred ones <b>bold</b>, of the "
            f"{len(run.samples.listed)} most uncertain samples: up to 30 features, those that "
            "are missing and those farthest from the mean. Bars reach from three standard "
            "deviations below the mean of a feature to three above."
        )
    return section("samples", "Samples", lead, body) if body else ""


def relations(run: FittedRun) -> str:
    body = views_.informs(run)
    lead = (
        "Measured on hidden views, by the model before it learned from them. Which view is worth "
        "measuring, and which ones are redundant?"
    )
    return section("views", "Which view informs which", lead, body) if body else ""


def figures(run: FittedRun) -> list[tuple[str, str]]:
    """The headline numbers, each with its caption."""
    cards = []
    if len(run.hidden_views()):
        shares = {k: scores.r2(e, run.base()) for k, e in run.errors().items()}
        cards.append((svg.percent(shares.pop(run.method)), "of hidden views explained"))
        if shares:
            best = max(shares, key=lambda k: shares[k])
            cards.append((svg.percent(shares[best]), f"by {best}, the best simple fill"))
    inside = scores.coverage(run, 0.9)
    if inside == inside:
        cards.append((svg.percent(inside), "of values inside 90 % intervals"))
    if run.labels is not None:
        K = int(run.labels.max()) + 1
        cards.append((str(K), f"cluster{'s' * (K > 1)}"))
        if len(run.samples.margin):
            cards.append((svg.percent(run.uncertain().mean()), "of samples uncertain"))
    scored = agreement(run)
    return cards + ([(svg.percent(scored["acc"]), "clustering accuracy")] if scored else [])


def agreement(run: FittedRun) -> dict[str, float]:
    """Scores of the clusters against labels; empty without labels."""
    y = run.samples.y
    if run.labels is None or not len(y) or len(np.unique(y)) > MOST_CLASSES:
        return {}
    from vedute.metrics import scores as scoring

    return scoring.clustering_scores(y, run.labels)


def data(run: FittedRun) -> str:
    facts = run.facts
    unknown = [""] * len(run.names)
    likelihoods = run.results.likelihoods if len(run.results.likelihoods) else unknown
    kinds = run.results.kinds if len(run.results.kinds) else unknown
    rows = [
        [
            escape(name),
            escape(str(kinds[v])),
            escape(str(likelihood)),
            " × ".join(map(str, shape)),
            svg.number(run.mask[:, v].sum()),
            svg.percent(facts["missing_by_view"][name]),
            svg.percent(facts["holes_by_view"][name], 1) if facts["holes_by_view"][name] else "–",
        ]
        for v, (name, likelihood, shape) in enumerate(
            zip(run.names, likelihoods, facts["shapes"], strict=True)
        )
    ]
    heads = [
        "view",
        "taken for",
        "likelihood",
        "features",
        "observed",
        "missing",
        "single entries missing",
    ]
    lead = (
        f"{svg.number(len(run.mask))} samples in {len(run.names)} views. A view is missing when "
        "all of it is missing for a sample; zeros are values like any other."
    )
    parts = charts.patterns(run), charts.dependence(run), table(heads, rows, 3), _together(run)
    return section("data", "Data", lead, *parts)


def _together(run: FittedRun) -> str:
    """A table of how many samples have both views of a pair; empty if the data are complete."""
    if run.mask.all() or len(run.names) < 3:
        return ""
    both = missing.pair_counts(run.mask)
    rows = [
        [escape(name), *(svg.number(n) if n else "<b>0</b>" for n in row)]
        for name, row in zip(run.names, both, strict=True)
    ]
    apart = missing.components_warning(missing.components(run.mask, run.names))
    note = "" if apart is None else f"<p><b>{escape(apart[:1].upper() + apart[1:])}.</b></p>"
    head = "<h3>Samples that have both views <small>on the diagonal, the view</small></h3>"
    heads = ["", *run.names]
    return f'<div class="plain">{head}{table(heads, rows)}{note}</div>'


def training(run: FittedRun) -> str:
    if not run.history:
        return ""
    last = run.history[-1]
    lead = f"{svg.number(last['step'])} steps in {svg.number(last['epoch'])} epochs"
    experts = [k for shares in run.facts.get("weights", {}).values() for k in shares]
    lead += f", by {escape(experts[0])}, whose representation this is. " if experts else ". "
    if run.watched():
        lead += (
            "About a tenth of the observed views are hidden from training: how well they are "
            "inferred decides when to stop."
        )
    if run.ended():
        lead += f" It ended: {escape(run.ended())}."
    if run.second():
        lead += (
            f" With so few samples they are needed: <b>after step {run.second()} the model was "
            "refit</b> with the hidden views, for as many steps as had lowered the error. All "
            "results on hidden views are from before the refit."
        )
    pair = f'<div class="two">{charts.terms(run)}{charts.hidden_error(run)}</div>'
    return section("training", "Training", lead, charts.stages(run), pair)


def hidden(run: FittedRun) -> str:
    if not len(run.hidden.get("row", ())):
        return ""
    title, count = "Hidden views", len(run.hidden_views())
    if not count:
        return section("hidden", title, UNKNOWN)
    lead = (
        f"{svg.number(count)} observed views were hidden, inferred from the other views of their "
        "sample by a model that had not seen them, and compared with the truth. "
    )
    if count < FEW:
        lead += f"<b>{count} are few</b>: these numbers are uncertain. "
    if run.watched():
        lead += "They also ended the training: errors on new views may be a little larger. "
    if run.results.refitted:
        lead += "The saved model was then refit with them. "
    parts = (
        scores.explained(run),
        features.by_feature(run),
        scores.error_table(run),
        scores.distribution(run),
        scores.trust_table(run),
    )
    return section("hidden", title, lead, *parts)


UNKNOWN = (
    "<b>No view was hidden from this training</b>, so it is not known how well views are inferred: "
    "on views that were learned from, errors look smaller and intervals better than they are. "
    "Where <code>early_stopping</code> is on, about a tenth of the views is hidden."
)


def intervals(run: FittedRun) -> str:
    if np.isnan(scores.coverage(run, 0.9)):
        return ""
    lead = (
        "Inferred values come with intervals. Here they are checked on hidden views: the width of "
        "an interval was set without the views it is checked on (five folds)."
    )
    table_ = f'<div class="plain">{scores.coverage_table(run)}</div>'
    pair = f'<div class="two">{scores.calibration(run)}{table_}</div>'
    return section("intervals", "Intervals", lead, pair)


def representation(run: FittedRun) -> str:
    if not len(run.samples.plane):
        return ""
    lead = "One representation per sample, learned from whatever views it has."
    return section("map", "Representation", lead, plane.plane(run))


def grouping(run: FittedRun) -> str:
    if run.labels is None:
        return ""
    lead = "Which samples belong together. "
    if len(run.samples.margin):
        lead += (
            "A sample is <b>uncertain</b> when its cluster changes if one of its views is left "
            "out, or when the next cluster is about as near (margin under 0.05; 0 is halfway "
            "between two clusters, 1 at the center of one)."
        )
    scored = ", ".join(f"{k.upper()} {svg.percent(s, 1)}" for k, s in agreement(run).items())
    words = f"<p>Against the labels, which no method ever sees: {scored}.</p>" if scored else ""
    pair = f'<div class="two">{clusters.sizes(run)}{clusters.matrix(run)}'
    pair += f"{clusters.stability(run)}</div>"
    parts = words, clusters.traits(run), pair, clusters.by_pattern(run)
    return section("clusters", "Clusters", lead, *parts)


def inferred(run: FittedRun, shapes: Mapping[str, Sequence[int]]) -> str:
    body = examples.examples(run, shapes)
    lead = (
        "Hidden views of single samples, as inferred from the others before the model learned from "
        "them. They are chosen by rank: their errors are at the 10th, 50th and 90th percentile of "
        "the view."
    )
    return section("examples", "Inferred views", lead, body) if body else ""


def repeat(run: FittedRun) -> str:
    facts, config = run.facts, run.config
    command = shlex.join(_public(run, w) for w in facts["command"])
    origin = {
        "data": _public(run, str(facts["source"])) or "DATA",
        "missing pattern": facts["mask"],
        "method": config["method"],
        **({"preset": config["preset"]} if config.get("preset") else {}),
        "seed": facts.get("seed"),
        **facts["versions"],
        **({"left out": facts["left_out"]} if facts.get("left_out") else {}),
    }
    return section(
        "repeat",
        "To repeat this",
        "Same data, same versions, same seed: same result.",
        f'<pre tabindex="0">{escape(command)}</pre>{_pairs(origin)}<h3>Settings</h3>',
        _pairs({k: _public(run, v) for k, v in used_settings(config).items()}),
    )


def all_of(run: FittedRun, shapes: Mapping[str, Sequence[int]]) -> str:
    """All sections, in the order of a scientist's questions: my samples, how good, the rest."""
    first = own(run) + hidden(run) + inferred(run, shapes)
    rest = (intervals, relations, representation, grouping, data, training, repeat)
    return first + "".join(part(run) for part in rest)


def _public(run: FittedRun, word: Any) -> Any:
    """Strip names of files and folders from `word` in a private run; datasets keep their names."""
    if not (run.private and isinstance(word, str)):
        return word
    source = str(run.facts["source"])
    return public(word, source if Path(source).is_absolute() else "")


def _pairs(table: Mapping[str, Any]) -> str:
    """A list of names and values, in columns."""
    rows = (f"<div><dt>{escape(k)}</dt><dd>{escape(_text(v))}</dd></div>" for k, v in table.items())
    return f'<dl class="settings">{"".join(rows)}</dl>'


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
