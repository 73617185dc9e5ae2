"""What a command found, for programs: with --json one object on stdout, all else on stderr."""

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
    """What a command found, how it shows it to people, and its exit code: 1 if the answer is no."""

    found: Mapping[str, Any]
    show: Callable[[], None] = nothing
    code: int = 0


def offers_json(run: Callable[..., Answer]) -> Callable[..., None]:
    """Add --json to a command; what it prints meanwhile goes to stderr then."""

    @wraps(run)
    def command(*, as_json: bool, **options: Any) -> None:
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            answer = run(**options)
        if as_json:
            print(json.dumps(plain(answer.found), allow_nan=False))
        else:
            answer.show()
        if answer.code:
            raise typer.Exit(answer.code)

    own = inspect.signature(run, eval_str=True).parameters.values()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    _options.declare(
        command, [*own, inspect.Parameter("as_json", kind, default=False, annotation=Json)]
    )
    return command


def plain(value: Any) -> Any:
    """A value as JSON has it: null for numbers that are none, text for paths."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # of numpy or torch
        return plain(value.tolist())
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
