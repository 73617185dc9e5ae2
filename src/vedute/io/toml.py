"""Settings as TOML, which Python reads but does not write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def dumps(table: Mapping[str, Any]) -> str:
    """Format scalars first, then one [table] per dict. TOML has no None: such keys are left out."""
    scalars = {k: v for k, v in table.items() if v is not None and not isinstance(v, Mapping)}
    tables = {k: v for k, v in table.items() if isinstance(v, Mapping)}
    text = "".join(f"{_key(k)} = {_value(v)}\n" for k, v in scalars.items())
    for name, inside in tables.items():
        rows = [f"{_key(k)} = {_value(v)}\n" for k, v in inside.items() if v is not None]
        text += f"\n[{_key(name)}]\n{''.join(rows)}"
    return text


def _key(key: Any) -> str:
    text = str(key)
    plain = text.isascii() and text.replace("_", "").replace("-", "").isalnum()
    return text if plain else _value(text)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)  # inf and nan are TOML, too
    # JSON's escapes are TOML's, except DEL and lone surrogates
    text = json.dumps(value if isinstance(value, int) else str(value), ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
