"""What makes a function a command: its options, its answer, and its output to the terminal."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import wraps
from typing import Annotated, Any, NamedTuple, TextIO, get_args

import typer
from rich.table import Table

from vedute.commands._options import ReadingOptions
from vedute.data.escaping import escaped

Json = Annotated[bool, "--json: Print one JSON object; the rest goes to stderr."]


class Answer(NamedTuple):
    """The result of a command, a function that prints it, and the exit code (1: negative)."""

    result: Mapping[str, Any]
    show: Callable[[], object] = lambda: None
    code: int = 0


def command(run: Callable[..., Answer]) -> Callable[..., None]:
    """Add --json to a command, and `ReadingOptions` if `reading` is its first parameter."""
    parameters = [*inspect.signature(run, eval_str=True).parameters.values()]
    reads, kind = parameters[0].name == "reading", inspect.Parameter.POSITIONAL_OR_KEYWORD
    if reads:
        parameters[:1] = []
        parameters[-1:-1] = inspect.signature(ReadingOptions).parameters.values()
    parameters.append(inspect.Parameter("as_json", kind, default=False, annotation=Json))
    parameters = [*map(_option, parameters)]

    @wraps(run)
    def wrapped(*, as_json: bool, **options: Any) -> None:
        if reads:
            options["reading"] = ReadingOptions(*map(options.pop, ReadingOptions._fields))
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            answer = run(**options)
        if as_json:
            print(json.dumps(plain(answer.result), allow_nan=False))
        else:
            answer.show()
        if answer.code:
            raise typer.Exit(answer.code)

    declared = inspect.Signature(parameters, return_annotation=None)
    wrapped.__signature__ = declared  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def _option(declared: inspect.Parameter) -> inspect.Parameter:
    """Make an option of a parameter annotated with a text like "-o --out FILE: Its help.", which
    may lack the names or the start, and with one on its default. Flags have no negation."""
    kind, *notes = get_args(declared.annotation) or [declared.annotation]
    if not notes or not isinstance(notes[0], str):
        return declared
    text, default = (*notes, True)[:2]
    head, _, meaning = text.partition(": ")
    if not meaning or (" " in head and not head.startswith("-")):
        head, meaning = "", text
    names = [word for word in head.split() if word.startswith("-")]
    if not names and declared.default is False:
        names = [f"--{declared.name.replace('_', '-')}"]
    value = next((word for word in head.split() if word not in names), None)
    option = typer.Option(*names, metavar=value, help=meaning, show_default=default)
    return declared.replace(annotation=Annotated[kind, option])


def plain(value: Any) -> Any:
    """Convert a value to JSON types: null for NaN and infinity, text for paths."""
    text = json.dumps(value, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))
    return json.loads(text, parse_constant=lambda _: None)


def say(*words: object, file: TextIO | None = None) -> None:
    """Print words with terminal control characters escaped."""
    print(*(escaped(word, keep="\n\t") for word in words), file=file)


def table(
    heads: Sequence[str], rows: Iterable[Iterable[str]], left: Sequence[str] = (), **style: Any
) -> Table:
    """A table for the terminal: columns are aligned right, except the first and those in `left`."""
    made = Table(header_style="bold", **style)
    for head in heads:
        made.add_column(head, justify="left" if head in (heads[0], *left) else "right")
    for row in rows:
        made.add_row(*row)
    return made
