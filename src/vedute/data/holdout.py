"""Observed views and single entries that are held out for the whole fit: they stop training early,
measure it and calibrate it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.rows import Part, by_row, pieces, then
from vedute.data.scaling import Scaler
from vedute.data.views import Views

Array = NDArray[Any]
Holes = Sequence[Part | None]  # one per view
SHARE, FEWEST_HIDDEN = 0.1, 20
HOLED_ROWS = 2000  # most rows with hidden entries
HIDDEN_NUMBERS = 2**25  # most values of hidden samples


def choose(
    mask: Tensor,
    fewest: int = FEWEST_HIDDEN,
    width: int = 1,
    groups: Tensor | None = None,
    holes: Holes = (),
) -> Tensor | None:
    """Choose about a tenth of the observed slots, at most one per row, never a row's last one, and
    never the last values of a column.

    mask (n, L) -> (n, L) bool; None when fewer than `fewest` can be had. Fewer are enough for
    samples with many numbers (`width`). The same view is hidden in all rows of a group (n,), so
    that no other row of it gives away what was. holes: those of the views, if any.
    """
    rows = (mask.sum(1) > 1).nonzero()[:, 0]
    most = max(FEWEST_HIDDEN, HIDDEN_NUMBERS // width)
    count = min(len(rows), round(SHARE * int(mask.sum())), most)
    if count < fewest:
        return None
    if groups is None:
        rows = rows[torch.randperm(len(rows))[:count]]
        draw = torch.rand(len(rows), mask.shape[1]).masked_fill(~mask[rows], -1.0)
        hidden = torch.zeros_like(mask)
        hidden[rows, draw.argmax(1)] = True
    else:
        hidden = _choose_groups(mask, count, groups)
    hidden = spare_last_values(hidden, mask, holes, groups)
    return hidden if int(hidden.sum()) >= fewest else None


def spare_last_values(
    hidden: Tensor, mask: Tensor, holes: Holes = (), groups: Tensor | None = None
) -> Tensor:
    """Drop slots (n, L) with the last values of a column; for a group (n,), all rows or none."""
    hidden = hidden.clone()
    for v, view_holes in enumerate(holes or [None] * mask.shape[1]):
        rows, others = hidden[:, v].nonzero()[:, 0], mask[:, v] & ~hidden[:, v]
        if view_holes is None:  # masks of columns with a value: of hidden rows, of any other one
            values, left = torch.ones(len(rows), 1, dtype=torch.bool), others.any().view(1)
        else:
            values = ~view_holes[rows].flatten(1)
            blocks = ((others[part, None], view_holes[part]) for part in pieces(view_holes))
            left = torch.stack([(has & ~gap.flatten(1)).any(0) for has, gap in blocks]).any(0)
        for i in (values & ~left).any(1).nonzero()[:, 0].tolist():
            if bool((values[i] & ~left).any()):
                back = rows == rows[i] if groups is None else groups[rows] == groups[rows[i]]
                hidden[rows[back], v] = False
                left |= values[back].any(0)
    return hidden


def _choose_groups(mask: Tensor, count: int, groups: Tensor) -> Tensor:
    """Choose at most `count` slots, those of one view in each of some groups, at random. A view can
    be hidden where every row of the group that has it has another one, too."""
    n_groups = int(groups.max()) + 1
    alone = mask & (mask.sum(1, keepdim=True) < 2)
    zeros = torch.zeros(n_groups, mask.shape[1], dtype=torch.long)
    observed, stuck = (zeros.index_add(0, groups, m.long()) for m in (mask, alone))
    draw = torch.rand(zeros.shape).masked_fill((observed == 0) | (stuck > 0), -1.0)
    best, view = draw.max(1)
    order = torch.randperm(n_groups)
    order = order[best[order] >= 0]
    chosen = torch.zeros_like(zeros, dtype=torch.bool)
    for group, size in zip(order, observed[order, view[order]].tolist(), strict=True):
        if size <= count:
            chosen[group, view[group]] = True
            count -= size
    return chosen[groups] & mask


def hide_entries(data: Views, scalers: Sequence[Scaler]) -> Views:
    """Hide about a tenth of the entries of HOLED_ROWS rows in views that have holes; never the last
    that a row has of a view, nor the last of a column."""
    width = sum(map(math.prod, data.shapes))
    most = max(FEWEST_HIDDEN, min(HOLED_ROWS, HIDDEN_NUMBERS // width))
    drawn = torch.randperm(len(data))[:most]
    x, holes = list[Any](data.parts), list[Any](data.hole_parts)
    holed = [v for v, old in enumerate(holes) if old is not None]
    if data.on_disk:  # hide entries in these rows only, and insert them when they are read
        drawn = drawn.sort().values
        inside = hide_entries(data[drawn], scalers)
        place = torch.full((len(data),), -1, dtype=torch.int32)
        place[drawn] = torch.arange(len(drawn), dtype=torch.int32)
        for v in holed:
            x[v] = then(x[v], partial(_replaced, place, inside.x[v]))
            holes[v] = then(holes[v], partial(_replaced, place, inside.holes[v]))
        return replace(data, x=x, holes=holes)
    chosen = torch.zeros(len(data), dtype=torch.bool)
    chosen[drawn] = True
    for v in holed:
        a = data.x[v]
        new = holes[v] | choose_entries(torch.rand(a.shape), data.seen(v), SHARE, chosen)
        x[v], holes[v] = torch.where(new, torch.from_numpy(scalers[v].mean).to(a), a), new
    return replace(data, x=x, holes=holes)


def _replaced(place: Tensor, new: Any, x: Tensor, rows: Any) -> Tensor:
    """Replace the rows of x that are in `new`; place (n,): their row in it, or -1."""
    at, x = place[rows], x.clone()
    x[at >= 0] = new[at[at >= 0].long()]
    return x


def choose_entries(luck: Tensor, seen: Tensor, share: float, rows: Tensor | None = None) -> Tensor:
    """Choose entries with a luck below `share`; the luckiest of a row, and of a column that would
    lose all, stays. luck, from 0 to 1, and seen: (n, *shape); rows (n,): those that may lose some.
    """
    luck = luck.where(seen, -1.0)
    chosen = seen & (luck < share) & (luck < by_row(luck.flatten(1).amax(1), luck))
    chosen = chosen if rows is None else chosen & by_row(rows, luck)
    lost = seen.any(0) & ~(seen & ~chosen).any(0)
    return chosen & ~(lost & (luck == luck.amax(0)))


@dataclass(frozen=True, eq=False)
class Hidden:
    """m rows with something hidden."""

    inputs: Views  # without it
    truth: Views  # with it
    groups: Tensor | None = None  # (m,): rows that belong together, where that is known

    def part(self, rows: Any) -> Self:
        """Select rows."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, inputs=self.inputs[rows], truth=self.truth[rows], groups=groups)


class HiddenEntries(Hidden):
    """m rows with single entries hidden."""

    @classmethod
    def of(cls, inputs: Views, truth: Views, groups: Tensor | None = None) -> HiddenEntries:
        """Select the rows in which two versions of the same samples differ."""
        rows = torch.zeros(len(truth), dtype=torch.bool)
        for v, holes in enumerate(inputs.hole_parts):
            if holes is not None:  # other views may be sparse
                before, after = truth.seen_part(v), inputs.seen_part(v)
                for part in pieces(after):
                    rows[part] |= (before[part] & ~after[part]).flatten(1).any(1)
        mine = None if groups is None else groups[rows]
        return cls(inputs[rows].floating(), truth[rows].floating(), mine)

    def _gone(self, v: int) -> Tensor:
        """Mask of hidden entries (m, *shape_v)."""
        return self.truth.seen(v) & ~self.inputs.seen(v)

    def rows_of(self, v: int) -> Array:
        """Rows in which entries of view v are hidden, (m,) bool."""
        return np.asarray(self._gone(v).flatten(1).any(1).numpy())

    def truth_of(self, v: int) -> Views:
        """View v in these rows; entries that are not hidden are holes."""
        hidden = self._gone(v)
        rows = hidden.flatten(1).any(1)
        return replace(self.truth.pick(v)[rows], holes=(~hidden[rows],))

    @property
    def views(self) -> list[int]:
        """Views with hidden entries."""
        holed = (v for v, holes in enumerate(self.inputs.hole_parts) if holes is not None)
        return [v for v in holed if self.rows_of(v).any()]


@dataclass(frozen=True, eq=False)
class HoldOut(Hidden):
    """m rows with one view hidden each."""

    means: tuple[Tensor, ...] = ()  # of each feature, per view (*shape_v,)
    weights: tuple[Tensor, ...] = ()  # 1 / unit^2 of each feature, 0 where it is constant

    @classmethod
    def of(
        cls, data: Views, hidden: Tensor, scalers: Sequence[Scaler], groups: Tensor | None = None
    ) -> HoldOut:
        """Hide observed views (n, L) of data."""
        rows, means, weights = hidden.any(1), list[Tensor](), list[Tensor]()
        for scaler in scalers:
            unit = torch.from_numpy(scaler.unit).float()
            weights.append(torch.where(unit > 0, unit.clamp(min=1e-12) ** -2, 0.0))
            means.append(torch.from_numpy(scaler.mean).float())
        truth, mine = data[rows].floating(), None if groups is None else groups[rows]
        return cls(truth.hide(hidden[rows]), truth, mine, tuple(means), tuple(weights))

    @property
    def hidden(self) -> Tensor:
        """Mask of what is hidden, (m, L)."""
        return self.truth.mask & ~self.inputs.mask

    def rows_of(self, v: int) -> Array:
        """Rows in which view v is hidden, (m,) bool."""
        return np.asarray(self.hidden[:, v].numpy())

    def truth_of(self, v: int) -> Views:
        """View v in these rows."""
        return self.truth.pick(v)[self.hidden[:, v]]

    def errors(self, value: Tensor, v: int) -> Tensor:
        """Mean over features of the squared error of view v in units of its scaler; for tokens, the
        share that is wrong.

        value (m, *shape_v), or (*shape_v,) for all rows -> (m,)
        """
        truth = self.truth.x[v]
        off = value - truth
        off = off.ne(0) if truth.dtype == torch.int64 else off.square_()
        gap = (off * self.weights[v]).flatten(1)
        del off, truth
        observed = (self.weights[v] > 0).flatten().expand_as(gap)
        holes = self.truth.holes[v]
        observed = observed if holes is None else observed & ~holes.flatten(1)
        return gap.masked_fill_(~observed, 0.0).sum(1) / observed.sum(1).clamp(min=1)

    def mean_error(self, values: Sequence[Tensor]) -> float:
        """Mean error over the hidden instances; values: L tensors (m, *shape_v)."""
        hidden, totals = self.hidden, []
        for v, value in enumerate(values):
            totals.append((self.errors(value, v) * hidden[:, v]).sum())
        return float(torch.stack(totals).sum() / hidden.sum())
