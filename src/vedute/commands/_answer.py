"""Results of commands for programs: with --json one object on stdout, all else on stderr."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from functools import wraps
from math import isfinite
from typing import Annotated, Any, NamedTuple

import typer

from vedute.commands import _options

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object; the rest goes to stderr.")
]


def nothing() -> None:
    pass


class Answer(NamedTuple):
    """The result of a command, a function that prints it, and the exit code (1: negative)."""

    result: Mapping[str, Any]
    show: Callable[[], None] = nothing
    code: int = 0


def offers_json(run: Callable[..., Answer]) -> Callable[..., None]:
    """Add --json to a command, under which everything else that it prints goes to stderr."""

    @wraps(run)
    def command(*, as_json: bool, **options: Any) -> None:
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            answer = run(**options)
        if as_json:
            print(json.dumps(plain(answer.result), allow_nan=False))
        else:
            answer.show()
        if answer.code:
            raise typer.Exit(answer.code)

    parameters = inspect.signature(run, eval_str=True).parameters.values()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    _options.declare(
        command, [*parameters, inspect.Parameter("as_json", kind, default=False, annotation=Json)]
    )
    return command


def plain(value: Any) -> Any:
    """Convert a value to JSON types: null for NaN and infinity, text for paths."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # of numpy or torch
        return plain(value.tolist())
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
