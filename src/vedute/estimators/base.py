"""The scikit-learn face of every method: the verbs, for any pattern of missing views."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from vedute.data import checks, fill, scaling
from vedute.data.views import Views
from vedute.estimators import saving
from vedute.estimators.learner import UNSCALED, Array, Learner

LOOSE = ("device", "verbose", "checkpoint")  # settings that may change after fit


class Interval(NamedTuple):
    """Imputed objects of the user's type; all three equal where observed."""

    mean: Any
    lower: Any
    upper: Any


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(ClusterMixin, TransformerMixin, Learner):  # type: ignore[misc]
    """Learn from incomplete multi-view data.

    X is anything `Views.of` takes: a list or dict of arrays or DataFrames, one table (cut into
    views by `columns`), or a Views. Every verb takes any pattern of missing views, row by row.
    """

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

        With `interval=0.9`: (mean, lower, upper) of such objects. Of three or more categories
        there is no interval: all three are the choice.
        """
        if interval is not None and not (isinstance(interval, Real) and 0 < interval < 1):
            raise ValueError(f"interval is a probability between 0 and 1, got {interval!r}")
        data = self._enter(X)
        means, stds = self._teller().values(data, spread=interval is not None)
        if interval is None:
            return self._leave(X, data, self._chosen(means))
        width = float(norm.ppf(0.5 + interval / 2))
        ends = []
        for sign in (0.0, -width, width):
            values = [m + sign * s for m, s in zip(means, stds, strict=True)]
            bounds = zip(self.kinds_, values, strict=True)
            ends.append([v.clip(0, 1) if k in UNSCALED else v for k, v in bounds])
        mean = self._chosen(ends[0])
        lower = [np.minimum(low, m) for low, m in zip(ends[1], mean, strict=True)]
        upper = [np.maximum(high, m) for high, m in zip(ends[2], mean, strict=True)]
        for spec, m, low, high in zip(self.views_, mean, lower, upper, strict=True):
            for block in fill.choices(spec):
                low[:, block] = high[:, block] = m[:, block]
        return Interval(*(self._leave(X, data, values) for values in (mean, lower, upper)))

    def sample_imputations(self, X: Any, m: int) -> list[Any]:
        """m draws of X with its missing views and holes filled in, decoder noise included."""
        check_count("m", m)
        data = self._enter(X)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed_)
            draws = [self._chosen(self._teller().draw(data)) for _ in range(m)]
            return [self._leave(X, data, draw) for draw in draws]

    def generate(self, n: int) -> dict[str, Any]:
        """n new samples from the model, noise included, in your units: name -> array (n, *shape),
        or frame where frames were fitted."""
        raise TypeError(self._cannot("generate"))

    def reconstruct(self, X: Any) -> Any:
        """Every view of every sample as the model tells it, observed or not."""
        data = self._enter(X)
        values = self._chosen(self._teller().values(data)[0])
        return self._leave(X, data, values, everything=True)

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
        """Write model.json and its arrays into `folder`, whole or not at all; see `vedute.load`."""
        check_is_fitted(self, "embedding_")
        saving.write(Path(folder), self.saved())

    def saved(self) -> saving.Saved:
        """What `save` writes."""
        modules = self._modules()
        learned = {k: v for k, v in vars(self).items() if k.endswith("_") and k not in modules}
        for name, module in modules.items():
            learned[name] = {
                k: v.cpu().contiguous().numpy() for k, v in module.state_dict().items()
            }
        method = type(self).__module__.rpartition(".")[2]
        params = self.get_params(deep=False)
        fitted = getattr(self, "_fitted_with", {})  # what was set since then is for the next fit
        params |= {k: v for k, v in fitted.items() if k not in LOOSE}
        if "random_state" in params and not isinstance(params["random_state"], (int, type(None))):
            params["random_state"] = self.seed_  # what a generator gave
        return saving.Saved(method, params, learned)

    def restore(self, learned: dict[str, Any]) -> Self:
        """Take what `save` wrote; used by `vedute.load`."""
        for name, value in learned.items():
            setattr(self, name, value)
        for name, module in self._modules().items():
            saving.load_weights(module, learned[name])
            setattr(self, name, module.eval())
        self._fitted_with = self.get_params(deep=False)
        return self

    # The way in and out.

    def _enter(self, X: Any) -> Views:
        """Through the door, compared with the fitted views, scaled."""
        check_is_fitted(self, "views_")
        raw = Views.of(X, columns=self.columns, like=self.views_, dtype=torch.float64)
        self._check_values(raw)
        data = scaling.transform(self.scalers_, raw)
        for v, name in enumerate(data.names):
            far = ~data.x[v].flatten(1).isfinite().all(1) if data.x[v].is_floating_point() else None
            if far is not None and bool(far.any()):
                rows = np.arange(len(data)) if data.ids is None else data.ids
                told = checks.some(rows[far.numpy()])
                raise ValueError(
                    f"view {name!r}: {told} values too far from those fitted on; correct their "
                    "units, or make them NaN"
                )
        for name, x, words in zip(data.names, data.x, self.words_, strict=True):
            strange = x[(x < 0) | (x >= words)] if words else x[:0].flatten()
            if len(strange):
                told = f"view {name!r} holds the token {int(strange[0])}"
                raise ValueError(f"{told}; fitted on those below {words}: encode others as known")
        return data

    def _chosen(self, values: list[Array]) -> list[Array]:
        """Probabilities as a choice, where whole numbers or booleans were fitted."""
        return [
            fill.one_hot(a) if kind == "categorical" and fill.whole(spec) else a
            for a, kind, spec in zip(values, self.kinds_, self.views_, strict=True)
        ]

    def _leave(self, X: Any, data: Views, values: list[Array], everything: bool = False) -> Any:
        """Values in the user's units, written where X has none (or everywhere)."""
        absent = [
            np.ones(v.shape, bool) if everything else ~scaling.entries_seen(data, i).numpy()
            for i, v in enumerate(values)
        ]
        return fill.fill(X, values, absent, self.views_, self.columns)


def check_count(name: str, n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ValueError(f"{name} is a whole number, got {n!r}")
    if n < 1:
        raise ValueError(f"{name} must be positive, got {n}")
