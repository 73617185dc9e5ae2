"""The learner, which fits a method and passes data to it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from vedute.data import holdout, kinds, mapped, missing
from vedute.data.entry import Entry
from vedute.data.views import Views
from vedute.estimators import card, clustering, cross_fitting, explanation, panels, progress
from vedute.estimators.context import FitContext, check_ranks, seed_of
from vedute.estimators.fitted_view import scaled
from vedute.estimators.imputation import Imputer, batch_rows
from vedute.estimators.method import Array, Method
from vedute.nn import noise
from vedute.scale import ranks

log = logging.getLogger("vedute")
BATCHES = 8  # per scaled chunk
MANY_ROWS = 5000  # rows from which on imputing and explaining show progress
NO_SHARED_ROWS = "no sample has two views, so how they relate is unknown; have views the same ids?"
ONE_VIEW = (
    "one frame is one view; to split it, pass columns={'a': [...], 'b': [...]}, a dict of frames, "
    "or columns of two levels, the view above"
)


@dataclass
class Learner:
    """The learner of a method, without a state: it holds out views, fits, calibrates, refits and
    clusters. Learned attributes are on the method, the state of one fit is in its context."""

    model: Method

    def entry(self, X: Any) -> Entry:
        """Return X as passed, compared with the fitted views."""
        model = self.model
        check_is_fitted(model, "views_")
        return Entry.of(X, columns=model.columns, like=model.specs, own=True)

    def scaled(self, X: Any) -> Views:
        """Return X, as passed or an `entry`, in scaled units."""
        entry = X if isinstance(X, Entry) else self.entry(X)
        return scaled(self.model.views_, entry.views)

    def imputer(self) -> Imputer:
        """Return the imputer of the method; raise for methods that do not impute."""
        model = self.model
        if not model.generative:
            raise TypeError(model.cannot("impute"))
        return Imputer(model.decode, model.views_, model.table_numbers())

    def seed(self, random_state: Any) -> int:
        """Return the seed of draws: that of the fit, unless `random_state` is passed."""
        return self.model.seed_ if random_state is None else seed_of(random_state)

    def by_rows(self, f: Callable[[Views], Array], data: Views) -> Array:
        """Apply f to data in chunks, (n, ...); for data on the disk the result is on the disk."""
        if not data.on_disk:
            results = mapped.Stack(len(data))
            for part in data.batches(BATCHES * batch_rows(self.model.n_features_in_)):
                results.add(f(part))
            return results.array

        scratch = mapped.Scratch()
        with self.counting("going through all rows", data, len(data), "row"):
            for part in data.pieces():
                scratch.add(f(part))
                progress.advance(len(part), "row")
        return scratch.array()

    def by_scaled_rows(self, f: Callable[[Views], Array], views: Views) -> Array:
        """Apply f to data that are scaled in chunks."""
        return self.by_rows(lambda part: f(scaled(self.model.views_, part)), views)

    @contextmanager
    def counting(self, name: str, data: Views, total: int, unit: str) -> Iterator[None]:
        """Show progress, if there are many rows."""
        verbose = self.model.verbose if len(data) >= MANY_ROWS else False
        with progress.shown(verbose), progress.task(name, total, unit):
            yield

    def fit(self, X: Any, groups: Any = None) -> None:
        """Fit the method to X; groups: one per sample, if samples belong together."""
        model = self.model
        raw = Entry.of(X, columns=model.columns, own=True).views
        columns = raw.specs[0].columns if raw.specs else None
        split = isinstance(X, (Mapping, list, tuple, Views)) or raw.names != ("view0",)
        if not split and columns is not None and len(columns) > 1:
            log.warning(ONE_VIEW)
        codes = None
        if groups is not None:
            codes = torch.from_numpy(missing.group_codes(groups, len(raw), raw.ids))
        raw = raw.bare()
        self.check(raw)
        seed = partial(seed_of, model.random_state)
        if ranks.size() > 1:
            check_ranks(model, raw, codes)
            seed = partial(ranks.by_first, seed)
        model.fitted_on_ = card.facts(raw)
        model.n_features_in_ = sum(map(prod, raw.shapes))
        model.seed_ = seed()
        inner = model.trained()
        context = FitContext.of(inner, model.seed_, codes)
        scaling = inner.scaling if model.scaling == kinds.AUTO_WORD else model.scaling
        # Gradients are needed, even if the caller has disabled them.
        with noise.alone(), torch.inference_mode(False), torch.enable_grad():
            torch.manual_seed(context.seed)
            model.views_ = panels.fitted(raw, model.likelihood, model.kinds, scaling)
            for view in model.views_:
                model.log(kinds.sentence(view))
            data = scaled(model.views_, raw)
            data = data if model.streams else data.in_memory()
            del raw  # which may be large
            with progress.shown(model.verbose), progress.task(type(model).__name__):
                self.learn(data, context)
            model.embedding_ = self.by_rows(lambda d: clustering.finite(model.embed(d)), data)
            self.cluster(data)
        if len(data.names) > 1 and int(data.mask.sum(1).max()) < 2:
            warnings.warn(NO_SHARED_ROWS, stacklevel=3)
        elif problem := missing.components_warning(missing.components(data.mask, data.names)):
            warnings.warn(problem, stacklevel=3)

    def check(self, raw: Views) -> None:
        """Reject invalid settings, and data that cannot be fitted with them."""
        model = self.model
        model.check_settings()
        if model.two_views and len(raw.x) != 2:
            name = type(model).__name__
            fix = f"BestPair({name}(...)) takes two of more" if len(raw.x) > 2 else "pass one more"
            raise ValueError(f"{name} takes two views, X has {len(raw.x)}; {fix}")
        if getattr(model, "checkpoint", None) is not None and model.random_state is None:
            raise ValueError("checkpoint needs random_state: without it no run can be resumed")
        for v, (name, seen) in enumerate(zip(raw.names, raw.mask.any(0), strict=True)):
            if not seen:
                raise ValueError(f"view {name!r} is missing for every sample; leave it out of fit")
            if raw.hole_parts[v] is not None and (empty := missing.empty_columns(raw, v)):
                which = f"has no finite value in column {empty[0]!r}; drop the column"
                raise ValueError(f"view {name!r} {which}")
        clustering.check(model.n_clusters, len(raw), model.soft)
        if model.soft:
            clustering.require(model.n_clusters, type(model).__name__)
        model.check(raw)

    def learn(self, data: Views, context: FitContext) -> None:
        """Fit with views held out, calibrate on them, and refit with everything if they were not
        also used to end the training."""
        model = self.model
        hidden = self.choose_hidden(data, context) if model.hides() else None
        few = model.hides() and hidden is None
        refits = few or model.learns_again(len(data))
        if refits:
            hidden = self.choose_hidden(data, context, 1)
        if few:
            rows = "rows" if context.groups is None else "small groups"
            model.log(f"too few {rows} with two views: none is hidden to stop training early")
        held, visible, entries = None, data, None
        if hidden is not None:
            held = holdout.HoldOut.of(data, hidden, model.scalers, context.groups)
            visible = data.hide(hidden)
        inputs = self.without_entries(visible) if model.hides() else visible
        if inputs is not visible:
            entries = holdout.HiddenEntries.of(inputs, visible, context.groups)
        refits = refits and inputs is not data
        model.learn(inputs, None if few else held, context)
        del visible, inputs  # which may be large
        if model.generative:
            self.calibrate(data, held, context)
        if entries is not None:
            model.views_ = self.imputer().calibrated(entries, model.shrinks)
        model.learned_again_ = refits and not context.interrupted
        if model.learned_again_:
            model.learn(data, None, replace(context, number=2))

    def choose_hidden(
        self, data: Views, context: FitContext, fewest: int = holdout.FEWEST_HIDDEN
    ) -> torch.Tensor | None:
        """The views to hide, (n, L) bool; None where fewer than these can be."""
        width = self.model.n_features_in_
        return holdout.choose(data.mask, fewest, width, context.groups, data.hole_parts)

    def without_entries(self, data: Views) -> Views:
        """Hide single entries of views with holes, for calibration; return `data` itself if there
        are none."""
        holed = any(map(data.share_of_holes, range(len(data.x))))
        return holdout.hide_entries(data, self.model.scalers) if holed else data

    def calibrate(self, data: Views, held: holdout.HoldOut | None, context: FitContext) -> None:
        """Calibrate on the hidden views; without any, on views left out of the training rows."""
        unseen = held is not None
        if held is None:
            out = self.choose_hidden(data, context, 1)
            out = torch.zeros_like(data.mask) if out is None else out
            held = holdout.HoldOut.of(data, out, self.model.scalers, context.groups)
        self.measure(self.imputer(), held, unseen)

    def measure(self, imputer: Imputer, held: holdout.HoldOut, unseen: bool = True) -> None:
        """Calibrate predictions of hidden views, and keep their errors; unseen: the model was not
        fitted to them."""
        model = self.model
        model.views_ = imputer.calibrated(held, model.shrinks)
        imputer = replace(imputer, views=model.views_)
        model.hidden_, model.r2_ = imputer.hidden_results(held)
        model.hidden_predictions_ = {}
        if unseen:
            results = cross_fitting.predictions(imputer, held, model.shrinks)
            model.hidden_predictions_ = results | explanation.contributions(self.imputer(), held)
        model.r2_in_units_ = cross_fitting.r2_in_units(model.r2_, model.hidden_predictions_)

    def cluster(self, data: Views) -> None:
        """Cluster the training samples, if clusters are requested."""
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

    def labels(self, data: Views, z: Array | None = None) -> NDArray[np.int64]:
        """Return the clusters of samples, (n,); z: their representation, if already computed."""
        soft = self.model.soft_labels(data)
        if soft is not None:
            return np.asarray(soft.argmax(1), dtype=np.int64)
        self.require_clusters()
        return clustering.nearest(self.model.embed(data) if z is None else z, self.model.centers_)

    def require_clusters(self) -> None:
        """Raise if clusters are needed but were not requested."""
        clustered = hasattr(self.model, "centers_") or hasattr(self.model, "labels_")
        clustering.require(self.model.n_clusters if clustered else None, type(self.model).__name__)

    def smoke_test(self) -> None:
        """Apply a loaded model to samples at the mean of every view, one with all views and one
        without each, to detect parts that do not belong together."""
        model = self.model
        L = len(model.views_)
        hidden = torch.cat([torch.zeros(1, L), torch.eye(L)]).bool()[: 1 if L == 1 else None]
        n, x = len(hidden), []
        for scaler in model.scalers:
            mean = torch.from_numpy(scaler.mean).to(torch.int64 if scaler.tokens else torch.float32)
            x.append(mean.expand(n, *mean.shape))
        names = tuple(view.name for view in model.views_)
        mask = torch.ones_like(hidden)
        data = Views(tuple(x), mask, torch.arange(n), (None,) * L, names).hide(hidden)
        z = clustering.finite(model.embed(data))
        if z.shape[1:] != model.embedding_.shape[1:]:
            raise ValueError("its representation has another size than its model gives")
        if hasattr(model, "labels_"):
            self.labels(data, z)
        for values in self.imputer().values(data)[0] if model.generative else ():
            if not np.isfinite(values).all():
                raise ValueError("it gives values that are not finite")
