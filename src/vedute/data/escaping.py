"""Safe display of names that were read from files."""

from __future__ import annotations

import re

# Control characters, marks of the direction of text, and lone surrogates.
UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: object, keep: str = "") -> str:
    """Escape what a terminal would interpret, such as \\x1b, but for `keep`."""
    return UNSAFE.sub(lambda c: c[0] if c[0] in keep else ascii(c[0])[1:-1], str(text))
