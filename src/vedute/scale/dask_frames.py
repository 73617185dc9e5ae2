"""Dask frames through a fitted estimator, partition by partition.

X is one frame with the columns of the table that `fit` had, or a dict of frames, one per view,
joined by their index, which holds the ids of samples. Results are lazy, like X, and equal to those
in pandas. Rows are in the order of Dask's join.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vedute.data import fill, frames

Frame = Any  # a Dask frame; Dask may not be installed
Estimator = Any  # fitted
ONE = ""  # the name of the only table


class Place(NamedTuple):
    """The place of a view in a joined frame: its numbered columns, and an indicator of the samples
    that have it. empty: the view without rows."""

    indicator: str
    columns: list[str]
    empty: pd.DataFrame


Places = dict[str, Place]
Tables = dict[str, pd.DataFrame]


def are_given(X: Any) -> bool:
    """Return whether X is a Dask frame, or a dict of them."""
    first = next(iter(X.values()), None) if isinstance(X, Mapping) else X
    return type(first).__module__.partition(".")[0] == "dask" and hasattr(first, "map_partitions")


def impute(model: Estimator, X: Any, interval: float | None = None) -> list[Any]:
    """Fill in missing views and holes of X: means, and with an interval its lower and upper ends.
    A dict returns a dict with all views; compute all together, `dask.compute(filled)`, so that each
    partition is imputed only once."""
    from dask import delayed
    from dask.dataframe import from_delayed

    joined, places = _joined(X)
    empty = {ONE: X._meta} if not places else {}
    for view in model.views_ if places else ():
        unseen = fill.as_fitted(np.empty((0, *view.shape)), view.spec)
        empty[view.name] = X[view.name]._meta if view.name in X else unseen
    work, fitted = delayed(partial(_imputed, places, empty, interval)), delayed(model)
    parts = [work(part, fitted) for part in joined.to_delayed()]
    divisions = joined.divisions if joined.known_divisions else None
    ends: list[Any] = [{}] if interval is None else [{}, {}, {}]
    for i, end in enumerate(ends):
        for k, meta in empty.items():
            tables = [part[i][k] for part in parts]
            end[k] = from_delayed(tables, meta, divisions, verify_meta=False)
    return ends if places else [end[ONE] for end in ends]


def _imputed(
    places: Places, empty: Tables, interval: float | None, part: pd.DataFrame, model: Estimator
) -> list[Tables]:
    """Impute a partition: a dict of views, three with an interval."""
    if part.empty:
        return [empty] * 3
    filled = model.impute(_views(part, places), interval)
    ends = [filled] if interval is None else filled
    named = [end if places else {ONE: end} for end in ends]
    return [{k: table.loc[part.index] for k, table in end.items()} for end in named]


def results(model: Estimator, X: Any, verb: str) -> Frame:
    """Return the representation of each sample, a frame of D columns named as in
    `get_feature_names_out`; with the verb `predict` its cluster."""
    from dask import delayed

    empty: Any = pd.Series(np.empty(0, np.int64), name="cluster")
    if verb == "transform":
        empty = pd.DataFrame(model.embedding_[:0], columns=model.get_feature_names_out())
    joined, places = _joined(X)
    part = partial(_part, places=places, verb=verb, empty=empty)
    meta = empty.set_axis(joined._meta.index, axis=0)
    return joined.map_partitions(part, delayed(model), meta=meta)


def _part(part: pd.DataFrame, model: Estimator, places: Places, verb: str, empty: Any) -> Any:
    if part.empty:
        return empty.set_axis(part.index, axis=0)
    X = _views(part, places)  # the estimator has samples in the order of first appearance
    ids, values = frames.join_ids(X) if places else part.index, getattr(model, verb)(X)
    if isinstance(empty, pd.Series):
        return pd.Series(values, ids, name=empty.name).loc[part.index]
    return pd.DataFrame(np.asarray(values), ids, empty.columns).loc[part.index]


def _joined(X: Any) -> tuple[Frame, Places]:
    """Join frames by sample, keeping samples that any frame has; one frame has no places."""
    if not isinstance(X, Mapping):
        return X, {}
    places, numbered = {}, []
    for i, (name, frame) in enumerate(X.items()):
        columns = [f"{i}.{column}" for column in range(frame._meta.shape[1])]
        places[str(name)] = Place(str(i), columns, frame._meta)
    for frame, place in zip(X.values(), places.values(), strict=True):
        meta = _numbered(place.empty, place)
        numbered.append(frame.map_partitions(partial(_numbered, place=place), meta=meta))
    return reduce(lambda a, b: a.join(b, how="outer"), numbered), places


def _numbered(frame: pd.DataFrame, place: Place) -> pd.DataFrame:
    return frame.set_axis(place.columns, axis=1).assign(**{place.indicator: 1.0})


def _views(part: pd.DataFrame, places: Places) -> Any:
    """Return the samples that have each view, in the view's columns and dtypes; the part itself
    without places."""
    views = {}
    for name, place in places.items():
        rows = part.loc[part[place.indicator].notna(), place.columns]
        dtypes = place.empty.dtypes.to_dict()
        views[name] = rows.set_axis(place.empty.columns, axis=1).astype(dtypes)
    return views if places else part
