"""Progress: a bar in a terminal, a line in a notebook, else a line in the log per minute.

    with shown(), task("imputing", total=9000, unit="row"):
        advance(1000, "row")

Tasks are nested. One without a count prefixes its name to the inner one: "Blend · MVP". Only the
main thread of the main process shows anything.
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
from typing import Any

from vedute.data.escaping import escaped
from vedute.training.history import Record

PER_SECOND = 4.0  # updates
LOG_SECONDS = 60.0  # between two lines of the log
log = logging.getLogger("vedute")


@dataclass
class Task:
    """A task that takes time."""

    name: str
    total: float | None = None  # None: it is not counted
    unit: str = ""
    done: float = 0.0
    note: str = ""  # its state
    error: float | None = None  # the last measured one of hidden views
    left: float | None = None  # remaining seconds, if known
    since: float = field(default_factory=monotonic)

    def status(self) -> str:
        """Return its status: step 120 of 700 · about 9 s left · stage 2 · hidden error 0.512"""
        count = left = ""
        if self.total is not None and self.unit:
            count = f"{self.unit} {self.done:.0f} of {self.total:.0f}"
        if self.total is not None and self.done:
            seconds = (monotonic() - self.since) * max(self.total / self.done - 1, 0.0)
            left = f"about {duration(seconds if self.left is None else self.left)} left"
        return " · ".join(filter(None, [count, left, self.note]))


def duration(seconds: float) -> str:
    """Format a duration: 3 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def lines(tasks: list[Task]) -> list[tuple[str, Task]]:
    """Return the counted tasks and the innermost one, with their names."""
    results, names = [], list[str]()
    for current in tasks:
        names += [current.name] if current.name else []
        if current.total is not None or current is tasks[-1]:
            results.append((" · ".join(names), current))
            names = []
    return results


@dataclass
class Display:
    """A display of `tasks`, the outermost first; this one shows nothing."""

    tasks: list[Task] = field(default_factory=list)

    def refresh(self) -> None:
        """Update after tasks have changed."""

    def print(self, line: str, logged: bool = False) -> None:
        """Print a permanent line; logged: the log has it, too."""

    def close(self) -> None:
        """Remove all but permanent lines."""


class Terminal(Display):
    """A bar per task, below printed lines. The console refreshes PER_SECOND times per second."""

    def __init__(self, console: Any) -> None:
        from rich.live import Live

        super().__init__()
        self.live = Live(
            console=console,
            get_renderable=self._bars,
            refresh_per_second=PER_SECOND,
            transient=True,
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # a file stays a file
        )
        self.live.start()

    def _bars(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(width=16)
        table.add_column(no_wrap=True, ratio=1)
        for name, inner in lines(list(self.tasks)):
            bar = ProgressBar(inner.total, inner.done, width=16, pulse=inner.total is None)
            table.add_row(Text(name), bar, Text(inner.status(), style="dim"))
        return table

    def print(self, line: str, logged: bool = False) -> None:
        self.live.console.print(escaped(line), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self.live.stop()


class Notebook(Display):
    """A line that is rewritten."""

    width, written = 0, 0.0

    def refresh(self) -> None:
        if monotonic() - self.written >= 1 / PER_SECOND:
            name, inner = lines(self.tasks)[-1]
            self._write(f"{name}  {inner.status()}".rstrip())
            self.written = monotonic()

    def print(self, line: str, logged: bool = False) -> None:
        self._write(escaped(line), "\n")
        self.width = 0

    def close(self) -> None:
        self._write("", "\r")

    def _write(self, line: str, end: str = "") -> None:
        print(f"\r{line:{self.width or 1}}", end=end, flush=True)  # overwrites the previous line
        self.width = len(line)


@dataclass
class Log(Display):
    """A line per minute, and one at the end of longer tasks, for batch jobs and servers: to
    Python's log if it has a handler, else to stderr."""

    name: str = ""  # of the task, once it is long
    start: float = field(default_factory=monotonic)
    closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        threading.Thread(target=self._report_regularly, daemon=True).start()

    def print(self, line: str, logged: bool = False) -> None:
        if log.hasHandlers():
            if not logged:
                log.info(line)
        elif self.name or not logged:  # short tasks end without a line
            with suppress(OSError, ValueError):  # stderr may be closed
                print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        self.closed.set()
        if self.name:
            self.print(f"{self.name}: ended after {duration(monotonic() - self.start)}")

    def _report_regularly(self) -> None:
        while not self.closed.wait(LOG_SECONDS):
            tasks = list(self.tasks)
            for name, inner in lines(tasks)[-1:]:
                self.name = self.name or tasks[0].name
                self.print(f"{name}: {inner.status() or 'running'}")


def _display() -> Display:
    """Return the display, in the main thread of the main process only."""
    if threading.current_thread() is not threading.main_thread() or parent_process() is not None:
        return Display()
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    if getattr(shell, "kernel", None) is not None:
        return Notebook()
    console = _console()
    return Log() if console is None else Terminal(console)


def _console() -> Any:
    """Return the terminal at stderr, or None if it cannot overwrite lines."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_interactive else None


class _Local(threading.local):
    def __init__(self) -> None:
        self.display = Display()


_local = _Local()


@contextmanager
def shown(verbose: bool | None = None) -> Iterator[None]:
    """Show tasks, unless `verbose` is set."""
    outer = _local.display
    if verbose is None and type(outer) is not Display:
        yield
        return
    _local.display = display = _display() if verbose is None else Display()
    try:
        yield
    finally:
        _local.display = outer
        display.close()


@contextmanager
def task(name: str, total: float | None = None, unit: str = "") -> Iterator[None]:
    """Run a task of this name; one without counts the steps of the task around it."""
    display = _local.display
    display.tasks.append(Task(name, total, unit))
    display.refresh()
    try:
        yield
    finally:
        display.tasks.pop()


def advance(amount: float, unit: str = "", left: float | None = None) -> None:
    """Advance the innermost task, if it is counted in this unit."""
    tasks = _local.display.tasks
    if tasks and tasks[-1].unit == unit:
        tasks[-1].done += amount
        tasks[-1].left = left
        _local.display.refresh()


def trained(record: Record) -> None:
    """Show training progress up to this record of its history."""
    inner = _local.display.tasks[-1]
    inner.done = float(record[inner.unit])
    if record["hidden_error"] is not None:  # not measured in every epoch
        inner.error = record["hidden_error"]
    loss = f"loss {sum(record['terms'].values()):.3g}"
    quality = loss if inner.error is None else f"hidden error {inner.error:.3g}"
    inner.note = f"stage {record['stage'] + 1} · {quality}"
    _local.display.refresh()


def say(what: str, ended: bool = False) -> None:
    """Print a permanent line about the innermost task. ended: say why it ended, as the log does,
    unless it is one of many."""
    shown_lines = lines(_local.display.tasks)
    if shown_lines and not (ended and len(shown_lines) > 1):
        _local.display.print(f"{shown_lines[-1][0]}: {what}", logged=ended)
