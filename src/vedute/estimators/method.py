"""What a method is: settings, what it implements, and what is learned."""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
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
from vedute.estimators import settings
from vedute.estimators.abilities import Ability
from vedute.estimators.context import FitContext
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.learned import learned as learned_html
from vedute.estimators.settings import choice, estimator, setting

Array = NDArray[Any]
log = logging.getLogger("vedute")


class Learned:
    """The attributes that `fit` sets, in every method, and how they are shown."""

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
        "r2_in_units_": "The same in your units, such as counts in place of their logarithms.",
        "hidden_": "Per hidden view: row, view, error, error of mean-fill (methods that impute).",
        "hidden_predictions_": "Some of these as predicted before they were ever learned from; "
        "empty where none were hidden.",
        "learned_again_": "Whether it learned again, with them, after that.",
        "views_": "One record per view: name, shape, kind, likelihood, scaler, calibration.",
        "fitted_on_": "Number of samples, how many had which views, and the version of vedute.",
    }

    def results(self) -> dict[str, Any]:
        """All that `fit` has set, by name; empty before."""
        return {k: v for k, v in vars(self).items() if k.endswith("_")}

    @property
    def specs(self) -> list[ViewSpec]:
        """What the fitted views looked like."""
        return [view.spec for view in self.views_]

    @property
    def scalers(self) -> list[Scaler]:
        """How each fitted view is scaled."""
        return [view.scaler for view in self.views_]


@estimator
class Method(Learned, ClusterMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What a file in `methods` implements, in scaled units: `learn` and `embed`, and what else it
    is able to do.

    Settings are fields, declared once; what is learned ends in an underscore.
    """

    n_clusters: int | Literal["auto"] | None = setting(
        None, 'How many clusters; "auto" takes the most stable number, None finds none.', at_least=1
    )
    kinds: str | Sequence[str] | dict[str, str] = setting(
        "auto",
        "What views hold: `numbers`, `positive`, `counts`, `log_counts`, `text`, `proportions`, "
        "`ordinal`, `binary`, `categories`, `tokens`, `images`, or `auto`, which looks at the "
        "values: for all views, one each, or by name. Scaling and likelihood follow from it.",
    )
    likelihood: str | Sequence[str] | dict[str, str] = setting(
        "auto",
        "`normal`, `laplace`, `bernoulli`, `categorical`, `tokens`, or `auto`, which goes by the "
        "kind: for all views, one each, or by name.",
    )
    scaling: str = choice(
        ("auto", "standard", "minmax", "none"),
        "How each feature is scaled; `auto` goes by the kind of its view.",
    )
    columns: dict[str, Any] | None = setting(None, 'Cuts a table into views: `{"a": slice(50)}`.')
    random_state: int | np.random.Generator | np.random.RandomState | ModuleType | None = setting(
        None, "Same seed, same result."
    )
    verbose: bool | None = setting(
        None,
        "None: a bar in a terminal, a line in a notebook, else a line in the log a minute. True: "
        "loss terms and hidden error as lines of the log, printed where no handler is set. False: "
        "nothing.",
    )

    paper: ClassVar[str] = ""  # its authors, where it appeared and when: "Gao & Pu, ICLR 2025"
    two_views: ClassVar[bool] = False  # pairs only: see `pairs`
    most_views: ClassVar[int | None] = None  # with more it takes long, and Blend leaves it out
    absent: ClassVar[str] = ""  # what it makes of missing views, in a few words
    streams: ClassVar[bool] = False  # learns from a store piece by piece, not from all rows at once
    unseen: ClassVar[str] = "yes"  # how it treats rows that it was not fitted on
    shrinks: ClassVar[bool] = True  # may hidden views shrink its values towards the mean?
    keeps_samples: ClassVar[bool] = False  # is its model made of samples?
    baseline: ClassVar[str] = ""  # its name as a simple baseline, which others are compared with
    relearns: ClassVar[bool] = False  # learns again with the hidden views once these were used

    generative = Ability(lambda cls: cls.decode is not Method.decode)  # can it impute?
    soft = Ability(lambda cls: cls.soft_labels is not Method.soft_labels)  # own clusters?

    @abstractmethod
    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        """Fit on `data`; views hidden from it may be compared with, in `held`."""

    @abstractmethod
    def embed(self, data: Views) -> Array:
        """The representation, (n, D) float32."""

    def embed_std(self, data: Views) -> Array:
        """The standard deviation of its posterior, (n, D), where the method has one."""
        raise TypeError(
            f"{type(self).__name__} has no posterior of the representation, and so no standard "
            "deviation; MVP and the VAEs have one"
        )

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        """Expected values of all views, L arrays (draws or 1, n, *shape_v)."""
        raise TypeError(self.cannot("impute"))

    def soft_labels(self, data: Views) -> Array | None:
        """(n, K) where the method has a clustering rule of its own."""
        return None

    def check_settings(self) -> None:
        """Refuse settings by their declarations; methods add what two of them must agree on."""
        settings.check(self)

    def check(self, raw: Views) -> None:
        """Refuse data that the method cannot learn from, beside what is refused for all."""

    def hides(self) -> bool:
        """Whether some observed views are hidden while learning."""
        return self.generative

    def learns_again(self, rows: int) -> bool:
        """Whether to learn once more, with the hidden views, after calibration."""
        return self.relearns

    def modules(self) -> dict[str, torch.nn.Module]:
        """Networks, saved by their weights."""
        return {}

    def table_numbers(self) -> int:
        """How many numbers a row takes in the largest table that decoding makes."""
        return max([1, *(part.table_numbers() for part in self.parts())])

    def parts(self) -> Sequence[Method]:
        """The methods inside this one, the leading one first."""
        return []

    def leading(self) -> Method:
        """The method whose settings say how long training takes."""
        return self

    def decided(self) -> dict[str, Any]:
        """Settings that data or device have decided, not the user."""
        passed = self.get_params()
        used = getattr(self, "settings_", {}).items()
        return {k: v for k, v in used if k not in passed or v != passed[k]}

    def cannot(self, verb: str) -> str:
        """Why a verb is refused."""
        return f"{type(self).__name__} cannot {verb}; `vedute list methods` shows which methods can"

    def log(self, message: str) -> None:
        """Log to the logger `vedute`, which is shown where `verbose`."""
        if self.verbose and not logging.getLogger().handlers and not log.handlers:
            log.addHandler(logging.StreamHandler(sys.stdout))
            log.setLevel(logging.INFO)
        log.log(logging.INFO if self.verbose else logging.DEBUG, message)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The call that makes it, and once it is fitted what it used where that says nothing."""
        call = super().__repr__(N_CHAR_MAX)
        used = ", ".join(f"{k}={v!r}" for k, v in self.decided().items())
        return f"{call}\n# used: {used}" if used else call

    def _repr_html_inner(self) -> str:
        """The diagram of scikit-learn, for notebooks, and below it what was learned."""
        return f"{super()._repr_html_inner()}{learned_html(self)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags
