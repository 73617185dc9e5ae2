"""Dask frames through a fitted estimator, one partition at a time.

X is one frame, with the columns that `fit` had in one table, or a dict of frames, one per view,
which are joined by their index: it names the samples. What comes back is lazy, like X; every sample
gets what the estimator gives for it in pandas. Rows are in the order of Dask's join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vedute.data import fill, frames
from vedute.data.frames import ViewSpec
from vedute.estimators.base import Estimator

Frame = Any  # of Dask, which may not be installed


class Place(NamedTuple):
    """Where a view is in a joined frame: its numbered columns from `start` on, then one that is
    there for samples that have the view. empty: the view without rows."""

    start: int
    empty: pd.DataFrame

    @property
    def columns(self) -> list[str]:
        return [str(self.start + i) for i in range(self.empty.shape[1])]

    @property
    def there(self) -> str:
        return str(self.end - 1)

    @property
    def end(self) -> int:
        return self.start + self.empty.shape[1] + 1


Places = dict[str, Place]


def impute(model: Estimator, X: Any) -> Any:
    """X with missing views and holes filled in. Of a dict a dict with all views; compute them at
    once, `dask.compute(filled)`, and each partition passes the estimator once."""
    if not isinstance(X, Mapping):
        return _mapped(model, X, {}, _imputed_table, X._meta)
    joined, places = _joined(X)
    views = {v.name: _empty(v.spec, X.get(v.name)) for v in model.views_}
    wanted, start = {}, 0
    for name, empty in views.items():
        wanted[name] = Place(start, empty)
        start = wanted[name].end
    each = [p.empty.set_axis(p.columns, axis=1) for p in wanted.values()]
    filled = _mapped(
        model, joined, places, partial(_imputed, wanted=wanted), pd.concat(each, axis=1)
    )
    taken = {k: partial(_taken, place=p) for k, p in wanted.items()}
    return {k: filled.map_partitions(taken[k], meta=p.empty) for k, p in wanted.items()}


def transform(model: Estimator, X: Any) -> Frame:
    """The representation: a frame of D columns, named as `get_feature_names_out` does."""
    joined, places = _joined(X) if isinstance(X, Mapping) else (X, {})
    empty = pd.DataFrame(model.embedding_[:0], columns=model.get_feature_names_out())
    return _mapped(model, joined, places, _embedded, empty)


def predict(model: Estimator, X: Any) -> Frame:
    """The cluster of each sample."""
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


def _imputed_table(model: Estimator, X: pd.DataFrame, index: pd.Index) -> Any:
    return model.impute(X)


def _imputed(
    model: Estimator, X: dict[str, pd.DataFrame], index: pd.Index, wanted: Places
) -> pd.DataFrame:
    filled: dict[str, pd.DataFrame] = model.impute(X)
    each = [filled[k].loc[index].set_axis(p.columns, axis=1) for k, p in wanted.items()]
    return pd.concat(each, axis=1)


def _embedded(model: Estimator, X: Any, index: pd.Index) -> pd.DataFrame:
    z, names = np.asarray(model.transform(X)), model.get_feature_names_out()
    return pd.DataFrame(z, _ids(X, index), names).loc[index]


def _clustered(model: Estimator, X: Any, index: pd.Index) -> pd.Series:
    return pd.Series(model.predict(X), _ids(X, index), name="cluster").loc[index]


def _ids(X: Any, index: pd.Index) -> pd.Index:
    """The samples in the order of the estimator: of views, that of their first appearance."""
    return frames.join_ids(X) if isinstance(X, dict) else index


def _joined(X: Mapping[str, Frame]) -> tuple[Frame, Places]:
    """Frames side by side with all samples that any has."""
    places, numbered, start = Places(), [], 0
    for name, frame in X.items():
        place = Place(start, frame._meta)
        number = partial(_numbered, place=place)
        numbered.append(frame.map_partitions(number, meta=number(frame._meta)))
        places[str(name)], start = place, place.end
    return reduce(lambda a, b: a.join(b, how="outer"), numbered), places


def _numbered(frame: pd.DataFrame, place: Place) -> pd.DataFrame:
    return frame.set_axis(place.columns, axis=1).assign(**{place.there: 1.0})


def _views(part: pd.DataFrame, places: Places) -> dict[str, pd.DataFrame]:
    """Of each view the samples that have it, in its own columns and dtypes."""
    return {
        name: _taken(part[part[place.there].notna()], place).astype(place.empty.dtypes.to_dict())
        for name, place in places.items()
    }


def _taken(part: pd.DataFrame, place: Place) -> pd.DataFrame:
    return part[place.columns].set_axis(place.empty.columns, axis=1)


def _empty(spec: ViewSpec, given: Frame | None) -> pd.DataFrame:
    """A view without rows; of one that is in no frame as it was fitted."""
    empty: pd.DataFrame = (
        fill.as_fitted(np.empty((0, *spec.shape)), spec) if given is None else given._meta
    )
    return empty
