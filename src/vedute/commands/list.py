"""vedute list: what there is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

EXAMPLE = "vedute list methods"


class Kind(StrEnum):
    methods = "methods"
    datasets = "datasets"
    presets = "presets"
    settings = "settings"


def run(
    kind: Annotated[
        Kind | None,
        typer.Argument(metavar="KIND", help="Default: the first three.", show_default=False),
    ] = None,
    method: Annotated[
        str | None, typer.Argument(metavar="METHOD", help="Whose settings to show.")
    ] = None,
) -> None:
    """Show the methods, datasets and presets, or the settings of a method."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from vedute import methods

    if (kind is Kind.settings) != (method is not None):
        raise ValueError("settings are those of a method: vedute list settings mvp")
    show = {Kind.methods: _methods, Kind.datasets: _datasets, Kind.presets: _presets}
    for chosen in show if kind is None else [kind]:
        rows = methods.settings(method) if method else show[chosen]()
        table = Table(box=None, title=chosen.value, title_justify="left", padding=(0, 2, 0, 0))
        for i, head in enumerate(rows[0]):
            table.add_column(head, no_wrap=i == 0, style="bold" if i == 0 else None)
        for row in rows:
            table.add_row(*map(escape, row.values()))
        Console(highlight=False).print(table)


def _methods() -> list[dict[str, str]]:
    from vedute import methods

    return [methods.facts(name) for name in methods.available()]


def _datasets() -> list[dict[str, str]]:
    from importlib import import_module

    from vedute import datasets

    docs = {k: import_module(f"{datasets.__name__}.{k}").__doc__ for k in datasets.available()}
    return [{"name": k, "what it is": (doc or "").partition("\n")[0]} for k, doc in docs.items()]


def _presets() -> list[dict[str, str]]:
    from vedute.methods import presets

    rows = []
    for method in presets.available():
        for name, settings in presets.load(method).items():
            shown = ("latent_dim", "likelihood", "rec_weight", "kl_weight", "epochs")
            some = [f"{k}={settings[k]}" for k in shown if k in settings]
            row = {"name": name, "method": method, "settings, among others": " ".join(some)}
            rows.append(row)
    return rows
