"""vedute list: available methods, datasets, presets and settings."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from vedute.commands._command import Answer, command, say

EXAMPLE = "vedute list methods mvp"
SHOWN_OF_A_PRESET = ("latent_dim", "likelihood", "rec_weight", "beta", "epochs")


class Kind(StrEnum):
    methods = "methods"
    datasets = "datasets"
    presets = "presets"
    settings = "settings"


@command
def run(
    kind: Annotated[
        Kind | None,
        typer.Argument(metavar="KIND", help="Default: the first three.", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="METHOD", help="Which method, or whose settings, to show."),
    ] = None,
) -> Answer:
    """Show the methods, datasets and presets, or all about one method, or its settings."""
    if name is None:
        if kind is Kind.settings:
            raise ValueError("settings are those of a method: vedute list settings mvp")
        return _all([kind] if kind else [Kind.methods, Kind.datasets, Kind.presets])
    if kind not in (Kind.methods, Kind.settings):
        raise ValueError(f"{kind} have no more to show; only methods do: vedute list methods mvp")
    return _one(name) if kind is Kind.methods else _settings(name)


def _all(kinds: Iterable[Kind]) -> Answer:
    """Tables of these kinds with a line per entry."""
    listing = {kind.value: _entries(kind) for kind in kinds}

    def show() -> None:
        for title, rows in listing.items():
            heads = [head.replace("_", " ") for head in rows[0]]
            table = Table(*heads, box=None, title=title, title_justify="left", padding=(0, 2, 0, 0))
            table.columns[0].no_wrap, table.columns[0].style = True, "bold"
            for row in rows:
                table.add_row(*row.values())
            _console().print(table)
        if Kind.methods in listing:
            say("All about one of them: vedute list methods mvp")

    return Answer(listing, show)


def _entries(kind: Kind) -> list[dict[str, str]]:
    """A line per method, dataset or preset."""
    from vedute import datasets, methods
    from vedute.methods import presets

    if kind is Kind.methods:
        return [{"name": k, "what_it_is": _summary(k)} for k in methods.available()]
    if kind is Kind.datasets:
        docs = {k: datasets.find(k).__doc__ or "" for k in datasets.available()}
        return [{"name": k, "what_it_is": doc.partition("\n")[0]} for k, doc in docs.items()]
    rows = []
    for method in presets.available():
        for name, settings in presets.load(method).items():
            examples = [f"{k}={settings[k]}" for k in SHOWN_OF_A_PRESET if k in settings]
            rows.append({"name": name, "method": method, "some_settings": " ".join(examples)})
    return rows


def _summary(method: str) -> str:
    """A method in one line, or the error if it cannot be imported."""
    from vedute import methods

    try:
        return methods.written(method)[0]
    except (ImportError, TypeError) as e:
        return str(e)


def _one(name: str) -> Answer:
    """The description, paper, abilities and settings of a method."""
    from vedute import methods

    about = methods.written(name)
    facts = {k.replace(" ", "_"): v for k, v in methods.facts(name).items()}
    settings = _settings(name)

    def show() -> None:
        console = _console()
        console.print(f"{name}: {about[0]}", *about[1:], sep="\n\n", end="\n\n")
        for key, value in facts.items():
            if value and key != "method":
                console.print(f"  {key.replace('_', ' '):14} {value}")
        console.print("\nsettings")
        settings.show()

    return Answer(facts | {"what_it_is": "\n\n".join(about)} | {**settings.result}, show)


def _settings(name: str) -> Answer:
    """The settings of a method, each followed by its meaning."""
    from vedute import methods

    declared = methods.settings(name)

    def show() -> None:
        console = _console()
        for known in declared:
            limits = f" ({known['range']})" if known["range"] else ""
            console.print(f"  {known['setting']} = {known['default']}{limits}", style="bold")
            console.print(Padding(known["meaning"], (0, 0, 0, 6)))

    return Answer({"settings": declared}, show)


_console = partial(Console, highlight=False, markup=False)
