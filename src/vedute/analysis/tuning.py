"""Tuning without labels: the settings that predict hidden views best.

Candidates are measured with a ninth of the training, the best third of them with a third, the best
of these with all of it (successive halving; Jamieson & Talwalkar 2016). Optuna, if installed,
proposes half of them, but not for joblib's workers, where proposals would be irreproducible. The
error of the winner is biased by selection: other hidden views compare it with the defaults.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from vedute.analysis.comparison import Trial
from vedute.data.views import Views
from vedute.estimators import progress
from vedute.estimators import settings as declarations
from vedute.estimators.base import Estimator
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import Choice, Range, rounded
from vedute.methods import best_pair
from vedute.scale import backends

Settings = dict[str, Any]
SHARES, KEEP = (1 / 9, 1 / 3, 1.0), 3
TRIALS, FAILED = 20, float("inf")


class Tried(NamedTuple):
    """A candidate: its changes to the defaults, its error, and the share of training."""

    settings: Settings
    error: float
    share: float = 1.0


@dataclass(frozen=True)
class Tuned:
    """The result of a search; confirmed: errors of default and best on other hidden views."""

    default: Tried
    best: Tried
    confirmed: tuple[float, float]
    tried: list[Tried]

    @property
    def gain(self) -> float:
        """The relative reduction of the defaults' error by the best settings."""
        default, best = self.confirmed
        return 1 - best / default if default > 0 else 0.0

    def settings(self) -> Settings:
        """The best settings; empty if they do not beat the defaults."""
        return self.best.settings if self.gain > 0 else {}


@dataclass
class Search:
    """A search for settings of a method on one trial; `fixed` are set by the user."""

    method: type[Estimator]
    fixed: Settings
    trial: Trial
    seed: int
    on_tried: Callable[[Tried], None] | None
    deadline: float = float("inf")
    tried: list[Tried] = field(default_factory=list)

    def space(self) -> dict[str, Choice | Range]:
        """The settings that the user left open; those that share a factor are one dimension."""
        return {space.factor or k: space for k, space in self._open().items()}

    def defaults(self) -> dict[str, Any]:
        """The point of the defaults, without those outside the space."""
        model, point = _usual(self.method(**self.fixed), self.trial.views), {}
        for name, space in self._open().items():
            value = 1.0 if space.factor else getattr(model, name)
            if space.has(value):
                point[space.factor or name] = value
        return point

    def shares(self) -> tuple[float, ...]:
        return SHARES if issubclass(self.method, NeuralEstimator) else SHARES[-1:]

    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def settings(self, candidate: Mapping[str, Any]) -> Settings:
        """The changes to the defaults at a point of the space."""
        model, changed = _usual(self.method(**self.fixed), self.trial.views), {}
        for name, space in self._open().items():
            value, default = candidate.get(space.factor or name), getattr(model, name)
            if value is not None and space.factor:
                value = rounded(value * default)
            if value is not None and value != default:
                changed[name] = value
        return changed

    def error(self, settings: Settings, share: float = 1.0, on: Trial | None = None) -> float:
        """The error on the hidden views after a share of the training; infinite if it fails."""
        trial = on or self.trial
        wanted = self.fixed | settings | {"random_state": self.seed}
        model = self.method(**wanted if self.method.soft else wanted | {"n_clusters": None})
        if isinstance(model, NeuralEstimator):
            _shorten(model, share, trial.views)
        model = best_pair.for_views(model, len(trial.views.x))
        try:
            return trial.error(model.fit(trial.views))
        except (ValueError, ArithmeticError):
            if not settings:  # not the candidate's fault
                raise
            return FAILED

    def measure(self, settings: Settings, share: float = 1.0, error: float | None = None) -> Tried:
        """Measure a candidate, or note its error, once."""
        for known in self.tried:
            if (known.settings, known.share) == (settings, share):
                return known
        error = self.error(settings, share) if error is None else error
        self.tried.append(Tried(settings, error, share))
        progress.advance(share)
        if self.on_tried is not None:
            self.on_tried(self.tried[-1])
        return self.tried[-1]

    def measure_all(self, candidates: Sequence[Settings], share: float) -> list[Tried]:
        """Measure candidates until the deadline; one whose worker was killed has failed."""
        known = [t for t in self.tried if t.share == share and t.settings in candidates]
        new = [c for c in candidates if c not in [t.settings for t in known]]
        alone = replace(self, on_tried=None, tried=[])
        errors = backends.outcomes(partial(Search.error, share=share), alone, new)
        for settings in new:
            if self.late():
                break
            error = next(errors)
            error = FAILED if isinstance(error, BrokenExecutor) else error
            known.append(self.measure(settings, share, error))
        return known

    def _open(self) -> dict[str, Choice | Range]:
        """Settings that can be tuned and that the user left open."""
        declared = declarations.declared(self.method).items()
        return {k: s.tune for k, s in declared if s.tune is not None and k not in self.fixed}


def tune(
    method: type[Estimator],
    views: Views,
    fixed: Settings,
    trials: int | None,
    minutes: float | None,
    seed: int,
    on_tried: Callable[[Tried], None],
) -> Tuned:
    """Search for settings: `trials` candidates beside the defaults, or as many as time allows."""
    if not method.generative:
        raise TypeError(f"{method.__name__} cannot impute, so hidden views cannot tune it")
    search = Search(method, fixed, Trial.of(views, seed), seed, on_tried)
    if not search.space():
        raise ValueError(f"{method.__name__} has no setting left to tune")
    start = time.monotonic()
    default, count = search.measure({}), trials or TRIALS
    if minutes is not None:  # the two that are confirmed must still have their time
        took = time.monotonic() - start
        search.deadline = start + 60 * minutes - 2 * took
        fit = max(1, int(KEEP * (60 * minutes / took - 3) * backends.size()))
        count = fit if trials is None else min(trials, fit)
    shares = enumerate(search.shares())  # the best third is kept at each of them
    cost = float(sum(share * -(-count // KEEP**i) for i, share in shares))
    one_by_one = find_spec("optuna") is not None and not backends.elsewhere()
    with progress.shown(), progress.task("tuning", cost):
        (_by_optuna if one_by_one else _by_halving)(search, count)
    longest = max((t.share for t in search.tried[1:]), default=1.0)
    finalists = [t for t in search.tried if t.share == longest]
    best, confirmed = min([default, *finalists], key=lambda t: t.error), (default.error,) * 2
    if best is not default:
        other = Trial.of(views, seed + 1)
        confirmed = search.error({}, on=other), search.error(best.settings, on=other)
    return Tuned(default, best, confirmed, search.tried)


def _by_halving(search: Search, trials: int) -> None:
    rng = np.random.default_rng(search.seed)
    drawn = [search.settings(c) for c in _candidates(search.space(), trials, rng)]
    left = list({repr(settings): settings for settings in drawn}.values())
    for share in search.shares():
        measured = search.measure_all(left, share)
        if search.late():
            return
        measured.sort(key=lambda t: t.error)
        left = [t.settings for t in measured[: -(-len(measured) // KEEP)]]


def _candidates(
    space: Mapping[str, Choice | Range], n: int, rng: Generator
) -> Iterator[dict[str, Any]]:
    """Draw candidates; each changes about half of the settings, at least one."""
    names = list(space)
    for _ in range(n):
        changed = rng.random(len(names)) < 0.5
        changed[rng.integers(len(names))] = True
        yield {k: space[k].draw(rng) for k, c in zip(names, changed, strict=True) if c}


def _by_optuna(search: Search, trials: int) -> None:
    import optuna

    space = search.space()

    def objective(trial: Any) -> float:
        settings = search.settings({k: s.suggest(trial, k) for k, s in space.items()})
        for mark, share in enumerate(search.shares()):
            error = search.measure(settings, share).error
            trial.report(error, KEEP**mark)
            if search.late() or trial.should_prune():
                raise optuna.TrialPruned
        return error

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=search.seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(reduction_factor=KEEP),
    )
    rng = np.random.default_rng(search.seed)
    for candidate in _candidates(space, trials // 2, rng):  # near the defaults, to begin with
        point = search.defaults() | candidate
        study.enqueue_trial({k: space[k].place(v) for k, v in point.items()})
    left = max(search.deadline - time.monotonic(), 0.0)
    study.optimize(objective, n_trials=trials, timeout=left if np.isfinite(left) else None)


def _usual(model: Estimator, views: Views) -> Estimator:
    """The model with settings resolved for these data."""
    if not isinstance(model, NeuralEstimator):
        return model
    return model.settled(views.shapes, model.amounts(views.shapes, len(views))[0])


def _shorten(model: NeuralEstimator, share: float, views: Views) -> None:
    """Shorten all stages of the schedule by the same factor."""
    usual = _usual(model, views)
    for name, known in declarations.declared(model).items():
        if known.length and getattr(usual, name):
            model.set_params(**{name: max(1, round(share * getattr(usual, name)))})
