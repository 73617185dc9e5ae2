"""Imputed values in copies of the user's objects, filled per batch to save memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from operator import attrgetter, methodcaller
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from vedute.data import fill
from vedute.data.entry import Entry, Filling
from vedute.data.mapped import Scratch
from vedute.data.views import Views
from vedute.estimators import categories
from vedute.estimators.fitted_view import FittedView, scaled
from vedute.estimators.imputation import Imputer

Array = NDArray[Any]


class Interval(NamedTuple):
    """Imputed objects of the user's type, equal where observed."""

    mean: Any
    lower: Any
    upper: Any


def written_whole(views: Sequence[FittedView], scale: str, interval: bool = False) -> list[int]:
    """Return views that are written as a whole: on another scale, or whole numbers with gaps."""
    whole = []
    for v, view in enumerate(views):
        rescaled = scale == "kind" and not view.scaler.signed
        if rescaled or (interval and fill.whole(view.spec) and categories.unordered(view)):
            whole.append(v)
    return whole


def filled(imputer: Imputer, entry: Entry, interval: float | None, scale: str) -> Any:
    """Return a copy of the input with missing values filled in; three with an interval."""
    anew, fitted, spread = written_whole(imputer.views, scale), imputer.views, interval is not None
    views = [*map(attrgetter("on_its_scale"), fitted)] if anew else fitted
    imputer = replace(imputer, views=views)
    unordered, copies = dict[int, list[categories.Column]](), [Filling(entry, anew)]
    if spread:
        for v, view in enumerate(fitted):
            if several := categories.unordered(view):
                unordered[v] = several
        ends_anew = written_whole(fitted, scale, interval=True)
        end = partial(Filling, entry, ends_anew, with_gaps=[*unordered])
        copies += [end(), end()]
    for batch in entry.views.batches(imputer.rows(imputer.draws_for(spread))):
        data = scaled(fitted, batch)
        means, stds = imputer.values(data, spread)
        if interval is None:
            results = [chosen(views, means)]
        else:
            intervals = []
            for v, part in enumerate(zip(views, means, stds, strict=True)):
                intervals.append(interval_of(*part, data, v, float(interval)))
            results = [*map(list, zip(*intervals, strict=True))]
            for bounds, v in product(results[1:], unordered):
                flat = bounds[v].astype(float).reshape(len(batch), -1)
                for column in unordered[v]:
                    flat[:, column.at] = np.nan
                bounds[v] = flat.reshape(bounds[v].shape)
        for copy, values in zip(copies, results, strict=True):
            for v in copy.anew:
                size = data.sizes[v] if data.sizes else None
                observed = fitted[v].scaler.transformed(batch.x[v].double(), size).numpy()
                values[v] = np.where(batch.seen(v).numpy(), observed, values[v])
            copy.add(batch, values)
    objects = [*map(methodcaller("filled"), copies)]
    return Interval(*objects) if spread else objects[0]


def chosen(views: Sequence[FittedView], values: Sequence[Array]) -> list[Array]:
    """Clip values to the possible range, in place; whole numbers of one-hot views are chosen."""
    pairs = zip(views, values, strict=True)
    return [view.chosen(view.possible(a, out=a)) for view, a in pairs]


def drawn(imputer: Imputer, data: Views, probabilities: categories.Probabilities) -> list[Array]:
    """Draw every view, (n, *shape_v); categories are drawn with their probabilities."""
    values = chosen(imputer.views, imputer.draw(data))
    for v, columns in probabilities.items():
        values[v] = categories.drawn(values[v], columns)
    return values


def interval_of(
    view: FittedView, mean: Array, std: Array, data: Views, v: int, level: float
) -> Interval:
    """Return the mean, lower and upper end (n, *shape) of view v within the possible range."""
    choice, size = view.chosen(view.possible(mean)), data.size(v)
    reach = view.by_entry(methodcaller("reach_of", level), data.holes[v])
    low = view.possible(view.scaler.quantile(mean, std, -reach, size))
    high = view.possible(view.scaler.quantile(mean, std, reach, size))
    return Interval(choice, np.minimum(low, choice), np.maximum(high, choice))


def on_disk(data: Views, parts: Iterable[Views | Interval]) -> Views | Interval:
    """Join imputed parts of data on the disk, on the disk."""
    ends: list[list[Scratch]] = []
    for part in parts:
        objects = part if isinstance(part, Interval) else (part,)
        ends = ends or [[Scratch() for _ in (*views.x, *views.holes)] for views in objects]
        for files, views in zip(ends, objects, strict=True):
            for file, rows in zip(files, (*views.x, *views.holes), strict=True):
                file.add(np.zeros(0) if rows is None else rows.numpy())
    mask, results = torch.ones_like(data.mask), []
    for files in ends:
        kept: list[Any] = [file.rows() if file.n else None for file in files]
        x, holes = kept[: len(data.x)], kept[len(data.x) :]
        results.append(replace(data, x=x, mask=mask, holes=holes))
    return results[0] if len(results) == 1 else Interval(*results)
