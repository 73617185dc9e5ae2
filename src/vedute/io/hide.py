"""Files like those that were read, with some views removed and the rest unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vedute import io
from vedute.io import arrays, csv, folder, npz, table
from vedute.io.contents import known_labels

Bools = NDArray[np.bool_]


def write(part: Path, data: io.Data, mask: Bools) -> None:
    """Write the views of `data` that mask (n, L) leaves, in the format of `part`."""
    views = zip(data.views.items(), mask.T, strict=True)
    if part.suffix.lower() == ".npz":
        npz.write(part, data, {k: _hidden(k, a, seen, True) for (k, a), seen in views}, {}, mask)
    elif part.is_dir():
        _folder(part, data, mask)
    elif part.suffix.lower() == ".mat":
        io.write_views(part, data, {k: _hidden(k, a, seen) for (k, a), seen in views})
    else:
        assert data.path is not None
        whole = pd.concat([*data.views.values()], axis=1)
        hidden = np.repeat(~mask, [v.shape[1] for v in data.views.values()], axis=1)
        table.form(data.path).write(
            part, data.path, whole.astype(object).mask(hidden), hidden, data.how
        )


def _hidden(name: str, view: Any, seen: Bools, whole: bool = False) -> Any:
    """Convert to an array, NaN in hidden rows. whole: views of whole numbers keep their dtype, and
    get zeros."""
    view = view.toarray() if sparse.issparse(view) else view
    a = npz.numbers(name, view, dtype=np.float64)
    blank = a.dtype.type(0) if whole and a.dtype.kind != "f" else np.nan
    return np.where(seen.reshape(-1, *[1] * (a.ndim - 1)), a, blank)


def _folder(part: Path, data: io.Data, mask: Bools) -> None:
    """Write one file per view, with the samples that have it, and one with all labels."""
    assert data.path is not None
    sources = folder.files(data.path)
    ids = np.arange(len(mask)) if data.ids is None else data.ids
    for (name, view), seen in zip(data.views.items(), mask.T, strict=True):
        if data.ids is None:
            arrays.write_npy(io.below(part, name, ".npy"), _hidden(name, view, seen), None)
        else:
            left, none = view[seen], np.zeros(view[seen].shape, bool)
            folder.write_view(part, name, sources[name], left, replace(data, ids=ids[seen]), none)
    if data.how.label is not None and data.y is not None:
        home = next(k for k in ("labels", "labels_", "labels__") if k not in data.views)
        known = known_labels(data.y)  # integers even where missing ones made floats of them
        y = [int(x) if isinstance(x, float) and x % 1 == 0 else x for x in data.y[known].tolist()]
        labels = pd.DataFrame({data.how.label: pd.Series(y, dtype=object)}).set_axis(ids[known])
        csv.write_new(io.below(part, home, ".csv"), labels)
