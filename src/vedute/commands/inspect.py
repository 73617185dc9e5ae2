"""vedute inspect: facts about data."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table

from vedute.commands import _options
from vedute.commands._command import Answer, command, say, table
from vedute.data.escaping import escaped

if TYPE_CHECKING:
    from vedute.analysis.inspection import Inspection

EXAMPLE = "vedute inspect data/ -o missing.png"
PLAIN: dict[str, Any] = {"box": None, "padding": (0, 2, 0, 0)}  # of tables
MOST_PATTERNS, BAR = 16, 20
MOST_PAIRED = 12  # views whose pairs have room in a table
SEEN, LOST = "●", "·"


@command
def run(
    reading: _options.ReadingOptions,
    data: _options.Source,
    out: Annotated[Path | None, "-o --out OUT: Draw the missing patterns to a .png."] = None,
    kind: _options.Kinds = None,
    force: _options.Force = False,
) -> Answer:
    """Show views, ranges, what is missing and where, unusual values, and settings that fit them.

    Rows of zeros are not missing rows. Nothing is trained.
    """
    from vedute import io
    from vedute.analysis import inspection
    from vedute.commands import _data, _settings
    from vedute.data.problems import all_at_once, noted_errors

    if out is not None and out.suffix.lower() != ".png":
        raise ValueError(f"OUT must end in .png, got {out}")
    if out is not None and find_spec("matplotlib") is None:
        raise ImportError("the figure needs matplotlib: pip install 'vedute[plots]'")
    how = reading.checked()
    with nullcontext() if out is None else io.atomic_file(out, force) as part:
        with all_at_once():
            views = io.enter(_data.open_data(data, how)).views
            if noted_errors():
                _data.check(views)
        facts = inspection.inspect(views, _settings.kinds(kind or []))
        if part is not None:
            from vedute import plot
            from vedute.figures import plots

            figure, (ax,) = plots.panels(1, (7.0, 1.5 + 0.3 * len(views.names)))
            plot.missing(views, ax)
            figure.savefig(part, dpi=150)
    words = [*reading.words(), *(word for k in kind or [] for word in ("--kind", k))]

    def show() -> None:
        _print(facts, data, words)
        if out is not None:
            say(f"wrote {out}")

    result = asdict(facts) | {"rates": facts.rates.named()}
    result |= {"early_stopping": facts.early_stopping, "warnings": list(facts.warnings())}
    return Answer(result | {"wrote": [] if out is None else [out]}, show)


def _print(facts: Inspection, source: str, reading: list[str]) -> None:
    from vedute.data import kinds

    console = Console(highlight=False, markup=False, emoji=False)
    source, views = escaped(source), [replace(v, name=escaped(v.name)) for v in facts.views]
    patterns = [([*map(escaped, names)], count) for names, count in facts.patterns]
    facts = replace(facts, views=views, patterns=patterns)
    lacking, slots = (f"{100 * share:.1f} %" for share in facts.rates)
    title, rows = f"{source}: {facts.n} samples, {len(views)} views", []
    console.print(title, style="bold", soft_wrap=True)
    for v in views:
        span = "" if v.low is None else f"{v.low:.4g} to {v.high:.4g}"
        shares = f"{100 * v.missing:.1f} %", f"{100 * v.holes:.2g} %" if v.holes else "none"
        rows.append([v.name, " x ".join(map(str, v.shape)), v.dtype, span, *shares, v.kind])
    heads = ("view", "shape", "type", "range", "missing", "holes", "kind")
    console.print(table(heads, rows, ("shape", "type", "range", "kind"), **PLAIN))
    console.print(f"{lacking} of the samples lack a view; {slots} of all views are missing.\n")
    console.print(_patterns(facts))
    if facts.rates.slots and 2 < len(facts.views) <= MOST_PAIRED:
        console.print("\nSamples that have both views", style="bold")
        names = [v.name for v in views]
        lines = [[k, *map(str, row)] for k, row in zip(names, facts.together, strict=True)]
        console.print(table(["", *names], lines, **PLAIN))
    console.print("Taken for (--kind VIEW=KIND corrects it)", style="bold")
    for view in facts.views:
        console.print(f"  {kinds.sentence(view)}", soft_wrap=True)
    for warning in facts.warnings():
        console.print(f"! {escaped(warning)}", style="yellow", soft_wrap=True)
    console.print("Suggested settings", style="bold")
    for name, value in _suggestions(facts).items():
        console.print(f"  {name:15} {value}", soft_wrap=True)
    command = join(["vedute", "fit", source, "-o", "run", *reading])
    console.print(f"  {escaped(command)}", soft_wrap=True)


def _patterns(facts: Inspection) -> Table:
    """A table with a line per pattern, most frequent first, and a column per view if they fit."""
    names, shown = [v.name for v in facts.views], facts.patterns[:MOST_PATTERNS]
    roomy = sum(len(k) + 2 for k in names) <= 44
    made = Table(header_style="bold", **PLAIN)
    for head in names if roomy else ["views in the order above"]:
        made.add_column(head, justify="center" if roomy else "left", no_wrap=True)
    made.add_column("samples", justify="right")
    made.add_column("")
    for seen, count in shown:
        dots = [SEEN if k in seen else LOST for k in names]
        bar = "█" * max(1, round(BAR * count / shown[0][1]))
        made.add_row(*(dots if roomy else ["".join(dots)]), str(count), bar)
    rest = facts.patterns[MOST_PATTERNS:]
    if rest:
        blank = [""] * (len(names) if roomy else 1)
        made.add_row(*blank, str(sum(c for _, c in rest)), f"in {len(rest)} rarer patterns")
    return made


def _suggestions(facts: Inspection) -> dict[str, str]:
    from vedute.estimators.progress import duration

    few = f"too few views can be hidden ({facts.hideable}): a fixed number of steps"
    enough = f"on: {facts.hideable} of the observed views can be hidden to end training"
    words = {}
    for field in ("likelihood", "scaling"):
        by_view = {v.name: str(getattr(v, field)) for v in facts.views}
        several = ", ".join(f"{name} {word}" for name, word in by_view.items())
        words[field] = several if len({*by_view.values()}) > 1 else next(iter(by_view.values()))
    words |= {"early_stopping": enough if facts.early_stopping else few, "device": facts.device}
    if facts.seconds is not None:
        longest = duration(max(float(f"{facts.seconds:.0e}"), 1))
        faster = "faster: a GPU, smaller images, or fewer steps (--set mvp__steps=N)"
        words["time"] = f"up to about {longest} to learn images on this CPU; {faster}"
    return words | {"n_clusters": 'you choose; "auto" takes the most stable number'}
