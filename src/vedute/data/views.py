"""Views: samples seen from several views, some of them missing. The dataset and the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data import checks, foreign, frames, html, kinds, store
from vedute.data.escaping import escaped
from vedute.data.rows import (
    Part,
    Rows,
    Tensors,
    by_row,
    in_file,
    pieces,
    select,
    slices,
    stretches,
    then,
)
from vedute.data.tables import Columns, without

Array = NDArray[Any]
Shapes = Sequence[tuple[int, ...]]  # one sample of each view
Names = Sequence[str]  # one per view
Context = Mapping[str, Tensor]  # named tensors of the rows, (n, ...)
MOST_SUMMARIZED = 2**25  # entries of views whose kind a notebook omits, since it takes a second


@dataclass(frozen=True, eq=False)
class Views:
    """n samples and L views.

    x      L tensors, x[v] of shape (n, *shape_v); zero wherever the view is missing. For views that
           are large and sparse, or on the disk, x[v] is read at each access: `parts` has them as
           stored. The same goes for holes on the disk: see `hole_parts`.
    mask   (n, L) bool, True where sample i was observed in view v
    index  (n,) position in the dataset, for per-sample training state
    holes  per view (n, *shape_v) bool, True at single missing entries, or None
    names  L names
    ids    (n,) sample ids, or None (datasets only)
    y      (n,) labels, or None (evaluation only: no method ever sees them)
    specs  L descriptions of the user's views: columns, categories; or None
    sizes  per view (n,), divisors of its rows in scaling, or None
    context  named tensors (n, ...) that a network or a likelihood may read: covariates, weights
    """

    x: Sequence[Tensor]
    mask: Tensor
    index: Tensor
    holes: Sequence[Tensor | None]
    names: tuple[str, ...]
    ids: Array | None = None
    y: Array | None = None
    specs: tuple[frames.ViewSpec, ...] | None = None
    sizes: Sequence[Tensor | None] = ()
    context: Context = field(default_factory=dict)
    parts: tuple[Any, ...] = field(init=False)  # the views as stored: tensors, or Rows
    hole_parts: tuple[Any, ...] = field(init=False)
    shapes: list[tuple[int, ...]] = field(init=False)
    on_disk: bool = field(init=False)  # whether any rows are read from the disk

    def __post_init__(self) -> None:
        parts = tuple(getattr(self.x, "parts", self.x))
        holes = tuple(getattr(self.holes, "parts", self.holes))
        shapes = []
        for a in parts:
            shapes.append(tuple(a.shape[1:]))
        stored: dict[str, Any] = {"parts": parts, "hole_parts": holes, "shapes": shapes}
        lazy = Rows in map(type, parts + holes)
        stored |= {"on_disk": lazy and any(map(in_file, parts + holes))}
        stored |= {"x": Tensors(parts) if Rows in map(type, parts) else parts}
        stored |= {"holes": Tensors(holes) if Rows in map(type, holes) else holes}
        for name, value in stored.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        X: Any,
        mask: Any = None,
        columns: Columns | None = None,
        y: Any = None,
        *,
        like: frames.Fitted = None,
        dtype: torch.dtype | None = None,
        drop: str | Sequence[Any] = (),
    ) -> Views:
        """Read views from X, the only way into the library.

        X is a list or dict of arrays (n, *shape_v) or of DataFrames (joined by index), one 2-D
        table with `columns={"a": slice(0, 50), ...}`, or a Views. A row of NaN, a None view, or a
        sample absent from a frame is a missing view; single NaN are holes. `mask` (n, L): False
        hides observed views. `like`: the views an estimator was fitted on. `dtype`: of float views;
        by default float32, and float64 where float32 would make samples equal. `drop`: columns of
        DataFrames to leave out, in any view.
        """
        views, _, _ = read(X, mask, columns, like=like, dtype=dtype, drop=drop)
        if y is not None:
            labels = np.asarray(y)
            if labels.shape != (len(views),):
                raise ValueError(
                    f"y has shape {labels.shape}; expected one label per sample, ({len(views)},)"
                )
            views = replace(views, y=labels)
        return views

    @classmethod
    def open(cls, folder: str | Path, check: bool = True, rows: slice = slice(None)) -> Views:
        """Open a store that `vedute convert` wrote, or a slice of its rows: its arrays are
        memory-mapped. check: compare the checksums of all files first, which reads them once."""
        fields, _, _ = store.read(folder, rows, check)
        return cls(**fields)

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        n, L = self.shape
        sizes = zip(self.names, self.shapes, strict=True)
        views = ", ".join(f"{escaped(k)} {'x'.join(map(str, s))}" for k, s in sizes)
        return f"Views({n} samples, {L} views: {views}; {self.mask.float().mean():.0%} observed)"

    def _repr_html_(self) -> str:
        """Format for notebooks: views, observed share of each, and the most frequent patterns."""
        rows, specs = [], self.specs or (None,) * len(self.x)
        for v, (x, shape, spec) in enumerate(zip(self.parts, self.shapes, specs, strict=True)):
            large = math.prod(x.shape) > MOST_SUMMARIZED
            kind = "" if large else kinds.recognise(x, self.seen(v), spec).kind.name
            seen = f"{int(self.mask[:, v].sum())} of {len(self)}"
            holes = html.percent(self.share_of_holes(v))
            rows.append([self.names[v], html.shape(shape), seen, kind, holes])
        table = html.table(("view", "shape", "samples", "kind", "single values missing"), rows)
        patterns = html.patterns(self.mask.cpu().numpy(), self.names)
        return html.section(f"{len(self)} samples, {len(self.x)} views", table, patterns)

    def __getitem__(self, rows: Any) -> Views:
        """Select rows by slice, integers or booleans; also X[rows, ...], as in scikit-learn."""
        rows = rows[0] if isinstance(rows, tuple) else rows
        if isinstance(rows, (int, np.integer)):
            rows = [range(len(self))[rows]]  # out of range: an IndexError, which ends iteration
        elif isinstance(rows, slice) and (rows.step or 1) < 0:  # tensors have no such slices
            rows = range(len(self))[rows]
        if not isinstance(rows, (Tensor, slice)):
            array = np.asarray(rows)
            rows = torch.from_numpy(array.astype(bool if array.dtype == bool else np.int64))
        selected = self._map(partial(select, rows=rows))
        if self.ids is None and self.y is None:
            return selected
        rows = rows.cpu().numpy() if isinstance(rows, Tensor) else rows
        ids, y = (None if a is None else a[rows] for a in (self.ids, self.y))
        return replace(selected, ids=ids, y=y)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, L), as scikit-learn's cross-validation expects of any X."""
        return len(self.mask), len(self.x)

    def in_memory(self) -> Views:
        """Read all rows into memory; those of sparse views stay as they are."""
        return self._map(lambda a: a[:] if in_file(a) else a) if self.on_disk else self

    def to(self, device: str | torch.device) -> Views:
        return self._map(methodcaller("to", device))

    def seen(self, v: int) -> Tensor:
        """Mask (n, *shape_v) of the observed entries of view v."""
        return self.seen_part(v)[:]

    def seen_part(self, v: int) -> Part:
        """Mask of the observed entries of view v, on the disk where its holes are."""
        x, holes = self.parts[v], self.hole_parts[v]
        row = by_row(self.mask[:, v], x).expand(x.shape)
        return row if holes is None else then(holes, partial(_without, row))

    def share_of_holes(self, v: int) -> float:
        """Share of missing entries of view v in samples that have it."""
        holes, entries = self.hole_parts[v], int(self.mask[:, v].sum()) * math.prod(self.shapes[v])
        many = 0 if holes is None else sum(int(holes[rows].sum()) for rows in pieces(holes))
        return many / entries if entries else 0.0

    def size(self, v: int) -> Any:
        """Divisors of the rows of view v, (n, 1, ...); 1 without any."""
        size = self.sizes[v] if self.sizes else None
        return 1.0 if size is None else by_row(size, self.parts[v]).cpu().numpy()

    def arrays(self) -> list[Array]:
        """Convert to arrays (n, *shape_v), NaN where missing; bytes and integers are unchanged."""
        return [
            self.known(v) if x.dtype.is_floating_point else x[:].cpu().numpy()
            for v, x in enumerate(self.parts)
        ]

    def known(self, v: int) -> Array:
        """View v as numbers (n, *shape_v), NaN where missing."""
        return np.where(self.seen(v).cpu().numpy(), self.x[v].cpu().numpy(), np.nan)

    def bare(self) -> Views:
        """Drop ids and labels, which training must not see."""
        return replace(self, ids=None, y=None)

    def pick(self, *views: int) -> Views:
        """Select views. Rows without any of them may result."""
        return replace(
            self,
            x=tuple(map(self.parts.__getitem__, views)),
            mask=self.mask[:, list(views)],
            holes=tuple(map(self.hole_parts.__getitem__, views)),
            names=tuple(map(self.names.__getitem__, views)),
            specs=self.specs and tuple(map(self.specs.__getitem__, views)),
            sizes=self.sizes and tuple(map(self.sizes.__getitem__, views)),
        )

    def hide(self, hidden: Tensor) -> Views:
        """Hide the views at `hidden` (n, L), too."""
        mask = self.mask & ~hidden.to(self.mask.device)
        x, holes, sizes = list(self.parts), list(self.hole_parts), list(self.sizes)
        for v, seen in enumerate(mask.unbind(1)):
            x[v], gaps = then(x[v], partial(_zero_outside, seen)), holes[v]
            holes[v] = None if gaps is None else then(gaps, partial(_zero_outside, seen))
        for v, size in enumerate(self.sizes):
            sizes[v] = None if size is None else torch.where(mask[:, v], size, 1.0)
        return replace(self, x=x, mask=mask, holes=holes, sizes=sizes)

    def given(self, values: Mapping[int, Tensor]) -> Views:
        """Insert values (n, *shape_v) of views where these were missing."""
        x, mask = list(self.x), self.mask.clone()
        for v, value in values.items():
            x[v] = torch.where(by_row(self.mask[:, v], x[v]), x[v], value.to(x[v].dtype))
            mask[:, v] = True
        return replace(self, x=x, mask=mask)

    def floating(self) -> Views:
        """Convert bytes 0..255 to floats in [-1, 1], the input of networks."""
        x = list(self.parts)
        for v, a in enumerate(x):
            if a.dtype == torch.uint8:
                x[v] = then(a, _centered, torch.float32)
        return replace(self, x=x)

    def present(self) -> Sequence[Tensor] | None:
        """Rows that have each view, to spare work for the others; None where none can be spared,
        or on a GPU, whose captured step needs one shape."""
        if self.mask.is_cuda or bool(self.mask.all()):
            return None
        _, rows = self.mask.T.nonzero(as_tuple=True)
        return torch.split(rows, self.mask.sum(0).tolist())

    def batches(self, size: int) -> Iterator[Views]:
        """Iterate over slices of at most `size` rows; a single empty one for no rows."""
        return map(self.__getitem__, slices(max(len(self), 1), size))

    def pieces(self) -> Iterator[Views]:
        """Iterate over all rows, in blocks that are read from the disk together."""
        return map(self.__getitem__, stretches(len(self), sum(map(math.prod, self.shapes))))

    def _map(self, f: Callable[[Any], Any]) -> Views:
        """Apply f to all that has rows; it leaves None as it is."""
        groups = self.parts, self.hole_parts, self.sizes, (self.mask, self.index)
        results: list[list[Any]] = []
        for group in (*groups, self.context.values()):
            results.append([])
            for a in group:
                results[-1].append(None if a is None else f(a))
        x, holes, sizes, (mask, index), context = results
        named = dict(zip(self.context, context, strict=True))
        return replace(self, x=x, mask=mask, index=index, holes=holes, sizes=sizes, context=named)


def read(
    X: Any,
    mask: Any = None,
    columns: Columns | None = None,
    *,
    like: frames.Fitted = None,
    dtype: torch.dtype | None = None,
    aligned: bool = False,
    own: bool = False,
    drop: str | Sequence[Any] = (),
) -> tuple[Views, checks.Parts, foreign.Back | None]:
    """Read X: as views, taken apart, and a function that converts filled frames to the tables of X,
    of polars or pyarrow. Arguments are those of `Views.of` and `checks.read`; own: keep floats."""
    if isinstance(X, Views):
        if drop:
            raise ValueError("drop= is for DataFrames; X is a Views already: leave it out")
        views = _again(X, mask, like)
        triples = zip(views.names, X.parts, views.parts, strict=True)
        own_views = {k: a if a.shape == b.shape else b for k, a, b in triples}
        index = None if views.ids is None else pd.Index(views.ids)
        parts = checks.Parts(X, None, own_views, index, [*(views.specs or ())])
        return views, parts, None
    X, back = foreign.as_pandas(X)
    X = without(X, drop) if len(drop) else X
    parts, x, seen, holes = checks.read(X, mask, columns, like, dtype, aligned, own)
    ids, specs = None if parts.rows is None else np.asarray(parts.rows), tuple(parts.specs)
    names, order = tuple(map(attrgetter("name"), specs)), torch.arange(len(seen))
    views = Views(x, seen, order, holes, names, ids, specs=specs)
    return views, parts, back


def _again(X: Views, mask: Any, like: frames.Fitted) -> Views:
    """Renumber, mask further and describe a Views of the user; check it against fitted views, and
    convert it to their shapes, and bytes to numbers where these were fitted."""
    if not len(X):
        raise ValueError("X has no samples: Found array with 0 sample(s)")
    seen = checks.observed(X.mask.cpu().numpy(), mask, X.names, X.ids)
    views = replace(X, index=torch.arange(len(X), device=X.mask.device))
    views = views if mask is None else views.hide(~torch.from_numpy(seen))
    x, specs = list(views.parts), X.specs or (None,) * len(X.names)
    if like is not None:
        fitted = tuple(s.name for s in like)
        if X.names != fitted:
            raise ValueError(
                f"views are {', '.join(X.names)}; fitted on {', '.join(fitted)}: pass these"
            )
        for mine, spec in zip(X.specs or (), like, strict=False):
            frames.check_same(mine, spec)
        for v, (a, spec) in enumerate(zip(x, like, strict=True)):
            if isinstance(a, Tensor) and a.shape[1:] == (0,) and not bool(views.mask[:, v].any()):
                x[v] = a = a.new_zeros(len(a), *spec.shape)
            checks.same_shape(tuple(a.shape[1:]), spec)
            if a.dtype == torch.uint8 and spec.dtypes != ("uint8",):
                x[v] = then(a, _single, torch.float32)
    described = map(_described, X.names, x, specs)
    return replace(views, x=x, specs=tuple(described))


def _described(name: str, a: Part, spec: frames.ViewSpec | None) -> frames.ViewSpec:
    """Return the user's spec, unless the view has been replaced by other numbers."""
    shape, is_bytes = tuple(a.shape[1:]), a.dtype == torch.uint8
    if spec is not None and spec.shape == shape:
        images = len(shape) > 1
        if not images or (spec.dtypes == ("uint8",)) == is_bytes:
            return spec
    return frames.ViewSpec(name, shape, dtypes=("uint8",) if is_bytes else ())


def _zero_outside(mask: Tensor, x: Tensor, rows: Any) -> Tensor:
    return x.masked_fill(~by_row(mask[rows].to(x.device), x), 0)


def _without(seen: Tensor, holes: Tensor, rows: Any) -> Tensor:
    return seen[rows].to(holes.device) & ~holes


def _single(x: Tensor, rows: Any) -> Tensor:
    return x.to(torch.float32)


def _centered(x: Tensor, rows: Any) -> Tensor:
    return x / 127.5 - 1
