"""Checks before a fit: settings, data, and whether all ranks agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from vedute.data import missing
from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.estimators.abilities import models
from vedute.estimators.digest import digest
from vedute.estimators.method import Method
from vedute.estimators.settings import LOOSE
from vedute.training import ranks

NOT_COMPARED = (
    *LOOSE,
    "random_state",
    "method",
    "expert_settings",
)  # or compared by their own settings
NO_SHARED_ROWS = (
    "no sample has two views, so the relation between views cannot be learned; do the samples "
    "of different views have the same ids?"
)
ONE_VIEW = (
    "one frame is one view; to split it, pass columns={'a': [...], 'b': [...]}, a dict of frames, "
    "or columns of two levels, the view above"
)


def check(model: Method, raw: Views) -> None:
    """Reject invalid settings, and data that cannot be fitted with them."""
    model.check_settings()
    if model.two_views and len(raw.x) != 2:
        name = type(model).__name__
        fix = f"BestPair({name}(...)) takes two of more" if len(raw.x) > 2 else "pass one more"
        raise ValueError(f"{name} takes two views, X has {len(raw.x)}; {fix}")
    for name, seen in zip(raw.names, raw.mask.any(0), strict=True):
        if not seen:
            raise ValueError(f"view {name!r} is missing for every sample; leave it out of fit")
    if getattr(model, "checkpoint", None) is not None and model.random_state is None:
        raise ValueError("checkpoint needs random_state: without it no run can be resumed")
    check_columns(raw)
    clustering.check(model.n_clusters, len(raw), model.soft)
    if model.soft:
        clustering.require(model.n_clusters, type(model).__name__)
    model.check(raw)


def is_one_view(X: Any, raw: Views) -> bool:
    """Return whether X is a frame of several columns that was not split into views."""
    columns = raw.specs[0].columns if raw.specs else None
    whole = not isinstance(X, (Mapping, list, tuple, Views)) and raw.names == ("view0",)
    return whole and columns is not None and len(columns) > 1


def check_columns(raw: Views) -> None:
    """Reject a column without a finite value."""
    for v, spec in enumerate(raw.specs or ()):
        empty = None if raw.hole_parts[v] is None else ~raw.ever_seen(v)
        if empty is not None and empty.any():
            first = int(empty.flatten().nonzero()[0])
            plain = spec.columns is not None and len(spec.columns) == empty.numel()
            column = spec.columns[first] if plain and spec.columns is not None else first
            raise ValueError(
                f"view {spec.name!r} has no finite value in column {column!r}; drop the column"
            )


def unconnected(data: Views) -> str | None:
    """Say why some views share no samples with the others, or return None."""
    if len(data.names) > 1 and int(data.mask.sum(1).max()) < 2:
        return NO_SHARED_ROWS
    return missing.components_warning(missing.components(data.mask, data.names))


def ranks_agree(model: Method, raw: Views, groups: NDArray[Any] | None) -> None:
    """Reject ranks that would fit different settings or data."""
    if ranks.size() == 1:
        return
    params = model.get_params().items()
    compared = {k: v for k, v in params if k.rpartition("__")[2] not in NOT_COMPARED}
    arrays = [raw.mask, *raw.parts, *raw.hole_parts]
    arrays += [] if groups is None else [torch.from_numpy(groups)]
    if not ranks.all_have(digest(compared | {"views": raw.specs}, arrays)):
        raise ValueError(
            f"the ranks fit {type(model).__name__} with other settings, or on other data; "
            "every rank takes the same"
        )


def ranks_can_share(cls: Any) -> None:
    """Reject several ranks for a method whose loss is not a sum over samples."""
    if ranks.size() > 1 and not all(m.adds_over_rows for m in models(cls)):
        raise ValueError(
            f"{cls.__name__} compares the samples of a batch with each other, which "
            "ranks that have a part of it each cannot; fit it in one process, without torchrun"
        )
