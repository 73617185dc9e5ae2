"""What a method can do follows from its code, never from a flag that could disagree."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_args, get_type_hints


class Ability:
    """An attribute of classes, and of their instances, that is computed from the class."""

    def __init__(self, answer: Callable[[Any], bool]) -> None:
        self.answer = answer

    def __get__(self, _: object, cls: type[Any]) -> bool:
        return self.answer(cls)


class WarmStart:
    """A method that begins with what another one infers, where it is given one."""

    warm_start: Any = None  # the other method, fitted


@cache
def models(cls: type[Any]) -> tuple[type[Any], ...]:
    """The classes of models that an estimator builds: the annotation of what `build` returns."""
    found = get_type_hints(cls.build)["return"]
    return get_args(found) or (found,)
