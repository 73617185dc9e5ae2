"""The measurements of a fit that a page shows, stored as report.npz of a RUN.

A field is empty if it was not measured. Arrays have n samples, L views, h hidden instances, q
levels of intervals and K clusters; a dict has an array per view, if it has no other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
ByView = dict[int, Array]
PERSONAL = {"personal": True}  # of a field with values or labels of single samples


class Cell(NamedTuple):
    """One value of a listed sample.

    of: position in `listed`; view; name of the feature; seen: observed, not inferred; value, low
    and high end of the interval; word: of a category; z: value, low and high in standard deviations
    from the mean of the feature
    """

    of: int
    view: int
    name: str
    seen: bool
    value: float
    low: float
    high: float
    word: str
    z: tuple[float, float, float]


def _empty() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """All measurements of a fit. A run that keeps no values (`vedute fit --no-values`) has none of
    the fields marked `PERSONAL`."""

    method: str = ""
    likelihoods: Array = field(default_factory=_empty)  # (L,)
    kinds: Array = field(default_factory=_empty)  # (L,), each with its reason
    stability: dict[str, Array] = field(default_factory=dict)  # curve of the number of clusters
    held_out: bool | None = None  # hidden views were predicted before they were learned from
    refitted: bool = False  # the saved model was then refit with them
    # Measured hidden instances: rows of hidden.npz
    picked: Array = field(default_factory=_empty)  # (h,)
    error: Array = field(default_factory=_empty)  # (h,)
    fill_errors: dict[str, Array] = field(default_factory=dict)  # (h,) of each simple fill
    fill_seconds: dict[str, Array] = field(default_factory=dict)  # () each, to fit and impute
    fill_rows: int = 0  # samples that the fills learned from
    levels: Array = field(default_factory=_empty)  # (q,), nominal
    covered: Array = field(default_factory=_empty)  # (L, q), actual
    crps: Array = field(default_factory=_empty)  # (L,)
    in_units: Array = field(default_factory=_empty)  # (L,), R2 in the user's units
    alone: Array = field(default_factory=_empty)  # (3, L, L), see `vedute.estimators.explanation`
    without: Array = field(default_factory=_empty)  # (3, L, L)
    # Examples of hidden instances, sorted by error
    at: ByView = field(default_factory=dict)  # (e,), their rows
    truth: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, *shape_v)
    mean: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, *shape_v)
    std: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, *shape_v)
    reach: ByView = field(default_factory=dict, metadata=PERSONAL)  # (e, q), half intervals
    center: ByView = field(default_factory=dict)  # (*shape_v,), mean of the features
    scale: ByView = field(default_factory=dict)  # (*shape_v,), standard deviation of the features
    # Features of hidden views, see `vedute.estimators.cross_fitting`
    features: ByView = field(default_factory=dict)  # (width,), names, or positions
    known: ByView = field(default_factory=dict)  # (width,)
    explained: ByView = field(default_factory=dict)  # (width,)
    off: ByView = field(default_factory=dict)  # (width,)
    # Features that differ, with columns as in `vedute.analysis`
    profiles: Array = field(default_factory=_empty)  # (f,), view, feature, effect (K,)
    depends: Array = field(default_factory=_empty)  # (t,), as `missingness`
    # Samples
    y: Array = field(default_factory=_empty, metadata=PERSONAL)  # (n,), labels of the data
    plane: Array = field(default_factory=_empty)  # (p, 2), positions in the plane
    plane_rows: Array = field(default_factory=_empty)  # (p,)
    margin: Array = field(default_factory=_empty)  # (n,), relative distance to the next cluster
    runner_up: Array = field(default_factory=_empty)  # (n,), that cluster
    stays: Array = field(default_factory=_empty)  # (n,), of `tries` views left out
    tries: Array = field(default_factory=_empty)  # (n,)
    doubt: Array = field(default_factory=_empty)  # (n,), see `measure.uncertainty`
    gaps: Array = field(default_factory=_empty)  # (n, L), missing entries of each observed view
    listed: Array = field(default_factory=_empty)  # (m,), most uncertain samples
    nearest: Array = field(default_factory=_empty)  # (m, k), the samples nearest to them
    cells: Array = field(default_factory=_empty, metadata=PERSONAL)  # (t,), see `Cell`

    @classmethod
    def personal(cls) -> frozenset[str]:
        """Names of the fields that hold values or labels of single samples."""
        return frozenset(f.name for f in fields(cls) if f.metadata.get("personal"))

    def kept(self, values: bool) -> Results:
        """The results; without values and labels of single samples unless `values`."""
        empty, left_out = Results(), frozenset() if values else self.personal()
        return replace(self, **{name: getattr(empty, name) for name in left_out})

    def arrays(self) -> dict[str, Array]:
        """All measured fields as arrays, entries of a dict as <field>.<key>."""
        arrays: dict[str, Any] = {}
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            named = isinstance(value, dict)
            arrays |= {f"{name}.{k}": a for k, a in value.items()} if named else {name: value}
        return {k: np.asarray(a) for k, a in arrays.items() if a is not None and np.size(a)}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Results:
        """Results from `arrays`."""
        values: dict[str, Any] = {}
        for key, a in arrays.items():
            name, _, entry = key.partition(".")
            if entry:
                values.setdefault(name, {})[int(entry) if entry.isdecimal() else entry] = a
            else:
                values[name] = a if a.ndim else a.item()
        return cls(**values)


def records(columns: Mapping[Any, Any]) -> Array:
    """A structured array from columns (t,) or (t, k)."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    kinds = [(name, a.dtype, a.shape[1:]) for name, a in arrays.items()]
    table = np.zeros(max(map(len, arrays.values()), default=0), kinds)
    for name, a in arrays.items():
        table[name] = a
    return table
