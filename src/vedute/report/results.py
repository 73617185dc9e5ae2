"""The measurements of a fit that a page shows: two dataclasses, stored as report.npz of a RUN.

A field is empty if it was not measured. Arrays have n samples, L views and h
hidden instances. Fields marked `personal` hold values or labels of single samples: a run that keeps
no values (`vedute fit --no-values`) has none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
T = TypeVar("T", "RunResults", "SampleResults")
PERSONAL = {"personal": True}


def _empty() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResults:
    """Measurements of a model, its views and their features.

    likelihoods, kinds    (L,)          of each view: its likelihood; its kind, and why
    stability                           the curve that chose the number of clusters
    held_out                            hidden views were predicted before they were learned from
    refitted                            the saved model was then refit with them
    picked, error         (h,)          measured hidden instances (rows of hidden.npz), their error
    fill_errors           (h,)          errors of each simple fill at these
    fill_seconds          ()            time of each simple fill to fit and impute
    fill_rows                           number of samples that the fills learned from
    levels, covered       (q,), (L, q)  nominal and actual coverage of intervals
    crps, in_units        (L,)          CRPS; R2 in the user's units
    alone, without        (3, L, L)     see `vedute.estimators.explanation`

    by view: e examples of hidden instances, sorted by error
    at, reach             (e,), (e, q)  their rows; their half intervals in standard deviations
    truth, mean, std      (e, *shape_v)
    center, scale         (*shape_v,)   mean and deviation of the features
    features              (width,)      their names, or positions
    known, explained, off (width,)      see `vedute.estimators.cross_fitting`

    profile               (f, K)        features that differ most between clusters, see
    profile_view, profile_feature  (f,) `vedute.analysis.profiles`
    depends_<column>      (t,)          see `vedute.analysis.missingness`
    """

    method: str = ""
    likelihoods: Array = field(default_factory=_empty)
    kinds: Array = field(default_factory=_empty)
    stability: dict[str, Array] = field(default_factory=dict)
    held_out: bool | None = None
    refitted: bool = False
    picked: Array = field(default_factory=_empty)
    error: Array = field(default_factory=_empty)
    fill_errors: dict[str, Array] = field(default_factory=dict)
    fill_seconds: dict[str, Array] = field(default_factory=dict)
    fill_rows: int = 0
    levels: Array = field(default_factory=_empty)
    covered: Array = field(default_factory=_empty)
    crps: Array = field(default_factory=_empty)
    in_units: Array = field(default_factory=_empty)
    alone: Array = field(default_factory=_empty)
    without: Array = field(default_factory=_empty)
    at: dict[int, Array] = field(default_factory=dict)
    truth: dict[int, Array] = field(default_factory=dict, metadata=PERSONAL)
    mean: dict[int, Array] = field(default_factory=dict, metadata=PERSONAL)
    std: dict[int, Array] = field(default_factory=dict, metadata=PERSONAL)
    reach: dict[int, Array] = field(default_factory=dict, metadata=PERSONAL)
    center: dict[int, Array] = field(default_factory=dict)
    scale: dict[int, Array] = field(default_factory=dict)
    features: dict[int, Array] = field(default_factory=dict)
    known: dict[int, Array] = field(default_factory=dict)
    explained: dict[int, Array] = field(default_factory=dict)
    off: dict[int, Array] = field(default_factory=dict)
    profile: Array = field(default_factory=_empty)
    profile_view: Array = field(default_factory=_empty)
    profile_feature: Array = field(default_factory=_empty)
    depends_missing: Array = field(default_factory=_empty)
    depends_view: Array = field(default_factory=_empty)
    depends_feature: Array = field(default_factory=_empty)
    depends_difference: Array = field(default_factory=_empty)
    depends_p: Array = field(default_factory=_empty)


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleResults:
    """Measurements of single samples.

    y                     (n,)          labels of the data
    plane, plane_rows     (p, 2), (p,)  positions of samples in the plane, and their rows
    margin, runner_up     (n,)          relative distance to the next cluster, and that cluster
    stays, tries          (n,)          `stays` of `tries` views left out in turn keep the cluster
    doubt, gaps, listed, nearest, cell_<field>  see `vedute.report.sample_values`
    """

    y: Array = field(default_factory=_empty, metadata=PERSONAL)
    plane: Array = field(default_factory=_empty)
    plane_rows: Array = field(default_factory=_empty)
    margin: Array = field(default_factory=_empty)
    runner_up: Array = field(default_factory=_empty)
    stays: Array = field(default_factory=_empty)
    tries: Array = field(default_factory=_empty)
    doubt: Array = field(default_factory=_empty)
    gaps: Array = field(default_factory=_empty)
    listed: Array = field(default_factory=_empty)
    nearest: Array = field(default_factory=_empty)
    cell_of: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_view: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_name: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_names: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_seen: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_value: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_low: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_high: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_word: Array = field(default_factory=_empty, metadata=PERSONAL)
    cell_z: Array = field(default_factory=_empty, metadata=PERSONAL)


class Results(NamedTuple):
    """All measurements of a fit."""

    run: RunResults
    samples: SampleResults

    def impersonal(self) -> Results:
        """The results without values and labels of single samples."""
        return Results(_impersonal(self.run), _impersonal(self.samples))

    def arrays(self) -> dict[str, Array]:
        """All measured fields as arrays, those of a table as <field>.<key>."""
        return {
            name: np.asarray(value)
            for part in self
            for f in fields(part)
            for name, value in _entries(f.name, getattr(part, f.name))
            if np.size(value) and value is not None
        }

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Results:
        """Results from `arrays`."""
        return cls(_filled(RunResults(), arrays), _filled(SampleResults(), arrays))


def personal(kind: type[RunResults] | type[SampleResults]) -> frozenset[str]:
    """Names of the fields that hold values or labels of single samples."""
    return frozenset(f.name for f in fields(kind) if f.metadata.get("personal"))


def _impersonal(part: T) -> T:
    empty = type(part)()
    return replace(part, **{name: getattr(empty, name) for name in personal(type(part))})


def _entries(name: str, value: Any) -> list[tuple[str, Any]]:
    """A field by its name, or the entries of a table by theirs."""
    if isinstance(value, dict):
        return [(f"{name}.{key}", entry) for key, entry in value.items()]
    return [(name, value)]


def _filled(part: T, arrays: Mapping[str, Array]) -> T:
    values = {f.name: _value(f, getattr(part, f.name), arrays) for f in fields(part)}
    return replace(part, **values)


def _value(f: Field[Any], default: Any, arrays: Mapping[str, Array]) -> Any:
    """The value of a field among arrays; its default if they lack it."""
    if isinstance(default, dict):
        names = {name: name.partition(".")[2] for name in arrays if name.startswith(f"{f.name}.")}
        return {int(k) if k.isdecimal() else k: arrays[name] for name, k in names.items()}
    value = arrays.get(f.name, default)
    return value if isinstance(default, np.ndarray) or f.name not in arrays else value.item()
