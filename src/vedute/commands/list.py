"""vedute list: available methods, datasets, presets and settings."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding

from vedute.commands._command import Answer, command, say, table

EXAMPLE = "vedute list methods mvp"
SHOWN_OF_A_PRESET = ("latent_dim", "likelihood", "rec_weight", "beta", "epochs")
Kind = StrEnum("Kind", ["methods", "datasets", "presets", "settings"])
_console = partial(Console, highlight=False, markup=False)


@command
def run(
    kind: Annotated[
        Kind | None, typer.Argument(metavar="KIND", help="Default: the first three.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="METHOD", help="Which method, or whose settings, to show."),
    ] = None,
) -> Answer:
    """Show the methods, datasets and presets, or all about one method, or its settings."""
    if name is not None and kind not in (Kind.methods, Kind.settings):
        raise ValueError(f"{kind} have no more to show; only methods do: vedute list methods mvp")
    if name is not None:
        return _one(name) if kind is Kind.methods else _settings(name)
    if kind is Kind.settings:
        raise ValueError("settings are those of a method: vedute list settings mvp")
    kinds = [kind] if kind else [Kind.methods, Kind.datasets, Kind.presets]
    listing = {kind.value: _entries(kind) for kind in kinds}

    def show() -> None:
        style: dict[str, Any] = {"box": None, "title_justify": "left", "padding": (0, 2, 0, 0)}
        for title, rows in listing.items():
            heads = [head.replace("_", " ") for head in rows[0]]
            shown = table(heads, (row.values() for row in rows), heads, title=title, **style)
            shown.columns[0].no_wrap, shown.columns[0].style = True, "bold"
            _console().print(shown)
        if Kind.methods in kinds:
            say("All about one of them: vedute list methods mvp")

    return Answer(listing, show)


def _entries(kind: Kind) -> list[dict[str, str]]:
    """A line per method, dataset or preset."""
    from vedute import datasets, methods
    from vedute.methods import presets

    rows = []
    if kind is Kind.datasets:
        for name in datasets.available():
            doc = datasets.find(name).__doc__ or ""
            rows.append({"name": name, "what_it_is": doc.partition("\n")[0]})
    elif kind is Kind.methods:
        for name in methods.available():
            try:
                summary = methods.written(name)[0]
            except (ImportError, TypeError) as error:  # it cannot be imported
                summary = str(error)
            rows.append({"name": name, "what_it_is": summary})
    for method in presets.available() if kind is Kind.presets else ():
        for name, settings in presets.load(method).items():
            examples = [f"{k}={settings[k]}" for k in SHOWN_OF_A_PRESET if k in settings]
            rows.append({"name": name, "method": method, "some_settings": " ".join(examples)})
    return rows


def _one(name: str) -> Answer:
    """The description, paper, abilities and settings of a method."""
    from vedute import methods

    about, settings = methods.written(name), _settings(name)
    facts = {k.replace(" ", "_"): v for k, v in methods.facts(name).items()}

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
