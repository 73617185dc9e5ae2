"""Several ranks fit the same: settings, data and groups are compared before they begin."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from vedute.data.views import Views
from vedute.estimators.digest import digest
from vedute.estimators.method import Method
from vedute.estimators.settings import LOOSE
from vedute.training import ranks

NOT_COMPARED = (*LOOSE, "random_state", "method", "expert_settings")  # or compared by their parts


def check(model: Method, raw: Views, groups: NDArray[Any] | None) -> None:
    """Refuse several ranks that would not fit the same."""
    if ranks.size() == 1:
        return
    params = model.get_params().items()
    given = {k: v for k, v in params if k.rpartition("__")[2] not in NOT_COMPARED}
    known = [raw.mask, *raw.parts, *raw.hole_parts]
    known += [] if groups is None else [torch.from_numpy(groups)]
    if not ranks.all_have(digest(given | {"views": raw.specs}, known)):
        raise ValueError(
            f"the ranks fit {type(model).__name__} with other settings, or on other data; "
            "every rank takes the same"
        )
