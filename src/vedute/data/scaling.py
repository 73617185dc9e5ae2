"""Per-view scaling, fitted on observed entries only, inverted on everything that leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.views import Views

Floats = NDArray[np.float64]
KINDS = ("standard", "minmax", "none")
BYTES = 2048  # images at a time
MANY = 2000  # samples to measure dimensions on


@dataclass(frozen=True, eq=False)
class Scaler:
    """scaled = (x - shift) / scale, feature by feature; both (*shape,) float64.

    `mean` and `std` (*shape,) are those of the scaled observed entries: what a network sees at a
    hole, and the unit in which errors are measured (0 marks a constant feature). Tokens stay the
    integers they are, and their `mean` is the word that is most often there.
    """

    shift: Floats
    scale: Floats
    mean: Floats
    std: Floats
    tokens: bool = False

    def restore(self, scaled: NDArray[Any]) -> Floats:
        """(..., *shape) back in the user's units; a constant feature as it always was."""
        return np.where(self.std > 0, scaled, self.mean) * self.scale + self.shift

    def transform(self, x: Tensor, seen: Tensor) -> Tensor:
        """(n, *shape) in any float -> float32, in float64 until then; the mean where not `seen`."""
        if self.tokens:
            return torch.where(seen, x, 0).long()
        shift, scale = torch.from_numpy(self.shift), torch.from_numpy(self.scale)
        scaled = ((x.double() - shift) / scale).float()
        return torch.where(seen, scaled, torch.from_numpy(self.mean).float())


def fit(kind: str, x: Tensor, seen: Tensor) -> Scaler:
    """The scaler of one view: x and seen (n, *shape). uint8 images are scaled inside the step."""
    if kind not in (*KINDS, "tokens"):
        raise ValueError(f"no scaling {kind!r}; choose from {', '.join(KINDS)}")
    one, zero = np.ones(x.shape[1:]), np.zeros(x.shape[1:])
    if kind == "tokens":
        return Scaler(zero, one, _modes(x, seen), one, tokens=True)
    if x.dtype == torch.uint8:
        mean, std = _byte_moments(x, seen)
        return Scaler(one * 127.5, one * 127.5, mean / 127.5 - 1, std / 127.5)
    low, high, mean, std = _moments(x.double(), seen)
    if not np.isfinite(std).all():
        raise OverflowError("holds numbers whose squares overflow; divide it by a power of ten")
    match kind:
        case "standard":
            shift, scale = mean, np.where(std > 0, std, one)
        case "minmax":
            shift, scale = low, np.where(high > low, high - low, one)
        case _:
            shift, scale = zero, one
    return Scaler(shift, scale, (mean - shift) / scale, std / scale)


def _moments(x: Tensor, seen: Tensor) -> tuple[Floats, ...]:
    """Minimum, maximum, mean and standard deviation per feature over what is seen."""
    count = seen.sum(0).clamp(min=1)
    centre = x.masked_fill(~seen, 0).sum(0) / count
    gap = (x - centre).masked_fill(~seen, 0)
    mean = centre + gap.sum(0) / count  # a second pass: exact at large offsets
    std = (gap.square().sum(0) / count).sqrt()
    low, high = torch.where(seen, x, mean).amin(0), torch.where(seen, x, mean).amax(0)
    rounding = 1e-12 * torch.maximum(low.abs(), high.abs())
    constant = high - low <= rounding
    high, std = torch.where(constant, low, high), std.masked_fill(constant, 0.0)
    return low.numpy(), high.numpy(), mean.numpy(), std.numpy()


def _modes(x: Tensor, seen: Tensor) -> Floats:
    """The commonest value of each feature over what is seen; 0 where nothing is."""
    pairs = zip(x.flatten(1).T, seen.flatten(1).T, strict=True)
    modes = [float(a[there].mode().values) if bool(there.any()) else 0.0 for a, there in pairs]
    return np.array(modes).reshape(x.shape[1:])


def _byte_moments(x: Tensor, seen: Tensor) -> tuple[Floats, Floats]:
    """Mean and standard deviation of images, exact in integers and a few rows at a time."""
    first = torch.zeros(x.shape[1:], dtype=torch.int64)
    second, count = first.clone(), first.clone()
    for start in range(0, len(x), BYTES):
        there = seen[start : start + BYTES]
        values = x[start : start + BYTES].int().masked_fill(~there, 0)
        first += values.sum(0)
        second += values.square().sum(0)
        count += there.sum(0)
    some = count.clamp(min=1).double()
    mean = first.double() / some
    variance = second.double() / some - mean.square()
    return mean.numpy(), variance.clamp(min=0).sqrt().numpy()


def transform(scalers: Sequence[Scaler], views: Views) -> Views:
    """Every float view scaled to float32; zero where a view is missing."""
    x = []
    for v, (a, scaler) in enumerate(zip(views.x, scalers, strict=True)):
        if a.dtype == torch.uint8:
            x.append(a)
            continue
        row = views.mask[:, v].view(-1, *[1] * (a.ndim - 1))
        x.append(scaler.transform(a, views.seen(v)).masked_fill(~row, 0))
    return replace(views, x=tuple(x))


def effective_dimensions(views: Views) -> Tensor:
    """How many independent features each view amounts to, (L,): the squared sum of the eigenvalues
    of its second moments over the sum of their squares. Its width where all features are
    independent and equally strong, 1 where all say the same."""
    found = []
    for v in range(len(views.x)):
        rows = views.mask[:, v].nonzero()[:MANY, 0]
        x = views[rows].floating().x[v].flatten(1).float()
        x = x - x.mean(0) if views.x[v].dtype == torch.uint8 else x  # others are centered, or zero
        gram = x @ x.T if len(x) < x.shape[1] else x.T @ x
        found.append(gram.trace().square() / gram.square().sum())
    return torch.stack(found).nan_to_num(1.0)
