"""The scikit-learn face of every method: the door, scaling, the verbs, k-means, saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from vedute import clusters, layout, likelihoods, saving, scaling
from vedute.holdout import FEWEST, HoldOut, choose
from vedute.telling import Teller, calibrate_views
from vedute.views import Views, read_views

Array = NDArray[Any]
UNSCALED = ("bernoulli", "categorical")


class Interval(NamedTuple):
    """Imputed objects of the user's type; all three equal where observed."""

    mean: Any
    lower: Any
    upper: Any


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(ClusterMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Learn from incomplete multi-view data.

    X is anything `Views.of` takes: a list or dict of arrays or DataFrames, one table (cut into
    views by `columns`), or a Views. Every verb takes any pattern of missing views, row by row.
    """

    n_clusters: int | str | None = None  # "auto": the most stable number, see `clusters`
    likelihood: str | Sequence[str] | dict[str, str] = "auto"
    scaling: str = "standard"
    columns: dict[str, Any] | None = None
    random_state: int | None = None
    verbose: bool = False

    generative: ClassVar[bool] = True  # can it impute?
    shrinks: ClassVar[bool] = True  # may hidden views shrink its values towards the mean?
    soft: ClassVar[bool] = False  # has it a clustering rule of its own?
    relearns: ClassVar[bool] = False  # learns again with the hidden views once they have told
    on_epoch: ClassVar[Any] = None  # called with each record of the history while training

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    # What a method provides, in scaled units.

    @abstractmethod
    def _learn(self, data: Views, held: HoldOut | None) -> None:
        """Fit on `data`; views hidden from it may be compared with, in `held`."""

    @abstractmethod
    def _embed(self, data: Views) -> Array:
        """The representation, (n, D) float32."""

    def _decode(self, data: Views, draws: int = 0) -> list[Array]:
        """Expected values of all views, L arrays (draws or 1, n, *shape_v)."""
        raise TypeError(self._cannot("impute"))

    def _soft_labels(self, data: Views) -> Array | None:
        """(n, K) where the method has a clustering rule of its own."""
        return None

    def _hides(self) -> bool:
        """Whether some observed views are hidden while learning."""
        return self.generative

    def _modules(self) -> dict[str, torch.nn.Module]:
        """Networks, saved by their weights."""
        return {}

    # The verbs.

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from X; `y` is ignored: no label ever reaches training."""
        raw, self.views_ = read_views(X, columns=self.columns, dtype=torch.float64)
        self._check(raw)
        raw = raw.bare()
        self.n_features_in_ = sum(int(np.prod(s)) for s in raw.shapes)
        with torch.random.fork_rng():
            self.seed_ = _seed(self.random_state)
            torch.manual_seed(self.seed_)
            self.kinds_ = self._likelihoods(raw)
            self.scalers_ = [
                scaling.fit(self._scaling(v), x, scaling.entries_seen(raw, v))
                for v, x in enumerate(raw.x)
            ]
            data = scaling.transform(self.scalers_, raw)
            self._learn_and_calibrate(data)
            self.embedding_ = self._embed(data)
            self._cluster(data)
        return self

    def transform(self, X: Any) -> Any:
        """The representation of each sample, (n, D) float32."""
        data = self._enter(X)
        z = self._embed(data)
        config = getattr(self, "_sklearn_output_config", {})
        if config.get("transform") == "pandas":
            return pd.DataFrame(z, index=data.ids, columns=self.get_feature_names_out())
        return z

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each sample, (n,)."""
        return self._labels(self._enter(X))

    @available_if(lambda self: self.soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Soft cluster labels (n, K), for methods that have them."""
        soft = self._soft_labels(self._enter(X))
        assert soft is not None
        return soft

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and the clusters of the training samples."""
        self.fit(X)
        self._needs_clusters()
        return self.labels_

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and the representation of the training samples."""
        return self.fit(X).transform(X)

    def impute(self, X: Any, interval: float | None = None) -> Any:
        """X with missing views and holes filled in, in your units and dtypes.

        With `interval=0.9`: (mean, lower, upper) of such objects.
        """
        if interval is not None and not 0 < interval < 1:
            raise ValueError(f"interval is a probability between 0 and 1, got {interval}")
        data = self._enter(X)
        means, stds = self._teller().values(data, spread=interval is not None)
        if interval is None:
            return self._leave(X, data, means)
        width = float(norm.ppf(0.5 + interval / 2))
        ends = []
        for sign in (0.0, -width, width):
            values = [m + sign * s for m, s in zip(means, stds, strict=True)]
            bounds = zip(self.kinds_, values, strict=True)
            ends.append([v.clip(0, 1) if k in UNSCALED else v for k, v in bounds])
        return Interval(*(self._leave(X, data, values) for values in ends))

    def sample_imputations(self, X: Any, m: int) -> list[Any]:
        """m draws of X with its missing views and holes filled in, decoder noise included."""
        data = self._enter(X)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed_)
            return [self._leave(X, data, self._teller().draw(data)) for _ in range(m)]

    def generate(self, n: int) -> dict[str, Array]:
        """n new samples from the model, noise included: name -> (n, *shape), in your units."""
        raise TypeError(self._cannot("generate"))

    def reconstruct(self, X: Any) -> Any:
        """Every view of every sample as the model tells it, observed or not."""
        data = self._enter(X)
        return self._leave(X, data, self._teller().values(data)[0], everything=True)

    def score(self, X: Any, y: Any = None) -> float:
        """How well left-out views are told: 1 - error / error of mean-fill. Needs no labels.

        Every observed view of every row that has two or more is left out in turn.
        """
        data = self._enter(X)
        if not self.generative:
            raise TypeError(self._cannot("be scored without labels"))
        told, base = self._teller().left_out_errors(data)
        if base == 0.0:
            raise ValueError("score needs rows with two or more observed views; X has none")
        return 1.0 - told / base

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the representation."""
        check_is_fitted(self, "embedding_")
        name = type(self).__name__.lower()
        return np.array([f"{name}{d}" for d in range(self.embedding_.shape[1])], dtype=object)

    def save(self, folder: str | Path) -> None:
        """Write model.safetensors and model.json into `folder`; read by `vedute.load`."""
        check_is_fitted(self, "embedding_")
        modules = self._modules()
        learned = {k: v for k, v in vars(self).items() if k.endswith("_") and k not in modules}
        for name, module in modules.items():
            learned[name] = {k: v.cpu().numpy() for k, v in module.state_dict().items()}
        method = type(self).__module__.rpartition(".")[2]
        saving.write(Path(folder), saving.Saved(method, self.get_params(deep=False), learned))

    def restore(self, learned: dict[str, Any]) -> Self:
        """Take what `save` wrote; used by `vedute.load`."""
        for name, value in learned.items():
            setattr(self, name, value)
        for name, module in self._modules().items():
            saving.load_weights(module, learned[name])
            setattr(self, name, module.eval())
        return self

    # Inside.

    def _enter(self, X: Any) -> Views:
        """Through the door, compared with the fitted views, scaled."""
        check_is_fitted(self, "views_")
        raw = Views.of(X, columns=self.columns, like=self.views_, dtype=torch.float64)
        return scaling.transform(self.scalers_, raw)

    def _leave(self, X: Any, data: Views, values: list[Array], everything: bool = False) -> Any:
        """Values in the user's units, written where X has none (or everywhere)."""
        absent = [
            np.ones(v.shape, bool) if everything else ~scaling.entries_seen(data, i).numpy()
            for i, v in enumerate(values)
        ]
        return layout.fill(X, values, absent, self.views_, self.columns)

    def _check(self, raw: Views) -> None:
        for name, seen in zip(raw.names, raw.mask.any(0), strict=True):
            if not seen:
                raise ValueError(f"view {name!r} is missing for every sample; leave it out of fit")
        clusters.check(self.n_clusters, len(raw), self.soft)

    def _likelihoods(self, raw: Views) -> tuple[str, ...]:
        words = likelihoods.words(self.likelihood, raw.names)
        return tuple(
            likelihoods.guess(x, scaling.entries_seen(raw, v)) if w == "auto" else w
            for v, (w, x) in enumerate(zip(words, raw.x, strict=True))
        )

    def _scaling(self, v: int) -> str:
        return "none" if self.kinds_[v] in UNSCALED else self.scaling

    def _learn_and_calibrate(self, data: Views) -> None:
        fewest = 1 if self.relearns else FEWEST
        hidden = choose(data.mask, fewest) if self._hides() else None
        held = None if hidden is None else HoldOut.of(data, hidden, self.scalers_)
        if hidden is None and self._hides() and self.verbose:
            print("too few rows with two views to hide any: training for a fixed number of steps")
        self._learn(data if hidden is None else data.hide(hidden), held)
        if self.generative:
            self._calibrate(data, held)
        if self.relearns:
            self._learn(data, None)

    def _calibrate(self, data: Views, held: HoldOut | None) -> None:
        """On the hidden views; where there are none, on views left out of the training rows."""
        if held is None:
            out = choose(data.mask, fewest=1)
            none = torch.zeros_like(data.mask)
            held = HoldOut.of(data, none if out is None else out, self.scalers_)
        self.calibration_ = calibrate_views(self._decode, held, self.scalers_, self.shrinks)
        self.hidden_, self.r2_ = self._teller().hidden_results(held)

    def _teller(self) -> Teller:
        return Teller(self._decode, self.kinds_, self.scalers_, self.calibration_)

    def _cluster(self, data: Views) -> None:
        if self.n_clusters is None:
            return
        if self._soft_labels(data[:1]) is None:
            z, seed = self.embedding_, int(torch.randint(2**31 - 1, ()))
            self.n_clusters_, self.stability_ = clusters.choose(z, self.n_clusters, seed)
            self.centers_ = clusters.centers(z, self.n_clusters_, seed)
        self.labels_ = self._labels(data, self.embedding_)

    def _labels(self, data: Views, z: Array | None = None) -> NDArray[np.int64]:
        soft = self._soft_labels(data)
        if soft is not None:
            return np.asarray(soft.argmax(1), dtype=np.int64)
        self._needs_clusters()
        return clusters.nearest(self._embed(data) if z is None else z, self.centers_)

    def _needs_clusters(self) -> None:
        clusters.require(self.n_clusters, type(self).__name__)

    def _cannot(self, verb: str) -> str:
        return f"{type(self).__name__} cannot {verb}; `vedute list methods` shows which methods can"


def _seed(random_state: Any) -> int:
    """An integer from what scikit-learn accepts as random_state."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(random_state.randint(2**31 - 1))
