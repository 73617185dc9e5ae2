"""Settings from papers, one <method>.toml per method: data, not code.

Keys at the top of a file apply to all its tables; a table is named after its dataset, and may
extend another one: like = "its name".
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

Settings = dict[str, Any]
FOLDER = Path(__file__).parent


def available() -> list[str]:
    """The methods that have presets."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(method: str) -> dict[str, Settings]:
    """Presets of a method by name; empty if it has none."""
    if method not in available():
        return {}
    text = (FOLDER / f"{method}.toml").read_text(encoding="utf-8")
    content = {k: _plain(v) for k, v in tomllib.loads(text).items()}
    common = {k: v for k, v in content.items() if not isinstance(v, dict)}
    tables = {k: v for k, v in content.items() if isinstance(v, dict)}
    like = {k: tables[v.pop("like")] for k, v in tables.items() if "like" in v}
    return {k: common | like.get(k, {}) | v for k, v in tables.items()}


def find(method: str, name: str) -> Settings:
    """Return one preset, e.g. `MVP(**presets.find("mvp", "handwritten"))`."""
    presets = load(method)
    if name not in presets:
        hint = f"choose from {', '.join(presets)}" if presets else "the method has none"
        raise KeyError(f"no preset {name!r} for {method}; {hint}")
    return presets[name]


def _plain(value: Any) -> Any:
    """Convert lists to tuples, like the fields of estimators."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return tuple(_plain(v) for v in value) if isinstance(value, list) else value
