"""The scikit-learn interface of every method: the verbs."""

from __future__ import annotations

import inspect
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from vedute.data.entry import Entry, Filling
from vedute.data.tables import as_table
from vedute.data.views import Views
from vedute.estimators import card, categories, explanation, filling, saving, settings
from vedute.estimators.fitted_view import scaled
from vedute.estimators.learner import Learner
from vedute.estimators.method import Ability, Array, Method
from vedute.estimators.settings import LOOSE, UNSAVED, estimator
from vedute.nn import noise
from vedute.scale import dask_frames, ranks
from vedute.training import checkpoints

SCALES = ("units", "kind")  # of imputed values
SPLITTERS = ("_fit_and_score", "_fit_and_predict")  # of scikit-learn


@estimator
class Estimator(Method):
    """Learn from incomplete multi-view data.

    X is anything `Views.of` takes: a list or dict of arrays or DataFrames, one table (cut into
    views by `columns`), or a Views. Every verb takes any pattern of missing views, row by row."""

    verbs: ClassVar[tuple[str, ...]] = (
        *("fit", "transform", "predict", "predict_proba", "fit_predict", "fit_transform"),
        *("impute", "impute_proba", "sample_imputations", "explain", "reconstruct", "generate"),
        "score",
        *("save", "get_feature_names_out", "get_params", "set_params", "set_output"),
    )
    keep_checkpoint = False  # after fit, until `forget_checkpoint`

    generates = Ability(lambda cls: cls.generate is not Estimator.generate)  # new samples?

    @property
    def learner(self) -> Learner:
        """The learner, which fits the method and passes data to it."""
        return Learner(self)

    def __dir__(self) -> list[str]:
        """List settings, verbs and learned attributes, for completion."""
        results = [k for k in settings.attributes(type(self)) if hasattr(self, k)]
        return [*settings.declared(self), *(k for k in self.verbs if hasattr(self, k)), *results]

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn from X; `y` is ignored: no label ever reaches training.

        groups: one per sample, if samples belong together (visits of one patient). A view that is
        held out for early stopping and evaluation is then hidden in all samples of a group."""
        caller = inspect.currentframe()
        while caller and str(caller.f_globals.get("__name__")).startswith("vedute."):
            caller = caller.f_back
        split = caller is not None and caller.f_code.co_name in SPLITTERS
        if split and isinstance(X, (list, tuple)) and isinstance(as_table(X), (list, tuple)):
            raise TypeError(
                "cross-validation splits a list of views as if each view were a sample; "
                "pass vedute.Views.of(X)"
            )
        before, self.__dict__ = self.__dict__, dict(self.__dict__)
        for name in before:
            if name.endswith("_"):
                delattr(self, name)
        try:
            self.learner.fit(X, groups)
            self._fitted_with = self.get_params(deep=False)
            if not self.keep_checkpoint:
                self.forget_checkpoint()
        except BaseException:
            self.__dict__ = before  # with what was learned before
            raise
        return self

    def forget_checkpoint(self) -> None:
        """Remove the checkpoints that a later `fit` could resume from."""
        folder = getattr(self, "checkpoint", None)
        if folder is not None and ranks.rank() == 0:
            checkpoints.clear(Path(folder))

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Return the representation of each sample, (n, D) float32.

        With `return_std=True`: (mean, standard deviation) of its posterior, given the observed
        views, for methods that have one: MVP, the VAEs, DVIMC, and Blend, whose representation is
        that of its first expert."""
        if dask_frames.are_given(X) and not return_std:
            return dask_frames.results(self, X, "transform")
        learner, views = self.learner, self.learner.entry(X).views
        verbs = [self.embed, *([self.embed_std] if return_std else [])]
        results: list[Any] = [learner.by_scaled_rows(verb, views) for verb in verbs]
        config = getattr(self, "_sklearn_output_config", {})
        if config.get("transform") == "pandas":
            names = self.get_feature_names_out()
            results = [pd.DataFrame(a, index=views.ids, columns=names) for a in results]
        return tuple(results) if return_std else results[0]

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of each sample, (n,)."""
        if dask_frames.are_given(X):
            return dask_frames.results(self, X, "predict")  # type: ignore[no-any-return]
        learner = self.learner
        return np.array(learner.by_scaled_rows(learner.labels, learner.entry(X).views))

    @available_if(lambda self: self.soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return soft cluster labels (n, K), for methods that have them."""
        views = self.learner.entry(X).views
        return self.learner.by_scaled_rows(lambda d: cast(Array, self.soft_labels(d)), views)

    def fit_predict(self, X: Any, y: Any = None, groups: Any = None) -> NDArray[np.int64]:
        """Fit and return the clusters of the training samples."""
        self.fit(X, groups=groups)
        self.learner.require_clusters()
        return self.labels_

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Fit and return the representation of the training samples."""
        return self.fit(X, groups=groups).transform(X)

    def impute(self, X: Any, interval: float | None = None, scale: str = "units") -> Any:
        """Return X with missing views and holes filled in, in your units and dtypes.

        With `interval=0.9`: (mean, lower, upper) of such objects; the intervals are calibrated to
        cover nine of ten values of hidden views. Three or more categories have no order, hence no
        interval: lower and upper are empty where they are missing; see `impute_proba` and
        `category_sets`.

        With `scale="kind"` views of counts, text and positive values are returned as floats on the
        scale that they were learned on, observed values included: for example log(1 + x) and its
        expected value, which is not the logarithm of the expected x. Other views are unaffected."""
        if scale not in SCALES:
            raise ValueError(f"scale is one of {', '.join(SCALES)}, got {scale!r}")
        if interval is not None and not (isinstance(interval, Real) and 0 < interval < 1):
            raise ValueError(f"interval is a probability between 0 and 1, got {interval!r}")
        if dask_frames.are_given(X):
            if scale != "units":
                raise ValueError(
                    "tables of Dask are imputed in units; for the scale of the kind map impute "
                    "over their partitions"
                )
            ends = dask_frames.impute(self, X, interval)
            return ends[0] if interval is None else filling.Interval(*ends)
        learner = self.learner
        entry = learner.entry(X)
        views, how = entry.views, (interval, scale)
        with learner.counting("imputing", views, len(views), "row"):
            if not views.on_disk:
                return filling.filled(learner.imputer(), entry, *how)
            pieces = map(learner.entry, views.pieces())
            parts = (filling.filled(learner.imputer(), piece, *how) for piece in pieces)
            return filling.on_disk(views, parts)

    def impute_proba(self, X: Any) -> dict[str, pd.DataFrame]:
        """Return the probability of each category for each sample, by view; an observed category
        has probability 1, the others 0.

        A one-hot view of three or more categories keeps its own columns. In other views columns are
        pairs (column, category), so that `["stage"]` has one column per stage; zeros and ones have
        the categories 0 and 1. Views without categories are left out."""
        entry = self.learner.entry(X)
        data = self.learner.scaled(entry)
        self.learner.imputer()  # rejects a method that does not impute
        if not any(map(categories.columns, self.views_)):
            raise ValueError(
                "no view holds categories, nor zeros and ones, so there are no probabilities; "
                "impute gives values"
            )
        p = self._probabilities(entry, data)
        return categories.frames(self.views_, p, entry.parts.rows)

    def _probabilities(self, entry: Entry, data: Views) -> categories.Probabilities:
        """Return those of all samples, passed raw and in scaled units."""
        with self.learner.counting("imputing", data, len(data), "row"):
            values = self.learner.imputer().values(data)[0]
        return categories.probabilities(self.views_, values, entry.views)

    def category_sets(self, X: Any, level: float = 0.9) -> dict[str, pd.DataFrame]:
        """Return the smallest sets of categories whose probabilities sum to at least `level`, by
        view: a frame with a row per sample and, for each column of categories, a tuple, the most
        likely category first. An observed category is the only one in its set."""
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"level is a probability between 0 and 1, got {level!r}")
        results = self.impute_proba(X)
        return {k: categories.smallest_sets(p, float(level)) for k, p in results.items()}

    def explain(self, X: Any) -> pd.DataFrame:
        """Measure how each observed view affects the imputed ones, by leaving out one in turn.

        The frame has one row per sample, missing view and observed view. `change` is the root mean
        square change of the imputed values of `missing` without the view `left_out`, in standard
        deviations of each feature (for text and counts, of the view). Without its only view a
        sample is imputed by the mean. `share` is the share of the changes of a missing view; shares
        sum to one, and are NaN where nothing changes. If two views are redundant, either can be
        left out, so both changes are small."""
        data = self.learner.scaled(X)
        with self.learner.counting("explaining", data, len(data.x), "view"):
            return explanation.explanation(self.learner.imputer(), data)

    def sample_imputations(self, X: Any, m: int, random_state: Any = None) -> list[Any]:
        """Return m draws of X with its missing views and holes filled in, decoder noise included.
        Draws are the same in every call, unless `random_state` is passed. Categories are drawn with
        the probabilities of `impute_proba`. The noise of numbers has the distribution of the
        likelihood, normal or Laplace, and the variance of errors at hidden views; unlike those of
        intervals, its tails are not calibrated."""
        check_count("m", m)
        entry = self.learner.entry(X)
        data = self.learner.scaled(entry)
        imputer = self.learner.imputer()
        with noise.seeded(self.learner.seed(random_state)):
            categorical = any(map(categories.columns, self.views_))
            p = self._probabilities(entry, data) if categorical else {}
            return [entry.filled(filling.drawn(imputer, data, p)) for _ in range(m)]

    def generate(self, n: int, random_state: Any = None) -> dict[str, Any]:
        """Draw n new samples from the model, noise included, in your units: name -> array
        (n, *shape), or frame if frames were fitted. Samples are the same in every call, unless
        `random_state` is passed."""
        raise TypeError(self.cannot("generate"))

    def reconstruct(self, X: Any) -> Any:
        """Return every view of every sample as the model decodes it, observed or not."""
        entry, imputer = self.learner.entry(X), self.learner.imputer()
        copy = Filling(entry, anew=range(len(self.views_)), floats=False)
        for batch in entry.views.batches(imputer.rows(imputer.draws_for())):
            means = imputer.values(scaled(self.views_, batch))[0]
            copy.add(batch, filling.chosen(self.views_, means))
        return copy.filled()

    def score(self, X: Any, y: Any = None) -> float:
        """Score predictions of views: 1 - error / error of mean imputation. Every observed view of
        every row that has two or more is left out in turn."""
        data = self.learner.scaled(X)
        if not self.generative:
            raise TypeError(self.cannot("be scored without labels"))
        error, base = explanation.left_out_errors(self.learner.imputer(), data)
        if base == 0.0:
            raise ValueError("score needs rows with two or more observed views; X has none")
        return 1.0 - error / base

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of the representation."""
        check_is_fitted(self, "embedding_")
        name = type(self).__name__.lower()
        return np.array([f"{name}{d}" for d in range(self.embedding_.shape[1])], dtype=object)

    def save(self, folder: str | Path) -> None:
        """Write model.json, its arrays and a readable model card into `folder`, atomically; see
        `vedute.load`."""
        check_is_fitted(self, "embedding_")
        saved = self.saved()
        saving.write(Path(folder), saved, lambda arrays: card.text(self, saved.params, arrays))

    def saved(self) -> saving.Saved:
        """Return the state that `save` writes."""
        modules = self.modules()
        learned = {k: v for k, v in self.results().items() if k not in modules}
        for name, module in modules.items():
            state = module.state_dict().items()
            learned[name] = {k: v.cpu().contiguous().numpy() for k, v in state}
        params = self.get_params(deep=False)
        fitted = getattr(self, "_fitted_with", {})  # later changes apply to the next fit
        params = saveable(params | {k: v for k, v in fitted.items() if k not in LOOSE})
        if "random_state" in params and not isinstance(params["random_state"], (int, type(None))):
            params["random_state"] = self.seed_  # drawn from a generator
        return saving.Saved(saving.name_of(type(self)), params, learned)

    def restore(self, learned: dict[str, Any]) -> Self:
        """Restore the state that `save` wrote; used by `vedute.load`."""
        saving.check_learned(type(self), learned)
        for name, value in learned.items():
            setattr(self, name, value)
        for name, module in self.modules().items():
            saving.load_weights(module, learned[name])
            setattr(self, name, module.eval())
        self._fitted_with = self.get_params(deep=False)
        return self


def saveable(params: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that are written to files."""
    return {k: v for k, v in params.items() if k not in UNSAVED}


def check_count(name: str, n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ValueError(f"{name} is a whole number, got {n!r}")
    if n < 1:
        raise ValueError(f"{name} must be positive, got {n}")
