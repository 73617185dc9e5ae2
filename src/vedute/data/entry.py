"""The input of a user: read once, and copied with its gaps filled, type in = type out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from vedute.data import checks, fill, foreign, rows
from vedute.data.frames import ViewSpec, is_frame
from vedute.data.mapped import Stack
from vedute.data.tables import Columns, as_array, chosen
from vedute.data.views import Views, read

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Entry:
    """The input of a user, read once: as Views, and ready to be filled.

    views   checked; its specs describe the input
    parts   X taken apart
    back    converts filled frames to tables of polars or pyarrow; None where X has none
    """

    views: Views
    parts: checks.Parts
    back: foreign.Back | None

    @classmethod
    def of(cls, X: Any, mask: Any = None, columns: Columns | None = None, **how: Any) -> Entry:
        """Read X; the arguments are those of `views.read`."""
        return cls(*read(X, mask, columns, **how))

    def filled(self, values: Sequence[Array], anew: Collection[int] = ()) -> Any:
        """Copy X with `values`, L arrays (n, *shape_v), where it has none; all of views `anew`."""
        copy = Filling(self, anew)
        copy.add(self.views, values)
        return copy.filled()


class Filling:
    """A copy of the user's input, filled block by block where it has gaps.

    anew       views that are written as a whole, observed values as well
    with_gaps  views whose values may be NaN, which stays missing where X is a Views
    floats     whether views that are written anew become floats: they are on another scale, say
    """

    def __init__(
        self,
        entry: Entry,
        anew: Collection[int] = (),
        with_gaps: Collection[int] = (),
        floats: bool = True,
    ) -> None:
        self.entry, self.anew, self.with_gaps, self.written = entry, anew, with_gaps, 0
        self.views, self.specs, self.copies = list[Any](), list[ViewSpec](), list[Copy | Stack]()
        for v, spec in enumerate(entry.parts.specs):
            view = rows.whole(entry.parts.views[spec.name])
            if floats and v in anew:
                spec = replace(spec, dtypes=("float64",) * len(spec.dtypes), origins=())
                view = _in_floats(view)
            late = view is None or is_frame(view) or sparse.issparse(view)  # after all rows
            self.copies.append(Stack(len(entry.views)) if late else Copy(view))
            self.views.append(view)
            self.specs.append(spec)

    def add(self, batch: Views, values: Sequence[Array]) -> None:
        """Fill the next rows, those of a batch, with L arrays (k, *shape_v)."""
        at = slice(self.written, self.written + len(batch))
        self.written = at.stop
        for v, (copy, value) in enumerate(zip(self.copies, values, strict=True)):
            if isinstance(copy, Copy):
                copy.fill(at, value, self._gap(batch, v))
            else:
                copy.add(value)

    def filled(self) -> Any:
        """Return the copy, after all rows were added."""
        X, copies = self.entry.parts.X, list[Any]()
        for v, copy in enumerate(self.copies):
            copies.append(copy.view() if isinstance(copy, Copy) else self._view(v, copy.array))
        if not isinstance(X, Views):
            filled, back = _joined(self.entry.parts, copies), self.entry.back
            return filled if back is None else back(filled)
        holes = list[Tensor | None]([None] * len(copies))
        for v in self.with_gaps:
            holes[v] = copies[v].isnan()
            copies[v] = copies[v].nan_to_num(0.0)
        return replace(
            X,
            x=tuple(copies),
            mask=torch.ones_like(X.mask),
            holes=tuple(holes),
            specs=X.specs and tuple(self.specs),
            sizes=(),
        )

    def _gap(self, views: Views, v: int) -> Array:
        """Mask (k, *shape_v) of the entries of view v that are written."""
        seen = views.seen(v).cpu().numpy()
        return np.ones_like(seen) if v in self.anew else ~seen

    def _view(self, v: int, value: Array) -> Any:
        """Fill a frame, a sparse matrix, or a view that no sample has with values (n, *shape_v)."""
        view, spec, index = self.views[v], self.specs[v], self.entry.parts.rows
        gap = self._gap(self.entry.views, v)
        if sparse.issparse(view):
            return fill.filled_sparse(view, value, gap)
        if index is None:
            return fill.as_array(value, spec)
        return fill.filled_frame(view, index, value, gap, spec)


class Copy:
    """An array or tensor of numbers whose missing entries are filled block by block."""

    def __init__(self, view: Any) -> None:
        self.tensor = (view.device, view.dtype) if isinstance(view, Tensor) else None
        a = np.array(as_array(view))
        self.array: Array = a if a.dtype.kind in "biufO" else a.astype(np.float64)

    def fill(self, at: slice, value: Array, gap: Array) -> None:
        """Fill rows with values (k, *shape) where gap is True."""
        own = self.array[at]
        if value.ndim == own.ndim == 4 and value.shape != own.shape:  # images of the user
            value, gap = (np.moveaxis(a, -3, -1) for a in (value, gap))  # channels last
        gap = gap.reshape(own.shape)  # columns may be one number
        own[gap] = fill.as_dtype(value.reshape(own.shape), own.dtype)[gap]

    def view(self) -> Any:
        return self.array if self.tensor is None else torch.from_numpy(self.array).to(*self.tensor)


def _in_floats(view: Any) -> Any:
    """Convert a view to floats, all of which are to be written; frames lose their cells."""
    if isinstance(view, Tensor):
        return view if view.is_floating_point() else view.double()
    if isinstance(view, pd.DataFrame):
        return pd.DataFrame(0.0, view.index, view.columns)
    if isinstance(view, pd.Series):
        return pd.Series(0.0, view.index, name=view.name)
    if view is None or np.dtype(getattr(view, "dtype", object)).kind == "f":
        return view
    return view.astype(np.float64) if sparse.issparse(view) else np.zeros(np.shape(view))


def _joined(parts: checks.Parts, copies: list[Any]) -> Any:
    """Put filled views into an object like X; columns of a table in no view are unchanged."""
    X, columns = parts.X, parts.columns
    if columns is None and isinstance(X, (list, tuple)):
        return tuple(copies) if isinstance(X, tuple) else copies
    if columns is None and not isinstance(X, Mapping):
        return copies[0]
    views = {spec.name: view for spec, view in zip(parts.specs, copies, strict=True)}
    if columns is None:
        named = {k: views.pop(str(k)) for k in X}
        return named | views
    if isinstance(X, pd.DataFrame):
        return fill.with_columns(X, pd.concat(copies, axis=1))
    out = np.array(X.toarray() if sparse.issparse(X) else X)
    if out.dtype.kind in "biu" and any(view.dtype.kind == "f" for view in copies):
        out = out.astype(np.float64)
    for name, which in columns.items():
        view = views[str(name)]
        out[:, chosen(which)] = view.toarray() if sparse.issparse(view) else view
    return type(X)(out) if sparse.issparse(X) else out
