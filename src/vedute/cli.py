"""The command line; every file in commands/ is a command."""

from __future__ import annotations

import errno
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from inspect import cleandoc
from types import SimpleNamespace
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from vedute import __version__, commands
from vedute.commands import _ranks
from vedute.data.escaping import escaped
from vedute.data.problems import PROBLEMS_SHOWN, ProblemsError
from vedute.training import stopping

ClickException: Any = typer.BadParameter.__mro__[2]  # typer may bring a click of its own
USER_MISTAKES = (ValueError, TypeError, KeyError, OSError, ArithmeticError, ImportError)
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
NO_DISK = re.compile(r"No space left|requested and \d+ written")  # of numpy, without a number
SYSTEM_ADVICE = {  # what the system says of a place
    errno.EISDIR: "name a file",
    errno.ENOTDIR: "check the path",
    errno.ENOENT: "check the path",
    errno.EACCES: "change who may use it, or choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "name the file itself",
}
NO_MEMORY = re.compile(r"not enough memory|(can't|cannot|could not) allocate|out of memory", re.I)

# Threads that wait for work sleep: spinning ones slow down another busy process tenfold (settings
# of the OpenMP of GNU and of LLVM; torch uses one of them).
SLEEPING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}


class PlainFlags:
    """A mixin that lists flags in help without `<bool>`, since they take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(PlainFlags, TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reject empty arguments: an empty path would be the working folder."""
        if any(arg == "" or re.fullmatch(r"--[a-z-]+=", arg) for arg in args):
            raise typer.BadParameter("an argument is empty; is a variable of the shell not set?")
        return super().parse_args(ctx, args)


class Group(PlainFlags, TyperGroup):
    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command line; usage errors end in one sentence, not in a box."""
        try:
            code = super().main(*args, **options | {"standalone_mode": False})
        except ClickException as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # no command, and help was printed
                raise SystemExit(error.exit_code) from None
            place = error.ctx.command_path if getattr(error, "ctx", None) else "vedute"
            said = " ".join(error.format_message().split()).rstrip(".")
            see = " See" if said.endswith("?") else "; see"
            _ranks.say_once(f"vedute: {said[:1].lower()}{said[1:]}{see} '{place} -h'")
            raise SystemExit(error.exit_code) from None
        raise SystemExit(code or 0)


app = typer.Typer(
    cls=Group,
    help="Learn from incomplete multi-view data: representations, clusters, missing views.",
    epilog="Start with: vedute demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run vedute; exit codes: 1 negative result; 2 wrong input; 3 disk or memory full."""
    for name, value in SLEEPING.items():  # read when torch starts its threads
        os.environ.setdefault(name, value)
    _ranks.quiet()
    warnings.formatwarning = lambda message, *_, **__: f"vedute: {escaped(message)}\n"
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


def answer(error: Exception) -> tuple[str, int]:
    """The message and the exit code for an error that ended a command."""
    if isinstance(error, ProblemsError):
        shown, more = error.sentences[:PROBLEMS_SHOWN], error.sentences[PROBLEMS_SHOWN:]
        lines = [*shown, f"... and {len(more)} more"] if more else shown
        return "\n  - ".join([f"{len(error.sentences)} problems:", *lines]), 2
    text = str(error.args[0]) if error.args else type(error).__name__
    if isinstance(error, OSError) and error.strerror:  # of the system, about a place
        place = "" if error.filename is None else f"{error.filename}: "
        mend = f"; {SYSTEM_ADVICE[error.errno]}" if error.errno in SYSTEM_ADVICE and place else ""
        text = f"{place}{error.strerror}{mend}"
    text = " ".join(text.split())
    full = isinstance(error, RuntimeError) and NO_MEMORY.search(str(error))
    if full or isinstance(error, MemoryError):
        return f"the memory is full ({text}); take fewer samples or features", 3
    if isinstance(error, OSError) and (error.errno in DISK or NO_DISK.search(str(error))):
        return f"cannot write or read ({text}); free some space, or choose another place", 3
    if isinstance(error, ConnectionError):  # of another rank
        return text, 3
    if isinstance(error, RuntimeError) and text.startswith("Symlink loop"):  # of Path.resolve
        return f"{text}; name the file itself", 2
    if isinstance(error, RecursionError):
        return f"the input is nested too deeply ({text}); write it again", 2
    if isinstance(error, USER_MISTAKES):
        return text, 2
    kind = type(error).__name__
    return f"this is a bug: {kind}: {text}; VEDUTE_DEBUG=1 shows where, please report it", 2


@contextmanager
def one_line_errors(name: str) -> Iterator[None]:
    """Report errors of a command in one sentence and an exit code, without a traceback."""
    try:
        with stopping.terminable():
            _ranks.check(name)
            yield
    except (BrokenPipeError, typer.Exit, typer.Abort, ClickException):
        raise
    except Exception as error:
        if os.environ.get("VEDUTE_DEBUG"):
            raise
        text, code = answer(error)
        _ranks.say_once(f"vedute: {text}", last=isinstance(error, ConnectionError))
        raise typer.Exit(code) from None
    except KeyboardInterrupt:
        _ranks.say_once("vedute: interrupted")
        raise typer.Exit(130) from None
    except stopping.TerminatedError as ended:
        with suppress(OSError):  # the terminal may be gone
            _ranks.say_once(f"vedute: {ended.sentence()}")
        raise typer.Exit(128 + ended.number) from None


def flowing(doc: str) -> str:
    """Join the lines of each paragraph of a docstring: the terminal wraps help."""
    return "\n\n".join(" ".join(p.split()) for p in cleandoc(doc).split("\n\n"))


def _module(name: str) -> Any:
    """The module of a command; if it cannot be imported, one that says so when it is called."""
    try:
        return commands.find(name)
    except ImportError as error:
        problem = str(error)

    def run() -> None:
        """Cannot be imported."""
        raise ImportError(problem)

    return SimpleNamespace(run=run, EXAMPLE=f"vedute {name}")


for _name in commands.available():
    _command = _module(_name)
    app.command(
        _name,
        cls=Command,
        help=flowing(_command.run.__doc__),
        epilog=f"Example: {_command.EXAMPLE}",
    )(one_line_errors(_name)(_command.run))
