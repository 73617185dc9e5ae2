"""Which settings tell runs apart: those that are not at their defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from vedute import methods

SEEN = ("verbose", "callbacks")  # settings that only say what is seen of a run


@cache
def defaults(method: str) -> Mapping[str, str]:
    """Each as JSON; none of a method that this vedute does not have."""
    if method not in methods.available():
        return {}
    settings = methods.find(method)().get_params(deep=False)
    return {k: json.dumps(v) for k, v in settings.items()}


def changed(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run that are not at their defaults."""
    plain = defaults(method)
    mine = {k: v for k, v in settings.items() if k not in SEEN}
    return {k: v for k, v in mine.items() if json.dumps(v) != plain.get(k)}
