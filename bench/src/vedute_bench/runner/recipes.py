"""Settings that distinguish runs: those that differ from their defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from vedute import methods

DISPLAY = ("verbose", "callbacks")  # settings that only control the display of a run


@cache
def defaults(method: str) -> Mapping[str, str]:
    """Default settings as JSON; empty for a method that this vedute does not have."""
    if method not in methods.available():
        return {}
    settings = methods.find(method)().get_params(deep=False)
    return {k: json.dumps(v) for k, v in settings.items()}


def changed(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run that differ from their defaults."""
    plain = defaults(method)
    relevant = {k: v for k, v in settings.items() if k not in DISPLAY}
    return {k: v for k, v in relevant.items() if json.dumps(v) != plain.get(k)}
