"""What a fitted model says of itself: its model card, and a summary for notebooks.

The card describes training data, settings, measured errors, intended use and limits. It holds no
value and no id of a sample, and no code reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from itertools import compress
from typing import Any

import numpy as np

from vedute import __version__
from vedute.data import html
from vedute.data.views import Views
from vedute.estimators.settings import LOOSE

# Settings without effect on results, or shown elsewhere on the card.
UNSAID = (*LOOSE, "random_state", "columns")
NAMED = 12  # patterns that are listed
INTERVAL_LEVEL = 0.9  # of the intervals whose coverage is shown
MARKS = str.maketrans({c: f"&#{ord(c)};" for c in "\\`*[]#|~"})  # of markdown


def facts(data: Views) -> dict[str, Any]:
    """Return numbers of samples, by set of views, and shares of missing entries for the card."""
    patterns, counts = np.unique(data.mask.numpy(), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:NAMED]
    names = [tuple(compress(data.names, patterns[k])) for k in order]
    return {
        "samples": len(data),
        "observed": dict(zip(data.names, data.mask.sum(0).tolist(), strict=True)),
        "patterns": dict(zip(names, counts[order].tolist(), strict=True)),
        "other_patterns": len(patterns) - len(order),
        "holes": {n: data.share_of_holes(v) for v, n in enumerate(data.names)},
        "version": __version__,
    }


LIMITS = (  # of all models, of those that impute (two), that cluster, and that keep samples
    "It knows samples like those it was fitted on. For others, such as those of another laboratory "
    "or population, errors are likely larger; nothing above says by how much.",
    "Views were hidden at random. Where a view is missing because of its own values, errors and "
    "coverage may be worse than in the table.",
    "What is inferred is no measurement. Intervals cover on average over samples and features, "
    "not for each of them.",
    "Clusters were learned without labels: people have to decide what they mean.",
    "The model holds the representation of each sample it was fitted on, with some methods samples "
    "themselves. Share it only where you may share these.",
)
WAS_HIDDEN = (
    "Some observed views were hidden from the model and then inferred. Error: mean squared error, "
    "in standard deviations of each feature: the mean of each feature gets about 1, the truth 0."
)
WAS_SEEN = (
    "Too few samples could be hidden from training: these errors are of views that the model had "
    "seen before, so they are too small. Error: mean squared error, in standard deviations of each "
    "feature."
)


def text(model: Any, params: Mapping[str, Any], arrays: str) -> str:
    """Return the card as markdown, given the settings of the fit and the file of its arrays."""
    infers, clusters = model.generative, hasattr(model, "labels_")
    rows = [[f"`{name}`", plain(value)] for name, value in _changed(model, params)]
    differing = f"These differ from the defaults:\n\n{table(('setting', 'value'), rows)}"
    settings = [differing if rows else "All are the defaults."]
    if used := ", ".join(f"`{k}` {plain(v)}" for k, v in model.decided().items()):
        settings.append(f"Data and device decided: {used}.")
    settings.append(f"Fitted with vedute {model.fitted_on_['version']}, seed {model.seed_}.")
    verbs = ["a representation of each sample"]
    verbs += ["missing views and entries, with intervals"] if infers else []
    verbs += ["a cluster for each sample"] if clusters else []
    apply = (True, infers, infers, clusters, len(model.embedding_) > 0)
    use = "For samples like those it was fitted on, with any of these views. It gives"
    sections = {
        "Data": _data(model),
        "Settings": "\n\n".join(settings),
        "How well it infers what is missing": _hidden(model),
        "Intended use": f"{use} {'; '.join(verbs)}. `vedute.load(folder)` loads it.",
        "Limits": "\n".join(f"- {limit}" for limit in compress(LIMITS, apply)),
    }
    head = f"# Model card: {type(model).__name__}\n\nOf the model in `model.json` and `{arrays}`."
    body = "".join(f"\n\n## {title}\n\n{content}" for title, content in sections.items())
    return f"{head}{body}\n"


def _data(model: Any) -> str:
    """Describe sizes, kinds, missing values, and the sets of views that samples have."""
    facts, rows = model.fitted_on_, []
    for view in model.views_:
        seen = f"{facts['observed'][view.name]} of {facts['samples']}"
        holes = f"{100 * facts['holes'][view.name]:.1f} %"
        rows.append([plain(view.name), html.shape(view.shape), view.kind, seen, holes])
    heads = ("view", "features", "kind", "samples that have it", "entries missing there")
    sets = [[", ".join(map(plain, k)), str(count)] for k, count in facts["patterns"].items()]
    parts = [f"{facts['samples']} samples. {len(rows)} views:", table(heads, rows)]
    parts.append(table(("views that a sample has", "samples"), sets))
    if facts["other_patterns"]:
        parts.append(f"And {facts['other_patterns']} rarer sets of views.")
    return "\n\n".join(parts)


def _changed(model: Any, params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings that affect results and differ from defaults, also those of inner methods."""
    for f in fields(model):
        value, inner = params.get(f.name, f.default), getattr(model, f.name)
        if f.name in UNSAID:
            continue
        if is_dataclass(inner):
            yield f"{prefix}{f.name}", type(inner).__name__
            yield from _changed(inner, value["params"], f"{prefix}{f.name}__")
        elif value != f.default:
            yield f"{prefix}{f.name}", value


def _hidden(model: Any) -> str:
    """Describe errors and coverage at views that were hidden from training, by view."""
    if not model.generative:
        return "This method infers nothing: it has a representation and clusters only."
    tested, hidden, rows = model.hidden_predictions_, model.hidden_, []
    held_out = bool(len(tested.get("at", ())))
    at = tested["at"] if held_out else slice(None)
    errors = (tested if held_out else hidden)["error"], hidden["mean_error"][at]
    covered = np.full(len(model.views_), np.nan)
    if "covered" in tested:
        covered = tested["covered"][:, np.abs(tested["levels"] - INTERVAL_LEVEL).argmin()]
    for v, (view, share) in enumerate(zip(model.views_, covered, strict=True)):
        mine = hidden["view"][at] == v
        means = [f"{e[mine].mean():.3f}" if mine.any() else "–" for e in errors]
        known = f"{100 * share:.1f} %" if np.isfinite(share) else "not known"
        rows.append([plain(view.name), str(int(mine.sum())), *means, known])
    cover = f"{100 * INTERVAL_LEVEL:.0f} % intervals cover"
    heads = ("view", "hidden samples", "error", "error of the mean", cover)
    return f"{WAS_HIDDEN if held_out else WAS_SEEN}\n\n{table(heads, rows)}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plain(name: Any) -> str:
    """Return a name from the data as one line of text without markup."""
    return escape(" ".join(str(name).split()), quote=False).translate(MARKS)


def summary(model: Any) -> str:
    """Return views, R2, clusters and a refit as HTML for notebooks; empty before fit."""
    results, rows, lines = model.results(), [], []
    if "embedding_" not in results:
        return ""
    r2 = results.get("r2_", {})
    heads = ("view", "shape", "kind", *(["variance of hidden views explained"] if r2 else []))
    for view in model.views_:
        share = r2.get(view.name, np.nan)
        known = f"{round(100 * share)} %" if np.isfinite(share) else "none was hidden"
        rows.append([view.name, html.shape(view.shape), view.kind, known][: len(heads)])
    n, D = model.embedding_.shape
    title = f"Fitted on {n} samples with {len(rows)} views: a representation of {D} numbers"
    if "labels_" in results:
        sizes = np.bincount(results["labels_"]).tolist()
        shown = ", ".join(map(str, sizes[:20])) + (", ..." if len(sizes) > 20 else "")
        lines += [f"{len(sizes)} cluster{'' if len(sizes) == 1 else 's'} of {shown} samples"]
    if results.get("learned_again_"):
        lines += ["Refitted with all views after evaluation on the hidden ones"]
    return html.section(title, html.table(heads, rows), html.lines(lines))
