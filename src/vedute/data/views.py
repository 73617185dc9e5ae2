"""Views: samples seen from several views, some of them missing. The dataset and the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data import checks
from vedute.data.frames import ViewSpec, check_same
from vedute.data.tables import Columns


@dataclass(frozen=True, eq=False)
class Views:
    """n samples and L views.

    x      L tensors, x[v] of shape (n, *shape_v); zero wherever the view is missing
    mask   (n, L) bool, True where sample i was observed in view v
    index  (n,) position in the dataset at hand, for per-sample training state
    holes  per view (n, *shape_v) bool, True at single missing entries, or None
    names  L names
    ids    (n,) sample ids, or None (datasets only)
    y      (n,) labels, or None (evaluation only: no method ever sees them)
    specs  L descriptions of what the views looked like at the door: columns, categories; or None
    """

    x: tuple[Tensor, ...]
    mask: Tensor
    index: Tensor
    holes: tuple[Tensor | None, ...]
    names: tuple[str, ...]
    ids: NDArray[Any] | None = None
    y: NDArray[Any] | None = None
    specs: tuple[ViewSpec, ...] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        mask: Any = None,
        columns: Columns | None = None,
        y: Any = None,
        *,
        like: Sequence[ViewSpec] | None = None,
        dtype: torch.dtype | None = None,
    ) -> Views:
        """The one door into the library.

        X is a list or dict of arrays (n, *shape_v) or of DataFrames (joined by index), one 2-D
        table with `columns={"a": slice(0, 50), ...}`, or a Views. A row of NaN, a None view, or a
        sample absent from a frame is a missing view; single NaN are holes. `mask` (n, L): False
        hides what is there. `like`: the views an estimator was fitted on. `dtype`: of float views;
        by default float32, and float64 where that would round away what tells samples apart.
        """
        views, _ = read_views(X, mask, columns, like=like, dtype=dtype)
        if y is not None:
            labels = np.asarray(y)
            if labels.shape != (len(views),):
                raise ValueError(
                    f"y has shape {labels.shape}; expected one label per sample, ({len(views)},)"
                )
            views = replace(views, y=labels)
        return views

    def _checked(self, mask: Any, like: Sequence[ViewSpec] | None) -> Views:
        """A Views at the door: renumbered, masked further, fitted views compared."""
        views = replace(self, index=torch.arange(len(self), device=self.mask.device))
        labels = np.arange(len(self)) if self.ids is None else self.ids
        if not len(self):
            raise ValueError("X has no samples: Found array with 0 sample(s)")
        if mask is not None:
            if isinstance(mask, pd.DataFrame):
                mask = checks.joined_mask(mask, self.ids, self.names)
            seen = torch.from_numpy(checks.check_mask(mask, tuple(self.mask.shape)))
            wrong = (seen & ~self.mask.cpu()).numpy()
            if wrong.any():
                v = int(wrong.any(0).argmax())
                raise ValueError(
                    f"the mask marks view {self.names[v]!r} as observed where X has none: "
                    f"{checks.some(labels[wrong[:, v]])} no value there; correct the mask"
                )
            views = views.hide(~seen)
        blank = ~views.mask.any(1).cpu().numpy()
        if blank.any():
            raise ValueError(f"{checks.some(labels[blank])} no observed view; drop such rows")
        if like is not None:
            fitted = tuple(s.name for s in like)
            if self.names != fitted:
                raise ValueError(
                    f"views are {', '.join(self.names)}; fitted on {', '.join(fitted)}: pass these"
                )
            x = list(views.x)
            for mine, spec in zip(self.specs or (), like, strict=False):
                check_same(mine, spec)
            for v, spec in enumerate(like):
                if not views.mask[:, v].any() and views.shapes[v] == (0,):
                    x[v] = x[v].new_zeros(len(views), *spec.shape)
                elif views.shapes[v] != spec.shape:
                    raise ValueError(
                        f"view {spec.name!r} has samples of shape {views.shapes[v]}, "
                        f"fitted on {spec.shape}; pass the same columns"
                    )
                if x[v].dtype == torch.uint8 and not checks.keeps_bytes(spec):
                    x[v] = x[v].float()
            views = replace(views, x=tuple(x))
        return views

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        n, L = self.shape
        sizes = zip(self.names, self.shapes, strict=True)
        told = ", ".join(f"{k} {'x'.join(map(str, s))}" for k, s in sizes)
        return f"Views({n} samples, {L} views: {told}; {self.mask.float().mean():.0%} observed)"

    def __getitem__(self, rows: Any) -> Views:
        """Rows by slice, integers or booleans; also as scikit-learn asks for them, X[rows, ...]."""
        rows = rows[0] if isinstance(rows, tuple) else rows
        if isinstance(rows, (int, np.integer)):
            rows = [range(len(self))[rows]]  # out of range: an IndexError, which ends iteration
        elif isinstance(rows, slice) and (rows.step or 1) < 0:  # tensors have no such slices
            rows = range(len(self))[rows]
        host: Any = rows
        if isinstance(rows, Tensor):
            host = rows.cpu().numpy() if self.ids is not None or self.y is not None else None
        elif not isinstance(rows, slice):
            host = np.asarray(rows)
            host = host.astype(bool if host.dtype == bool else np.int64)
            rows = torch.from_numpy(host)
        out = self._map(lambda t: t[rows])
        return replace(
            out,
            ids=None if self.ids is None else self.ids[host],
            y=None if self.y is None else self.y[host],
        )

    @property
    def shape(self) -> tuple[int, int]:
        """(n, L), as scikit-learn's cross-validation expects of any X."""
        return len(self.mask), len(self.x)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(a.shape[1:]) for a in self.x]

    def to(self, device: str | torch.device) -> Views:
        return self._map(lambda t: t.to(device))

    def bare(self) -> Views:
        """Without ids and labels: what training may see."""
        return replace(self, ids=None, y=None)

    def pick(self, *views: int) -> Views:
        """Some of the views. Rows without any of them may result."""
        return replace(
            self,
            x=tuple(self.x[v] for v in views),
            mask=self.mask[:, list(views)],
            holes=tuple(self.holes[v] for v in views),
            names=tuple(self.names[v] for v in views),
            specs=None if self.specs is None else tuple(self.specs[v] for v in views),
        )

    def hide(self, hidden: Tensor) -> Views:
        """The same samples with the views at `hidden` (n, L) missing too."""
        mask = self.mask & ~hidden.to(self.mask.device)
        x = tuple(
            torch.where(_like(mask[:, v], a), a, torch.zeros((), dtype=a.dtype, device=a.device))
            for v, a in enumerate(self.x)
        )
        holes = tuple(
            None if h is None else h & _like(mask[:, v], h) for v, h in enumerate(self.holes)
        )
        return replace(self, x=x, mask=mask, holes=holes)

    def given(self, values: Mapping[int, Tensor]) -> Views:
        """The same samples, with these values (n, *shape_v) of view v where it was missing."""
        x, mask = list(self.x), self.mask.clone()
        for v, value in values.items():
            x[v] = torch.where(_like(self.mask[:, v], x[v]), x[v], value.to(x[v].dtype))
            mask[:, v] = True
        return replace(self, x=tuple(x), mask=mask)

    def floating(self) -> Views:
        """What networks see: bytes 0..255 become floats in [-1, 1], the rest stays."""
        if all(a.dtype != torch.uint8 for a in self.x):
            return self
        return replace(
            self, x=tuple(a / 127.5 - 1 if a.dtype == torch.uint8 else a for a in self.x)
        )

    def present(self) -> list[Tensor] | None:
        """Per view the rows that have it, to spare work for the others; None where there is
        nothing to spare, or on a GPU, whose captured step needs one shape."""
        if self.mask.is_cuda or bool(self.mask.all()):
            return None
        return [seen.nonzero()[:, 0] for seen in self.mask.unbind(1)]

    def batches(self, size: int) -> Iterator[Views]:
        """Consecutive slices of at most `size` rows; an empty one where there are no rows."""
        for start in range(0, max(len(self), 1), size):
            yield self[start : start + size]

    def _map(self, f: Callable[[Tensor], Tensor]) -> Views:
        return replace(
            self,
            x=tuple(f(a) for a in self.x),
            mask=f(self.mask),
            index=f(self.index),
            holes=tuple(None if h is None else f(h) for h in self.holes),
        )


def read_views(
    X: Any,
    mask: Any = None,
    columns: Columns | None = None,
    *,
    like: Sequence[ViewSpec] | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[Views, list[ViewSpec]]:
    """`Views.of`, and what the views looked like."""
    if isinstance(X, Views):
        views = X._checked(mask, like)
        told = views.specs or (None,) * len(views.x)
        each = zip(views.names, views.x, told, strict=True)
        specs = tuple(_described(name, a, spec) for name, a, spec in each)
        return replace(views, specs=specs), list(specs)
    raw = checks.read(X, mask, columns, like)
    views = Views(
        tuple(_tensor(a, dtype, raw.mask[:, v], raw.holes[v]) for v, a in enumerate(raw.arrays)),
        torch.from_numpy(raw.mask),
        torch.arange(len(raw.mask)),
        tuple(None if h is None else torch.from_numpy(h) for h in raw.holes),
        tuple(s.name for s in raw.specs),
        raw.ids,
        specs=tuple(raw.specs),
    )
    return views, raw.specs


def _described(name: str, a: Tensor, spec: ViewSpec | None) -> ViewSpec:
    """As told at the door, unless other numbers have come into its place since."""
    shape, kind = tuple(a.shape[1:]), ("uint8",) if a.dtype == torch.uint8 else ()
    if spec is not None and spec.shape == shape:
        image = len(shape) > 1
        if not image or (spec.dtypes == ("uint8",)) == bool(kind):
            return spec
    return ViewSpec(name, shape, dtypes=kind)


def _like(flag: Tensor, a: Tensor) -> Tensor:
    return flag.view(-1, *[1] * (a.ndim - 1))


def _tensor(
    a: NDArray[Any],
    dtype: torch.dtype | None,
    mask: NDArray[np.bool_],
    holes: NDArray[np.bool_] | None,
) -> Tensor:
    a = np.ascontiguousarray(a)
    t = torch.from_numpy(a if a.flags.writeable else a.copy())
    if not t.is_floating_point():
        return t
    return _compact(t, mask, holes) if dtype is None else t.to(dtype)


def _compact(t: Tensor, mask: NDArray[np.bool_], holes: NDArray[np.bool_] | None) -> Tensor:
    """float32, unless it has no room for a number, or rounds by a thousandth of the range of a
    feature: time stamps, say."""
    small = t.float()
    if t.dtype == torch.float32 or not len(t):
        return small
    seen = _like(torch.from_numpy(mask), t).expand_as(t)
    seen = seen if holes is None else seen & ~torch.from_numpy(holes)
    lost = (small.double() - t).abs().amax(0)  # nothing where t is missing, and zero
    spread = torch.where(seen, t, -torch.inf).amax(0) - torch.where(seen, t, torch.inf).amin(0)
    rounded = (lost > 1e-3 * spread) & (spread > 0) | ~lost.isfinite()
    return t if bool(rounded.any()) else small
