"""vedute list: what there is."""

from __future__ import annotations

from collections.abc import Sequence
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
        typer.Argument(
            metavar="[methods|datasets|presets|settings]", help="Default: the first three."
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Argument(metavar="[METHOD]", help="Whose settings to show.")
    ] = None,
) -> None:
    """Show the methods, datasets and presets, or the settings of a method."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if (kind is Kind.settings) != (method is not None):
        raise ValueError("settings are those of a method: vedute list settings mvp")
    show = {Kind.methods: _methods, Kind.datasets: _datasets, Kind.presets: _presets}
    for chosen in show if kind is None else [kind]:
        heads, rows = _settings(method) if method else show[chosen]()
        table = Table(box=None, title=chosen.value, title_justify="left", padding=(0, 2, 0, 0))
        for i, head in enumerate(heads):
            table.add_column(head, no_wrap=i == 0, style="bold" if i == 0 else None)
        for row in rows:
            table.add_row(*map(escape, row))
        Console(highlight=False).print(table)


Rows = tuple[Sequence[str], Sequence[Sequence[str]]]


def _methods() -> Rows:
    from vedute import methods

    rows = [methods.facts(name) for name in methods.available()]
    return list(rows[0]), [list(row.values()) for row in rows]


def _datasets() -> Rows:
    from importlib import import_module

    from vedute import datasets

    modules = [(k, import_module(f"{datasets.__name__}.{k}")) for k in datasets.available()]
    return ("name", "what it is"), [(k, _first_line(m.__doc__)) for k, m in modules]


def _presets() -> Rows:
    from vedute.methods import presets

    rows = []
    for method in presets.available():
        for name, settings in presets.load(method).items():
            shown = ("latent_dim", "likelihood", "rec_weight", "kl_weight", "epochs")
            some = [f"{k}={settings[k]}" for k in shown if k in settings]
            rows.append((name, method, " ".join(some)))
    return ("name", "method", "settings, among others"), rows


def _settings(method: str) -> Rows:
    from vedute import methods

    rows = methods.settings(method)
    return list(rows[0]), [list(row.values()) for row in rows]


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]
