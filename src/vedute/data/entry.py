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
from vedute.data.frames import Frame, ViewSpec
from vedute.data.mapped import Stack
from vedute.data.tables import Columns, as_array, chosen
from vedute.data.views import Views, read

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Entry:
    """The input of a user, read once: as Views, and ready to be filled."""

    views: Views  # checked; its specs describe the input
    parts: checks.Parts
    back: foreign.Back | None  # converts filled frames to tables of polars or pyarrow

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
    """A copy of the user's input, filled block by block where it has gaps."""

    def __init__(
        self,
        entry: Entry,
        anew: Collection[int] = (),  # views that are written as a whole, observed values as well
        with_gaps: Collection[int] = (),  # views with NaN, which stays missing where X is a Views
        floats: bool = True,  # whether views `anew` become floats: they are on another scale, say
    ) -> None:
        self.entry, self.anew, self.with_gaps, self.written = entry, anew, with_gaps, 0
        self.views, self.specs, self.copies = list[Any](), list[ViewSpec](), list[Array | Stack]()
        for v, spec in enumerate(entry.parts.specs):
            view = rows.whole(entry.parts.views[spec.name])
            if floats and v in anew:
                spec = replace(spec, dtypes=("float64",) * len(spec.dtypes), origins=())
                if isinstance(view, Tensor):
                    view = view if view.is_floating_point() else view.double()
                elif isinstance(view, pd.DataFrame):
                    view = pd.DataFrame(0.0, view.index, view.columns)
                elif isinstance(view, pd.Series):
                    view = pd.Series(0.0, view.index, name=view.name)
                elif view is not None and np.dtype(getattr(view, "dtype", object)).kind != "f":
                    is_array = not sparse.issparse(view)
                    view = np.zeros(np.shape(view)) if is_array else view.astype(np.float64)
            if view is None or isinstance(view, Frame) or sparse.issparse(view):  # after all rows
                self.copies.append(Stack(len(entry.views)))
            else:
                a = np.array(as_array(view))
                self.copies.append(a if a.dtype.kind in "biufO" else a.astype(np.float64))
            self.views.append(view)
            self.specs.append(spec)

    def add(self, batch: Views, values: Sequence[Array]) -> None:
        """Fill the next rows, those of a batch, with L arrays (k, *shape_v)."""
        at = slice(self.written, self.written + len(batch))
        self.written = at.stop
        for v, (copy, value) in enumerate(zip(self.copies, values, strict=True)):
            if isinstance(copy, Stack):
                copy.add(value)
                continue
            own, gap = copy[at], ~batch.seen(v).cpu().numpy() | (v in self.anew)
            if value.ndim == own.ndim == 4 and value.shape != own.shape:  # images of the user
                value, gap = (np.moveaxis(a, -3, -1) for a in (value, gap))  # channels last
            gap = gap.reshape(own.shape)  # columns may be one number
            own[gap] = fill.as_dtype(value.reshape(own.shape), own.dtype)[gap]

    def filled(self) -> Any:
        """Return the copy, after all rows were added."""
        X, copies = self.entry.parts.X, list[Any]()
        for v, (view, copy) in enumerate(zip(self.views, self.copies, strict=True)):
            if isinstance(copy, Stack):
                copies.append(self._late(v, copy.array))
            elif isinstance(view, Tensor):
                copies.append(torch.from_numpy(copy).to(view.device, view.dtype))
            else:
                copies.append(copy)
        if not isinstance(X, Views):
            filled, back = _joined(self.entry.parts, copies), self.entry.back
            return filled if back is None else back(filled)
        holes = list[Tensor | None]([None] * len(copies))
        for v in self.with_gaps:
            holes[v] = copies[v].isnan()
            copies[v] = copies[v].nan_to_num(0.0)
        mask, specs = torch.ones_like(X.mask), X.specs and tuple(self.specs)
        return replace(X, x=tuple(copies), mask=mask, holes=tuple(holes), specs=specs, sizes=())

    def _late(self, v: int, value: Array) -> Any:
        """Fill a frame, a sparse matrix, or a view that no sample has with values (n, *shape_v)."""
        view, spec, index = self.views[v], self.specs[v], self.entry.parts.rows
        gap = ~self.entry.views.seen(v).cpu().numpy() | (v in self.anew)
        if sparse.issparse(view):
            holed, csr = gap.any(1), view.reshape(value.shape).tocsr()  # others are unchanged
            filled = fill.as_dtype(value[holed], view.dtype)
            new = sparse.csr_array(np.where(gap[holed], filled, csr[holed].toarray()))
            order = np.arange(len(value))
            order[holed] = len(value) + np.arange(new.shape[0])
            stacked = sparse.vstack([csr, new], format="csr")[order]
            return type(view)(stacked.reshape(view.shape))
        if index is None:
            return fill.as_array(value, spec)
        return fill.filled_frame(view, index, value, gap, spec)


def _joined(parts: checks.Parts, copies: list[Any]) -> Any:
    """Put filled views into an object like X; columns of a table in no view are unchanged."""
    X, columns = parts.X, parts.columns
    if columns is None and not isinstance(X, Mapping):
        copies = copies if isinstance(X, (list, tuple)) else copies[0]
        return tuple(copies) if isinstance(X, tuple) else copies
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
