"""The base class of methods: settings, abstract parts, and learned attributes."""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin

from vedute.data.frames import ViewSpec
from vedute.data.holdout import HoldOut
from vedute.data.scaling import Scaler
from vedute.data.views import Views
from vedute.estimators import card, settings
from vedute.estimators.context import FitContext
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.settings import choice, estimator, setting

Array = NDArray[Any]
log = logging.getLogger("vedute")


@dataclass
class Ability:
    """An ability of a method, derived from its class, never from a flag that could disagree."""

    answer: Callable[[Any], bool]

    def __get__(self, _: object, cls: type[Any]) -> bool:
        return self.answer(cls)


class WarmStart:
    """A method that can start from the imputations of another one."""

    warm_start: Any = None  # the other method, fitted


class Learned:
    """The attributes that `fit` sets in every method."""

    views_: list[FittedView]
    embedding_: Array
    labels_: NDArray[np.int64]
    centers_: Array
    n_clusters_: int
    stability_: dict[str, Array]
    hidden_: dict[str, Array]
    hidden_predictions_: dict[str, Array]
    r2_: dict[str, float]
    r2_in_units_: dict[str, float]
    learned_again_: bool
    fitted_on_: dict[str, Any]
    n_features_in_: int
    seed_: int

    attributes: ClassVar[dict[str, str]] = {  # name -> meaning
        "embedding_": "(n, D) array, the representation of the training samples.",
        "labels_": "(n,) array, their clusters, if `n_clusters` was given.",
        "n_clusters_": "The number of clusters.",
        "stability_": 'The curve that `n_clusters="auto"` read the number from.',
        "r2_": "By view, the share of hidden views that was explained, on the scale of its kind "
        "(methods that impute).",
        "r2_in_units_": "This share in your units, such as counts instead of their logarithms.",
        "hidden_": "Per hidden view: row, view, error, error of mean-fill (methods that impute).",
        "hidden_predictions_": "A subset of these as predicted before any refit; "
        "empty if none were hidden.",
        "learned_again_": "Whether it was then refitted with them.",
        "views_": "One record per view: name, shape, kind, likelihood, scaler, calibration.",
        "fitted_on_": "Numbers of samples, in total and by views, and the version of vedute.",
    }

    def results(self) -> dict[str, Any]:
        """Return the learned attributes by name; empty before `fit`."""
        return {k: v for k, v in vars(self).items() if k.endswith("_")}

    @property
    def specs(self) -> list[ViewSpec]:
        """The specifications of the fitted views."""
        return [*map(attrgetter("spec"), self.views_)]

    @property
    def scalers(self) -> list[Scaler]:
        """The scalers of the fitted views."""
        return [*map(attrgetter("scaler"), self.views_)]


@estimator
class Method(Learned, ClusterMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """The interface of methods, in scaled units: `learn`, `embed` and optional abilities. Settings
    are fields, declared once; learned attributes end in an underscore."""

    n_clusters: int | Literal["auto"] | None = setting(
        None, 'Number of clusters; "auto": the most stable one; None: no clusters.', at_least=1
    )
    kinds: str | Sequence[str] | dict[str, str] = setting(
        "auto",
        "The kind of values in a view: `numbers`, `positive`, `counts`, `log_counts`, `text`, "
        "`proportions`, `ordinal`, `binary`, `categories`, `tokens`, `images`, or `auto`, which "
        "depends on the values: for all views, one each, or by name. It decides scaling and "
        "likelihood.",
    )
    likelihood: str | Sequence[str] | dict[str, str] = setting(
        "auto",
        "`normal`, `laplace`, `bernoulli`, `categorical`, `tokens`, or `auto`, which depends on "
        "the kind: for all views, one each, or by name.",
    )
    scaling: str = choice(
        ("auto", "standard", "minmax", "none"), "Scaling of features; `auto` depends on the kind."
    )
    columns: dict[str, Any] | None = setting(None, 'Splits a table into views: `{"a": slice(50)}`.')
    random_state: int | np.random.Generator | np.random.RandomState | ModuleType | None = setting(
        None, "The seed of all random numbers, for reproducible results."
    )
    verbose: bool | None = setting(
        None,
        "None: a bar in a terminal, a line in a notebook, else a line in the log per minute. True: "
        "loss terms and hidden error in the log, printed if no handler is set. False: nothing.",
    )

    paper: ClassVar[str] = ""  # authors, venue and year: "Gao & Pu, ICLR 2025"
    two_views: ClassVar[bool] = False  # pairs only: see `pairs`
    most_views: ClassVar[int | None] = None  # with more it is slow, and Blend leaves it out
    absent: ClassVar[str] = ""  # its treatment of missing views, in a few words
    streams: ClassVar[bool] = False  # learns from a store in batches, without all rows in memory
    unseen: ClassVar[str] = "yes"  # its treatment of rows that it was not fitted on
    shrinks: ClassVar[bool] = True  # may hidden views shrink its values towards the mean?
    keeps_samples: ClassVar[bool] = False  # is its model made of samples?
    baseline: ClassVar[str] = ""  # its name as a simple baseline
    relearns: ClassVar[bool] = False  # refits with the hidden views after calibration

    generative = Ability(lambda cls: cls.decode is not Method.decode)  # can it impute?
    soft = Ability(lambda cls: cls.soft_labels is not Method.soft_labels)  # own clusters?

    @abstractmethod
    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        """Fit on `data`; `held` has hidden views for evaluation during the fit."""

    @abstractmethod
    def embed(self, data: Views) -> Array:
        """Return the representation, (n, D) float32."""

    def embed_std(self, data: Views) -> Array:
        """Return the standard deviation of the posterior, (n, D), if the method has one."""
        raise TypeError(
            f"{type(self).__name__} has no posterior of the representation, and so no standard "
            "deviation; MVP and the VAEs have one"
        )

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        """Return expected values of all views, L arrays (draws or 1, n, *shape_v)."""
        raise TypeError(self.cannot("impute"))

    def soft_labels(self, data: Views) -> Array | None:
        """Return soft labels (n, K) if the method has its own clustering rule, else None."""
        return None

    def check_settings(self) -> None:
        """Reject settings by their declarations; methods add checks of combinations."""
        for name in settings.declared(self):
            if problem := settings.problem_with(type(self), name, getattr(self, name)):
                raise ValueError(problem)

    def check(self, raw: Views) -> None:
        """Reject data that the method cannot learn from, beyond the checks for all methods."""

    def hides(self) -> bool:
        """Return whether observed views are held out during the fit."""
        return self.generative

    def learns_again(self, rows: int) -> bool:
        """Return whether to refit with the hidden views after calibration."""
        return self.relearns

    def modules(self) -> dict[str, torch.nn.Module]:
        """Return the networks, which are saved by their weights."""
        return {}

    def table_numbers(self) -> int:
        """Return the numbers per row of the largest table in decoding."""
        return max([1, *(part.table_numbers() for part in self.parts())])

    def parts(self) -> Sequence[Method]:
        """Return the inner methods, the leading one first."""
        return []

    def trained(self) -> Method:
        """Return the method whose checkpoint, callbacks and scaling apply: this, or one inside."""
        return self

    def leading(self) -> Method:
        """Return the method whose settings decide the length of training."""
        return self

    def decided(self) -> dict[str, Any]:
        """Return the settings that data or device have decided, not the user."""
        passed = self.get_params()
        used = getattr(self, "settings_", {}).items()
        return {k: v for k, v in used if k not in passed or v != passed[k]}

    def cannot(self, verb: str) -> str:
        """Say why the method does not support a verb."""
        return f"{type(self).__name__} cannot {verb}; `vedute list methods` shows which methods can"

    def log(self, message: str) -> None:
        """Log to the logger `vedute`, shown if `verbose`."""
        if self.verbose and not logging.getLogger().handlers and not log.handlers:
            log.addHandler(logging.StreamHandler(sys.stdout))
            log.setLevel(logging.INFO)
        log.log(logging.INFO if self.verbose else logging.DEBUG, message)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the call that makes it and, once fitted, the settings that data decided."""
        call = super().__repr__(N_CHAR_MAX)
        used = ", ".join(f"{k}={v!r}" for k, v in self.decided().items())
        return f"{call}\n# used: {used}" if used else call

    def _repr_html_inner(self) -> str:
        """Return the diagram of scikit-learn followed by a summary, for notebooks."""
        return f"{super()._repr_html_inner()}{card.summary(self)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags
