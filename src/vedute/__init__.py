"""Learn from incomplete multi-view data: one representation per sample, clusters, missing views."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vedute.data.missing import drop_views as drop_views
    from vedute.data.views import Views as Views
    from vedute.methods import load as load
    from vedute.methods._best_pair import BestPair as BestPair
    from vedute.methods.completer import Completer as Completer
    from vedute.methods.cpspan import CPSPAN as CPSPAN
    from vedute.methods.dcca import DCCA as DCCA
    from vedute.methods.dccae import DCCAE as DCCAE
    from vedute.methods.dimvc import DIMVC as DIMVC
    from vedute.methods.dsimvc import DSIMVC as DSIMVC
    from vedute.methods.dvimc import DVIMC as DVIMC
    from vedute.methods.icmvc import ICMVC as ICMVC
    from vedute.methods.knn_fill import KNNFill as KNNFill
    from vedute.methods.lowrank_fill import LowRankFill as LowRankFill
    from vedute.methods.mean_fill import MeanFill as MeanFill
    from vedute.methods.mmjsd import MMJSD as MMJSD
    from vedute.methods.mmvae import MMVAE as MMVAE
    from vedute.methods.mmvaeplus import MMVAEPlus as MMVAEPlus
    from vedute.methods.mopoe import MoPoE as MoPoE
    from vedute.methods.mvae import MVAE as MVAE
    from vedute.methods.mvp import MVP as MVP
    from vedute.methods.mvtcae import MVTCAE as MVTCAE

__version__ = "0.1.0"

_HOMES = {
    "Views": "vedute.data.views",
    "drop_views": "vedute.data.missing",
    "load": "vedute.methods",
    "BestPair": "vedute.methods._best_pair",
    "Completer": "vedute.methods.completer",
    "CPSPAN": "vedute.methods.cpspan",
    "DCCA": "vedute.methods.dcca",
    "DCCAE": "vedute.methods.dccae",
    "DIMVC": "vedute.methods.dimvc",
    "DSIMVC": "vedute.methods.dsimvc",
    "DVIMC": "vedute.methods.dvimc",
    "ICMVC": "vedute.methods.icmvc",
    "KNNFill": "vedute.methods.knn_fill",
    "LowRankFill": "vedute.methods.lowrank_fill",
    "MeanFill": "vedute.methods.mean_fill",
    "MMJSD": "vedute.methods.mmjsd",
    "MMVAE": "vedute.methods.mmvae",
    "MMVAEPlus": "vedute.methods.mmvaeplus",
    "MoPoE": "vedute.methods.mopoe",
    "MVAE": "vedute.methods.mvae",
    "MVP": "vedute.methods.mvp",
    "MVTCAE": "vedute.methods.mvtcae",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    """Public names load at first use: torch takes a second, `import vedute` does not."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'vedute' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
