"""The command line: every file in commands/ is a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from vedute import __version__, commands
from vedute.training import stopping

MISTAKES = (ValueError, TypeError, KeyError, OSError, ArithmeticError, ImportError)

app = typer.Typer(
    help="Learn from incomplete multi-view data: representations, clusters, missing views.",
    epilog="Start with: vedute demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Exit codes: 0 done; 2 the input or the command is wrong; 1 the answer is no."""
    app(prog_name="vedute")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"vedute {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def one_sentence(error: BaseException) -> str:
    """What went wrong, on one line."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    else:
        text = str(error.args[0]) if error.args else type(error).__name__
    return " ".join(text.split())


def one_line_errors(run: Callable[..., None]) -> Callable[..., None]:
    """A user's mistake ends in one sentence and exit code 2, not in a traceback."""

    @wraps(run)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            with stopping.terminable():
                run(*args, **options)
        except BrokenPipeError:
            raise
        except MISTAKES as error:
            if os.environ.get("VEDUTE_DEBUG"):
                raise
            print(f"vedute: {one_sentence(error)}", file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except stopping.TerminatedError as ended:
            raise typer.Exit(128 + ended.number) from None

    return wrapped


for _name in commands.available():
    _command = commands.find(_name)
    app.command(_name, epilog=f"Example: {_command.EXAMPLE}")(one_line_errors(_command.run))
