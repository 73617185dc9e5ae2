"""What is shown meanwhile: a bar in a terminal, a line in a notebook, else one in the log a minute.

    with shown(), task("imputing", total=9000, unit="row"):
        advance(1000, "row")

Tasks lie inside one another. One that is not counted lends its name to the one inside:
"Blend · MVP". Only the main thread of the main process shows anything.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import parent_process
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from vedute.data.escaping import escaped
from vedute.training.history import Record

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PER_SECOND = 4.0  # updates
LOG_SECONDS = 60.0  # between two lines of the log
log = logging.getLogger("vedute")


@dataclass
class Task:
    """Something that takes time; total: None where it is not counted; note: how it goes; error:
    of hidden views, as it was last measured; left: seconds, where somebody knows."""

    name: str
    total: float | None = None
    unit: str = ""
    done: float = 0.0
    note: str = ""
    error: float | None = None
    left: float | None = None
    since: float = field(default_factory=monotonic)

    def status(self) -> str:
        """step 120 of 700 · about 9 s left · stage 2 · hidden error 0.512"""
        parts = [self.note]
        if self.total is not None:
            counted = f"{self.unit} {self.done:.0f} of {self.total:.0f}" if self.unit else ""
            parts = [counted, time_left(self._left()) if self.done else "", self.note]
        return " · ".join(part for part in parts if part)

    def _left(self) -> float:
        """Seconds, if it goes on as it did."""
        if self.left is not None or self.total is None:
            return self.left or 0.0
        return (monotonic() - self.since) * max(self.total / self.done - 1, 0.0)


def time_left(seconds: float) -> str:
    """about 3 min left"""
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """3 min"""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def lines(tasks: list[Task]) -> list[tuple[str, Task]]:
    """The tasks that are counted, and the innermost one, each with its name."""
    found, names = [], list[str]()
    for i, each in enumerate(tasks, start=1):
        names.append(each.name)
        if each.total is not None or i == len(tasks):
            found.append((" · ".join(names), each))
            names = []
    return found


# Where it is shown.


class Display(Protocol):
    """Shows `tasks`, the outermost first."""

    tasks: list[Task]

    def refresh(self) -> None:
        """They have changed."""

    def print(self, line: str) -> None:
        """A line that stays, which the log has as well."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def close(self) -> None:
        """Leave nothing else behind."""


class Terminal:
    """A bar per task, below what is printed meanwhile."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self.tasks: list[Task] = []
        self.live = Live(
            console=console,
            get_renderable=self._bars,
            refresh_per_second=PER_SECOND,
            transient=True,
            redirect_stdout=_is_terminal(sys.stdout),  # a file stays a file
        )
        self.live.start()

    def _bars(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(width=16)
        table.add_column(no_wrap=True, ratio=1)
        for name, each in lines(list(self.tasks)):
            bar = ProgressBar(each.total, each.done, width=16, pulse=each.total is None)
            table.add_row(Text(name), bar, Text(each.status(), style="dim"))
        return table

    def refresh(self) -> None:
        """The console looks by itself, so many times per second."""

    def print(self, line: str) -> None:
        self.live.console.print(escaped(line), markup=False, highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        self.print(line)

    def close(self) -> None:
        self.live.stop()


class Notebook:
    """One line, written again and again."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.width, self.written = 0, 0.0

    def refresh(self) -> None:
        if self.tasks and monotonic() - self.written >= 1 / PER_SECOND:
            name, inner = lines(self.tasks)[-1]
            self._write(f"{name}  {inner.status()}".rstrip())
            self.written = monotonic()

    def print(self, line: str) -> None:
        self._write(escaped(line), "\n")
        self.width = 0

    def say(self, line: str) -> None:
        self.print(line)

    def close(self) -> None:
        self._write("", "\r")

    def _write(self, line: str, end: str = "") -> None:
        print(f"\r{line:{self.width or 1}}", end=end, flush=True)  # over what was there
        self.width = len(line)


class Log:
    """A line a minute, and one at the end of what took longer: for batch jobs and servers. To the
    log of Python where it has a handler, else to stderr."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.start, self.name = monotonic(), ""
        self.closed = threading.Event()
        threading.Thread(target=self._tell, daemon=True).start()

    def refresh(self) -> None:
        """The next line says it."""

    def print(self, line: str) -> None:
        if self.name and not log.hasHandlers():  # which have heard it
            self._write(line)

    def say(self, line: str) -> None:
        log.info(line) if log.hasHandlers() else self._write(line)

    def close(self) -> None:
        self.closed.set()
        if self.name:
            self.say(f"{self.name}: ended after {duration(monotonic() - self.start)}")

    def _tell(self) -> None:
        while not self.closed.wait(LOG_SECONDS):
            for name, inner in lines(list(self.tasks))[-1:]:
                self.name = self.name or self.tasks[0].name
                self.say(f"{name}: {inner.status() or 'running'}")

    def _write(self, line: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            print(line, file=sys.stderr, flush=True)


def _display() -> Display | None:
    """The display of the main thread of the main process."""
    main = threading.current_thread() is threading.main_thread()
    if not main or parent_process() is not None:
        return None
    if _in_notebook():
        return Notebook()
    console = _console()
    return Log() if console is None else Terminal(console)


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _console() -> Console | None:
    """The terminal at stderr, if it is one that can write over its lines."""
    if not _is_terminal(sys.stderr):
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_interactive else None


def _is_terminal(stream: Any) -> bool:
    return stream is not None and bool(stream.isatty())


# What the rest of the package calls.


class _Here(threading.local):
    display: Display | None = None


_here = _Here()


@contextmanager
def shown(verbose: bool | None = None) -> Iterator[None]:
    """While inside, tasks are shown, unless `verbose` says otherwise."""
    outer = _here.display
    if verbose is None and outer is not None:
        yield
        return
    display = _display() if verbose is None else None
    _here.display = display
    try:
        yield
    finally:
        _here.display = outer
        if display is not None:
            display.close()


@contextmanager
def task(name: str, total: float | None = None, unit: str = "") -> Iterator[None]:
    """While inside, this is what is done."""
    display = _here.display
    if display is None:
        yield
        return
    display.tasks.append(Task(name, total, unit))
    display.refresh()
    try:
        yield
    finally:
        display.tasks.pop()


def advance(amount: float, unit: str = "", left: float | None = None) -> None:
    """So much more is done of the innermost task, if it is counted in this unit."""
    display = _here.display
    if display is not None and display.tasks and display.tasks[-1].unit == unit:
        display.tasks[-1].done += amount
        display.tasks[-1].left = left
        display.refresh()


@contextmanager
def counted(total: int, unit: str) -> Iterator[None]:
    """While inside, the innermost task is counted: steps of a training, see `trained`, or what
    `advance` says."""
    display = _here.display
    if display is None or not display.tasks:
        yield
        return
    before = display.tasks[-1]
    display.tasks[-1] = Task(before.name, total, unit)
    try:
        yield
    finally:
        display.tasks[-1] = before


def trained(record: Record) -> None:
    """The training has come as far as this record of its history."""
    display = _here.display
    if display is None or not display.tasks or display.tasks[-1].total is None:
        return
    inner = display.tasks[-1]
    inner.done = float(record[inner.unit])
    if record["hidden_error"] is not None:  # it is not measured in every epoch
        inner.error = record["hidden_error"]
    loss = f"loss {sum(record['terms'].values()):.3g}"
    quality = loss if inner.error is None else f"hidden error {inner.error:.3g}"
    inner.note = f"stage {record['stage'] + 1} · {quality}"
    display.refresh()


def say(what: str) -> None:
    """A line that stays, about the innermost task."""
    display = _here.display
    if display is not None and display.tasks:
        display.say(f"{lines(display.tasks)[-1][0]}: {what}")


def ended(reason: str) -> None:
    """Why the innermost task ended: a line that stays, unless it is one of many."""
    display = _here.display
    if display is not None and all(each.total is None for each in display.tasks):
        display.print(f"{lines(display.tasks)[-1][0]}: {reason}" if display.tasks else reason)
