"""The kind of a view: dense numbers, counts, text and so on, recognised by its observed entries.

A kind determines how its view is scaled, which likelihood it has, and which values are possible.

numbers      z-scores of each column
positive     never negative, right-skewed, less so under a logarithm: z-scores of log(x + c),
             c half of the smallest positive value of the column
counts       whole numbers from 0 with a long tail in 100 columns or more, more of them in some
             rows than in others: log(1 + x / size of the row), centred, one scale for the view
log_counts   the same in fewer columns, whose sum says little of a row: z-scores of log(1 + x).
             Hidden views decide whether they are better positive, or numbers
text         words by documents, sparse histograms and keywords: rows of equal length, centred,
             one scale for the view, so that rare words are not blown up
proportions  rows that sum to 1, or numbers from 0 to 1: z-scores
ordinal      few whole values: z-scores
binary, categories, tokens, images   according to their likelihoods
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vedute.data.escaping import escaped
from vedute.data.frames import ViewSpec
from vedute.data.rows import Part, in_file, pieces, stretches

Seen = Part  # mask of observed entries
Words = str | Sequence[str] | Mapping[str, str]  # a setting: one word, one per view, or by name
AUTO_WORD = "auto"
SPARSE, WIDE = 2 / 3, 30  # text: share of zeros, and columns
TAIL, DEPTH, MANY_COLUMNS = 20.0, 0.1, 100  # counts: largest / median, variation of sums, columns
COLUMN_TAIL = 3.0  # counts of few columns: largest / median of the median column
SKEWED, SKEWED_ROWS, RARE = 1.0, 20, 0.05  # positive: median skewness, rows, share of zeros
ORDINAL_VALUES, REPEATS = 10, 5  # ordinal: different values, and mean number of occurrences
SUM_TOLERANCE, END_TOLERANCE = 1e-2, 0.05  # proportions: deviation of sums from 1, of ends
SKEWNESS_SAMPLE_ROWS = 2000
WHOLE = "are whole numbers from 0"
WEIGHTS = "is made of weights or counts that are never negative"


@dataclass(frozen=True)
class Kind:
    """One kind of view, a singleton."""

    name: str
    treatment: str = "z-scores"  # description of the scaling
    scaling: str = "standard"  # word for `scaling.fit`
    rule: str = ""  # description of valid values
    least: float | None = -math.inf  # the smallest and largest possible value; None: as observed
    most: float | None = math.inf
    whole: bool = False
    likelihood: str = "normal"


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("numbers"),
        Kind("positive", "z-scores of logarithms", "log", "are never negative", 0.0),
        Kind("counts", "size factors and logarithms, one scale", "depth", WHOLE, 0.0, whole=True),
        Kind("log_counts", "z-scores of log(1 + x)", "log1p", WHOLE, 0.0, whole=True),
        Kind("text", "rows of equal length, one scale", "length", WEIGHTS, 0.0),
        Kind("proportions", rule="lie between 0 and 1", least=0.0, most=1.0),
        Kind("ordinal", least=None, most=None),
        Kind("binary", "probabilities", "none", likelihood="bernoulli"),
        Kind("categories", "probabilities", "none", likelihood="categorical"),
        Kind("tokens", "words as they are", "tokens", likelihood="tokens"),
        Kind("images", "bytes to [-1, 1]"),
    )
}


class Recognised(NamedTuple):
    """A kind, and the reason for it; without one, the user chose it."""

    kind: Kind
    why: str = "as you say"


def sentence(view: Any) -> str:
    """Describe a view with a name, a kind and the reason for it in one line."""
    return f"{escaped(view.name)}: {view.kind} ({view.why}); {KINDS[view.kind].treatment}"


def per_view(setting: str, given: Words, names: Sequence[str], known: Iterable[str]) -> list[str]:
    """Expand a setting, one word for all views, one each, or some by name; others are `auto`."""
    if isinstance(given, Mapping):
        strange = [k for k in given if k not in names]
        if strange:
            raise ValueError(f"{setting} names view {strange[0]!r}; X has {', '.join(names)}")
        given = [given.get(k, AUTO_WORD) for k in names]
    words = [given] * len(names) if isinstance(given, str) else list(given)
    if len(words) != len(names):
        raise ValueError(f"{setting} names {len(words)} views, X has {len(names)}")
    for word in words:
        if word != AUTO_WORD and word not in known:
            what = "kind" if setting == "kinds" else setting
            raise ValueError(f"no {what} {word!r}; choose from {', '.join((AUTO_WORD, *known))}")
    return words


def problem(kind: Kind, x: Part, seen: Seen) -> str | None:
    """Explain why x, seen (n, *shape) cannot be of this kind; zero is valid for every kind."""
    if not kind.rule or not x.dtype.is_floating_point:
        return None
    low, high = kind.least or 0.0, math.inf if kind.most is None else kind.most
    for rows in pieces(x):
        a = x[rows]
        wrong = seen[rows] & ((a < low) | (a > high) | ((a != a.round()) if kind.whole else False))
        if bool(wrong.any()):
            return f"holds {float(a[wrong][0]):g}; {kind.name} {kind.rule}: correct it"
    return None


def bounds(kind: Kind, x: Part, seen: Seen) -> tuple[float, float]:
    """Smallest and largest possible value of a view; nonnegative numbers stay nonnegative."""
    if not x.dtype.is_floating_point or kind.likelihood != "normal":
        return -math.inf, math.inf
    entries = Observed.of(x, seen)
    if not entries.many:
        return -math.inf, math.inf
    least = 0.0 if kind.name == "numbers" and entries.low >= 0 else kind.least
    most = kind.most
    return entries.low if least is None else least, entries.high if most is None else most


class Observed(NamedTuple):
    """Observed entries of a view (n, *shape)."""

    values: Tensor  # not zero; on the disk those of the first rows, and others that tell the kind
    low: float  # the smallest and the largest, zeros included
    high: float
    many: int  # number of entries
    zeros: int
    sums: Tensor  # of the rows, (n,)
    counts: Tensor  # of observed entries of the rows, (n,)

    @classmethod
    def of(cls, x: Part, seen: Seen) -> Observed:
        n, informative, nonzero = len(x), set[float](), 0
        kept = bytearray()  # one that grows, as tensors kept between large ones scatter the memory
        sums, counts = torch.empty(n, dtype=torch.float64), torch.empty(n, dtype=torch.int64)
        width = math.prod(x.shape[1:])  # indices of all entries would be large
        for rows in pieces(x) if x.is_sparse else stretches(n, width):
            a, mask = x[rows], seen[rows]
            values, counts[rows] = a[mask], mask.flatten(1).sum(1)
            values = values[values != 0]
            sums[rows] = a.masked_fill(~mask, 0).flatten(1).sum(1, dtype=torch.float64)
            nonzero += len(values)
            if not (kept and in_file(x)):
                kept += values.numpy().tobytes()
            elif len(values):  # extremes, all distinct ones if they are few, one that is not whole
                low, high = map(float, values.aminmax())
                fractional = values[values != values.round()]
                informative |= {low, high, *fractional[:1].tolist()}
                if not len(fractional) and high - low <= 10 * ORDINAL_VALUES:
                    informative |= set(values.unique().tolist())  # type: ignore[no-untyped-call]
        kept += torch.tensor(sorted(informative), dtype=x.dtype).numpy().tobytes()
        values = torch.frombuffer(kept, dtype=x.dtype) if kept else torch.empty(0, dtype=x.dtype)
        many = int(counts.sum())
        ends = [0.0] if many > nonzero else []
        ends += map(float, values.aminmax() if len(values) else ())
        low, high = min(ends, default=0.0), max(ends, default=0.0)
        return cls(values, low, high, many, many - nonzero, sums, counts)


def recognise(x: Part, seen: Seen, spec: ViewSpec | None = None) -> Recognised:
    """Recognise the kind of a view from its observed entries: x and seen (n, *shape)."""
    if x.dtype == torch.int64:
        return Recognised(KINDS["tokens"], "whole numbers that stand for words")
    if x.dtype == torch.uint8:
        return Recognised(KINDS["images"], "bytes")
    entries, width, table = Observed.of(x, seen), math.prod(x.shape[1:]), len(x.shape) == 2
    if not entries.many:
        return Recognised(KINDS["numbers"], "nothing is observed")
    if spec is not None and any(spec.origins):
        return Recognised(KINDS["numbers"], "dates among the columns")
    zeros, sums = entries.zeros / entries.many, entries.sums[entries.counts == width]
    sparse = table and width >= WIDE and zeros > SPARSE and entries.low >= 0
    why = f"{math.floor(100 * zeros)} % zeros, nothing negative"
    text = Recognised(KINDS["text"], why) if sparse else None
    sums = sums if table and width > 2 else sums[:0]  # of complete rows
    if bool((entries.values == 1).all()):
        if len(sums) and bool((sums == 1).all()):
            return Recognised(KINDS["categories"], "a single 1 in every row")
        return text or Recognised(KINDS["binary"], "zeros and ones")
    if spec is not None and {*(spec.levels or ())} - {None}:
        return Recognised(KINDS["numbers"], "columns of several types")
    if not table:
        return Recognised(KINDS["numbers"], "several axes")
    if recognised := _whole(x, seen, entries, sparse) or text:
        return recognised
    if entries.low < 0:
        return Recognised(KINDS["numbers"], "some are negative")
    if len(sums) and bool(((sums - 1).abs() < SUM_TOLERANCE).all()):
        return Recognised(KINDS["proportions"], "every row sums to 1")
    if entries.low <= END_TOLERANCE and 1 - END_TOLERANCE <= entries.high <= 1:
        return Recognised(KINDS["proportions"], "all from 0 to 1")
    if zeros <= RARE and _skewed(x, seen):
        return Recognised(KINDS["positive"], "nothing negative, and skewed")
    return Recognised(KINDS["numbers"], "dense")


def _whole(x: Part, seen: Seen, entries: Observed, sparse: bool) -> Recognised | None:
    """Recognise ordinal values, or counts, where all are whole numbers."""
    if not bool((entries.values == entries.values.round()).all()):
        return None
    low, high, many = entries.low, entries.high, entries.many
    near = high - low <= 10 * ORDINAL_VALUES
    different = len(set(entries.values.tolist())) + (entries.zeros > 0) if near else many
    if 1 < different <= ORDINAL_VALUES and many >= REPEATS * different and not sparse:
        return Recognised(KINDS["ordinal"], f"{different} whole values, {low:g} to {high:g}")
    if not (low >= 0 and high > TAIL * float(entries.values.median())):
        return None
    if x.shape[1] < MANY_COLUMNS:
        a, known = _first_rows(x, seen)  # the tails of most columns, which may differ, count
        a = a.masked_fill(~(known & (a > 0)), math.nan)
        tails = a.nan_to_num(0.0).amax(0) / a.nanmedian(0).values
        panel = float(tails.nanmedian()) > COLUMN_TAIL
        return Recognised(KINDS["log_counts"], "whole numbers with a long tail") if panel else None
    observed = entries.counts > 0
    sums = entries.sums[observed] / entries.counts[observed]
    if float(sums.std(correction=0) / sums.mean()) < DEPTH:
        return None
    return Recognised(KINDS["counts"], "whole numbers with a long tail, rows differ in their sum")


def _first_rows(part: Part, known: Seen) -> tuple[Tensor, Tensor]:
    """Take the first rows that have the view, in double precision, and their mask."""
    first = slice(next(pieces(known)).stop)
    rows = known[first].any(1).nonzero()[:SKEWNESS_SAMPLE_ROWS, 0]
    return part[rows].double(), known[rows]


def _skewed(part: Part, known: Seen) -> bool:
    """Whether most columns are skewed to the right, and less so under a logarithm."""
    x, seen = _first_rows(part, known)
    if len(x) < SKEWED_ROWS:
        return False
    least = torch.where(seen & (x > 0), x, torch.inf).amin(0)
    plain, transformed = _skewness(x, seen), _skewness((x + least / 2).log(), seen)
    varying = plain.isfinite() & transformed.isfinite()
    if not bool(varying.any()):
        return False
    less = (transformed.abs() < plain.abs())[varying].double().mean()
    return float(plain[varying].median()) > SKEWED and float(less) > 0.5


def _skewness(x: Tensor, seen: Tensor) -> Tensor:
    """Skewness of every column over observed entries; NaN where it is constant."""
    count = seen.sum(0)
    off = (x - x.masked_fill(~seen, 0).sum(0) / count).masked_fill(~seen, 0)
    return off.pow(3).sum(0) / count / (off.square().sum(0) / count).pow(1.5)
