"""Dask frames through a fitted estimator, partition by partition.

X is one frame with the columns of the table that `fit` had, or a dict of frames, one per view,
joined by their index, which holds the ids of samples. Results are lazy, like X, and equal to those
in pandas. Rows are in the order of Dask's join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vedute.data import fill, frames
from vedute.data.frames import ViewSpec

Frame = Any  # a Dask frame; Dask may not be installed
Estimator = Any  # fitted
ONE = ""  # the name of the only table


class Place(NamedTuple):
    """The place of a view in a joined frame: its numbered columns from `start` on, followed by an
    indicator of the samples that have the view. empty: the view without rows."""

    start: int
    empty: pd.DataFrame

    @property
    def columns(self) -> list[str]:
        return [str(self.start + i) for i in range(self.empty.shape[1])]

    @property
    def indicator(self) -> str:
        return str(self.end - 1)

    @property
    def end(self) -> int:
        return self.start + self.empty.shape[1] + 1


Places = dict[str, Place]


def are_given(X: Any) -> bool:
    """Return whether X is a Dask frame, or a dict of them."""
    first = next(iter(X.values()), None) if isinstance(X, Mapping) else X
    return type(first).__module__.partition(".")[0] == "dask" and hasattr(first, "map_partitions")


def impute(model: Estimator, X: Any, interval: float | None = None) -> list[Any]:
    """Fill in missing views and holes of X: means, and with an interval its lower and upper ends.
    A dict returns a dict with all views; compute all together, `dask.compute(filled)`, so that each
    partition is imputed only once."""
    views = isinstance(X, Mapping)
    joined, places = _joined(X) if views else (X, {})
    targets = [_places(model, X, 0) if views else {ONE: Place(0, X._meta)}]
    for _ in range(0 if interval is None else 2):
        end = max(p.end for p in targets[-1].values())
        targets.append({k: Place(p.start + end, p.empty) for k, p in targets[-1].items()})
    columns = [p.empty.set_axis(p.columns, axis=1) for part in targets for p in part.values()]
    work = partial(_imputed, targets=targets, interval=interval)
    filled = _mapped(model, joined, places, work, pd.concat(columns, axis=1))
    results = [
        {k: filled.map_partitions(partial(_taken, place=p), meta=p.empty) for k, p in part.items()}
        for part in targets
    ]
    return results if views else [part[ONE] for part in results]


def _places(model: Estimator, X: Mapping[str, Frame], start: int) -> Places:
    """Return the places of all views of the model in the imputed frame."""
    places = Places()
    for view in model.views_:
        places[view.name] = Place(start, _empty(view.spec, X.get(view.name)))
        start = places[view.name].end
    return places


def transform(model: Estimator, X: Any) -> Frame:
    """Return the representation: a frame of D columns, named as in `get_feature_names_out`."""
    joined, places = _joined(X) if isinstance(X, Mapping) else (X, {})
    empty = pd.DataFrame(model.embedding_[:0], columns=model.get_feature_names_out())
    return _mapped(model, joined, places, _embedded, empty)


def predict(model: Estimator, X: Any) -> Frame:
    """Return the cluster of each sample."""
    joined, places = _joined(X) if isinstance(X, Mapping) else (X, {})
    empty = pd.Series(np.empty(0, np.int64), name="cluster")
    return _mapped(model, joined, places, _clustered, empty)


def _mapped(
    model: Estimator,
    X: Frame,
    places: Places,
    work: Callable[[Estimator, Any, pd.Index], Any],
    empty: Any,
) -> Frame:
    from dask import delayed

    part = partial(_part, places=places, work=work, empty=empty)
    return X.map_partitions(part, delayed(model), meta=empty.set_axis(X._meta.index, axis=0))


def _part(
    part: pd.DataFrame,
    model: Estimator,
    places: Places,
    work: Callable[[Estimator, Any, pd.Index], Any],
    empty: Any,
) -> Any:
    if part.empty:
        return empty.set_axis(part.index, axis=0)
    return work(model, _views(part, places) if places else part, part.index)


def _imputed(
    model: Estimator, X: Any, index: pd.Index, targets: Sequence[Places], interval: float | None
) -> pd.DataFrame:
    imputed = model.impute(X) if interval is None else model.impute(X, interval)
    parts = [imputed] if interval is None else imputed
    named = [part if isinstance(part, dict) else {ONE: part} for part in parts]
    columns = [
        tables[k].loc[index].set_axis(p.columns, axis=1)
        for tables, places in zip(named, targets, strict=True)
        for k, p in places.items()
    ]
    joined: pd.DataFrame = pd.concat(columns, axis=1)
    return joined


def _embedded(model: Estimator, X: Any, index: pd.Index) -> pd.DataFrame:
    z, names = np.asarray(model.transform(X)), model.get_feature_names_out()
    return pd.DataFrame(z, _ids(X, index), names).loc[index]


def _clustered(model: Estimator, X: Any, index: pd.Index) -> pd.Series:
    return pd.Series(model.predict(X), _ids(X, index), name="cluster").loc[index]


def _ids(X: Any, index: pd.Index) -> pd.Index:
    """Return the samples in the order of the estimator: for views, that of first appearance."""
    return frames.join_ids(X) if isinstance(X, dict) else index


def _joined(X: Mapping[str, Frame]) -> tuple[Frame, Places]:
    """Join frames by sample, keeping samples that any frame has."""
    places, numbered, start = Places(), [], 0
    for name, frame in X.items():
        place = Place(start, frame._meta)
        number = partial(_numbered, place=place)
        numbered.append(frame.map_partitions(number, meta=number(frame._meta)))
        places[str(name)], start = place, place.end
    return reduce(lambda a, b: a.join(b, how="outer"), numbered), places


def _numbered(frame: pd.DataFrame, place: Place) -> pd.DataFrame:
    return frame.set_axis(place.columns, axis=1).assign(**{place.indicator: 1.0})


def _views(part: pd.DataFrame, places: Places) -> dict[str, pd.DataFrame]:
    """Return the samples that have each view, in the view's columns and dtypes."""
    return {
        name: _taken(part[part[place.indicator].notna()], place).astype(
            place.empty.dtypes.to_dict()
        )
        for name, place in places.items()
    }


def _taken(part: pd.DataFrame, place: Place) -> pd.DataFrame:
    return part[place.columns].set_axis(place.empty.columns, axis=1)


def _empty(spec: ViewSpec, frame: Frame | None) -> pd.DataFrame:
    """Return a view without rows, as it was fitted if no frame holds it."""
    empty: pd.DataFrame = (
        fill.as_fitted(np.empty((0, *spec.shape)), spec) if frame is None else frame._meta
    )
    return empty
