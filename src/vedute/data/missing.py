"""Hidden views: named missing patterns, and masks that are saved with a study.

A protocol is a function (n, L, rate, rng) -> mask (n, L), True = observed, that leaves every row
at least one view. Protocols differ in the meaning of "rate"; `rates` measures the result. Protocols
that follow a design or the data themselves (chain, mar, mnar, group, ...) are in `patterns`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import torch
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from vedute.data import patterns
from vedute.data.escaping import escaped, listed
from vedute.data.frames import numbers
from vedute.data.holdout import choose_entries, spare_last_values
from vedute.data.limits import plain_file
from vedute.data.rows import pieces
from vedute.data.views import Views

Mask = NDArray[np.bool_]
Protocol = Callable[[int, int, float, Generator], Mask]


def drop_views(
    views: Any, rate: float, seed: int, protocol: str = "bernoulli", groups: Any = None
) -> Views:
    """Hide views by a named protocol; a row that would lose its last view, or a column its last
    value, keeps it. `views`: a Views, or input of `Views.of`. `groups`: for the protocol `group`,
    one per sample; by default twenty at random. Labels are possible, but then the missing views
    reveal the class."""
    whole = views if isinstance(views, Views) else Views.of(views)
    n, L = whole.shape
    before = whole.mask.cpu()
    _check(protocol, rate, L)
    rng = np.random.default_rng(seed)
    if protocol == patterns.GROUP_PROTOCOL:
        groups = rng.integers(patterns.SITES, size=n) if groups is None else groups
        drawn = patterns.by_group(group_codes(groups, n, whole.ids), L, rate, rng)
    elif protocol in patterns.VALUE_PROTOCOLS:
        scores = np.stack([patterns.scores(whole.known(v)) for v in range(L)], axis=1)
        drawn = patterns.by_value(scores, rate, protocol, rng)
    else:
        drawn = make_mask(n, L, rate, seed, protocol)
    after = before & torch.from_numpy(drawn)
    hidden = before & ~after & after.any(1, keepdim=True)
    return whole.hide(spare_last_values(hidden, before, whole.hole_parts))


def drop_entries(views: Any, rate: float, seed: int) -> Views:
    """Hide a share `rate` of entries of float views; every present view and column keeps one."""
    whole = views if isinstance(views, Views) else Views.of(views)
    _check_rate(rate)
    rng = np.random.default_rng(seed)
    x, holes = list(whole.x), list(whole.holes)
    for v, (a, old) in enumerate(zip(whole.x, whole.holes, strict=True)):
        if rate == 0 or not a.numel() or not a.is_floating_point():
            continue
        luck = torch.from_numpy(rng.random(tuple(a.shape)))
        new = choose_entries(luck, whole.seen(v).cpu(), rate).to(a.device)
        hole = new if old is None else new | old
        x[v], holes[v] = a.masked_fill(hole, 0), hole
    return replace(whole, x=tuple(x), holes=tuple(holes))


def make_mask(n: int, L: int, rate: float, seed: int, protocol: str = "bernoulli") -> Mask:
    """Draw the mask (n, L) of a protocol that does not depend on the data, True = observed."""
    _check(protocol, rate, L)
    rng = np.random.default_rng(seed)
    if protocol in PROTOCOLS:
        return PROTOCOLS[protocol](n, L, rate, rng)
    if protocol not in patterns.COHORTS:
        raise ValueError(f"protocol {protocol!r} looks at the data; use drop_views")
    return patterns.cohorts(n, L, _floor(rate * n), patterns.COHORTS[protocol](L), rng)


def rates(mask: ArrayLike | Tensor) -> Rates:
    """Measure how much is missing in a mask (n, L)."""
    seen = np.asarray(mask, bool)
    return Rates(float((~seen.all(1)).mean()), float((~seen).mean()))


def fingerprint(mask: ArrayLike | Tensor) -> str:
    """Hash a mask (n, L) to sixteen hex digits."""
    seen = np.asarray(mask, bool)
    return hashlib.sha256(str(seen.shape).encode() + np.packbits(seen).tobytes()).hexdigest()[:16]


def save_mask(
    path: str | Path,
    mask: ArrayLike | Tensor,
    ids: ArrayLike | None = None,
    protocol: str = "",
    rate: float = float("nan"),
    seed: int = -1,
) -> None:
    """Write a mask (n, L), the ids of its rows and how it was drawn to an npz file."""
    seen = np.asarray(mask, bool)
    rows = _plain(np.empty(0, np.int64) if ids is None else np.asarray(ids))
    if ids is not None and len(rows) != len(seen):
        raise ValueError(f"{len(rows)} ids for a mask of {len(seen)} rows; pass one id per row")
    with Path(path).open("wb") as file:
        np.savez_compressed(file, mask=seen, ids=rows, protocol=protocol, rate=rate, seed=seed)


def load_mask(path: str | Path, views: Views) -> Mask:
    """Load the mask (n, L) of a file; reject one of other samples (ids, where both have them)."""
    plain_file(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            mask, ids = np.asarray(file["mask"], bool), file["ids"]
    except (BadZipFile, EOFError, KeyError, IndexError, TypeError, ValueError):
        raise ValueError(f"{path} is not a mask file; write one with save_mask") from None
    if mask.shape != views.shape:
        shapes = f"{mask.shape} samples and views, the data have {views.shape}"
        raise ValueError(f"the mask in {path} is for {shapes}; draw another mask")
    if views.ids is not None and len(ids):
        differ = np.flatnonzero(_plain(views.ids).astype(str) != ids.astype(str))
        if len(differ):
            i = int(differ[0])
            differs = f"row {i} is {str(ids[i])!r} there and {str(views.ids[i])!r} here"
            fix = "put the rows in the order of its ids"
            raise ValueError(f"the mask in {path} is for other samples: {differs}; {fix}")
    return mask


def uniform(n: int, L: int, rate: float, rng: Generator) -> Mask:
    """DSIMVC, DVIMC: floor(rate n) rows lose m views, m uniform on 1..L-1, a random m-subset."""
    mask = np.ones((n, L), bool)
    rows = rng.permutation(n)[: _floor(rate * n)]
    lost = rng.integers(1, L, size=(len(rows), 1))
    mask[rows] = rng.random((len(rows), L)).argsort(1) >= lost
    return mask


def bernoulli(n: int, L: int, rate: float, rng: Generator) -> Mask:
    """MVP: floor(rate n) rows toss a fair coin per view, again until some but not all are left."""
    mask = np.ones((n, L), bool)
    rows = rng.permutation(n)[: _floor(rate * n)]
    while len(rows):
        mask[rows] = rng.random((len(rows), L)) < 0.5
        rows = rows[mask[rows].all(1) | ~mask[rows].any(1)]
    return mask


def with_replacement(n: int, L: int, rate: float, rng: Generator) -> Mask:
    """DIMVC, CPSPAN: floor(rate n) rows lose the views met in L-1 draws with replacement."""
    mask = np.ones((n, L), bool)
    rows = rng.permutation(n)[: _floor(rate * n)]
    mask[rows[:, None], rng.integers(L, size=(len(rows), L - 1))] = False
    return mask


def completer(n: int, L: int, rate: float, rng: Generator) -> Mask:
    """Completer: a share rate / L of all slots goes; for L > 2 fewer than `rate` rows lose one."""
    return _keep_one(n, L, rate / L, rng)


def dcp(n: int, L: int, rate: float, rng: Generator, slots: float = 0.5) -> Mask:
    """DCP: half the slots of n - floor((1 - rate) n) rows go; for L > 2 some stay complete."""
    mask = np.ones((n, L), bool)
    rows = rng.permutation(n)[_floor((1 - rate) * n) :]
    mask[rows] = _keep_one(len(rows), L, slots, rng)
    return mask


def icmvc(n: int, L: int, rate: float, rng: Generator) -> Mask:
    """ICMVC: as `dcp`, but a share `rate` of their slots; far fewer incomplete rows below 1/2."""
    return dcp(n, L, rate, rng, slots=rate)


PROTOCOLS: Mapping[str, Protocol] = {
    p.__name__: p for p in (uniform, bernoulli, with_replacement, completer, dcp, icmvc)
} | {"dsimvc": uniform}
ALL = (*PROTOCOLS, *patterns.COHORTS, *patterns.VALUE_PROTOCOLS, patterns.GROUP_PROTOCOL)


class Rates(NamedTuple):
    """The share of rows that lack a view, and the share of all (row, view) slots missing."""

    rows: float
    slots: float

    def named(self) -> dict[str, float]:
        """Both shares, by name."""
        return self._asdict()


def _keep_one(n: int, L: int, slots: float, rng: Generator) -> Mask:
    """Keep one random view per row and hide others at random; drawn again until the share of
    missing slots is within 0.005 of `slots` (or half a slot, where n is small)."""
    lose = min(1.0, slots * L / (L - 1))
    while True:
        mask = rng.random((n, L)) >= lose
        mask[np.arange(n), rng.integers(L, size=n)] = True
        error = abs((~mask).sum() - lose * n * (L - 1))
        if error <= max(0.005 * n * L, 0.5) + 1e-9:
            return mask


def _floor(x: float) -> int:
    return int(x + 1e-9)  # 0.29 * 100 is 28.999999999999996


def _plain(ids: NDArray[np.generic]) -> NDArray[np.generic]:
    return ids.astype(np.int64 if ids.dtype.kind in "iu" else str)


def _check(protocol: str, rate: float, L: int) -> None:
    _check_rate(rate)
    if protocol not in ALL:
        raise KeyError(f"no protocol {protocol!r}; choose from {', '.join(ALL)}")
    if L < 2:
        raise ValueError("cannot hide the only view of a sample; hide entries with drop_entries")
    fewest = patterns.FEWEST_VIEWS.get(protocol, 2)
    if fewest > L:
        raise ValueError(f"protocol {protocol!r} needs {fewest} views, there are {L}")


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must lie in [0, 1], got {rate}")


def group_codes(groups: Any, n: int, ids: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Number groups from 0, (n,): one value per sample, in their order; a Series is aligned by the
    ids of the samples, where these have any."""
    if isinstance(groups, pd.Series) and ids is not None:
        index = pd.Index(groups.index.astype(str))
        twice = index[index.duplicated()].unique()
        if len(twice):
            raise ValueError(f"groups has the id {listed(twice)} twice; give each sample one group")
        groups = groups.set_axis(index).reindex(np.asarray(ids).astype(str))
    values = np.asarray(groups)
    if values.shape != (n,):
        raise ValueError(f"groups has shape {values.shape}; pass one group for each of {n} samples")
    blank = np.flatnonzero(pd.isna(values) | (values.astype(str) == ""))
    if len(blank):
        lacking = [int(i) if ids is None else ids[i] for i in blank]
        word = "row" if ids is None else "sample"
        fix = "assign one, a unique value if it stands alone"
        raise ValueError(f"{word} {listed(lacking)} has no group; {fix}")
    return pd.factorize(values)[0].astype(np.int64)


def pair_counts(mask: ArrayLike) -> NDArray[np.int64]:
    """Count samples of mask (n, L) that have both views, (L, L); on the diagonal, the view."""
    seen = np.asarray(mask, bool).astype(np.int64)
    return np.asarray(seen.T @ seen)


def components(mask: ArrayLike, names: Sequence[str]) -> list[list[str]]:
    """Group names of views that samples connect, directly or indirectly."""
    _, part = connected_components(pair_counts(mask) > 0, directed=False)
    groups: list[list[str]] = pd.Series([*names], dtype=object).groupby(part).agg(list).tolist()
    return groups


def components_warning(parts: Sequence[Sequence[str]]) -> str | None:
    """Compose a warning for several components; None for one."""
    if len(parts) < 2:
        return None
    groups = " | ".join(", ".join(map(escaped, part)) for part in parts)
    return f"the views form groups that no sample connects ({groups}): fit each by itself"


def empty_columns(views: Views, v: int) -> list[Any]:
    """Return the names of the columns of view v without any value, or their positions."""
    mask, spec = views.seen_part(v), None if views.specs is None else views.specs[v]
    empty = ~torch.stack([mask[rows].any(0) for rows in pieces(mask)]).any(0).flatten()
    names: list[Any] = list(() if spec is None or spec.columns is None else spec.columns)
    if spec is not None and names and spec.levels:  # a column of categories takes several numbers
        pairs = zip(names, spec.levels, strict=True)
        names = [name for name, levels in pairs for _ in range(numbers(levels))]
    names = names if len(names) == len(empty) else list(range(len(empty)))
    return list(dict.fromkeys(names[j] for j in empty.nonzero().flatten().tolist()))
