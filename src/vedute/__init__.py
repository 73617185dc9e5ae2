"""Learn from incomplete multi-view data: one representation per sample, clusters, missing views."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vedute.data.missing import drop_views as drop_views
    from vedute.data.views import Views as Views
    from vedute.methods import load as load
    from vedute.methods._best_pair import BestPair as BestPair
    from vedute.methods.mvp import MVP as MVP

__version__ = "0.1.0"

_HOMES = {
    "BestPair": "vedute.methods._best_pair",
    "MVP": "vedute.methods.mvp",
    "Views": "vedute.data.views",
    "drop_views": "vedute.data.missing",
    "load": "vedute.methods",
}
__all__ = ["BestPair", "MVP", "Views", "__version__", "drop_views", "load"]


def __getattr__(name: str) -> Any:
    """Public names load at first use: torch takes a second, `import vedute` does not."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'vedute' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
