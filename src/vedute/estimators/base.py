"""The scikit-learn face of every method: settings, how a method learns, and the verbs."""

from __future__ import annotations

import logging
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from vedute.data import fill, together
from vedute.data.frames import ViewSpec
from vedute.data.groups import codes
from vedute.data.holdout import FEWEST, HiddenEntries, HoldOut, choose, hide_entries
from vedute.data.kinds import named as named_kinds
from vedute.data.scaling import Scaler
from vedute.data.sparse_view import dense, on_demand
from vedute.data.spool import Spool, spooled
from vedute.data.stack import stacked
from vedute.data.tables import as_table
from vedute.data.views import Entry, Filling, Views
from vedute.estimators import (
    card,
    categories,
    clustering,
    cross_fitting,
    dask_frames,
    panels,
    progress,
    saving,
    settings,
)
from vedute.estimators.abilities import Ability
from vedute.estimators.contributions import contributions
from vedute.estimators.digest import digest
from vedute.estimators.explanation import explanation
from vedute.estimators.fitted_view import FittedView, scaled
from vedute.estimators.imputation import Imputer, batch_rows
from vedute.estimators.learned import learned as learned_html
from vedute.estimators.settings import LOOSE, UNSAVED, choice, estimator, setting
from vedute.nn import likelihoods, noise
from vedute.training import checkpoints, ranks

Array = NDArray[Any]
log = logging.getLogger("vedute")
Fit = TypeVar("Fit", bound=Callable[..., Any])
OF_A_RANK = (*LOOSE, "random_state", "method", "expert_settings")  # or compared by their parts
SCALES = ("units", "kind")  # of what is imputed
BATCHES = 8  # that are scaled at a time
MANY = 5000  # rows, of which imputing and explaining show how far they are
SPLITTERS = ("_fit_and_score", "_fit_and_predict")  # of scikit-learn
LONELY = (
    "no sample has two views, so nothing says how views belong together; do the samples of "
    "different views have the same ids?"
)
ONE_VIEW = (
    "one frame is one view; to cut it, pass columns={'a': [...], 'b': [...]}, a dict of frames, or "
    "columns of two levels, the view above"
)


def whole(fit: Fit) -> Fit:
    """A fit that begins without what was learned before; after an error or an interruption the
    estimator is as it was."""

    @wraps(fit)
    def wrapped(self: Any, X: Any, y: Any = None, groups: Any = None) -> Any:
        before = self.__dict__
        try:
            self.__dict__ = {k: v for k, v in before.items() if not k.endswith("_")}
            return fit(self, X, y, groups)
        except BaseException:
            self.__dict__ = before
            raise

    return cast(Fit, wrapped)


class Interval(NamedTuple):
    """Imputed objects of the user's type; all three equal where observed."""

    mean: Any
    lower: Any
    upper: Any


@estimator
class Estimator(ClusterMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Learn from incomplete multi-view data.

    X is anything `Views.of` takes: a list or dict of arrays or DataFrames, one table (cut into
    views by `columns`), or a Views. Every verb takes any pattern of missing views, row by row.

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

    verbs: ClassVar[tuple[str, ...]] = (
        *("fit", "transform", "predict", "predict_proba", "fit_predict", "fit_transform"),
        *("impute", "impute_proba", "sample_imputations", "explain", "reconstruct", "generate"),
        "score",
        *("save", "get_feature_names_out", "get_params", "set_params", "set_output"),
    )
    attributes: ClassVar[dict[str, str]] = {  # learned by fit: name -> meaning
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
    paper: ClassVar[str] = ""  # its authors, where it appeared and when: "Gao & Pu, ICLR 2025"
    two_views: ClassVar[bool] = False  # pairs only: see `pairs`
    most_views: ClassVar[int | None] = None  # with more it takes long, and Blend leaves it out
    absent: ClassVar[str] = ""  # what it makes of missing views, in a few words
    streams: ClassVar[bool] = False  # learns from a store piece by piece, not from all rows at once
    unseen: ClassVar[str] = "yes"  # how it treats rows that it was not fitted on
    shrinks: ClassVar[bool] = True  # may hidden views shrink its values towards the mean?
    relearns: ClassVar[bool] = False  # learns again with the hidden views once these were used
    _groups: ClassVar[torch.Tensor | None] = None  # of the samples, during a fit that knows them
    keep_checkpoint: ClassVar[bool] = False  # after fit, until `forget_checkpoint`

    generative = Ability(lambda cls: cls._decode is not Estimator._decode)  # can it impute?
    generates = Ability(lambda cls: cls.generate is not Estimator.generate)  # new samples?
    soft = Ability(lambda cls: cls._soft_labels is not Estimator._soft_labels)  # own clusters?

    def __dir__(self) -> list[str]:
        """For completion: settings, verbs, and what was learned."""
        results = [k for k in settings.attributes(type(self)) if k in vars(self)]
        return [*settings.declared(self), *(k for k in self.verbs if hasattr(self, k)), *results]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The call that makes it, and once it is fitted what it used where that says nothing."""
        call = super().__repr__(N_CHAR_MAX)
        used = ", ".join(f"{k}={v!r}" for k, v in self._decided().items())
        return f"{call}\n# used: {used}" if used else call

    def _decided(self) -> dict[str, Any]:
        """Settings that data or device have decided, not the user."""
        passed = self.get_params()
        used = vars(self).get("settings_", {}).items()
        return {k: v for k, v in used if k not in passed or v != passed[k]}

    def _repr_html_inner(self) -> str:
        """For notebooks: scikit-learn's diagram, and below it what was learned."""
        return f"{super()._repr_html_inner()}{learned_html(self)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

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

    def _embed_std(self, data: Views) -> Array:
        """The standard deviation of its posterior, (n, D), where the method has one."""
        raise TypeError(
            f"{type(self).__name__} has no posterior of the representation, and so no standard "
            "deviation; MVP and the VAEs have one"
        )

    def _decode(self, data: Views, draws: int = 0) -> list[Array]:
        """Expected values of all views, L arrays (draws or 1, n, *shape_v)."""
        raise TypeError(self._cannot("impute"))

    def _soft_labels(self, data: Views) -> Array | None:
        """(n, K) where the method has a clustering rule of its own."""
        return None

    def _hides(self) -> bool:
        """Whether some observed views are hidden while learning."""
        return self.generative

    def _learns_again(self, rows: int) -> bool:
        """Whether to learn once more, with the hidden views, after calibration."""
        return self.relearns

    def _modules(self) -> dict[str, torch.nn.Module]:
        """Networks, saved by their weights."""
        return {}

    def _table_numbers(self) -> int:
        """How many numbers a row takes in the largest table that decoding makes."""
        return max([1, *(part._table_numbers() for part in self._parts())])

    def _parts(self) -> list[Estimator]:
        """The estimators inside this one, the leading one first."""
        return []

    def _trained(self) -> Estimator:
        """The one whose settings say how long training takes."""
        return self

    # Learning.

    @whole
    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn from X; `y` is ignored: no label ever reaches training.

        groups: one per sample, where samples belong together (visits of one patient). A view that
        is hidden to end training and to measure it is then hidden in all samples of a group.
        """
        check_not_split(X)
        raw = Entry.of(X, columns=self.columns, own=True).views
        if is_one_view(X, raw):
            log.warning(ONE_VIEW)
        known = None if groups is None else codes(groups, len(raw), raw.ids)
        raw = raw.bare()
        self._check(raw)
        self._check_ranks(raw, known)
        self._interrupted = False
        self.fitted_on_ = card.facts(raw)
        self.n_features_in_ = sum(int(np.prod(s)) for s in raw.shapes)
        self.seed_ = ranks.by_first(lambda: seed_of(self.random_state))
        # Gradients are needed, whatever a caller has set for inference.
        with noise.alone(), torch.inference_mode(False), torch.enable_grad():
            torch.manual_seed(self.seed_)
            self.views_ = self._fitted_views(raw)
            data = scaled(self.views_, raw)
            data = data if self.streams else data.in_memory()
            del raw  # which may be large
            self.__dict__["_groups"] = None if known is None else torch.from_numpy(known)
            try:
                with progress.shown(self.verbose), progress.task(type(self).__name__):
                    self._learn_and_calibrate(data)
            finally:
                del self.__dict__["_groups"]
            self.embedding_ = self._by_row(lambda d: clustering.finite(self._embed(d)), data)
            self._cluster(data)
        self._fitted_with = self.get_params(deep=False)
        lonely = len(data.names) > 1 and int(data.mask.sum(1).max()) < 2
        parts = together.components(data.mask, data.names)
        problem = LONELY if lonely else together.warning(parts)
        if problem is not None:
            warnings.warn(problem, stacklevel=3)
        if not self.keep_checkpoint:
            self.forget_checkpoint()
        return self

    def forget_checkpoint(self) -> None:
        """Remove what a later `fit` could go on from, if there is something."""
        if vars(self).get("checkpoint") is not None and ranks.rank() == 0:
            checkpoints.clear(Path(vars(self)["checkpoint"]))

    def _check_settings(self) -> None:
        """Refuse settings by their declarations; methods add what two of them must agree on."""
        settings.check(self)

    def _check(self, raw: Views) -> None:
        self._check_settings()
        if self.two_views and len(raw.x) != 2:
            name = type(self).__name__
            mend = f"BestPair({name}(...)) takes two of more" if len(raw.x) > 2 else "pass one more"
            raise ValueError(f"{name} takes two views, X has {len(raw.x)}; {mend}")
        for name, seen in zip(raw.names, raw.mask.any(0), strict=True):
            if not seen:
                raise ValueError(f"view {name!r} is missing for every sample; leave it out of fit")
        for v, spec in enumerate(raw.specs or ()):
            empty = None if raw.hole_parts[v] is None else ~raw.ever_seen(v)
            if empty is not None and empty.any():
                first = int(empty.flatten().nonzero()[0])
                plain = spec.columns is not None and len(spec.columns) == empty.numel()
                column = spec.columns[first] if plain and spec.columns is not None else first
                raise ValueError(
                    f"view {spec.name!r} has no finite value in column {column!r}; drop the column"
                )
        clustering.check(self.n_clusters, len(raw), self.soft)
        if self.soft:
            clustering.require(self.n_clusters, type(self).__name__)

    def _check_ranks(self, raw: Views, groups: Array | None) -> None:
        """Refuse several ranks that would not fit the same."""
        if ranks.size() == 1:
            return
        params = self.get_params().items()
        given = {k: v for k, v in params if k.rpartition("__")[2] not in OF_A_RANK}
        known = [raw.mask, *raw.parts, *raw.hole_parts]
        known += [] if groups is None else [torch.from_numpy(groups)]
        if not ranks.all_have(digest(given | {"views": raw.specs}, known)):
            raise ValueError(
                f"the ranks fit {type(self).__name__} with other settings, or on other data; "
                "every rank takes the same"
            )

    def _fitted_views(self, raw: Views) -> list[FittedView]:
        words = likelihoods.named(self.likelihood, raw.names), named_kinds(self.kinds, raw.names)
        views = panels.fitted(raw, *words, self._scaling())
        for view in views:
            self._log(view.sentence)
        return views

    def _scaling(self) -> str:
        return self.scaling

    def _learn_and_calibrate(self, data: Views) -> None:
        """Learn with some views hidden, let them say how far to trust what was learned, and where
        they did not also end the training, learn again with everything."""
        hidden = self._chosen_to_hide(data) if self._hides() else None
        few = self._hides() and hidden is None
        again = few or self._learns_again(len(data))
        if again:
            hidden = self._chosen_to_hide(data, 1)
        if few:
            rows = "rows with two views" if self._groups is None else "small groups with two views"
            self._log(f"too few {rows}: none is hidden to stop training early")
        held = None if hidden is None else self._held_out(data, hidden)
        some = data if hidden is None else data.hide(hidden)
        fewer = self._without_entries(some) if self._hides() else some
        entries = None if fewer is some else HiddenEntries.of(fewer, some, self._groups)
        again = again and fewer is not data
        self._learn(fewer, None if few else held)
        del some, fewer  # which may be large
        if self.generative:
            self._calibrate(data, held)
        if entries is not None:
            self._calibrate_holes(entries)
        self.learned_again_ = again and not self._interrupted
        if self.learned_again_:
            self._learn(data, None)

    def _without_entries(self, data: Views) -> Views:
        """The same with single entries hidden where views have holes, to see what is made of
        these; else `data` itself."""
        holed = any(data.share_of_holes(v) > 0 for v in range(len(data.x)))
        return hide_entries(data, self._scalers()) if holed else data

    def _calibrate_holes(self, held: HiddenEntries) -> None:
        self.views_ = self._imputer().calibrated_at_holes(held, self.shrinks)

    def _scalers(self) -> list[Scaler]:
        return [view.scaler for view in self.views_]

    def _chosen_to_hide(self, data: Views, fewest: int = FEWEST) -> torch.Tensor | None:
        return choose(data.mask, fewest, self.n_features_in_, self._groups, data.hole_parts)

    def _held_out(self, data: Views, hidden: torch.Tensor) -> HoldOut:
        return HoldOut.of(data, hidden, self._scalers(), self._groups)

    def _calibrate(self, data: Views, held: HoldOut | None) -> None:
        """On the hidden views; where there are none, on views left out of the training rows."""
        unseen = held is not None
        if held is None:
            out = self._chosen_to_hide(data, 1)
            held = self._held_out(data, torch.zeros_like(data.mask) if out is None else out)
        self.views_ = self._imputer().calibrated(held, self.shrinks)
        imputer = self._imputer()
        self.hidden_, self.r2_ = imputer.hidden_results(held)
        self.hidden_predictions_ = {}
        if unseen:
            found = cross_fitting.predictions(imputer, held, self.shrinks)
            self.hidden_predictions_ = found | contributions(imputer, held)
        self.r2_in_units_ = cross_fitting.r2_in_units(self.r2_, self.hidden_predictions_)

    def _imputer(self) -> Imputer:
        if not self.generative:
            raise TypeError(self._cannot("impute"))
        return Imputer(self._decode, self.views_, self._table_numbers())

    def _cluster(self, data: Views) -> None:
        if self.n_clusters is None:
            return
        if self._soft_labels(data[:1]) is not None:
            self.labels_ = np.array(self._by_row(self._labels, data))
            return
        z, seed = self.embedding_, noise.seed()
        self.n_clusters_, self.stability_ = clustering.choose(z, self.n_clusters, seed)
        self.centers_ = clustering.centers(z, self.n_clusters_, seed)
        self.labels_ = clustering.nearest(z, self.centers_)

    def _labels(self, data: Views, z: Array | None = None) -> NDArray[np.int64]:
        soft = self._soft_labels(data)
        if soft is not None:
            return np.asarray(soft.argmax(1), dtype=np.int64)
        self._needs_clusters()
        return clustering.nearest(self._embed(data) if z is None else z, self.centers_)

    def _by_row(self, f: Callable[[Views], Array], data: Views) -> Array:
        """What f makes of data, (n, ...), piece by piece; of data on the disk, on the disk."""
        if not data.on_disk:
            rows = BATCHES * batch_rows(self.n_features_in_)
            return stacked(len(data), map(f, data.batches(rows)))
        with self._counting("going through all rows", data, len(data), "row"):
            return spooled(_counted(f(part)) for part in data.pieces())

    def _scaled_by_row(self, f: Callable[[Views], Array], views: Views) -> Array:
        """The same of data that are scaled piece by piece."""
        return self._by_row(lambda part: f(scaled(self.views_, part)), views)

    def _log(self, message: str) -> None:
        """To the logger `vedute`; shown where `verbose`."""
        if self.verbose and not logging.getLogger().handlers and not log.handlers:
            log.addHandler(logging.StreamHandler(sys.stdout))
            log.setLevel(logging.INFO)
        log.log(logging.INFO if self.verbose else logging.DEBUG, message)

    @contextmanager
    def _counting(self, name: str, data: Views, total: int, unit: str) -> Iterator[None]:
        """While inside, it is shown how far this is, where rows are many."""
        verbose = self.verbose if len(data) >= MANY else False
        with progress.shown(verbose), progress.task(name, total, unit):
            yield

    def _needs_clusters(self) -> None:
        there = any(k in vars(self) for k in ("centers_", "labels_"))
        clustering.require(self.n_clusters if there else None, type(self).__name__)

    def _cannot(self, verb: str) -> str:
        return f"{type(self).__name__} cannot {verb}; `vedute list methods` shows which methods can"

    # The verbs.

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """The representation of each sample, (n, D) float32.

        With `return_std=True`: (mean, standard deviation) of its posterior, given the observed
        views, for methods that have one: MVP, the VAEs, DVIMC, and Blend, whose representation is
        that of its first expert.
        """
        if dask_frames.are_given(X) and not return_std:
            return dask_frames.transform(self, X)
        views = self._entry(X).views
        verbs = [self._embed, *([self._embed_std] if return_std else [])]
        found: list[Any] = [self._scaled_by_row(verb, views) for verb in verbs]
        config = getattr(self, "_sklearn_output_config", {})
        if config.get("transform") == "pandas":
            names = self.get_feature_names_out()
            found = [pd.DataFrame(a, index=views.ids, columns=names) for a in found]
        return tuple(found) if return_std else found[0]

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each sample, (n,)."""
        if dask_frames.are_given(X):
            return dask_frames.predict(self, X)  # type: ignore[no-any-return]
        return np.array(self._scaled_by_row(self._labels, self._entry(X).views))

    @available_if(lambda self: self.soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Soft cluster labels (n, K), for methods that have them."""
        views = self._entry(X).views
        return self._scaled_by_row(lambda data: cast(Array, self._soft_labels(data)), views)

    def fit_predict(self, X: Any, y: Any = None, groups: Any = None) -> NDArray[np.int64]:
        """Fit, and the clusters of the training samples."""
        self.fit(X, groups=groups)
        self._needs_clusters()
        return self.labels_

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Fit, and the representation of the training samples."""
        return self.fit(X, groups=groups).transform(X)

    def impute(self, X: Any, interval: float | None = None, scale: str = "units") -> Any:
        """X with missing views and holes filled in, in your units and dtypes.

        With `interval=0.9`: (mean, lower, upper) of such objects, the ends as far apart as hidden
        views needed to cover nine of ten values. Three or more categories have no order, hence no
        interval: lower and upper are empty where they are missing; see `impute_proba` and
        `category_sets`.

        With `scale="kind"` views of counts, text and positive values come as floats on the scale
        that they were learned on, observed values included: log(1 + x) and its expected value,
        say, which is not the logarithm of the expected x. Other views are as in units.
        """
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
            found = dask_frames.impute(self, X, interval)
            return found[0] if interval is None else Interval(*found)
        entry = self._entry(X)
        views = entry.views
        with self._counting("imputing", views, len(views), "row"):
            if not views.on_disk:
                return self._imputed(entry, interval, scale)
            parts = (self._entry(part) for part in views.pieces())
            return _on_disk(views, (self._imputed(part, interval, scale) for part in parts))

    def anew(self, scale: str, interval: bool = False) -> list[int]:
        """The views that are written as a whole: those whose values are others on this scale, and
        for the ends of an interval, those of whole numbers that have gaps there."""
        own = [v for v, view in enumerate(self.views_) if view.transformed and scale == "kind"]
        whole = [v for v in self.unordered() if fill.whole(self.views_[v].spec)]
        return own + whole if interval else own

    def unordered(self) -> dict[int, list[categories.Column]]:
        """Columns of three or more categories, which have no interval, by view."""
        each = {v: categories.unordered(view) for v, view in enumerate(self.views_)}
        return {v: columns for v, columns in each.items() if columns}

    def _imputed(self, entry: Entry, interval: float | None, scale: str) -> Any:
        """A copy of what was passed, filled batch by batch: values of all rows, in double
        precision, would be larger than the data."""
        anew, imputer, spread = self.anew(scale), self._imputer(), interval is not None
        views = [view.on_its_scale if anew else view for view in self.views_]
        imputer, unordered = replace(imputer, views=views), self.unordered()
        ends_anew = self.anew(scale, interval=True)
        copies = [Filling(entry.in_floats(anew))]
        if spread:
            copies += [
                Filling(entry.in_floats(ends_anew), with_gaps=[*unordered]) for _ in range(2)
            ]
        for batch in entry.views.batches(imputer.rows_of_values(spread)):
            data = scaled(self.views_, batch)
            means, stds = imputer.values(data, spread)
            if interval is None:
                ends = [self._chosen(means, views)]
            else:
                each = enumerate(zip(views, means, stds, strict=True))
                of_views = [self._ends(*view, data, v, float(interval)) for v, view in each]
                ends = [[*end] for end in zip(*of_views, strict=True)]
                for v, columns in unordered.items():
                    for end in ends[1:]:
                        end[v] = categories.emptied(end[v], columns)
            for copy, values in zip(copies, ends, strict=True):
                for v in copy.entry.anew:
                    values[v] = self._with_observed(v, values[v], batch, data)
                copy.add(values)
        found = [copy.filled() for copy in copies]
        return Interval(*found) if spread else found[0]

    def _with_observed(self, v: int, values: Array, raw: Views, data: Views) -> Array:
        """Values (n, *shape) of view v on the scale of its kind, where it is missing; observed
        ones elsewhere."""
        size = data.sizes[v] if data.sizes else None
        observed = self.views_[v].scaler.transformed(dense(raw.parts[v]).double(), size).numpy()
        return np.where(raw.seen(v).numpy(), observed, values)

    def _ends(
        self, view: FittedView, mean: Array, std: Array, data: Views, v: int, level: float
    ) -> Interval:
        """Of one view: mean, lower and upper end (n, *shape), as far as they are possible."""
        chosen, size = view.chosen(view.possible(mean)), data.size(v)
        reach = view.by_entry(lambda c: c.reach_of(level), data.holes[v])
        low, high = (view.scaler.quantile(mean, std, z, size) for z in (-reach, reach))
        lower = np.minimum(view.possible(low), chosen)
        upper = np.maximum(view.possible(high), chosen)
        return Interval(chosen, lower, upper)

    def impute_proba(self, X: Any) -> dict[str, pd.DataFrame]:
        """The probability of each category for each sample, by view; views without categories are
        left out. What was observed is as given: 1 for its category, 0 for the others.

        A view of three or more categories that came one-hot has its own columns. In other views
        columns are pairs (column, category), so that `["stage"]` has one column per stage; zeros
        and ones have the categories 0 and 1. The categories of a column sum to one.
        """
        entry, data = self._read(X)
        self._imputer()  # refuses a method that does not impute
        if not any(map(categories.columns, self.views_)):
            raise ValueError(
                "no view holds categories, nor zeros and ones, so there are no probabilities; "
                "impute gives values"
            )
        index = entry.views.ids if entry.parts is None else entry.parts.rows
        found = self._probabilities(entry, data)
        return categories.frames(self.views_, found, index)

    def _probabilities(self, entry: Entry, data: Views) -> categories.Probabilities:
        with self._counting("imputing", data, len(data), "row"):
            values = self._imputer().values(data)[0]
        return categories.probabilities(self.views_, values, entry.views)

    def category_sets(self, X: Any, level: float = 0.9) -> dict[str, pd.DataFrame]:
        """The smallest set of categories whose probabilities reach `level` together, by view: a
        frame with a row per sample and, for each column of categories, a tuple, the likeliest
        category first. What was observed is alone in its set.
        """
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"level is a probability between 0 and 1, got {level!r}")
        found = self.impute_proba(X)
        return {k: categories.smallest_sets(p, float(level)) for k, p in found.items()}

    def explain(self, X: Any) -> pd.DataFrame:
        """Which observed views decided what is imputed, by leaving out one at a time.

        One row per sample, missing view and observed view. `change`: by how much the imputed values
        of `missing` change without the view `left_out`, root mean square, in standard deviations of
        each feature (of text and counts, in that of the view). Without its only view a sample is
        imputed by the mean. `share`: of the changes of a missing view, which sum to one; NaN where
        nothing changes. Where two views say the same, either can be left out: both changes are
        small.
        """
        data = self._enter(X)
        with self._counting("explaining", data, len(data.x), "view"):
            return explanation(self._imputer(), data)

    def sample_imputations(self, X: Any, m: int, random_state: Any = None) -> list[Any]:
        """m draws of X with its missing views and holes filled in, decoder noise included: the
        same every time, unless `random_state` asks for others. Each column of categories is drawn
        as often as `impute_proba` says. Noise of numbers is that of the likelihood,
        normal or Laplace, with the variance of errors at hidden views; its tails are not measured
        there, as those of intervals are."""
        check_count("m", m)
        entry, data = self._read(X)
        with noise.seeded(self._seed(random_state)):
            words = any(map(categories.columns, self.views_))
            p = self._probabilities(entry, data) if words else {}
            return [entry.filled(self._drawn(data, p)) for _ in range(m)]

    def _drawn(self, data: Views, p: categories.Probabilities) -> list[Array]:
        """A draw of every view, (n, *shape_v); of each column of categories one, as likely as p
        says."""
        values = self._chosen(self._imputer().draw(data))
        for v, columns in p.items():
            values[v] = categories.drawn(values[v], columns)
        return values

    def _seed(self, random_state: Any) -> int:
        """Of draws."""
        return self.seed_ if random_state is None else seed_of(random_state)

    def generate(self, n: int, random_state: Any = None) -> dict[str, Any]:
        """n new samples from the model, noise included, in your units: name -> array (n, *shape),
        or frame where frames were fitted. The same every time, unless `random_state` asks for
        others."""
        raise TypeError(self._cannot("generate"))

    def reconstruct(self, X: Any) -> Any:
        """Every view of every sample as the model decodes it, observed or not."""
        entry, imputer = self._entry(X), self._imputer()
        copy = Filling(entry, everywhere=True)
        for batch in entry.views.batches(imputer.rows_of_values()):
            copy.add(self._chosen(imputer.values(scaled(self.views_, batch))[0]))
        return copy.filled()

    def score(self, X: Any, y: Any = None) -> float:
        """How well left-out views are predicted: 1 - error / error of mean-fill. Needs no labels.

        Every observed view of every row that has two or more is left out in turn.
        """
        data = self._enter(X)
        if not self.generative:
            raise TypeError(self._cannot("be scored without labels"))
        error, base = self._imputer().left_out_errors(data)
        if base == 0.0:
            raise ValueError("score needs rows with two or more observed views; X has none")
        return 1.0 - error / base

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the representation."""
        check_is_fitted(self, "embedding_")
        name = type(self).__name__.lower()
        return np.array([f"{name}{d}" for d in range(self.embedding_.shape[1])], dtype=object)

    def save(self, folder: str | Path) -> None:
        """Write model.json, its arrays and a model card for people into `folder`, whole or not at
        all; see `vedute.load`."""
        check_is_fitted(self, "embedding_")
        saved = self.saved()
        saving.write(Path(folder), saved, lambda arrays: card.text(self, saved.params, arrays))

    def saved(self) -> saving.Saved:
        """What `save` writes."""
        modules = self._modules()
        learned = {k: v for k, v in vars(self).items() if k.endswith("_") and k not in modules}
        for name, module in modules.items():
            learned[name] = {
                k: v.cpu().contiguous().numpy() for k, v in module.state_dict().items()
            }
        params = self.get_params(deep=False)
        fitted = getattr(self, "_fitted_with", {})  # what was set since then is for the next fit
        params |= {k: v for k, v in fitted.items() if k not in LOOSE}
        params = saveable(params)
        if "random_state" in params and not isinstance(params["random_state"], (int, type(None))):
            params["random_state"] = self.seed_  # what a generator gave
        return saving.Saved(saving.name_of(type(self)), params, learned)

    def restore(self, learned: dict[str, Any]) -> Self:
        """Take what `save` wrote; used by `vedute.load`."""
        saving.check_learned(learned, settings.attributes(type(self)))
        for name, value in learned.items():
            setattr(self, name, value)
        for name, module in self._modules().items():
            saving.load_weights(module, learned[name])
            setattr(self, name, module.eval())
        self._fitted_with = self.get_params(deep=False)
        return self

    def try_out(self) -> None:
        """Use what was loaded on samples at the mean of every view, one with all views and one
        without each: parts that do not belong together are noticed here."""
        L = len(self.views_)
        lacking = torch.cat([torch.zeros(1, L), torch.eye(L)]).bool()[: 1 if L == 1 else None]
        n, x = len(lacking), []
        for scaler in self._scalers():
            mean = torch.from_numpy(scaler.mean).to(torch.int64 if scaler.tokens else torch.float32)
            x.append(mean.expand(n, *mean.shape))
        names = tuple(view.name for view in self.views_)
        whole = torch.ones_like(lacking)
        data = Views(tuple(x), whole, torch.arange(n), (None,) * L, names).hide(lacking)
        z = clustering.finite(self._embed(data))
        if z.shape[1:] != self.embedding_.shape[1:]:
            raise ValueError("its representation has another size than its model gives")
        if "labels_" in vars(self):
            self._labels(data, z)
        for values in self._imputer().values(data)[0] if self.generative else ():
            if not np.isfinite(values).all():
                raise ValueError("it gives values that are not finite")

    @property
    def specs(self) -> list[ViewSpec]:
        """What the fitted views looked like."""
        return [view.spec for view in self.views_]

    def _entry(self, X: Any) -> Entry:
        """X as it came, compared with the fitted views."""
        check_is_fitted(self, "views_")
        return Entry.of(X, columns=self.columns, like=self.specs, own=True)

    def _read(self, X: Any) -> tuple[Entry, Views]:
        """The same, and as the model sees it: scaled."""
        entry = self._entry(X)
        return entry, scaled(self.views_, entry.views)

    def _enter(self, X: Any) -> Views:
        return self._read(X)[1]

    def _chosen(
        self, values: Sequence[Array], views: Sequence[FittedView] | None = None
    ) -> list[Array]:
        """What is possible, in place; probabilities as a choice, where whole numbers or booleans
        were fitted."""
        each = zip(views or self.views_, values, strict=True)
        return [view.chosen(view.possible(a, out=a)) for view, a in each]


def _counted(rows: Array) -> Array:
    progress.advance(len(rows), "row")
    return rows


def _on_disk(data: Views, parts: Iterable[Views | Interval]) -> Views | Interval:
    """Data on the disk with what is imputed piece by piece, on the disk as well."""
    ends: list[list[Spool]] = []
    for part in parts:
        each = part if isinstance(part, Interval) else (part,)
        ends = ends or [[Spool() for _ in (*views.x, *views.holes)] for views in each]
        for spools, views in zip(ends, each, strict=True):
            for spool, rows in zip(spools, (*views.x, *views.holes), strict=True):
                spool.add(np.zeros(0) if rows is None else rows.numpy())
    mask, found = torch.ones_like(data.mask), []
    for spools in ends:
        kept = [spool.lazy() if spool.n else None for spool in spools]
        x, holes = (on_demand(part) for part in (kept[: len(data.x)], kept[len(data.x) :]))
        found.append(replace(data, x=x, mask=mask, holes=holes))
    return found[0] if len(found) == 1 else Interval(*found)


def saveable(params: dict[str, Any]) -> dict[str, Any]:
    """The settings that are written to files."""
    return {k: v for k, v in params.items() if k not in UNSAVED}


def is_one_view(X: Any, raw: Views) -> bool:
    """Whether X is a frame of several columns that was not cut into views."""
    columns = raw.specs[0].columns if raw.specs else None
    whole = not isinstance(X, (Mapping, list, tuple, Views)) and raw.names == ("view0",)
    return whole and columns is not None and len(columns) > 1


def check_not_split(X: Any) -> None:
    """Refuse a list of views that scikit-learn has split as if each view were a sample."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("vedute."):
        frame = frame.f_back
    split = frame.f_code.co_name in SPLITTERS and isinstance(X, (list, tuple))
    if split and isinstance(as_table(X), (list, tuple)):
        raise TypeError(
            "cross-validation splits a list of views as if each view were a sample; "
            "pass vedute.Views.of(X)"
        )


def check_count(name: str, n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ValueError(f"{name} is a whole number, got {n!r}")
    if n < 1:
        raise ValueError(f"{name} must be positive, got {n}")


def seed_of(random_state: Any) -> int:
    """An integer from what scikit-learn accepts as random_state."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, (int, np.integer)) and abs(int(random_state)) < 2**63:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise ValueError(
        f"random_state is a whole number below 2**63, a generator of numpy or None, got "
        f"{random_state!r}"
    )
