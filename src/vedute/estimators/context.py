"""The context of one fit, passed down to everything that learns in it; its seed, its checksum."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from torch import Tensor

from vedute.data.rows import stretches
from vedute.data.views import Views
from vedute.estimators.settings import LOOSE
from vedute.scale import ranks
from vedute.training.checkpoints import MismatchError
from vedute.training.history import Record

FROM_CALLBACK = "raised by a callback"  # a note on errors
# Settings that ranks need not share, or that are compared by the settings inside.
NOT_COMPARED = (*LOOSE, "random_state", "method", "expert_settings")
T = TypeVar("T")


@dataclass
class FitContext:
    """The state of one fit, which no model keeps."""

    seed: int  # of all random numbers
    groups: Tensor | None = None  # (n,) codes of samples that belong together
    number: int = 1  # 1 for the first training, 2 for the refit with all views
    checkpoint: Path | None = None  # the folder of checkpoints, if any
    callbacks: Sequence[Callable[[Record], object]] = ()  # called with every record of the history
    interrupted: bool = False  # by the user, set during training

    @classmethod
    def of(cls, model: Any, seed: int, groups: Tensor | None = None) -> Self:
        """Make the context of a fit from the settings of a method."""
        folder, callbacks = getattr(model, "checkpoint", None), getattr(model, "callbacks", None)
        checkpoint = None if folder is None else Path(folder)
        return cls(seed, groups, checkpoint=checkpoint, callbacks=callbacks or ())

    def child(self, model: Any, name: str, number: int = 1) -> FitContext:
        """Return the context of an inner method, with checkpoints in a folder of this name; the
        outer method hides views for it, so it needs no groups."""
        inner = FitContext.of(model, self.seed)
        inner.number = number
        if self.checkpoint is not None:
            inner.checkpoint = self.checkpoint / name
        if self.callbacks and hasattr(model, "callbacks"):
            inner.callbacks = self.callbacks
        return inner


def seed_of(random_state: Any) -> int:
    """Convert a random_state as in scikit-learn to an integer."""
    if isinstance(random_state, (int, np.integer)) and abs(int(random_state)) < 2**63:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return int(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31 - 1))
    raise ValueError(
        f"random_state is a whole number below 2**63, a generator of numpy or None, got "
        f"{random_state!r}"
    )


def check_ranks(model: Any, raw: Views, groups: Tensor | None) -> None:
    """Reject ranks that would fit different settings or data."""
    params = model.get_params() | {"views": raw.specs}
    compared = {k: v for k, v in params.items() if k.rpartition("__")[2] not in NOT_COMPARED}
    if not ranks.all_have(digest(compared, [raw.mask, *raw.parts, *raw.hole_parts, groups])):
        raise ValueError(
            f"the ranks fit {type(model).__name__} with other settings, or on other data; "
            "every rank takes the same"
        )


def attempted(work: Callable[[], T]) -> T | Exception:
    """Return the result of `work`, or the error that it raised, if that is the method's fault: not
    the disk's, nor that of other ranks, checkpoints or callbacks."""
    try:
        return work()
    except (OSError, MismatchError):
        raise
    except Exception as error:
        if FROM_CALLBACK in getattr(error, "__notes__", ()):
            raise
        return error


def digest(settings: Mapping[str, Any], parts: Iterable[Any]) -> str:
    """Return the SHA-256 of settings, views, holes and masks, computed in chunks; a part in a store
    enters by its checksum."""
    total = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for part in parts:
        if origin := getattr(part, "origin", ""):
            total.update(origin.encode())
        elif part is not None:
            for rows in stretches(len(part), math.prod(part.shape[1:])):
                total.update(np.ascontiguousarray(part[rows].cpu().numpy()).data)
    return total.hexdigest()
