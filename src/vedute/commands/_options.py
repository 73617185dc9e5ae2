"""Arguments and options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer


def out(help: str, metavar: str = "OUT", show_default: bool = False) -> Any:
    """The option -o of a command."""
    return typer.Option("-o", "--out", metavar=metavar, help=help, show_default=show_default)


def settings(help: str) -> Any:
    """The option --set of a command."""
    return typer.Option("--set", metavar="NAME=VALUE", help=help)


def declare(command: Callable[..., Any], parameters: Iterable[inspect.Parameter]) -> None:
    """Declare parameters to typer of a command that takes any keywords."""
    declared = list(parameters)
    signature = inspect.Signature(declared, return_annotation=None)
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in declared}


RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `vedute fit` wrote.")]
OutsideMethod = Annotated[
    str | None,
    typer.Option(
        "--method", metavar="MODULE:CLASS", help="The class RUN was fitted with, if it is yours."
    ),
]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv", help="Put an apostrophe before ids that spreadsheets read as formulas."
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="VIEW=KIND", help="What a view holds: counts, text, ..."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output.")]
Ids = Annotated[
    bool, typer.Option("--ids/--no-ids", help="Name samples, and the files and folders of DATA.")
]
Values = Annotated[
    bool, typer.Option("--values/--no-values", help="Keep values and labels of single samples.")
]
