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
    from vedute.methods.best_pair import BestPair as BestPair
    from vedute.methods.blend import Blend as Blend
    from vedute.methods.deep.completer import Completer as Completer
    from vedute.methods.deep.cpspan import CPSPAN as CPSPAN
    from vedute.methods.deep.dcca import DCCA as DCCA
    from vedute.methods.deep.dccae import DCCAE as DCCAE
    from vedute.methods.deep.dimvc import DIMVC as DIMVC
    from vedute.methods.deep.dsimvc import DSIMVC as DSIMVC
    from vedute.methods.deep.dvimc import DVIMC as DVIMC
    from vedute.methods.deep.icmvc import ICMVC as ICMVC
    from vedute.methods.deep.mmjsd import MMJSD as MMJSD
    from vedute.methods.deep.mmvae import MMVAE as MMVAE
    from vedute.methods.deep.mmvaeplus import MMVAEPlus as MMVAEPlus
    from vedute.methods.deep.mopoe import MoPoE as MoPoE
    from vedute.methods.deep.mvae import MVAE as MVAE
    from vedute.methods.deep.mvtcae import MVTCAE as MVTCAE
    from vedute.methods.fills.gaussian_fill import GaussianFill as GaussianFill
    from vedute.methods.fills.kernel_fill import KernelFill as KernelFill
    from vedute.methods.fills.knn_fill import KNNFill as KNNFill
    from vedute.methods.fills.lowrank_fill import LowRankFill as LowRankFill
    from vedute.methods.fills.mean_fill import MeanFill as MeanFill
    from vedute.methods.fills.ridge_fill import RidgeFill as RidgeFill
    from vedute.methods.mvp import MVP as MVP
    from vedute.report.page import write_report as write_report

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
    """Return the module of each public name. Classes of methods are found by their files, read
    as text: torch takes a second to load, `import vedute` does not."""
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
