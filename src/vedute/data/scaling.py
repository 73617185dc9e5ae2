"""Per-view scaling, fitted on observed entries only, inverted on everything that leaves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vedute.data.kinds import Seen
from vedute.data.rows import Part, by_row, pieces, slices, stretches
from vedute.data.views import Views

Array = NDArray[Any]
Floats = NDArray[np.float64]
Size = Any  # sizes of rows, (n, 1, ...), or one number for all
WORDS = ("standard", "minmax", "none")
SIZED = ("length", "depth")  # rows are divided by their size; zeros stay zero until centred
INNER = (*SIZED, "log", "log1p", "tokens")  # scalings of kinds of views
IMAGES_PER_BLOCK = 2048
PRECISE_ROWS = 2**16  # rows per block in double precision
DIMENSION_SAMPLE_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Scaler:
    """Feature-wise scaling: scaled = (g(x / size) - shift) / scale; shift, scale (*shape,) float64.

    g is log(x + offset), or the identity. The size of a row is over its observed entries (sum of
    x^power / sum of profile)^(1 / power): its count for power 1, its length for 2; 1 on average,
    where a row is missing, and without a power. Tokens stay integers.
    """

    shift: Floats
    scale: Floats
    mean: Floats  # of scaled observed entries: the input of networks at holes; of tokens the mode
    std: Floats  # of scaled observed entries: the unit of errors; 0 marks a constant feature
    tokens: bool = False
    power: int = 0
    profile: Floats | None = None  # (*shape,)
    offset: Floats | None = None  # (*shape,)
    top: Floats | float = np.inf  # largest observed g(x / size) if logarithmic: a limit of restored
    signed: bool = field(init=False)  # whether negative values can be scaled

    def __post_init__(self) -> None:
        object.__setattr__(self, "signed", not self.power and self.offset is None)

    @property
    def unit(self) -> Floats:
        """Unit of errors: the deviation of each feature; where rows were divided by their size
        that of the whole view, so that rare words keep their low weight."""
        return np.where(self.std > 0, 1.0, 0.0) if self.power else self.std

    @property
    def zeros(self) -> Floats:
        """Scaled zeros of a view whose rows are divided by their size: their logarithm is zero."""
        return np.asarray((-self.shift / self.scale).astype(np.float32))

    def sizes(self, x: Part, seen: Seen) -> Tensor | None:
        """Sizes of the rows of x (n, *shape), (n,) float64; None if rows are not divided."""
        if self.profile is None:
            return None
        profile = torch.from_numpy(self.profile).flatten()
        sizes = torch.empty(len(x), dtype=torch.float64)
        for rows, a, known in _blocks(x, seen):
            total = a.pow(self.power).flatten(1).sum(1)
            expected = known.flatten(1).double() @ profile
            nonzero = (total > 0) & (expected > 0)
            sizes[rows] = torch.where(nonzero, (total / expected).pow(1 / self.power), 1.0)
        return sizes

    def transform(self, x: Tensor, seen: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Scale (n, *shape) to float32, block by block in float64; the mean where not `seen`."""
        if self.tokens:
            return torch.where(seen, x, 0).long()
        shift, scale = torch.from_numpy(self.shift), torch.from_numpy(self.scale)
        mean, out = torch.from_numpy(self.mean).float(), torch.empty(x.shape)
        for rows in stretches(len(x), math.prod(x.shape[1:])):
            size = None if sizes is None else sizes[rows]
            scaled = ((self.transformed(x[rows].double(), size) - shift) / scale).float()
            out[rows] = torch.where(seen[rows], scaled, mean)
        return out

    def transformed(self, x: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Compute g(x / size)."""
        x = x if sizes is None else x / by_row(sizes, x)
        return x if self.offset is None else (x + torch.from_numpy(self.offset)).log()

    def restore(self, scaled: Array, size: Size = 1.0) -> Floats:
        """Convert (..., *shape) to the user's units; a constant feature to its constant."""
        value = np.where(self.std > 0, scaled, self.mean) * self.scale + self.shift
        value = np.minimum(value, self.top, out=value)
        if self.offset is not None:
            value = np.exp(value) - self.offset
        return np.asarray(size * value if self.power else value)

    def moments(self, mean: Array, std: Array, size: Size = 1.0) -> tuple[Floats, Floats]:
        """Mean and standard deviation in the user's units, of values that are normal in scaled
        ones with these: under a logarithm E exp(y) = exp(E y + Var y / 2)."""
        if self.offset is None:
            deviation = np.asarray(std * self.scale * (self.std > 0))
            return self.restore(mean, size), size * deviation if self.power else deviation
        std = np.minimum(std, self.std)  # never worse than without any view
        value = self.restore(mean + std**2 * self.scale / 2) + self.offset
        deviation = value * np.sqrt(np.expm1((std * self.scale) ** 2))
        return size * (value - self.offset), size * deviation

    def quantile(self, mean: Floats, std: Floats, z: Array | float, size: Size = 1.0) -> Floats:
        """Value that lies z standard deviations from the mean in scaled units; mean and std, and
        the result, in the user's: the inverse of `moments`."""
        if self.offset is None:
            return np.asarray(mean + z * std)
        level, spread = self._log_moments(mean, std, size)
        return np.asarray(size * (np.exp(np.minimum(level + z * spread, self.top)) - self.offset))

    def distance(self, x: Floats, mean: Floats, std: Floats, size: Size = 1.0) -> Floats:
        """Distance of x from the mean in scaled standard deviations; all in the user's units."""
        if self.offset is not None:
            x, (mean, std) = np.log(x / size + self.offset), self._log_moments(mean, std, size)
        return np.asarray(np.abs(x - mean) / np.maximum(std, 1e-12))

    def _log_moments(self, mean: Floats, std: Floats, size: Size) -> tuple[Floats, Floats]:
        """Mean and standard deviation of log(x / size + offset), from those of a log-normal x."""
        value = np.maximum(mean / size + self.offset, np.finfo(np.float64).tiny)
        variance = np.log1p((std / size / value) ** 2)
        return np.log(value) - variance / 2, np.sqrt(variance)


def fit(word: str, x: Part, seen: Seen) -> Scaler:
    """Fit the scaler of a view: x, seen (n, *shape). uint8 images are scaled inside the step."""
    if word not in (*WORDS, *INNER):
        raise ValueError(f"no scaling {word!r}; choose from {', '.join(WORDS)}")
    one, zero = np.ones(x.shape[1:]), np.zeros(x.shape[1:])
    scaler = Scaler(zero, one, zero, one)
    if word == "tokens":
        pairs = zip(x[:].flatten(1).T, seen[:].flatten(1).T, strict=True)
        modes = [float(a[mask].mode().values) if bool(mask.any()) else 0.0 for a, mask in pairs]
        return replace(scaler, mean=np.array(modes).reshape(x.shape[1:]), tokens=True)
    if x.dtype == torch.uint8:
        mean, std = _byte_moments(x, seen)
        return Scaler(one * 127.5, one * 127.5, mean / 127.5 - 1, std / 127.5)
    if word in SIZED:
        scaler = _sized(replace(scaler, power=2 if word == "length" else 1), x, seen)
    if word in ("depth", "log1p"):
        scaler = replace(scaler, offset=one)
    elif word == "log":
        scaler = replace(scaler, offset=_half_of_least(x, seen))
    low, high, mean, std = _moments(scaler, x, seen)
    if not np.isfinite(std).all():
        raise OverflowError("holds numbers whose squares overflow; divide it by a power of ten")
    match word:
        case "standard" | "log" | "log1p":
            shift, scale = mean, np.where(std > 0, std, one)
        case "length" | "depth":
            shift, scale = mean, one * (np.sqrt((std[std > 0] ** 2).mean()) if std.any() else 1.0)
        case "minmax":
            shift, scale = low, np.where(high > low, high - low, one)
        case _:
            shift, scale = zero, one
    top = np.inf if scaler.offset is None else high
    mean, std = (mean - shift) / scale, std / scale
    return replace(scaler, shift=shift, scale=scale, mean=mean, std=std, top=top)


def _half_of_least(x: Part, seen: Seen) -> Floats:
    """Half of the smallest positive value of each feature, (*shape,); 1 where none is positive."""
    least = torch.full(x.shape[1:], torch.inf, dtype=torch.float64)
    for _, a, _ in _blocks(x, seen):
        torch.minimum(least, a.masked_fill(a <= 0, torch.inf).amin(0), out=least)
    return np.asarray(torch.where(least.isfinite(), least / 2, 1.0).numpy())


def _sized(scaler: Scaler, x: Part, seen: Seen) -> Scaler:
    """Add the profile of a row of size 1, the average of nonzero rows."""
    total, count = torch.zeros(2, *x.shape[1:], dtype=torch.float64)
    nonzero = torch.empty(len(x), dtype=torch.bool)
    for rows, a, known in _blocks(x, seen):
        nonzero[rows] = a.flatten(1).any(1)
        total += a.pow(scaler.power).sum(0)
        count += known.sum(0)
    profile = (total / count.clamp(min=1)).numpy()
    sizes = replace(scaler, profile=profile).sizes(x, seen)
    assert sizes is not None
    average = float(sizes[nonzero].mean()) if bool(nonzero.any()) else 1.0
    return replace(scaler, profile=profile * average**scaler.power)


def _blocks(
    x: Part, seen: Seen, scaler: Scaler | None = None, sizes: Tensor | None = None
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Iterate over blocks of rows, at least one: their values in double precision, zero where not
    `seen` (with a scaler g(x / size) of these), and their mask."""
    for rows in pieces(x) if x.is_sparse else slices(max(len(x), 1), PRECISE_ROWS):
        known = seen[rows]
        a = x[rows].double().masked_fill(~known, 0)
        if scaler is not None:
            a = scaler.transformed(a, None if sizes is None else sizes[rows])
        yield rows, a, known


def _moments(scaler: Scaler, x: Part, seen: Seen) -> tuple[Floats, ...]:
    """Minimum, maximum, mean and standard deviation of g(x / size) per feature over observed
    entries; features that vary by rounding only become constant. Sums are kept in place, as small
    tensors between large ones scatter memory."""
    source = x, seen, scaler, scaler.sizes(x, seen)
    total, count, gap, square = torch.zeros(4, *x.shape[1:], dtype=torch.float64)
    low, high = torch.full((2, *x.shape[1:]), torch.inf, dtype=torch.float64)
    for _, g, known in _blocks(*source):
        total += g.masked_fill(~known, 0).sum(0)
        count += known.sum(0)
    centre = total / count.clamp_(min=1)
    for _, g, known in _blocks(*source):
        off = (g - centre).masked_fill(~known, 0)
        gap += off.sum(0)
        square += off.square().sum(0)
    mean = centre + gap / count  # a second pass: exact at large offsets
    high.neg_()
    for _, g, known in _blocks(*source):
        filled = torch.where(known, g, mean)
        torch.minimum(low, filled.amin(0), out=low)
        torch.maximum(high, filled.amax(0), out=high)
    constant = high - low <= 1e-12 * torch.maximum(low.abs(), high.abs())
    high, std = torch.where(constant, low, high), (square / count).sqrt().masked_fill(constant, 0.0)
    return low.numpy(), high.numpy(), mean.numpy(), std.numpy()


def _byte_moments(x: Part, seen: Seen) -> tuple[Floats, Floats]:
    """Mean and standard deviation of images, exact in integers, block by block."""
    first, second, count = torch.zeros(3, *x.shape[1:], dtype=torch.int64)
    for rows in slices(max(len(x), 1), IMAGES_PER_BLOCK):
        known = seen[rows]
        a = x[rows].int().masked_fill(~known, 0)
        first += a.sum(0)
        second += a.square().sum(0)
        count += known.sum(0)
    mean, square = (total.double() / count.clamp(min=1) for total in (first, second))
    return mean.numpy(), (square - mean.square()).clamp(min=0).sqrt().numpy()


def effective_dimensions(views: Views) -> Tensor:
    """Number of independent features of each view, (L,): the squared sum of the eigenvalues of its
    second moments over the sum of their squares."""
    dimensions = []
    for v in range(len(views.x)):
        rows = views.mask[:, v].nonzero()[:DIMENSION_SAMPLE_ROWS, 0]
        x = views[rows].floating().x[v].flatten(1).float()
        if views.parts[v].dtype == torch.uint8:  # others are centered, or zero
            x = x - x.mean(0)
        gram = x @ x.T if len(x) < x.shape[1] else x.T @ x
        dimensions.append(gram.trace().square() / gram.square().sum())
    return torch.stack(dimensions).nan_to_num(1.0)
