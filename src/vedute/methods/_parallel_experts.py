"""Experts that are fitted in parallel, each in its own process, by joblib."""

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
from vedute.estimators import progress
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext
from vedute.estimators.method import Array
from vedute.estimators.neural_training import FROM_CALLBACK
from vedute.scale import backends
from vedute.training.checkpoints import MismatchError

T = TypeVar("T")
LARGE_DATA = 1e5  # numbers in the data; below, starting a process takes longer than fitting


def pays(data: Views) -> bool:
    """Whether data are large enough to fit in other processes.

    Never with a single thread: this process is then one of many, or was limited to one core.
    """
    numbers = len(data) * sum(math.prod(shape) for shape in data.shapes)
    return torch.get_num_threads() > 1 and numbers >= LARGE_DATA


class ParallelExperts:
    """Experts that are being fitted in other processes; `fitted` waits for them."""

    def __init__(
        self, tasks: Sequence[tuple[Estimator, Views, HoldOut | None, FitContext]]
    ) -> None:
        self.tasks = tasks
        work = Parallel(n_jobs=max(1, len(tasks)), backend="loky", return_as="generator")
        self.results = work(delayed(_fit_in_process)(*task) for task in self.tasks)

    def fitted(self) -> list[Estimator | Exception]:
        """Return the fitted models, in order; refit here if the other processes were killed."""
        if not self.tasks:
            return []
        names = ", ".join(type(model).__name__ for model, *_ in self.tasks)
        try:
            with progress.task(names):
                return list(self.results)
        except BrokenExecutor:
            return [fit_expert(*task) for task in self.tasks]


def fit_expert(
    model: Estimator, data: Views, held: HoldOut | None, context: FitContext
) -> Estimator | Exception:
    """Fit a model; return it or the error it raised. The result is independent of earlier fits."""
    torch.manual_seed(context.seed)

    def fitted() -> Estimator:
        with progress.task(type(model).__name__):
            model.learn(data, held, context)
        finite(model.decode(data[:1]))
        return model

    return attempted(fitted)


def attempted(work: Callable[[], T]) -> T | Exception:
    """The result of `work`, or the error that it raised.

    Errors of the disk, of other ranks, of checkpoints and of callbacks propagate: they are not the
    method's fault.
    """
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


def _fit_in_process(
    model: Estimator, data: Views, held: HoldOut | None, context: FitContext
) -> Estimator | Exception:
    with backends.ignore_sigint():
        return fit_expert(model, data, held, context)
