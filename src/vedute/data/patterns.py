"""Ways of missing that follow a design or the data: cohorts with two views each, values, groups.

cohorts   rate is the share of rows that are in a cohort; the others stay complete. A cohort has
          two views, and cohorts are equally large:
            chain            views 1-2, 2-3, 3-4, ...
            ring             as chain, and the last view with the first
            star             views 1-2, 1-3, 1-4, ...
            two_components   a chain of the first half of the views, another of the second half:
                             at rate 1 nothing connects them
values    rate is the share of all views that go; the odds of a sample rise with its rank along the
          first principal component of a view, from 1 to e^4 (about 55):
            mar              of the first view, which stays: missing at random
            mnar             of the view itself: missing not at random
group     rate as above, as nearly as whole groups allow: a group lacks the same views throughout;
          every view stays in one group or more

No row loses its last view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils.extmath import randomized_svd

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Pairs = list[tuple[int, int]]
SITES = 20  # default number of groups
STEEP = 4.0  # log-odds between the lowest and the highest rank


def _chain(L: int) -> Pairs:
    return list(pairwise(range(L)))


COHORTS: Mapping[str, Callable[[int], Pairs]] = {
    "chain": _chain,
    "ring": lambda L: [*_chain(L), (L - 1, 0)],
    "star": lambda L: [(0, v) for v in range(1, L)],
    "two_components": lambda L: [pair for pair in _chain(L) if pair[1] != (L + 1) // 2],
}
VALUE_PROTOCOLS, GROUP_PROTOCOL = ("mar", "mnar"), "group"
FEWEST_VIEWS = dict.fromkeys(COHORTS, 3) | {"two_components": 4}  # views


def cohorts(n: int, L: int, rows: int, pairs: Pairs, rng: Generator) -> Mask:
    """Deal `rows` of n samples out to the pairs of views; the others keep all L."""
    mask = np.ones((n, L), bool)
    chosen = rng.permutation(n)[:rows]
    mask[chosen] = False
    mask[chosen[:, None], np.array(pairs)[np.arange(rows) % len(pairs)]] = True
    return mask


def by_value(scores: Floats, rate: float, protocol: str, rng: Generator) -> Mask:
    """Hide views with odds e^(4 score), scores (n, L) from 0 to 1.

    They are drawn one after the other, each with these odds among those left (Gumbel's trick),
    until a share `rate` of all views is hidden.
    """
    mar = protocol == "mar"
    keys = STEEP * (scores[:, :1] if mar else scores) + rng.gumbel(size=scores.shape)
    stays = np.zeros(len(keys), int) if mar else keys.argmin(1)  # the last view of a row
    keys[np.arange(len(keys)), stays] = -np.inf
    most = keys.size - len(keys)
    mask = np.ones(keys.size, bool)
    mask[np.argsort(-keys, axis=None, kind="stable")[: min(round(rate * keys.size), most)]] = False
    return mask.reshape(keys.shape)


def by_group(groups: NDArray[np.integer[Any]], L: int, rate: float, rng: Generator) -> Mask:
    """Hide pairs of a group and a view in random order while they fit: groups (n,) -> (n, L)."""
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    keys = rng.random((len(sizes), L))
    stays = np.zeros_like(keys, bool)
    stays[np.arange(len(sizes)), keys.argmax(1)] = True  # a view of each group
    stays[keys.argmax(0), np.arange(L)] = True  # a group of each view
    mask, left = np.ones_like(keys, bool), rate * len(groups) * L
    for slot in np.argsort(keys, axis=None, kind="stable"):
        g, v = divmod(int(slot), L)
        if not stays[g, v] and sizes[g] < 2 * left:  # nearer to the rate with it than without
            mask[g, v], left = False, left - sizes[g]
    return mask[group]


def scores(view: NDArray[Any]) -> Floats:
    """Ranks (n,) from 0 to 1 along the first principal component of a view (n, ...), each feature
    z-scored; one half where the view (NaN) is missing, or nothing varies."""
    x = view.reshape(len(view), -1).astype(np.float64)
    known = ~np.isnan(x)
    observed = known.any(1)
    count = np.maximum(known.sum(0), 1)
    x = np.where(known, x - np.where(known, x, 0.0).sum(0) / count, 0.0)
    std = np.sqrt((x**2).sum(0) / count)
    x /= np.where(std > 0, std, 1.0)
    ranks = np.full(len(x), 0.5)
    if observed.sum() > 1 and x.any():
        U, _, _ = randomized_svd(x[observed], 1, random_state=0)
        ranks[observed] = (rankdata(U[:, 0]) - 1) / (observed.sum() - 1)
    return ranks
