"""How a method is fitted, and how data reach a fitted one."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from vedute.data import groups as grouping
from vedute.data import holdout, kinds, together
from vedute.data.holdout import HiddenEntries, HoldOut
from vedute.data.spool import spooled
from vedute.data.stack import stacked
from vedute.data.views import Entry, Views
from vedute.estimators import (
    card,
    categories,
    clustering,
    cross_fitting,
    panels,
    progress,
    same_fits,
)
from vedute.estimators.context import FitContext
from vedute.estimators.explanation import contributions
from vedute.estimators.fitted_view import FittedView, scaled
from vedute.estimators.imputation import Imputer, batch_rows
from vedute.estimators.method import Array, Method
from vedute.nn import likelihoods, noise
from vedute.training import ranks

log = logging.getLogger("vedute")
BATCHES = 8  # that are scaled at a time
MANY = 5000  # rows, of which imputing and explaining show how far they are
LONELY = (
    "no sample has two views, so nothing says how views belong together; do the samples of "
    "different views have the same ids?"
)
ONE_VIEW = (
    "one frame is one view; to cut it, pass columns={'a': [...], 'b': [...]}, a dict of frames, or "
    "columns of two levels, the view above"
)


class Learner:
    """The learner of a method: hides views, learns, calibrates, learns again, and clusters.

    It has no state of its own: what is learned is on the method, and what belongs to one fit in
    its context.
    """

    def __init__(self, model: Method) -> None:
        self.model = model

    # Fitting.

    def fit(self, X: Any, groups: Any = None) -> None:
        """Learn from X; groups: one per sample, where samples belong together."""
        model = self.model
        raw = Entry.of(X, columns=model.columns, own=True).views
        if is_one_view(X, raw):
            log.warning(ONE_VIEW)
        known = None if groups is None else grouping.codes(groups, len(raw), raw.ids)
        raw = raw.bare()
        self.check(raw)
        same_fits.check(model, raw, known)
        model.fitted_on_ = card.facts(raw)
        model.n_features_in_ = sum(int(np.prod(s)) for s in raw.shapes)
        model.seed_ = ranks.by_first(lambda: seed_of(model.random_state))
        context = self.context(None if known is None else torch.from_numpy(known))
        # Gradients are needed, whatever a caller has set for inference.
        with noise.alone(), torch.inference_mode(False), torch.enable_grad():
            torch.manual_seed(context.seed)
            model.views_ = self.fitted_views(raw)
            data = scaled(model.views_, raw)
            data = data if model.streams else data.in_memory()
            del raw  # which may be large
            with progress.shown(model.verbose), progress.task(type(model).__name__):
                self.learn(data, context)
            model.embedding_ = self.by_rows(lambda d: clustering.finite(model.embed(d)), data)
            self.cluster(data)
        problem = unconnected(data)
        if problem is not None:
            warnings.warn(problem, stacklevel=4)

    def context(self, groups: torch.Tensor | None) -> FitContext:
        """The context of a fit, given the groups of samples."""
        return FitContext.of(self.model, self.model.seed_, groups)

    def check(self, raw: Views) -> None:
        """Refuse settings, and data that nothing can be learned from with them."""
        model = self.model
        model.check_settings()
        if model.two_views and len(raw.x) != 2:
            name = type(model).__name__
            mend = f"BestPair({name}(...)) takes two of more" if len(raw.x) > 2 else "pass one more"
            raise ValueError(f"{name} takes two views, X has {len(raw.x)}; {mend}")
        for name, seen in zip(raw.names, raw.mask.any(0), strict=True):
            if not seen:
                raise ValueError(f"view {name!r} is missing for every sample; leave it out of fit")
        if getattr(model, "checkpoint", None) is not None and model.random_state is None:
            raise ValueError("checkpoint needs random_state: without it no run can be resumed")
        check_columns(raw)
        clustering.check(model.n_clusters, len(raw), model.soft)
        if model.soft:
            clustering.require(model.n_clusters, type(model).__name__)
        model.check(raw)

    def scaling(self) -> str:
        """The way to scale features, or `auto`."""
        return self.model.scaling

    def fitted_views(self, raw: Views) -> list[FittedView]:
        """The record of each view: its kind, likelihood and scaling."""
        model = self.model
        words = likelihoods.named(model.likelihood, raw.names), kinds.named(model.kinds, raw.names)
        views = panels.fitted(raw, *words, self.scaling())
        for view in views:
            model.log(view.sentence)
        return views

    def learn(self, data: Views, context: FitContext) -> None:
        """Learn with some views hidden, let them say how far to trust what was learned, and where
        they did not also end the training, learn again with everything."""
        model = self.model
        hidden = self.choose_hidden(data, context) if model.hides() else None
        few = model.hides() and hidden is None
        again = few or model.learns_again(len(data))
        if again:
            hidden = self.choose_hidden(data, context, 1)
        if few:
            rows = (
                "rows with two views" if context.groups is None else "small groups with two views"
            )
            model.log(f"too few {rows}: none is hidden to stop training early")
        held = None if hidden is None else self.held_out(data, hidden, context.groups)
        some = data if hidden is None else data.hide(hidden)
        fewer = self.without_entries(some) if model.hides() else some
        entries = None if fewer is some else HiddenEntries.of(fewer, some, context.groups)
        again = again and fewer is not data
        model.learn(fewer, None if few else held, context)
        del some, fewer  # which may be large
        if model.generative:
            self.calibrate(data, held, context)
        if entries is not None:
            self.calibrate_holes(entries)
        model.learned_again_ = again and not context.interrupted
        if model.learned_again_:
            model.learn(data, None, context.second())

    def choose_hidden(
        self, data: Views, context: FitContext, fewest: int = holdout.FEWEST
    ) -> torch.Tensor | None:
        """The views to hide, (n, L) bool; None where fewer than these can be."""
        width = self.model.n_features_in_
        return holdout.choose(data.mask, fewest, width, context.groups, data.hole_parts)

    def held_out(
        self, data: Views, hidden: torch.Tensor, groups: torch.Tensor | None = None
    ) -> HoldOut:
        """The rows of scaled data with `hidden` views (n, L), without and with them."""
        return HoldOut.of(data, hidden, self.model.scalers, groups)

    def without_entries(self, data: Views) -> Views:
        """The same with single entries hidden where views have holes, to see what is made of
        these; else `data` itself."""
        holed = any(data.share_of_holes(v) > 0 for v in range(len(data.x)))
        return holdout.hide_entries(data, self.model.scalers) if holed else data

    def calibrate(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        """Calibrate on the hidden views; where there are none, on views left out of the training
        rows."""
        unseen = held is not None
        if held is None:
            out = self.choose_hidden(data, context, 1)
            out = torch.zeros_like(data.mask) if out is None else out
            held = self.held_out(data, out, context.groups)
        self.measure(self.imputer(), held, unseen)

    def measure(self, imputer: Imputer, held: HoldOut, unseen: bool = True) -> None:
        """Calibrate what `imputer` predicts of hidden views, and keep their errors; unseen: it has
        not learned from them."""
        model = self.model
        model.views_ = imputer.calibrated(held, model.shrinks)
        imputer = replace(imputer, views=model.views_)
        model.hidden_, model.r2_ = imputer.hidden_results(held)
        model.hidden_predictions_ = {}
        if unseen:
            results = cross_fitting.predictions(imputer, held, model.shrinks)
            model.hidden_predictions_ = results | contributions(self.imputer(), held)
        model.r2_in_units_ = cross_fitting.r2_in_units(model.r2_, model.hidden_predictions_)

    def calibrate_holes(self, held: HiddenEntries) -> None:
        """Calibrate single entries, where views have holes."""
        self.model.views_ = self.imputer().calibrated_at_holes(held, self.model.shrinks)

    def cluster(self, data: Views) -> None:
        """Find the clusters of the samples learned from, where some are asked for."""
        model = self.model
        if model.n_clusters is None:
            return
        if model.soft_labels(data[:1]) is not None:
            model.labels_ = np.array(self.by_rows(self.labels, data))
            return
        z, seed = model.embedding_, noise.seed()
        model.n_clusters_, model.stability_ = clustering.choose(z, model.n_clusters, seed)
        model.centers_ = clustering.centers(z, model.n_clusters_, seed)
        model.labels_ = clustering.nearest(z, model.centers_)

    # Data, and what a fitted method makes of them.

    def entry(self, X: Any) -> Entry:
        """X as it came, compared with the fitted views."""
        model = self.model
        check_is_fitted(model, "views_")
        return Entry.of(X, columns=model.columns, like=model.specs, own=True)

    def open(self, X: Any) -> tuple[Entry, Views]:
        """X as it came, and in scaled units, as the method sees it."""
        entry = self.entry(X)
        return entry, scaled(self.model.views_, entry.views)

    def scaled(self, X: Any) -> Views:
        """X in scaled units."""
        return self.open(X)[1]

    def imputer(self) -> Imputer:
        """The values of all views of any samples; refused for methods that do not impute."""
        model = self.model
        if not model.generative:
            raise TypeError(model.cannot("impute"))
        return Imputer(model.decode, model.views_, model.table_numbers())

    def probabilities(self, entry: Entry, data: Views) -> categories.Probabilities:
        """The probabilities of the categories of all samples, as given and in scaled units."""
        with self.counting("imputing", data, len(data), "row"):
            values = self.imputer().values(data)[0]
        return categories.probabilities(self.model.views_, values, entry.views)

    def labels(self, data: Views, z: Array | None = None) -> NDArray[np.int64]:
        """The clusters of samples, (n,); z: their representation, if it is known."""
        soft = self.model.soft_labels(data)
        if soft is not None:
            return np.asarray(soft.argmax(1), dtype=np.int64)
        self.require_clusters()
        return clustering.nearest(self.model.embed(data) if z is None else z, self.model.centers_)

    def require_clusters(self) -> None:
        """Refuse what needs clusters, where none were asked for."""
        model = self.model
        clustered = hasattr(model, "centers_") or hasattr(model, "labels_")
        clustering.require(model.n_clusters if clustered else None, type(model).__name__)

    def seed(self, random_state: Any) -> int:
        """The seed of draws: that of the fit, unless another is asked for."""
        return self.model.seed_ if random_state is None else seed_of(random_state)

    def by_rows(self, f: Callable[[Views], Array], data: Views) -> Array:
        """What f makes of data, (n, ...), piece by piece; of data on the disk, on the disk."""
        if not data.on_disk:
            rows = BATCHES * batch_rows(self.model.n_features_in_)
            return stacked(len(data), map(f, data.batches(rows)))
        with self.counting("going through all rows", data, len(data), "row"):
            return spooled(_counted(f(part)) for part in data.pieces())

    def by_scaled_rows(self, f: Callable[[Views], Array], views: Views) -> Array:
        """The same of data that are scaled piece by piece."""
        return self.by_rows(lambda part: f(scaled(self.model.views_, part)), views)

    @contextmanager
    def counting(self, name: str, data: Views, total: int, unit: str) -> Iterator[None]:
        """While inside, it is shown how far this is, where rows are many."""
        verbose = self.model.verbose if len(data) >= MANY else False
        with progress.shown(verbose), progress.task(name, total, unit):
            yield

    def try_out(self) -> None:
        """Use what was loaded on samples at the mean of every view, one with all views and one
        without each: parts that do not belong together are noticed here."""
        model = self.model
        L = len(model.views_)
        lacking = torch.cat([torch.zeros(1, L), torch.eye(L)]).bool()[: 1 if L == 1 else None]
        n, x = len(lacking), []
        for scaler in model.scalers:
            mean = torch.from_numpy(scaler.mean).to(torch.int64 if scaler.tokens else torch.float32)
            x.append(mean.expand(n, *mean.shape))
        names = tuple(view.name for view in model.views_)
        whole = torch.ones_like(lacking)
        data = Views(tuple(x), whole, torch.arange(n), (None,) * L, names).hide(lacking)
        z = clustering.finite(model.embed(data))
        if z.shape[1:] != model.embedding_.shape[1:]:
            raise ValueError("its representation has another size than its model gives")
        if hasattr(model, "labels_"):
            self.labels(data, z)
        for values in self.imputer().values(data)[0] if model.generative else ():
            if not np.isfinite(values).all():
                raise ValueError("it gives values that are not finite")


def _counted(rows: Array) -> Array:
    progress.advance(len(rows), "row")
    return rows


def is_one_view(X: Any, raw: Views) -> bool:
    """Whether X is a frame of several columns that was not cut into views."""
    columns = raw.specs[0].columns if raw.specs else None
    whole = not isinstance(X, (Mapping, list, tuple, Views)) and raw.names == ("view0",)
    return whole and columns is not None and len(columns) > 1


def check_columns(raw: Views) -> None:
    """Refuse a column without a finite value."""
    for v, spec in enumerate(raw.specs or ()):
        empty = None if raw.hole_parts[v] is None else ~raw.ever_seen(v)
        if empty is not None and empty.any():
            first = int(empty.flatten().nonzero()[0])
            plain = spec.columns is not None and len(spec.columns) == empty.numel()
            column = spec.columns[first] if plain and spec.columns is not None else first
            raise ValueError(
                f"view {spec.name!r} has no finite value in column {column!r}; drop the column"
            )


def unconnected(data: Views) -> str | None:
    """Why nothing connects some of the views, in a sentence."""
    if len(data.names) > 1 and int(data.mask.sum(1).max()) < 2:
        return LONELY
    return together.warning(together.components(data.mask, data.names))


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
