"""Observed views hidden for the whole fit: they stop training, measure it and calibrate it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vedute.data.scaling import Scaler
from vedute.data.views import Views

SHARE, FEWEST = 0.1, 20
NUMBERS = 2**25  # that hidden samples may hold


def choose(
    mask: Tensor, fewest: int = FEWEST, width: int = 1, groups: Tensor | None = None
) -> Tensor | None:
    """About a tenth of the observed slots, at most one per row and never a row's last one.

    mask (n, L) -> (n, L) bool; None when fewer than `fewest` can be had. Of samples with many
    numbers (`width`) a few will do. Of a group (n,) the same view of all rows is hidden, so that
    no other row of it gives away what was.
    """
    rows = (mask.sum(1) > 1).nonzero()[:, 0]
    count = min(len(rows), round(SHARE * int(mask.sum())), max(FEWEST, NUMBERS // width))
    if count < fewest:
        return None
    if groups is not None:
        hidden = _of_groups(mask, count, groups)
        return hidden if int(hidden.sum()) >= fewest else None
    rows = rows[torch.randperm(len(rows))[:count]]
    draw = torch.rand(len(rows), mask.shape[1]).masked_fill(~mask[rows], -1.0)
    hidden = torch.zeros_like(mask)
    hidden[rows, draw.argmax(1)] = True
    return hidden


def _of_groups(mask: Tensor, count: int, groups: Tensor) -> Tensor:
    """At most `count` slots, those of one view in each of some groups, drawn at random.

    A view can go where every row of the group that has it has another one, too; groups larger than
    `count` stay whole.
    """
    n_groups = int(groups.max()) + 1
    alone = mask & (mask.sum(1, keepdim=True) < 2)
    zeros = torch.zeros(n_groups, mask.shape[1], dtype=torch.long)
    there, stuck = (zeros.index_add(0, groups, m.long()) for m in (mask, alone))
    draw = torch.rand(zeros.shape).masked_fill((there == 0) | (stuck > 0), -1.0)
    best, view = draw.max(1)
    order = torch.randperm(n_groups)
    order = order[best[order] >= 0]
    sizes = there[order, view[order]]
    kept = order[_that_fit(sizes, count)]
    chosen = torch.zeros_like(zeros, dtype=torch.bool)
    chosen[kept, view[kept]] = True
    return chosen[groups] & mask


def _that_fit(sizes: Tensor, count: int) -> list[int]:
    """Positions, from the first on, of what has room in `count`."""
    kept, total = [], 0
    for i, size in enumerate(sizes.tolist()):
        if total + size <= count:
            kept.append(i)
            total += size
    return kept


@dataclass(frozen=True, eq=False)
class HoldOut:
    """m rows with one view hidden each: `inputs` without it, `truth` with it, `hidden` (m, L).

    means, weights: per view (*shape_v,), the mean of each feature and 1 / unit^2 (0: constant),
    see `Scaler.unit`. groups (m,): rows that belong together, where that is known.
    """

    inputs: Views
    truth: Views
    hidden: Tensor
    means: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    groups: Tensor | None = None

    @classmethod
    def of(
        cls, data: Views, hidden: Tensor, scalers: Sequence[Scaler], groups: Tensor | None = None
    ) -> HoldOut:
        rows = hidden.any(1)
        truth = data[rows].floating()
        means = tuple(torch.from_numpy(s.mean).float() for s in scalers)
        units = [torch.from_numpy(s.unit).float() for s in scalers]
        weights = tuple(torch.where(u > 0, u.clamp(min=1e-12) ** -2, 0.0) for u in units)
        mine = None if groups is None else groups[rows]
        return cls(truth.hide(hidden[rows]), truth, hidden[rows], means, weights, mine)

    def to(self, device: torch.device) -> HoldOut:
        return HoldOut(
            self.inputs.to(device),
            self.truth.to(device),
            self.hidden.to(device),
            tuple(t.to(device) for t in self.means),
            tuple(t.to(device) for t in self.weights),
        )

    def first(self, m: int) -> HoldOut:
        return self.part(slice(m))

    def part(self, rows: Any) -> HoldOut:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        inputs, truth = self.inputs[rows], self.truth[rows]
        return replace(self, inputs=inputs, truth=truth, hidden=self.hidden[rows], groups=groups)

    def errors(self, value: Tensor, v: int) -> Tensor:
        """Mean over features of the squared error of view v in units of its scaler; of tokens,
        how many are wrong.

        value (m, *shape_v), or (*shape_v,) for all rows -> (m,)
        """
        truth = self.truth.x[v]
        off = value - truth
        off = off.ne(0) if truth.dtype == torch.int64 else off.square_()
        gap = (off * self.weights[v]).flatten(1)
        del off, truth
        there = (self.weights[v] > 0).flatten().expand_as(gap)
        holes = self.truth.holes[v]
        there = there if holes is None else there & ~holes.flatten(1)
        return gap.masked_fill_(~there, 0.0).sum(1) / there.sum(1).clamp(min=1)

    def mean_error(self, values: Sequence[Tensor]) -> float:
        """Mean over the hidden instances; values: L tensors (m, *shape_v)."""
        total = torch.stack(
            [(self.errors(x, v) * self.hidden[:, v]).sum() for v, x in enumerate(values)]
        )
        return float(total.sum() / self.hidden.sum())
