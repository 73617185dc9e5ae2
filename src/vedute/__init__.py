"""Learn from incomplete multi-view data: one representation per sample, clusters, missing views."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vedute import plot as plot
    from vedute import scverse as scverse
    from vedute.analysis.pooling import pool as pool
    from vedute.data.missing import drop_views as drop_views
    from vedute.data.views import Views as Views
    from vedute.methods import load as load
    from vedute.methods._best_pair import BestPair as BestPair
    from vedute.methods.blend import Blend as Blend
    from vedute.methods.completer import Completer as Completer
    from vedute.methods.cpspan import CPSPAN as CPSPAN
    from vedute.methods.dcca import DCCA as DCCA
    from vedute.methods.dccae import DCCAE as DCCAE
    from vedute.methods.dimvc import DIMVC as DIMVC
    from vedute.methods.dsimvc import DSIMVC as DSIMVC
    from vedute.methods.dvimc import DVIMC as DVIMC
    from vedute.methods.gaussian_fill import GaussianFill as GaussianFill
    from vedute.methods.icmvc import ICMVC as ICMVC
    from vedute.methods.kernel_fill import KernelFill as KernelFill
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
    from vedute.methods.ridge_fill import RidgeFill as RidgeFill
    from vedute.report.page import write_report as write_report

__version__ = "0.1.0"

_MODULES = ("plot", "scverse")
_HOMES = {
    "BestPair": "vedute.methods._best_pair",
    "Views": "vedute.data.views",
    "drop_views": "vedute.data.missing",
    "load": "vedute.methods",
    "pool": "vedute.analysis.pooling",
    "write_report": "vedute.report.page",
}


@cache
def _homes() -> dict[str, str]:
    """Where public names are defined. Classes of methods are found by their files, which are read
    as text: torch takes a second to load, `import vedute` does not."""
    files = sorted((Path(__file__).parent / "methods").glob("[a-z]*.py"))
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    found = {k: re.search(r"^@estimator\nclass (\w+)", text, re.M) for k, text in texts.items()}
    return _HOMES | {c[1]: f"vedute.methods.{name}" for name, c in found.items() if c}


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
