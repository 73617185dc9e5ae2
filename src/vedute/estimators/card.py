"""The card of a model: what it was fitted on and how, how far to trust it, what it is for.

It holds no value and no id of a sample. Nothing reads it but people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

from vedute import __version__
from vedute.data.views import Views
from vedute.estimators.settings import LOOSE

UNSAID = (*LOOSE, "random_state", "columns")  # decide no result, or stand elsewhere on the card
NAMED = 12  # patterns that are named
INTERVAL_LEVEL = 0.9  # of the intervals whose coverage is shown
MARKS = str.maketrans({c: f"&#{ord(c)};" for c in "\\`*[]#|~"})  # of markdown


def facts(data: Views) -> dict[str, Any]:
    """What a card says of the data, of which a fitted model keeps nothing else: how many samples
    there are, how many have each set of views, the share of missing entries in each view."""
    kinds, counts = np.unique(data.mask.numpy(), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:NAMED]
    names = [tuple(n for n, s in zip(data.names, kinds[k], strict=True) if s) for k in order]
    return {
        "samples": len(data),
        "observed": dict(zip(data.names, data.mask.sum(0).tolist(), strict=True)),
        "patterns": dict(zip(names, counts[order].tolist(), strict=True)),
        "other_patterns": len(kinds) - len(order),
        "holes": {n: data.share_of_holes(v) for v, n in enumerate(data.names)},
        "version": __version__,
    }


def text(model: Any, given: Mapping[str, Any], arrays: str) -> str:
    """The card of a model that was fitted with these settings, as markdown. arrays: their file."""
    found: dict[str, Any] = model.results()
    sections = {
        "Data": _data(model, found.get("fitted_on_", {})),
        "Settings": _settings(model, given),
        "How well it infers what is missing": _hidden(model, found),
        "Intended use": _use(model),
        "Limits": _limits(model, found),
    }
    head = f"# Model card: {type(model).__name__}\n\nOf the model in `model.json` and `{arrays}`."
    body = "".join(f"\n\n## {title}\n\n{content}" for title, content in sections.items())
    return f"{head}{body}\n"


def _data(model: Any, known: dict[str, Any]) -> str:
    """Sizes, kinds and what is missing; of a model of an older version without the latter."""
    n, observed = known.get("samples"), known.get("observed", {})
    rows = []
    for view in model.views_:
        seen = [f"{observed[view.name]} of {n}"] if view.name in observed else ["not known"]
        holes = [percent(known["holes"][view.name])] if view.name in observed else ["not known"]
        shape = " × ".join(map(str, view.shape)) or "1"
        rows.append([plain(view.name), shape, view.kind, *seen, *holes])
    heads = ("view", "features", "kind", "samples that have it", "entries missing there")
    count = "The number of samples is not known." if n is None else f"{n} samples."
    parts = [f"{count} {len(rows)} views:", table(heads, rows)]
    return "\n\n".join([*parts, *_patterns(known)])


def _patterns(known: dict[str, Any]) -> Iterator[str]:
    if "patterns" in known:
        rows = [
            [", ".join(map(plain, names)), str(count)] for names, count in known["patterns"].items()
        ]
        yield table(("views that a sample has", "samples"), rows)
    if known.get("other_patterns"):
        yield f"And {known['other_patterns']} rarer sets of views."


def _settings(model: Any, given: Mapping[str, Any]) -> str:
    """What differs from the defaults, and what it was trained with."""
    rows = [[f"`{name}`", plain(value)] for name, value in _changed(model, given)]
    changed = f"These differ from the defaults:\n\n{table(('setting', 'value'), rows)}"
    version = getattr(model, "fitted_on_", {}).get("version", "(version not known)")
    used = ", ".join(f"`{k}` {plain(v)}" for k, v in model.decided().items())
    chosen = f"\n\nData and device decided: {used}." if used else ""
    last = f"Fitted with vedute {version}, seed {model.seed_}."
    return f"{changed if rows else 'All are the defaults.'}{chosen}\n\n{last}"


def _changed(model: Any, given: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """Settings that decide results and differ from their defaults, also of a method inside."""
    for f in fields(model):
        value, own = given.get(f.name, f.default), getattr(model, f.name)
        if f.name in UNSAID:
            continue
        if is_dataclass(own):
            yield f"{inside}{f.name}", type(own).__name__
            yield from _changed(own, value["params"], f"{inside}{f.name}__")
        elif value != f.default:
            yield f"{inside}{f.name}", value


def _hidden(model: Any, found: dict[str, Any]) -> str:
    """Errors and coverage at views that were hidden from training, by view."""
    if not model.generative:
        return "This method infers nothing: it has a representation and clusters only."
    tested, hidden = found.get("hidden_predictions_", {}), found["hidden_"]
    honest = bool(len(tested.get("at", ())))
    at = tested["at"] if honest else slice(None)
    error = tested["error"] if honest else hidden["error"]
    which, base = hidden["view"][at], hidden["mean_error"][at]
    rows = []
    for v, view in enumerate(model.views_):
        mine = which == v
        numbers = (
            [f"{error[mine].mean():.3f}", f"{base[mine].mean():.3f}"] if mine.any() else ["–"] * 2
        )
        rows.append([plain(view.name), str(int(mine.sum())), *numbers, _coverage(tested, v)])
    how = WAS_HIDDEN if honest else WAS_SEEN
    heads = (
        "view",
        "hidden samples",
        "error",
        "error of the mean",
        f"{100 * INTERVAL_LEVEL:.0f} % intervals cover",
    )
    return f"{how}\n\n{table(heads, rows)}"


WAS_HIDDEN = (
    "Some observed views were hidden from the model and then inferred. Error: mean squared error, "
    "in standard deviations of each feature: the mean of each feature gets about 1, the truth 0."
)
WAS_SEEN = (
    "Too few samples could be hidden from training: these errors are of views that the model had "
    "seen before, so they are too small. Error: mean squared error, in standard deviations of each "
    "feature."
)


def _coverage(tested: dict[str, Any], v: int) -> str:
    if "covered" not in tested:
        return "not known"
    share = tested["covered"][v][int(np.abs(tested["levels"] - INTERVAL_LEVEL).argmin())]
    return percent(share) if np.isfinite(share) else "not known"


def _use(model: Any) -> str:
    verbs = ["a representation of each sample"]
    verbs += ["missing views and entries, with intervals"] if model.generative else []
    verbs += ["a cluster for each sample"] if hasattr(model, "labels_") else []
    return (
        "For samples like those it was fitted on, with any of these views. It gives "
        f"{'; '.join(verbs)}. `vedute.load(folder)` loads it."
    )


def _limits(model: Any, found: dict[str, Any]) -> str:
    """What nobody should expect of it."""
    lines = [
        "It knows samples like those it was fitted on. For others, such as those of another "
        "laboratory or population, errors are likely larger; nothing above says by how much.",
    ]
    if model.generative:
        lines += [
            "Views were hidden at random. Where a view is missing because of its own values, "
            "errors and coverage may be worse than in the table.",
            "What is inferred is no measurement. Intervals cover on average over samples and "
            "features, not for each of them.",
        ]
    if "labels_" in found:
        lines.append("Clusters were found without labels: what they mean is for people to say.")
    if len(model.embedding_):
        lines.append(
            "The model holds the representation of each sample it was fitted on, with some methods "
            "samples themselves. Share it only where you may share these."
        )
    return "\n".join(f"- {line}" for line in lines)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plain(name: Any) -> str:
    """A name from the data, as text of one line that is no markup."""
    return escape(" ".join(str(name).split()), quote=False).translate(MARKS)
