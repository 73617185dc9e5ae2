"""Names in messages: safe to display, in short lists, and suggested for unknown ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

# Control characters, marks of the direction of text, and lone surrogates.
UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
MOST_NAMED = 5  # names in a list


def escaped(text: object, keep: str = "") -> str:
    """Escape what a terminal would interpret, such as \\x1b, but for `keep`."""
    return UNSAFE.sub(lambda c: c[0] if c[0] in keep else ascii(c[0])[1:-1], str(text))


def listed(names: Iterable[Any], most: int = MOST_NAMED, form: Callable[[Any], str] = repr) -> str:
    """Format 'a', 'b', 'c', ... (12 in all)."""
    items = list(names)
    text = ", ".join(form(getattr(x, "item", lambda x=x: x)()) for x in items[:most])
    return text if len(items) <= most else f"{text}, ... ({len(items)} in all)"


def close_to(name: Any, known: Iterable[Any]) -> str:
    """Suggest the name that may have been meant by an unknown one."""
    names = {str(k).casefold(): str(k) for k in known}
    close = get_close_matches(str(name).casefold(), names, cutoff=0.6)
    return f"did you mean {names[close[0]]!r}?" if close else f"it has {listed(names.values())}"
