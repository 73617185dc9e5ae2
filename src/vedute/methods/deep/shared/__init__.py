"""Code shared by several methods with networks."""

from typing import Any, ClassVar

from vedute.data.views import Names, Shapes
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import estimator
from vedute.nn.likelihoods import Likelihoods


@estimator
class DeepEstimator(NeuralEstimator):
    """An estimator with a model `model_class(shapes, likelihoods, settings, length)`."""

    model_class: ClassVar[Any]

    def build(self, shapes: Shapes, likelihoods: Likelihoods, names: Names, length: int) -> Any:
        return self.model_class(shapes, likelihoods, self, length)
