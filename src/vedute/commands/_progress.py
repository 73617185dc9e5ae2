"""A progress bar with the loss terms while a method trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from vedute.estimators.base import Estimator
from vedute.estimators.neural import NeuralEstimator


@contextmanager
def following(model: Estimator) -> Iterator[None]:
    """While inside, the training of `model` shows on the terminal, if there is one."""
    console = Console(stderr=True)
    inside = model._trained()
    if not isinstance(inside, NeuralEstimator) or not console.is_terminal:
        yield
        return
    unit, total = ("step", inside.steps) if inside.epochs is None else ("epoch", inside.epochs)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn(f"{unit} {{task.completed}}"),
        TextColumn("[dim]{task.fields[terms]}", table_column=Column(ratio=1, no_wrap=True)),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task(type(inside).__name__, total=total, terms="")
        hidden: list[str] = []

        def show(record: dict[str, Any]) -> None:
            if record["hidden_error"] is not None:  # it is not measured in every epoch
                hidden[:] = [f"hidden views {record['hidden_error']:.3f}"]
            terms = [f"{k} {v:.3g}" for k, v in record["terms"].items()]
            bar.update(task, completed=record[unit], terms="  ".join(hidden + terms))

        model.__dict__["on_epoch"] = show
        try:
            yield
        finally:
            del model.__dict__["on_epoch"]
