"""Estimators that learn beside this process, each in one of its own, by joblib."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from typing import TypeVar

import numpy as np
import torch
from joblib import Parallel, delayed

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators import engine, progress
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext
from vedute.estimators.method import Array
from vedute.estimators.neural_training import FROM_CALLBACK
from vedute.training.checkpoints import MismatchError

T = TypeVar("T")
LARGE_DATA = 1e5  # numbers in the data, below which starting a process takes longer than learning


def pays(data: Views) -> bool:
    """Not where this process has one thread: it is then one of many, or was asked to be modest."""
    numbers = len(data) * sum(math.prod(shape) for shape in data.shapes)
    return torch.get_num_threads() > 1 and numbers >= LARGE_DATA


class Apart:
    """Estimators that learn from now on; `learned` waits for them."""

    def __init__(
        self, tasks: Sequence[tuple[Estimator, Views, HoldOut | None, FitContext]]
    ) -> None:
        self.tasks = tasks
        work = Parallel(n_jobs=max(1, len(tasks)), backend="loky", return_as="generator")
        self.results = work(delayed(_learned)(*task) for task in self.tasks)

    def learned(self) -> list[Estimator | Exception]:
        """The fitted models, in the order given; learned here where other processes were killed."""
        if not self.tasks:
            return []
        names = ", ".join(type(model).__name__ for model, *_ in self.tasks)
        try:
            with progress.task(names):
                return list(self.results)
        except BrokenExecutor:
            return [teach(*task) for task in self.tasks]


def teach(
    model: Estimator, data: Views, held: HoldOut | None, context: FitContext
) -> Estimator | Exception:
    """The fitted model, or why it failed. What it learns hangs on nothing that was learned before
    it."""
    torch.manual_seed(context.seed)

    def learned() -> Estimator:
        with progress.task(type(model).__name__):
            model.learn(data, held, context)
        finite(model.decode(data[:1]))
        return model

    return attempted(learned)


def attempted(work: Callable[[], T]) -> T | Exception:
    """The result of some work, or the error in which it ended; errors of the disk, of other ranks,
    of a checkpoint and of callbacks are raised: they are not of the method."""
    try:
        return work()
    except (OSError, MismatchError):
        raise
    except Exception as error:
        if FROM_CALLBACK in getattr(error, "__notes__", ()):
            raise
        return error


def finite(values: list[Array]) -> list[Array]:
    """Refuse values that are not finite."""
    if not all(np.isfinite(part).all() for part in values):
        raise FloatingPointError("it imputes values that are not finite")
    return values


def _learned(
    model: Estimator, data: Views, held: HoldOut | None, context: FitContext
) -> Estimator | Exception:
    with engine.ignore_sigint():
        return teach(model, data, held, context)
