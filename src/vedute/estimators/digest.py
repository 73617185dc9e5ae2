"""A checksum of the settings and data of a fit."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from vedute.data.rows import stretches


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
