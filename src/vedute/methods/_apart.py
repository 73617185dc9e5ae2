"""Estimators that learn beside this process, each in one of its own, by joblib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor

import torch
from joblib import Parallel, delayed

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.estimators import engine, progress
from vedute.estimators.base import Estimator

LARGE = 1e5  # numbers in the data, below which starting a process takes longer than learning


def pays(data: Views) -> bool:
    """Not where this process has one thread: it is then one of many, or was asked to be modest."""
    numbers = len(data) * sum(math.prod(shape) for shape in data.shapes)
    return torch.get_num_threads() > 1 and numbers >= LARGE


class Apart:
    """Estimators that learn from now on; `learned` waits for them."""

    def __init__(
        self, models: Sequence[Estimator], data: Views, held: HoldOut | None, seed: int
    ) -> None:
        self.tasks = [(model, data, held, seed) for model in models]
        work = Parallel(n_jobs=max(1, len(models)), backend="loky", return_as="generator")
        self.results = work(delayed(_learned)(*task) for task in self.tasks)

    def learned(self) -> list[Estimator]:
        """In the order given; in this process where the others were killed."""
        if not self.tasks:
            return []
        names = ", ".join(type(model).__name__ for model, *_ in self.tasks)
        try:
            with progress.task(names):
                return list(self.results)
        except BrokenExecutor:
            return [teach(*task) for task in self.tasks]


def teach(model: Estimator, data: Views, held: HoldOut | None, seed: int) -> Estimator:
    """What it learns hangs on nothing that was learned before it."""
    torch.manual_seed(seed)
    with progress.task(type(model).__name__):
        model._learn(data, held)
    return model


def _learned(model: Estimator, data: Views, held: HoldOut | None, seed: int) -> Estimator:
    with engine.deaf():
        return teach(model, data, held, seed)
