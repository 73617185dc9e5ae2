"""Abilities of a method, derived from its code, never from a flag that could disagree."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_args, get_type_hints


class Ability:
    """An attribute of classes and instances that is computed from the class."""

    def __init__(self, answer: Callable[[Any], bool]) -> None:
        self.answer = answer

    def __get__(self, _: object, cls: type[Any]) -> bool:
        return self.answer(cls)


class WarmStart:
    """A method that can start from the imputations of another one."""

    warm_start: Any = None  # the other method, fitted


@cache
def models(cls: type[Any]) -> tuple[type[Any], ...]:
    """Return the classes of models that an estimator builds: the return annotation of `build`."""
    annotation = get_type_hints(cls.build)["return"]
    return get_args(annotation) or (annotation,)
