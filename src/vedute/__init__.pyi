"""The public names, for type checkers and editors: at run time they load on first use."""

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

__version__: str
