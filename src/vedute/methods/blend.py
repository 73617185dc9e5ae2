"""Blend: a weighted average of several methods, with weights per view learned on hidden views.

With p_e the prediction of expert e for a view and m the mean of the view,

    value = m + sum over e of w_e (p_e - m),     w_e >= 0,   sum of w_e <= 1

The weights minimise the squared error on a tenth of the observed views, which are held out from all
experts; the rest of the weight goes to the mean. With e_k the deviation of expert k's prediction
from the mean of the view, t that of the truth, both in standard deviations, an instance i has

    G_i = sum over features of e e' / width  (E, E)     c_i = sum over features of e t / width  (E,)

and the error w' G_i w - 2 c_i' w + a constant. A prior shrinks the weights of a view towards those
common to all views: it counts as PRIOR_INSTANCES more instances with the mean G_i. Weights for
instances with a given number of observed views are shrunk towards those of the view likewise. Noise
and spread are measured on the same views, with cross-fitted weights. Single missing entries of
observed views have separate weights, learned in the same way on held-out entries. Then the experts
that can be refitted on all data are.

Representation, clusters, draws and new samples come from the first expert, MVP; its predictions are
a warm start for the regressions of kernel fill.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from copy import copy
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import torch
from joblib import Parallel, delayed
from scipy.optimize import nnls

from vedute import methods
from vedute.data.holdout import FEWEST_HIDDEN, HiddenEntries, HoldOut
from vedute.data.mapped import Stack
from vedute.data.rows import slices
from vedute.data.views import Views
from vedute.estimators import cross_fitting, progress, saving, settings
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext, attempted
from vedute.estimators.imputation import Imputer
from vedute.estimators.learner import Learner
from vedute.estimators.method import Array, WarmStart
from vedute.estimators.settings import estimator, setting
from vedute.scale import backends
from vedute.training.history import Record

EXPERTS = ("mvp", "lowrank_fill", "kernel_fill", "gaussian_fill")
# Settings that belong to Blend, not to its experts:
COMMON = ("n_clusters", "kinds", "likelihood", "scaling", "columns", "random_state", "callbacks")
EXPERT_DEFAULTS = {"kernel_fill": {"n_rounds": 2}}  # fewer rounds, from a good start
LARGE_DATA = 1e5  # numbers in the data; below, starting a process takes longer than fitting
PRIOR_INSTANCES = 50.0  # strength of the prior of weights, in instances
PREDICTED_NUMBERS = 2**22  # predictions per batch
SUM_WEIGHT = 1e4  # weight of the constraint sum w = 1 against the errors
Held = TypeVar("Held", HoldOut, HiddenEntries)
FORWARDED = ("verbose", "device", "checkpoint_minutes")  # to experts that have them


@estimator
class Blend(Estimator):
    """The methods that impute best, weighted view by view.

    Settings of an expert are `mvp__latent_dim` and the like: in `expert_settings`, `set_params`
    and `GridSearchCV`, and on the command line `--set mvp__latent_dim=16`.
    """

    experts: tuple[str, ...] = setting(
        EXPERTS, "Methods that impute; the first also represents, clusters and draws."
    )
    expert_settings: dict[str, Any] | None = setting(
        None, 'Settings of experts: `{"mvp__latent_dim": 16}`.'
    )
    device: str | torch.device = setting(
        "auto", "`cpu`, `cuda`, `mps`, or `auto`: a GPU where there is one."
    )
    checkpoint: str | Path | None = setting(
        None, "A folder to resume from after an interruption; needs `random_state`."
    )
    checkpoint_minutes: float = setting(5.0, "Time between two checkpoints.", at_least=0)
    callbacks: Sequence[Callable[[Record], object]] | None = setting(
        None, "Functions called with every training record of an expert; not saved."
    )

    attributes: ClassVar = {
        "weights_": "By view, the weight of each expert.",
        "by_seen_": "Weights by the number of other observed views, 0 to L - 1, (L, L, experts) "
        "array; predictions are averaged with these.",
        "hole_weights_": "Weights for single missing entries, in views that have any.",
        "experts_": "The fitted experts, by name; those in `left_out_` are not among them.",
        "left_out_": "Why experts were left out, by name: they failed, or there are many views.",
        "settings_": "Settings of experts as used: `mvp__lr` and the like.",
        "history_": "The training history of the first expert.",
    }
    absent = "filled by several methods, weighted by hidden views"
    shrinks = False

    # Settings.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name; `deep`: including those of the experts."""
        params: dict[str, Any] = super().get_params(deep=False)
        readable = isinstance(self.experts, Sequence) and isinstance(
            self.expert_settings, (Mapping, NoneType)
        )  # `fit` reports what is not, as in scikit-learn
        for name in self.experts if deep and readable else ():
            if name not in methods.available():
                continue
            cls = methods.find(name)
            declared = settings.declared(cls)
            valid = {k: v for k, v in self.expert_params(name).items() if k in declared}
            inside = cls(**valid).get_params(deep=False)
            params |= {f"{name}__{k}": v for k, v in inside.items() if k not in COMMON}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of Blend, and of experts by names such as `mvp__latent_dim`."""
        nested = {k: v for k, v in params.items() if "__" in k}
        super().set_params(**{k: v for k, v in params.items() if k not in nested})
        if nested:
            self.expert_settings = {**(self.expert_settings or {}), **nested}
            self.check_settings()
        return self

    def expert_params(self, name: str) -> dict[str, Any]:
        """Settings of an expert: Blend's defaults for it, overridden by the user's."""
        params: dict[str, Any] = dict(EXPERT_DEFAULTS.get(name, {}))
        for key, value in (self.expert_settings or {}).items():
            expert, _, setting_name = str(key).partition("__")
            if expert == name:
                params[setting_name] = value
        return params

    def check_settings(self) -> None:
        super().check_settings()
        if not self.experts or len(set(self.experts)) < len(self.experts):
            raise ValueError(f"experts names one method or more, each once, got {self.experts}")
        for name in self.experts:
            cls = methods.find(name)
            if cls is Blend or not cls.generative or cls.two_views or cls.soft:
                raise ValueError(f"{name} cannot be an expert of Blend: it does not impute")
        for key, value in (self.expert_settings or {}).items():
            name, _, setting_name = str(key).partition("__")
            if name not in self.experts:
                names = ", ".join(self.experts)
                raise ValueError(f"{key!r} is a setting of no expert; experts are {names}")
            cls = methods.find(name)
            if setting_name in COMMON or setting_name not in settings.declared(cls):
                raise ValueError(f"{key!r}: {cls.__name__} inside Blend has no such setting")
            problem = settings.problem_with(cls, setting_name, value)
            if problem:
                raise ValueError(f"{key}: {problem}")

    # Experts.

    @property
    def learner(self) -> BlendLearner:
        return BlendLearner(self)

    def slow(self, names: Sequence[str], n_views: int) -> dict[str, str]:
        """Experts that take many minutes with this many views, with the reason.

        Never all of them, and none that the user has settings for.
        """
        slow = {}
        for name in names:
            limit = methods.find(name).most_views
            if limit is None or n_views <= limit:
                continue
            if not any(str(key).startswith(f"{name}__") for key in self.expert_settings or ()):
                slow[name] = (
                    f"{n_views} views: with more than {limit} it takes many minutes and gigabytes; "
                    f"a setting such as {name}__steps=240 keeps it"
                )
        return slow if len(slow) < len(names) else {}

    def expert(self, name: str) -> Estimator:
        """Create an unfitted expert, in the units of Blend."""
        cls, params = methods.find(name), self.expert_params(name)
        for key in FORWARDED:
            if key in settings.declared(cls):
                params.setdefault(key, getattr(self, key))
        model = cls(**params, random_state=None if self.random_state is None else self.seed_)
        model.views_, model.n_features_in_ = self.views_, self.n_features_in_
        model.seed_ = self.seed_
        return model

    def link_warm_start(self, name: str) -> Estimator:
        """Copy an expert and link its warm start; a failing copy leaves the expert untouched.

        Its regressions start from the predictions of the first expert; if that was left out, or
        beside words, which cannot be regressed on, from a matrix of low rank.
        """
        model, first = copy(self.experts_[name]), self.experts_.get(self.experts[0])
        if isinstance(model, WarmStart) and name != self.experts[0]:
            words = any(map(attrgetter("likelihood.text"), self.views_))
            model.warm_start = None if words else first
        return model

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        self.learner.fit_experts([*self.experts_], data, held, context)

    # Predictions of the experts, and their weighted average.

    def predicted(
        self,
        data: Views,
        rows: Sequence[Any] | None = None,
        failed: Callable[[str, Exception], None] | None = None,
    ) -> list[Array]:
        """The predictions of all experts, L arrays (E, n, *shape_v).

        rows: by view, the ones to keep; failed: called with an expert that fails, to leave it out
        """
        stacks: list[Stack] = []
        predictions = []
        for name, expert in [*self.experts_.items()]:
            start, first = getattr(expert, "warm_start", None), self.experts[0]
            decode = partial(expert.learner.imputer().decoded, data)
            values: list[Array] | Exception
            if failed and start not in (None, self.experts_.get(first)):
                values = RuntimeError(f"it starts from {first}")
            else:
                values = attempted(partial(finite, decode)) if failed else decode()
            if isinstance(values, Exception):
                assert failed
                failed(name, values)
                continue
            for v, value in enumerate(values):
                if v == len(stacks):
                    stacks.append(Stack(len(self.experts_)))
                stacks[v].add(value if rows is None else value[:, rows[v]])
        for stack in stacks:
            predictions.append(stack.array[: len(self.experts_)])
        return predictions

    def mixed(self, v: int, predicted: Array, weights: Array) -> Array:
        """The weighted predictions of view v: predicted (E, n, *shape), weights (n, E) ->
        (n, *shape)."""
        view = self.views_[v]
        if view.likelihood.text:  # words have no mean
            return np.asarray(predicted[0])
        mean = view.scaler.mean
        factors = weights.T.reshape(*weights.T.shape, *[1] * mean.ndim)
        total = np.zeros(predicted.shape[1:])
        for w, p in zip(factors, predicted, strict=True):
            off = p - mean
            off *= w  # in place: the array may be large
            total += off
        total += mean
        return total

    def around(self, means: list[Array], data: Views, draws: int) -> list[Array]:
        """Draws of the first expert, shifted to have the weighted means (1, n, *shape_v), in the
        range of the likelihood; probabilities sum to one."""
        clipped, first = [], self.parts()[0]
        shifted = zip(first.decode(data, draws), first.decode(data), strict=True) if draws else None
        for values, view in zip(means, self.views_, strict=True):
            if shifted:
                drawn, center = next(shifted)
                values = values + (drawn - center)
            likelihood = view.likelihood
            if not (likelihood.scaled or likelihood.text):
                values = values.clip(*likelihood.bounds)
                shares = values.sum(-1, keepdims=True) if likelihood.shares else 1.0
                values = values / np.maximum(shares, 1e-12)
            clipped.append(np.asarray(values, np.float32))
        return clipped

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        """The weighted predictions, with separate weights for holes."""
        means = []
        for v, predicted in enumerate(self.predicted(data)):
            others = data.mask.sum(1) - data.mask[:, v].long()
            mean, holes = self.mixed(v, predicted, self.by_seen_[v][others.numpy()]), data.holes[v]
            hole_weights = self.hole_weights_.get(self.views_[v].name)
            if holes is not None and hole_weights is not None:
                weights = np.tile([*hole_weights.values()], (len(data), 1))
                mean = np.where(holes.numpy(), self.mixed(v, predicted, weights), mean)
            means.append(mean[None])
        return self.around(means, data, draws)

    def embed(self, data: Views) -> Array:
        return self.parts()[0].embed(data)

    def embed_std(self, data: Views) -> Array:
        return self.parts()[0].embed_std(data)

    def generate(self, n: int, random_state: Any = None) -> dict[str, Any]:
        """Draw n new samples from the first expert."""
        return self.parts()[0].generate(n, random_state)

    # Saving.

    def parts(self) -> list[Estimator]:
        return list(getattr(self, "experts_", {}).values())

    def leading(self) -> Estimator:
        return methods.find(self.experts[0])(**self.expert_params(self.experts[0]))

    def saved(self) -> saving.Saved:
        """The state that `save` writes; experts are dicts of what they learned, without views."""
        method, params, learned = super().saved()
        inside = {}
        for name, model in self.experts_.items():
            inside[name] = {k: v for k, v in model.saved().learned.items() if k != "views_"}
        return saving.Saved(method, params, learned | {"experts_": inside})

    def restore(self, learned: dict[str, Any]) -> Self:
        inside: Mapping[str, Any] = learned["experts_"]
        super().restore({k: v for k, v in learned.items() if k != "experts_"})
        self.experts_ = {name: self.expert(name).restore(inside[name]) for name in inside}
        for name in inside:
            self.experts_[name] = self.link_warm_start(name)
        return self


class BlendLearner(Learner):
    """The learner of Blend: hides views from all experts, and weighs experts on these views."""

    model: Blend

    def learn(self, data: Views, context: FitContext) -> None:
        model = self.model
        hidden = self.choose_hidden(data, context, 1)
        held = None if hidden is None else HoldOut.of(data, hidden, model.scalers, context.groups)
        few = hidden is None or int(hidden.sum()) < FEWEST_HIDDEN
        visible = data if hidden is None else data.hide(hidden)
        training = self.without_entries(visible)
        images = max(map(len, data.shapes)) > 1  # the others see pixels only
        used = model.experts[:1] if images else model.experts
        model.left_out_ = model.slow(used, len(data.x))
        model.experts_, model.hole_weights_, model.settings_ = {}, {}, {}
        for name in used:
            if name not in model.left_out_:
                model.experts_[name] = expert = model.expert(name)
                expert.learner.check(training)
        model.learn(training, None if few else held, context)
        self.calibrate(data, held, context)
        if training is not visible:
            self.calibrate_holes(HiddenEntries.of(training, visible, context.groups))
        refitted = []
        for name, expert in model.experts_.items():
            expert.views_ = model.views_
            if few or expert.learns_again(len(data)):
                refitted.append(name)
        model.learned_again_ = bool(refitted) and training is not data and not context.interrupted
        if model.learned_again_:
            self.fit_experts(refitted, data, None, replace(context, number=2))
        model.history_ = getattr(model.parts()[0], "history_", [])
        for name, expert in model.experts_.items():
            for key, value in getattr(expert, "settings_", {}).items():
                model.settings_[f"{name}__{key}"] = value
        if model.left_out_:
            warnings.warn(f"Blend goes on without {self._left_out()}", stacklevel=4)

    def fit_experts(
        self, names: Sequence[str], data: Views, held: HoldOut | None, context: FitContext
    ) -> None:
        """Fit experts; on large data, those without a warm start in other processes."""
        model, inner, apart = self.model, {}, {}
        here = {next(iter(model.experts_))} if pays(data) else {*names}
        for name in names:
            expert = model.link_warm_start(name)
            inner[name] = child = context.child(expert, name, context.number)
            # not the first, nor one that starts from it; callbacks must run in this process
            if not (name in here or getattr(expert, "warm_start", None) or child.callbacks):
                apart[name] = expert, data, held, child
        if apart:
            tasks = [delayed(_fit_in_process)(*task) for task in apart.values()]
            results = Parallel(n_jobs=len(tasks), backend="loky", return_as="generator")(tasks)
        outcomes: dict[str, Estimator | Exception] = {}
        for name in sorted(names, key=apart.__contains__):  # those of this process first
            if name not in apart:
                task = model.link_warm_start(name), data, held, inner[name]
                outcomes[name] = attempted(partial(fit_expert, *task))
                context.interrupted |= inner[name].interrupted
            elif name not in outcomes:
                waiting = ", ".join(type(expert).__name__ for expert, *_ in apart.values())
                try:
                    with progress.task(waiting):
                        outcomes |= zip(apart, results, strict=True)
                except BrokenExecutor:  # the other processes were killed
                    for other, task in apart.items():
                        outcomes[other] = attempted(partial(fit_expert, *task))
            outcome = outcomes[name]
            if isinstance(outcome, Estimator):
                model.experts_[name] = outcome
            elif context.number > 1:
                text = f"{name} could not be refitted on all views and keeps its first fit"
                warnings.warn(f"{text} ({_reason(outcome)})", stacklevel=5)
            else:
                self._fail(name, outcome)

    def _fail(self, name: str, error: Exception) -> None:
        """Continue without an expert; raise the error of the only one."""
        if len(self.model.experts_) == 1 and not self.model.left_out_:
            raise error
        self.model.left_out_[name] = _reason(error)  # `fit` warns about it at the end
        del self.model.experts_[name]
        if not self.model.experts_:
            raise ValueError(f"no expert of Blend could learn: {self._left_out()}") from error

    def _left_out(self) -> str:
        return "; ".join(f"{name} ({reason})" for name, reason in self.model.left_out_.items())

    def calibrate(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        """Learn weights, spread and noise on the hidden views; weights are cross-fitted."""
        model, L = self.model, len(self.model.views_)
        if held is None:  # all weight on the first
            weights = np.eye(1, len(model.experts_)).repeat(L, 0)
            model.by_seen_ = np.repeat(weights[:, None], L, 1)
            model.weights_ = self._by_name(range(L), weights)
            super().calibrate(data, None, context)
            return
        seen, which = held.inputs.mask.sum(1).numpy(), held.hidden.int().argmax(1).numpy()
        (weights, model.by_seen_), imputer, held = self._weighed(held, range(L), seen, which)
        model.weights_ = self._by_name(range(L), weights)
        self.measure(imputer, held)

    def calibrate_holes(self, held: HiddenEntries) -> None:
        """Learn weights, spread and noise of single missing entries, on hidden ones."""
        model = self.model
        numeric = [v for v in held.views if not model.views_[v].likelihood.text]
        if not numeric:
            return
        one = np.zeros(len(held.inputs), int)  # too few entries for weights by the number of views
        (weights, _), imputer, held = self._weighed(held, numeric, one, one)
        model.hole_weights_ = self._by_name(numeric, weights)
        model.views_ = imputer.calibrated(held, model.shrinks)

    def _by_name(self, views: Sequence[int], weights: Array) -> dict[str, dict[str, float]]:
        """Weights (views, E) as dicts, by view and expert."""
        named = {}
        for v, row in zip(views, weights.tolist(), strict=True):
            named[self.model.views_[v].name] = dict(zip(self.model.experts_, row, strict=True))
        return named

    def _weighed(
        self, held: Held, subset: Sequence[int], seen: Array, which: Array
    ) -> tuple[tuple[Array, Array], Imputer, Held]:
        """The fitted weights of a subset of views, an imputer of numbered rows with cross-fitted
        weights for what is hidden, and `held` with such numbers. Other values are at the mean.

        seen, which (m,): the number of observed views, and the stratum of the folds
        """
        model, fold = self.model, cross_fitting.folds(which, held.groups)
        means, rows, places, moments, folds = [], [], [], [], []
        for v, view in enumerate(model.views_):
            means.append(view.scaler.mean[None])  # the last row
            rows.append(held.rows_of(v) if v in subset else np.zeros(len(held.inputs), bool))
            places.append(np.where(rows[v], np.cumsum(rows[v]) - 1, -1))
        failed = self._fail if isinstance(held, HoldOut) else None
        predicted = model.predicted(held.inputs, rows, failed)
        for v in subset:
            truth, scaler = held.truth_of(v), model.views_[v].scaler
            about = truth.seen(0).numpy(), scaler.mean, scaler.unit, seen[rows[v]]
            moments.append(Moments.of(truth.x[0].numpy(), predicted[v], *about))
            folds.append(fold[rows[v]])
        for v, weights in zip(subset, cross_fitted(moments, folds), strict=True):
            means[v] = np.concatenate([model.mixed(v, predicted[v], weights), means[v]])

        def decode(batch: Views, draws: int) -> list[Array]:
            chosen, index = [], batch.index.numpy()
            for mean, place in zip(means, places, strict=True):
                chosen.append(mean[place[index]][None])
            return model.around(chosen, batch, draws)

        numbered = replace(held.inputs, index=torch.arange(len(held.inputs)))
        imputer = replace(self.imputer(), decode=decode)
        return fitted_weights(moments), imputer, replace(held, inputs=numbered)


def _reason(error: Exception) -> str:
    """A one-line description of an error."""
    return " ".join(f"{type(error).__name__}: {error}".split())


# Experts that are fitted in parallel, each in its own process, by joblib.


def pays(data: Views) -> bool:
    """Whether data are large enough to fit in other processes.

    Never with a single thread: this process is then one of many, or was limited to one core.
    """
    numbers = len(data) * sum(map(math.prod, data.shapes))
    return torch.get_num_threads() > 1 and numbers >= LARGE_DATA


def fit_expert(
    model: Estimator, data: Views, held: HoldOut | None, context: FitContext
) -> Estimator:
    """Fit a model, independently of earlier fits; raise if it imputes infinite values."""
    torch.manual_seed(context.seed)
    with progress.task(type(model).__name__):
        model.learn(data, held, context)
    finite(partial(model.decode, data[:1]))
    return model


def finite(predict: Callable[[], list[Array]]) -> list[Array]:
    """Predict, and refuse values that are not finite."""
    values = predict()
    for part in values:
        if not np.isfinite(part).all():
            raise FloatingPointError("it imputes values that are not finite")
    return values


def _fit_in_process(
    model: Estimator, data: Views, held: HoldOut | None, context: FitContext
) -> Estimator | Exception:
    with backends.ignore_sigint():
        return attempted(partial(fit_expert, model, data, held, context))


# Weights of several predictions of a view, learned where the truth is known.


class Moments(NamedTuple):
    """Moments of the m hidden instances of one view: gram (m, E, E), cross (m, E), and how many
    views of their samples are observed, seen (m,)."""

    gram: Array
    cross: Array
    seen: Array

    @classmethod
    def of(
        cls, truth: Array, predicted: Array, observed: Array, mean: Array, std: Array, seen: Array
    ) -> Moments:
        """Compute the moments in batches of rows.

        truth, observed (m, *shape); predicted (E, m, *shape); mean, std (*shape,); seen (m,)
        """
        size = max(1, PREDICTED_NUMBERS // max(predicted[:, :1].size, 1))
        unit, grams, crosses = np.where(std > 0, std, 1.0), [], []
        for rows in slices(max(len(truth), 1), size):
            use = observed[rows] & (std > 0)
            use = use.reshape(len(use), std.size)
            t = np.where(use, ((truth[rows] - mean) / unit).reshape(use.shape), 0.0)
            e = ((predicted[:, rows] - mean) / unit).reshape(len(predicted), *use.shape)
            e, count = np.where(use, e, 0.0), np.maximum(use.sum(1), 1)
            gram = np.einsum("kmd,lmd->mkl", e, e, optimize=True)
            cross = np.einsum("kmd,md->mk", e, t, optimize=True)
            grams.append(gram / count[:, None, None])
            crosses.append(cross / count[:, None])
        return cls(np.concatenate(grams), np.concatenate(crosses), seen)


def fitted_weights(views: Sequence[Moments]) -> tuple[Array, Array]:
    """The weights per view, (L, E), and per view and number of other observed views, (L, L, E)."""
    experts = views[0].cross.shape[1]
    gram, cross = np.zeros((experts, experts)), np.zeros(experts)
    for view in views:
        gram += view.gram.sum(0)
        cross += view.cross.sum(0)
    common = minimum(gram, cross)
    weights = np.tile(common, (len(views), 1))  # those of views without instances
    by_seen = np.tile(common, (len(views), len(views), 1))
    for v, view in enumerate(views):
        if not len(view.gram):
            continue
        prior = PRIOR_INSTANCES * view.gram.mean(0)
        cross = view.cross.sum(0) + prior @ common
        by_seen[v] = weights[v] = minimum(view.gram.sum(0) + prior, cross)
        for n in np.intersect1d(view.seen, range(len(views))):
            at = view.seen == n
            cross = view.cross[at].sum(0) + prior @ weights[v]
            by_seen[v, n] = minimum(view.gram[at].sum(0) + prior, cross)
    return weights, by_seen


def cross_fitted(views: Sequence[Moments], folds: Sequence[Array]) -> list[Array]:
    """Cross-fitted weights of every instance: L arrays (m_v, E), each learned from other folds.

    folds: the fold of each instance, L arrays (m_v,)
    """
    results = [*map(np.zeros_like, map(attrgetter("cross"), views))]
    for k in np.unique(np.concatenate(folds)):
        rest = []
        for (gram, cross, seen), fold in zip(views, folds, strict=True):
            rest.append(Moments(gram[fold != k], cross[fold != k], seen[fold != k]))
        by_seen = fitted_weights(rest)[1]
        for v, fold in enumerate(folds):
            results[v][fold == k] = by_seen[v, views[v].seen[fold == k]]
    return results


def minimum(gram: Array, cross: Array) -> Array:
    """argmin of w' gram w - 2 cross' w over w >= 0, sum w <= 1."""
    size = float(np.trace(gram))
    if size <= 0:
        return np.zeros(len(cross))
    value, axes = np.linalg.eigh(gram / size + 1e-9 * np.eye(len(cross)))
    root = np.sqrt(np.maximum(value, 1e-12))
    a, b = root[:, None] * axes.T, (axes / root).T @ (cross / size)  # |a w - b|^2
    w: Array = nnls(a, b)[0]
    if w.sum() > 1:
        ones = np.full((1, len(w)), SUM_WEIGHT)
        w = nnls(np.vstack([a, ones]), np.append(b, SUM_WEIGHT))[0]
        w /= w.sum()
    return w
