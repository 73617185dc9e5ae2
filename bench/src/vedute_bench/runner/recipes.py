"""Which settings tell runs apart, and what they are where a record does not name them: it may be
older than some."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from vedute import methods
from vedute.estimators.settings import before, declared

SEEN = ("verbose", "callbacks")  # settings that only say what is seen of a run


@cache
def defaults(method: str) -> Mapping[str, str]:
    """Each as JSON; none of a method that this vedute does not have."""
    return _texts(methods.find(method)().get_params(deep=False)) if _known(method) else {}


def current(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a record as one of today says them. Older ones name a value where today None
    leaves it to the data."""
    cls = methods.find(method) if _known(method) else None
    known = {} if cls is None else declared(cls)
    former = {k: s.formerly for k, s in known.items() if s.formerly is not None}
    if any(settings.get(k, v) is None for k, v in former.items()):
        return dict(settings)
    texts = _texts(former)
    return {k: None if json.dumps(v) == texts.get(k) else v for k, v in settings.items()}


@cache
def changes_nothing(method: str, name: str, text: str) -> bool:
    """Whether a setting with this value, as JSON, is its default, or what it was before there was
    such a setting."""
    if not _known(method):
        return False
    cls = methods.find(method)
    older = _texts({**cls.before, **before(cls)})
    return text in (defaults(method).get(name), older.get(name))


def _known(method: str) -> bool:
    return method in methods.available()


def _texts(settings: Mapping[str, Any]) -> dict[str, str]:
    return {k: json.dumps(v) for k, v in settings.items()}
