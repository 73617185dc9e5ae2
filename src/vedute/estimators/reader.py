"""The input of a fitted method: data compared with the fitted views, scaled, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.utils.validation import check_is_fitted

from vedute.data.mapped import spooled, stacked
from vedute.data.views import Entry, Views
from vedute.estimators import categories, progress
from vedute.estimators.context import seed_of
from vedute.estimators.fitted_view import scaled
from vedute.estimators.imputation import Imputer, batch_rows
from vedute.estimators.method import Array, Method

BATCHES = 8  # per scaled chunk
MANY_ROWS = 5000  # rows from which on imputing and explaining show progress


class Reader:
    """Passes data to a fitted method, and returns its values."""

    def __init__(self, model: Method) -> None:
        self.model = model

    def entry(self, X: Any) -> Entry:
        """Return X as passed, compared with the fitted views."""
        model = self.model
        check_is_fitted(model, "views_")
        return Entry.of(X, columns=model.columns, like=model.specs, own=True)

    def open(self, X: Any) -> tuple[Entry, Views]:
        """Return X as passed, and in scaled units."""
        entry = self.entry(X)
        return entry, scaled(self.model.views_, entry.views)

    def scaled(self, X: Any) -> Views:
        """Return X in scaled units."""
        return self.open(X)[1]

    def imputer(self) -> Imputer:
        """Return the imputer of the method; raise for methods that do not impute."""
        model = self.model
        if not model.generative:
            raise TypeError(model.cannot("impute"))
        return Imputer(model.decode, model.views_, model.table_numbers())

    def probabilities(self, entry: Entry, data: Views) -> categories.Probabilities:
        """Return the probabilities of categories of all samples, passed raw and in scaled units."""
        with self.counting("imputing", data, len(data), "row"):
            values = self.imputer().values(data)[0]
        return categories.probabilities(self.model.views_, values, entry.views)

    def seed(self, random_state: Any) -> int:
        """Return the seed of draws: that of the fit, unless `random_state` is passed."""
        return self.model.seed_ if random_state is None else seed_of(random_state)

    def by_rows(self, f: Callable[[Views], Array], data: Views) -> Array:
        """Apply f to data in chunks, (n, ...); for data on the disk the result is on the disk."""
        if not data.on_disk:
            rows = BATCHES * batch_rows(self.model.n_features_in_)
            return stacked(len(data), map(f, data.batches(rows)))
        with self.counting("going through all rows", data, len(data), "row"):
            return spooled(_counted(f(part)) for part in data.pieces())

    def by_scaled_rows(self, f: Callable[[Views], Array], views: Views) -> Array:
        """Apply f to data that are scaled in chunks."""
        return self.by_rows(lambda part: f(scaled(self.model.views_, part)), views)

    @contextmanager
    def counting(self, name: str, data: Views, total: int, unit: str) -> Iterator[None]:
        """Show progress, if there are many rows."""
        verbose = self.model.verbose if len(data) >= MANY_ROWS else False
        with progress.shown(verbose), progress.task(name, total, unit):
            yield


def _counted(rows: Array) -> Array:
    progress.advance(len(rows), "row")
    return rows
