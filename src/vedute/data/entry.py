"""The input of a user: read once, and copied with its gaps filled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vedute.data import checks, fill, foreign
from vedute.data.frames import Fitted
from vedute.data.rows import by_row
from vedute.data.tables import Columns
from vedute.data.views import Array, Views, read


@dataclass(frozen=True, eq=False)
class Entry:
    """The input of a user, read once: as Views, and ready to be filled.

    views   checked; its specs describe the input
    parts   X taken apart
    back    converts filled frames to tables of polars or pyarrow, where X has such
    anew    views that are written as a whole, observed values as well
    """

    views: Views
    parts: checks.Parts
    back: foreign.Back = foreign.unchanged
    anew: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        X: Any,
        mask: Any = None,
        columns: Columns | None = None,
        *,
        like: Fitted = None,
        dtype: torch.dtype | None = None,
        aligned: bool = False,
        own: bool = False,
    ) -> Entry:
        """Read X; the arguments are those of `views.read`."""
        return cls(*read(X, mask, columns, like=like, dtype=dtype, aligned=aligned, own=own))

    def in_floats(self, anew: Iterable[int]) -> Entry:
        """Convert views to floats that are filled as a whole: on another scale, say."""
        anew = frozenset(anew)
        names = {self.views.names[v] for v in anew}
        return replace(self, parts=fill.in_floats(self.parts, names), anew=anew)

    def filled(self, values: Sequence[Array]) -> Any:
        """Copy X with `values`, L arrays (n, *shape_v), where it has none."""
        copy = Filling(self)
        copy.add(values)
        return copy.filled()


class Filling:
    """A copy of the user's input, filled block by block where it has gaps. NaN in values of the
    views `with_gaps` stays missing, where X is a Views."""

    def __init__(self, entry: Entry, with_gaps: Collection[int] = ()) -> None:
        self.entry, self.with_gaps, self.written = entry, with_gaps, 0
        self.copies = [fill.copy(entry.parts, spec, len(entry.views)) for spec in entry.parts.specs]

    def add(self, values: Sequence[Array]) -> None:
        """Fill the next rows, L arrays (k, *shape_v)."""
        rows = slice(self.written, self.written + len(values[0]))
        self.written, views = rows.stop, self.entry.views
        for v, (copy, value) in enumerate(zip(self.copies, values, strict=True)):
            x, holes, gap = views.parts[v], views.hole_parts[v], np.ones(value.shape, bool)
            if v not in self.entry.anew:
                missing = by_row(~views.mask[rows, v], x).expand(-1, *x.shape[1:])
                gap = (missing if holes is None else missing | holes[rows]).cpu().numpy()
            copy.add(rows, value, gap)

    def filled(self) -> Any:
        """Return the copy, after all rows were added."""
        X, copies = self.entry.parts.X, [copy.view() for copy in self.copies]
        if not isinstance(X, Views):
            return self.entry.back(fill.joined(self.entry.parts, copies))
        holes = list[Tensor | None]([None] * len(copies))
        for v in self.with_gaps:
            holes[v] = copies[v].isnan()
            copies[v] = copies[v].nan_to_num(0.0)
        return replace(
            X,
            x=tuple(copies),
            mask=torch.ones_like(X.mask),
            holes=tuple(holes),
            specs=X.specs and tuple(self.entry.parts.specs),
            sizes=(),
        )
