"""Blend: several methods impute, and hidden views say how far to trust each, view by view.

With p_e what expert e imputes in a view and m the mean of the view,

    value = m + sum over e of w_e (p_e - m),     w_e >= 0,   sum of w_e <= 1

The weights of a view, for each number of observed views, minimise the error on a tenth of the
observed views, which are hidden from all experts (see `_weights`); what is not trusted goes to the
mean. Noise and spread are measured there, too, with weights that come from the other instances.
Single missing entries of a view that is observed have weights of their own, learned in the same way
on single entries that are hidden. Then experts that can learn again with everything do.

Representation, clusters, draws and new samples are those of the first expert, MVP; the regressions
of kernel fill start from what it infers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from vedute import methods
from vedute.data.holdout import FEWEST_HIDDEN, HiddenEntries, HoldOut
from vedute.data.mapped import Stack
from vedute.data.views import Views
from vedute.estimators import cross_fitting, saving, settings
from vedute.estimators.abilities import Ability, WarmStart
from vedute.estimators.base import Estimator
from vedute.estimators.context import FitContext
from vedute.estimators.imputation import Imputer
from vedute.estimators.learner import Learner
from vedute.estimators.method import Array
from vedute.estimators.settings import estimator, setting
from vedute.methods import _apart, _weights
from vedute.training.history import Record

EXPERTS = ("mvp", "lowrank_fill", "kernel_fill", "gaussian_fill")
# Blend's alone:
OWN = ("n_clusters", "kinds", "likelihood", "scaling", "columns", "random_state", "callbacks")
DEFAULTS = {"kernel_fill": {"n_rounds": 2}}  # of experts inside Blend: from a good start
HANDED = ("verbose", "device", "checkpoint_minutes")  # to experts that have them


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
        None, "A folder to go on from after an interruption; needs `random_state`."
    )
    checkpoint_minutes: float = setting(5.0, "Time between two checkpoints.", at_least=0)
    callbacks: Sequence[Callable[[Record], object]] | None = setting(
        None, "Functions that are called with every record of experts that train; not saved."
    )

    attributes: ClassVar = {
        "weights_": "By view, how far each expert is trusted.",
        "by_seen_": "The same where 0 to L - 1 other views are observed, (L, L, experts) array; "
        "this is what mixes.",
        "hole_weights_": "The same of single missing entries, of views that have some.",
        "experts_": "The fitted experts, by name; those in `left_out_` are not among them.",
        "left_out_": "Why experts were left out, by name: they failed, or there are many views.",
        "settings_": "Settings of experts as they were used: `mvp__lr` and the like.",
        "history_": "The training of the first expert.",
    }
    absent = "filled by several methods, weighted by hidden views"
    shrinks = False
    generates = Ability(lambda _: True)

    # Settings.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name; `deep`: those of the experts, too."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name in self._known_experts() if deep else ():
            cls = methods.find(name)
            given = {k: v for k, v in self.given(name).items() if k in settings.declared(cls)}
            inside = cls(**given).get_params(deep=False)
            params |= {f"{name}__{k}": v for k, v in inside.items() if k not in OWN}
        return params

    def set_params(self, **params: Any) -> Self:
        """Also of experts, by `mvp__latent_dim` and the like."""
        nested = {k: v for k, v in params.items() if "__" in k}
        super().set_params(**{k: v for k, v in params.items() if k not in nested})
        if nested:
            self.expert_settings = {**(self.expert_settings or {}), **nested}
            self._check_experts()
        return self

    def _known_experts(self) -> list[str]:
        """Those with settings; what is wrong is said by `fit`, as scikit-learn has it."""
        given = self.expert_settings
        readable = isinstance(self.experts, Sequence) and (
            given is None or isinstance(given, Mapping)
        )
        return [name for name in self.experts if name in methods.available()] if readable else []

    def given(self, name: str) -> dict[str, Any]:
        """What the user set for an expert, or Blend."""
        parts = {str(k).partition("__"): v for k, v in (self.expert_settings or {}).items()}
        given = {k: v for (expert, _, k), v in parts.items() if expert == name}
        return DEFAULTS.get(name, {}) | given

    def check_settings(self) -> None:
        super().check_settings()
        self._check_experts()

    def _check_experts(self) -> None:
        if not self.experts or len(set(self.experts)) < len(self.experts):
            raise ValueError(f"experts names one method or more, each once, got {self.experts}")
        for name in self.experts:
            cls = methods.find(name)
            if cls is Blend or not cls.generative or cls.two_views or cls.soft:
                raise ValueError(f"{name} cannot be an expert of Blend: it does not impute")
        for key, value in (self.expert_settings or {}).items():
            name, _, setting_name = str(key).partition("__")
            if name not in self.experts:
                known = ", ".join(self.experts)
                raise ValueError(f"{key!r} is a setting of no expert; experts are {known}")
            cls = methods.find(name)
            if setting_name in OWN or setting_name not in settings.declared(cls):
                raise ValueError(f"{key!r}: {cls.__name__} inside Blend has no such setting")
            problem = settings.problem_with(cls, setting_name, value)
            if problem:
                raise ValueError(f"{key}: {problem}")

    # What the experts impute, mixed.

    @property
    def learner(self) -> BlendLearner:
        """How it is fitted, and how data reach it."""
        return BlendLearner(self)

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        self.learner.teach([*self.experts_], data, held, context)

    def used(self, data: Views) -> tuple[str, ...]:
        """The experts for these data: of images the first alone, since the others see them as
        tables of pixels."""
        return self.experts[:1] if any(len(s) > 1 for s in data.shapes) else self.experts

    def slow(self, names: Sequence[str], n_views: int) -> dict[str, str]:
        """Experts that take too long with so many views, and why; never all of them, nor one that
        the user has settings for."""
        asked = {str(key).partition("__")[0] for key in self.expert_settings or {}}
        slow = {k: r for k, r in too_slow(names, n_views).items() if k not in asked}
        return slow if len(slow) < len(names) else {}

    def expert(self, name: str) -> Estimator:
        """An expert that has learned nothing yet, in the units of Blend."""
        model = methods.find(name)(**self.given(name))
        known = model.get_params(deep=False)
        handed = {k: getattr(self, k) for k in HANDED if k in known and k not in self.given(name)}
        seed = None if self.random_state is None else self.seed_
        model.set_params(**handed, random_state=seed)
        model.views_, model.n_features_in_ = self.views_, self.n_features_in_
        model.seed_ = self.seed_
        return model

    def linked(self, name: str) -> Estimator:
        """A copy of an expert, of which what fails does no harm to the expert. Its regressions
        start from what the first expert infers, or, where that was left out, from a matrix of low
        rank, as they do beside words, which cannot be regressed on."""
        model, first = copy(self.experts_[name]), self.experts_.get(self.experts[0])
        if isinstance(model, WarmStart) and name != self.experts[0]:
            words = any(v.likelihood.text for v in self.views_)
            model.warm_start = None if words else first
        return model

    @property
    def first(self) -> Estimator:
        """The expert that represents, clusters and draws."""
        return next(iter(self.experts_.values()))

    def predicted(
        self, data: Views, decoded: Callable[[str, Views], list[Array] | None] | None = None
    ) -> list[Array]:
        """The predictions of all experts, L arrays (E, n, *shape_v); decoded: those of one, by its
        name, None where it is left out."""
        stacks = [Stack(len(self.experts_)) for _ in self.views_]
        for name in [*self.experts_]:
            values = (decoded or self.decoded)(name, data)
            for stack, value in zip(stacks, values, strict=True) if values is not None else ():
                stack.add(value)
        return [s.array[: len(self.experts_)] for s in stacks]

    def decoded(self, name: str, data: Views) -> list[Array]:
        """The predictions of an expert."""
        return self.experts_[name].learner.imputer().decoded(data)

    def mixed(self, v: int, predicted: Array, weights: Array) -> Array:
        """The weighted predictions of view v: predicted (E, n, *shape), weights (n, E) ->
        (n, *shape)."""
        view = self.views_[v]
        if view.likelihood.text:  # words have no mean
            return np.asarray(predicted[0])
        mean = view.scaler.mean
        each = weights.T.reshape(*weights.T.shape, *[1] * mean.ndim)
        total = np.zeros(predicted.shape[1:])
        for w, p in zip(each, predicted, strict=True):
            off = p - mean
            off *= w  # in place: there may be many
            total += off
        total += mean
        return total

    def around(self, means: list[Array], data: Views, draws: int) -> list[Array]:
        """Draws of the first expert, with the mixed values (1, n, *shape_v) as their means."""
        if draws:
            drawn, centers = self.first.decode(data, draws), self.first.decode(data)
            means = [m + (d - c) for m, d, c in zip(means, drawn, centers, strict=True)]
        return [self._possible(v, m) for v, m in enumerate(means)]

    def _possible(self, v: int, values: Array) -> Array:
        """Probabilities stay such."""
        likelihood = self.views_[v].likelihood
        if likelihood.scaled or likelihood.text:
            return np.asarray(values, np.float32)
        values = values.clip(*likelihood.bounds)
        shares = values.sum(-1, keepdims=True) if likelihood.shares else 1.0
        return np.asarray(values / np.maximum(shares, 1e-12), np.float32)

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        each = enumerate(self.predicted(data))
        mixed = [self._mixed_by_entry(v, p, data)[None] for v, p in each]
        return self.around(mixed, data, draws)

    def _mixed_by_entry(self, v: int, predicted: Array, data: Views) -> Array:
        """The weighted predictions of view v, with other weights where there are holes."""
        mixed, holes = self.mixed(v, predicted, self.weights_for(v, data)), data.holes[v]
        own = self.hole_weights_.get(self.views_[v].name)
        if holes is None or own is None:
            return mixed
        same = np.tile([*own.values()], (len(data), 1))
        return np.where(holes.numpy(), self.mixed(v, predicted, same), mixed)

    def weights_for(self, v: int, data: Views) -> Array:
        """The weights of the experts for view v in each row, (n, E)."""
        others = data.mask.sum(1) - data.mask[:, v].long()
        return np.asarray(self.by_seen_[v][others.numpy()])

    def embed(self, data: Views) -> Array:
        return self.first.embed(data)

    def embed_std(self, data: Views) -> Array:
        return self.first.embed_std(data)

    def generate(self, n: int, random_state: Any = None) -> dict[str, Any]:
        """n new samples from the first expert; see there."""
        return self.first.generate(n, random_state)

    # Saving.

    def parts(self) -> list[Estimator]:
        return list(getattr(self, "experts_", {}).values())

    def leading(self) -> Estimator:
        return methods.find(self.experts[0])(**self.given(self.experts[0]))

    def saved(self) -> saving.Saved:
        """What `save` writes: experts are dicts of what they learned; their views are Blend's."""
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
            self.experts_[name] = self.linked(name)
        return self


class BlendLearner(Learner):
    """The learner of Blend: experts learn without the same hidden views, which then weigh them."""

    model: Blend

    def learn(self, data: Views, context: FitContext) -> None:
        model = self.model
        hidden = self.choose_hidden(data, context, 1)
        held = None if hidden is None else self.held_out(data, hidden, context.groups)
        few = hidden is None or int(hidden.sum()) < FEWEST_HIDDEN
        some = data if hidden is None else data.hide(hidden)
        fewer = self.without_entries(some)
        used = model.used(data)
        model.left_out_ = model.slow(used, len(data.x))
        model.experts_ = {k: model.expert(k) for k in used if k not in model.left_out_}
        model.hole_weights_ = {}
        for expert in model.experts_.values():
            expert.learner.check(fewer)
        model.learn(fewer, None if few else held, context)
        self.calibrate(data, held, context)
        if fewer is not some:
            self.calibrate_holes(HiddenEntries.of(fewer, some, context.groups))
        for expert in model.experts_.values():
            expert.views_ = model.views_
        again = [k for k, m in model.experts_.items() if few or m.learns_again(len(data))]
        model.learned_again_ = bool(again) and fewer is not data and not context.interrupted
        if model.learned_again_:
            self.teach(again, data, None, context.second())
        model.history_ = getattr(model.first, "history_", [])
        model.settings_ = {
            f"{name}__{k}": v
            for name, expert in model.experts_.items()
            for k, v in getattr(expert, "settings_", {}).items()
        }
        if model.left_out_:
            warnings.warn(f"Blend goes on without {self._left_out()}", stacklevel=5)

    def teach(
        self, names: list[str], data: Views, held: HoldOut | None, context: FitContext
    ) -> None:
        """Let experts learn; on large data, those that start from no other do so in processes of
        their own."""
        model, again = self.model, context.number > 1
        models = {k: model.linked(k) for k in names}
        inner = {k: context.child(m, k, context.number) for k, m in models.items()}
        alone = [k for k in names if _apart.pays(data) and self._may_leave(k, models[k], inner[k])]
        apart = _apart.Apart([(models[k], data, held, inner[k]) for k in alone])
        for name in [k for k in names if k not in alone]:
            outcome = _apart.teach(model.linked(name), data, held, inner[name])
            context.interrupted |= inner[name].interrupted
            self._keep(name, outcome, again)
        for name, outcome in zip(alone, apart.learned(), strict=True):
            self._keep(name, outcome, again)

    def _keep(self, name: str, outcome: Estimator | Exception, again: bool) -> None:
        """The fitted expert; where it failed to learn again, that of before."""
        if isinstance(outcome, Estimator):
            self.model.experts_[name] = outcome
        elif again:
            text = f"{name} failed to learn again with all views, and stays as it was"
            warnings.warn(f"{text} ({_reason(outcome)})", stacklevel=7)
        else:
            self._fail(name, outcome)

    def _fail(self, name: str, error: Exception) -> None:
        """Go on without an expert; the last one's error is that of Blend."""
        if len(self.model.experts_) == 1 and not self.model.left_out_:
            raise error
        self._leave_out(name, _reason(error))
        if not self.model.experts_:
            raise ValueError(f"no expert of Blend could learn: {self._left_out()}") from error

    def _leave_out(self, name: str, reason: str) -> None:
        """`fit` warns of it at the end."""
        self.model.left_out_[name] = reason
        del self.model.experts_[name]

    def _left_out(self) -> str:
        return "; ".join(f"{name} ({reason})" for name, reason in self.model.left_out_.items())

    def _may_leave(self, name: str, model: Estimator, context: FitContext) -> bool:
        """Whether an expert may learn in another process: not the first, and none that starts from
        it; callbacks are those of this process."""
        first = name == next(iter(self.model.experts_))
        return not (first or getattr(model, "warm_start", None) or context.callbacks)

    def calibrate(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        """Find weights, spread and noise on the hidden views; a weight never meets the instances
        that it comes from."""
        if held is None:  # the first alone
            first = np.eye(1, len(self.model.experts_)).repeat(len(self.model.views_), 0)
            self._set_weights(_weights.Weights(first, np.repeat(first[:, None], len(first), 1)))
            super().calibrate(data, None, context)
        else:
            predicted = self.model.predicted(held.inputs, self._attempted)
            moments = [self._moments(held, v, p) for v, p in enumerate(predicted)]
            self._set_weights(_weights.weights(moments))
            crossed = _weights.cross_fitted(moments, self._folds(held))
            mixed = self._cross_fitted(held, predicted, crossed)
            del predicted  # large
            numbered = replace(held.inputs, index=torch.arange(len(held.inputs)))
            self.measure(self._imputer_of(mixed), replace(held, inputs=numbered))

    def calibrate_holes(self, held: HiddenEntries) -> None:
        """Find the same on single hidden entries."""
        model = self.model
        some = [v for v in held.views if not model.views_[v].likelihood.text]
        if not some:
            return
        predicted = model.predicted(held.inputs)
        moments = [self._entry_moments(held, v, predicted[v]) for v in some]
        for v, w in zip(some, _weights.weights(moments).views, strict=True):
            model.hole_weights_[model.views_[v].name] = self._by_name(w)
        fold = cross_fitting.folds(np.zeros(len(held.inputs), int), held.groups)
        rows = [held.of_view(v)[0] for v in some]
        crossed = _weights.cross_fitted(moments, [fold[r] for r in rows])
        mixed = [p[:1] for p in predicted]  # used where entries are hidden
        for v, r, w in zip(some, rows, crossed, strict=True):
            mixed[v] = mixed[v].copy()
            mixed[v][0, r] = model.mixed(v, predicted[v][:, r], w)
        numbered = replace(held.inputs, index=torch.arange(len(held.inputs)))
        imputer = self._imputer_of(mixed)
        model.views_ = imputer.calibrated_at_holes(replace(held, inputs=numbered), model.shrinks)

    def _entry_moments(self, held: HiddenEntries, v: int, predicted: Array) -> _weights.Moments:
        (rows, truth, there), scaler = held.of_view(v), self.model.views_[v].scaler
        alike = np.zeros(len(rows), int)  # few entries: no weights by the number of views
        return _weights.Moments.of(
            truth, predicted[:, rows], there, scaler.mean, scaler.unit, alike
        )

    def _imputer_of(self, mixed: list[Array]) -> Imputer:
        """An imputer of rows that are numbered, with known values as their means."""

        def decode(rows: Views, draws: int) -> list[Array]:
            return self.model.around([m[:, rows.index.numpy()] for m in mixed], rows, draws)

        return replace(self.imputer(), decode=decode)

    def _set_weights(self, weights: _weights.Weights) -> None:
        self.model.by_seen_ = weights.by_seen
        each = zip(self.model.views_, weights.views, strict=True)
        self.model.weights_ = {view.name: self._by_name(row) for view, row in each}

    def _by_name(self, weights: Array) -> dict[str, float]:
        """The weights (E,) of the experts."""
        return {name: float(w) for name, w in zip(self.model.experts_, weights, strict=True)}

    def _moments(self, held: HoldOut, v: int, predicted: Array) -> _weights.Moments:
        rows, scaler = held.hidden[:, v].numpy(), self.model.views_[v].scaler
        truth, there = held.truth.x[v].numpy()[rows], held.truth.seen(v).numpy()[rows]
        seen = held.inputs.mask.sum(1).numpy()[rows]
        return _weights.Moments.of(truth, predicted[:, rows], there, scaler.mean, scaler.unit, seen)

    def _folds(self, held: HoldOut) -> list[Array]:
        """The folds of the hidden instances of each view, L arrays (m_v,)."""
        fold = cross_fitting.folds(held.hidden.int().argmax(1).numpy(), held.groups)
        return [fold[rows.numpy()] for rows in held.hidden.T]

    def _cross_fitted(
        self, held: HoldOut, predicted: list[Array], crossed: list[Array]
    ) -> list[Array]:
        """What is imputed in all views, each hidden instance without its own help: L arrays
        (1, m, *shape_v)."""
        mixed = []
        for v, p in enumerate(predicted):
            w = self.model.weights_for(v, held.inputs)
            w[held.hidden[:, v].numpy()] = crossed[v]
            mixed.append(self.model.mixed(v, p, w)[None])
        return mixed

    def _attempted(self, name: str, data: Views) -> list[Array] | None:
        """The predictions of an expert; None where it fails, and is left out from now on."""
        model, first = self.model, self.model.experts_.get(self.model.experts[0])
        start = getattr(model.experts_[name], "warm_start", None)
        outcome: list[Array] | Exception = RuntimeError(f"it starts from {model.experts[0]}")
        if start is None or start is first:
            outcome = _apart.attempted(lambda: _apart.finite(model.decoded(name, data)))
        if not isinstance(outcome, Exception):
            return outcome
        self._fail(name, outcome)
        return None


def too_slow(names: Sequence[str], n_views: int) -> dict[str, str]:
    """The methods among these that take many minutes with so many views, and why."""
    most = {name: methods.find(name).most_views for name in names}
    return {
        name: f"{n_views} views: with more than {limit} it takes many minutes and gigabytes; a "
        f"setting such as {name}__steps=240 keeps it"
        for name, limit in most.items()
        if limit is not None and n_views > limit
    }


def _reason(error: Exception) -> str:
    """The error, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
