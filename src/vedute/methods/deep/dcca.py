"""DCCA: deep canonical correlation analysis (Andrew, Arora, Bilmes & Livescu, ICML 2013).

Two networks map two views to outputs with maximal canonical correlations,

    max over f_1, f_2 of corr(f_1(x_1), f_2(x_2)) = |S_11^-1/2 S_12 S_22^-1/2|_*

the sum of singular values, over batches of samples that have both views, in float64. Linear CCA of
the outputs follows (see `paired`). By default, a missing view is replaced by its expectation given
the other one; comparisons in the literature feed the network with the mean.

Departures. Many ports maximise another norm of the matrix, or the sum of squared correlations; here
the objective is the paper's. Networks follow later practice: sigmoids and batch norms, trained with
Adam, instead of full batches after denoising pretraining.
"""

from vedute.data.views import Views
from vedute.estimators.settings import estimator
from vedute.methods.deep.shared import paired
from vedute.training.model import Terms


class DCCAModel(paired.DeepCCA):
    def loss(self, batch: Views) -> Terms:
        return {"correlation": self.correlation(self.outputs(batch))}


@estimator
class DCCA(paired.DeepCCAEstimator):
    """Deep CCA: maximally correlated projections of two views."""

    paper = "Andrew et al., ICML 2013"
    model_class = DCCAModel
