"""Look-alike ids: one sample under two ids that differ in writing only, such as 01 and 1, or P1
and p1."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
PAIRS_SHOWN = 2
MOST_COMPARED = 8  # ids of one form


def warn_of_look_alikes(indices: Mapping[str, pd.Index]) -> None:
    """Warn of ids that differ in writing only, unless one view has both; indices: by view."""
    first, *others = indices.values()
    integers = all(index.dtype.kind in "iu" for index in indices.values())
    if integers or all(index.equals(first) for index in others):
        return
    views = dict[Hashable, int]()  # views of an id, one bit for each
    for v, index in enumerate(indices.values()):
        for i in index.tolist():
            views[i] = views.get(i, 0) | 1 << v
    lone = [i for i, bits in views.items() if bits + 1 != 1 << len(indices)]  # not in all views
    forms = _normalized(lone)
    same_form: dict[str, list[Hashable]] = {}
    for at in np.flatnonzero(pd.Index(forms, dtype=object).duplicated(keep=False)).tolist():
        same_form.setdefault(forms[at], []).append(lone[at])
    possible = (pair for ids in same_form.values() for pair in combinations(ids[:MOST_COMPARED], 2))
    pairs = [(a, b) for a, b in possible if not views[a] & views[b]]
    if not pairs:
        return
    names = [*indices]
    first_of = {i: names[(views[i] & -views[i]).bit_length() - 1] for pair in pairs for i in pair}
    where = [[f"{i!r} of view {first_of[i]!r}" for i in pair] for pair in pairs[:PAIRS_SHOWN]]
    examples = "; ".join(" and ".join(pair) for pair in where)
    many = f"{len(pairs)} pairs of ids are" if len(pairs) > 1 else "two ids are"
    problem = f"{many} one but for blanks, case, zeros or separators, and read as two samples"
    fix = "write an id alike in all views if it means one sample"
    warnings.warn(f"{problem}: {examples}; {fix}", stacklevel=3)


def _normalized(ids: Sequence[Hashable]) -> list[str]:
    """Normalize ids: no case, leading zeros, blanks around them or final .0, and one separator.
    They are joined to one text, so that a million take a second."""
    lines = "".join([f"{' '.join(str(i).split())}\n" for i in ids])
    lines = lines.casefold().replace(".0\n", "\n").translate(str.maketrans(" _.", "---"))
    return LEADING_ZEROS.sub("", lines).split("\n")[:-1]
