"""Learn from incomplete multi-view data: one representation per sample, clusters, missing views."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_MODULES = ("plot", "scverse")
_HOMES = {
    "Views": "vedute.data.views",
    "drop_views": "vedute.data.missing",
    "load": "vedute.methods",
    "pool": "vedute.analysis.pooling",
    "write_report": "vedute.report.page",
}


@cache
def _homes() -> dict[str, str]:
    """Return the module of each public name; methods by the text of their files, without torch."""
    package, classes = Path(__file__).parent, dict[str, str]()
    files = [*package.glob("methods/[a-z]*.py"), *package.glob("methods/*/[a-z]*.py")]
    for file in sorted(files):
        defined = re.search(r"^@estimator\nclass (\w+)", file.read_text(encoding="utf-8"), re.M)
        if defined:
            module = file.relative_to(package).with_suffix("")
            classes[defined[1]] = ".".join(("vedute", *module.parts))
    return _HOMES | classes


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in _homes():
        return getattr(import_module(_homes()[name]), name)
    if not name.startswith("_") and find_spec(f"vedute.{name}"):
        return import_module(f"vedute.{name}")
    raise AttributeError(f"module 'vedute' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_homes(), *_MODULES, "__version__"]
