"""p(x | decoder output) of a view: Normal, Laplace, Bernoulli, Categorical, Tokens.

A likelihood defines everything that depends on the kind of a view: its density, mean and draws,
the possible values, and whether the view is scaled. `error` is -log p without the constant, at the
scale where it equals the squared error (normal, variance 1/2) or the absolute error (laplace, 1). A
categorical view is one-hot over its last axis; its output and the bernoulli one are logits. A view
of tokens holds integers (T,); its output (T, V) holds the logits of every word.

Another likelihood is a class in a module of this folder, or in another distribution as an entry
point of the group `vedute.likelihoods`; it may have parameters of its own, several decoder outputs
for each feature, and read the context of a batch.
"""

import inspect
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vedute.data import plugins
from vedute.data.views import Context
from vedute.nn import noise

Array = NDArray[Any]
NO_CONTEXT: Context = MappingProxyType({})
GROUP = "vedute.likelihoods"  # entry points of other distributions
ROUNDING = 1e-6  # tolerance of values scaled to [0, 1]


class Likelihood(nn.Module, ABC):
    """The distribution of a view given decoder outputs. The context holds named tensors of the rows
    of a batch, (B, ...): size factors, covariates.

    outputs      decoder outputs for each feature, as a last axis if there are several
    logits       decoder outputs are logits, not values
    text         samples are sequences of words, as integers
    scaled       the estimator's scaling applies
    bounds       the lowest and highest possible value, in the user's units
    shares       the values of a row sum to one: one-hot, or probabilities
    encoder_input(x)  the values (B, *shape) that an encoder sees: logarithms of counts, say
    """

    name: ClassVar[str]
    outputs: ClassVar[int] = 1
    logits: ClassVar[bool] = False
    text: ClassVar[bool] = False
    scaled: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    shares: ClassVar[bool] = False
    encoder_input: Callable[[Tensor], Tensor] = staticmethod(Tensor.float)

    def for_view(self, shape: Sequence[int]) -> "Likelihood":
        """Return the likelihood of a view with samples of this shape: another module if it learns
        parameters for each feature."""
        return self

    @abstractmethod
    def error(self, out: Tensor, x: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        """Return -log p(x | out) up to its constant per element; out (..., *shape), x broadcasts.
        Categorical: the sum of the terms is -log p."""

    def mean(self, out: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        """Return E[x | out], or the most likely tokens."""
        return out

    @abstractmethod
    def draw(self, mean: Tensor, std: Tensor) -> Tensor:
        """Draw values given the mean; `std` is the standard deviation of real values."""

    def variance(self, mean: Array, uncertain: Array, noise: Array) -> Array:
        """Return the variance of values: that of the mean, `uncertain`, plus that of the noise."""
        return np.asarray(uncertain + noise)

    def problem(self, x: Tensor, seen: Tensor) -> str | None:
        """Say why a view cannot have this likelihood and how to fix it; x and seen (n, *shape)."""
        return None

    def spread(self, scale: float) -> float:
        """Return the divisor in -log p = error / spread(scale) + constant; `scale` is the standard
        deviation (normal) or b (laplace)."""
        return 1.0

    def absolute(self) -> "Likelihood":
        """Return the likelihood with absolute instead of squared errors."""
        return self


class Normal(Likelihood):
    name = "normal"

    def error(self, out: Tensor, x: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        return (x - out).square()

    def draw(self, mean: Tensor, std: Tensor) -> Tensor:
        return mean + std * noise.like(mean)

    def spread(self, scale: float) -> float:
        return 2 * scale**2

    def absolute(self) -> Likelihood:
        return Laplace()


class Laplace(Likelihood):
    name = "laplace"

    def error(self, out: Tensor, x: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        return (x - out).abs()

    def draw(self, mean: Tensor, std: Tensor) -> Tensor:
        up, down = (noise.like(mean, Tensor.exponential_) for _ in range(2))
        return mean + std / math.sqrt(2) * (up - down)

    def spread(self, scale: float) -> float:
        return scale


class _Probability(Likelihood):
    """A distribution of zeros and ones with logits as parameters."""

    logits, scaled, bounds = True, False, (0.0, 1.0)

    def variance(self, mean: Array, uncertain: Array, noise: Array) -> Array:
        return np.asarray(np.clip(mean * (1 - mean), 0, None))

    def problem(self, x: Tensor, seen: Tensor) -> str | None:
        if x.dtype == torch.uint8:
            return f"holds bytes; pass {self.name} values as floats between 0 and 1"
        wrong = x[seen & ((x < -ROUNDING) | (x > 1 + ROUNDING))]
        fix = f"{self.name} values lie between 0 and 1: rescale them"
        return f"holds {float(wrong[0]):g}; {fix}" if len(wrong) else None


class Bernoulli(_Probability):
    name = "bernoulli"

    def error(self, out: Tensor, x: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        return F.binary_cross_entropy_with_logits(out, x.expand_as(out), reduction="none")

    def mean(self, out: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        return out.sigmoid()

    def draw(self, mean: Tensor, std: Tensor) -> Tensor:
        return (noise.like(mean, Tensor.uniform_) < mean).to(mean.dtype)


class Categorical(_Probability):
    name = "categorical"
    shares = True

    def error(self, out: Tensor, x: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        return -x * out.log_softmax(-1)

    def mean(self, out: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        return out.softmax(-1)

    def draw(self, mean: Tensor, std: Tensor) -> Tensor:
        gumbel = -noise.like(mean, Tensor.exponential_).log()
        choice = (mean.clamp_min(1e-12).log() + gumbel).argmax(-1)
        return F.one_hot(choice, mean.shape[-1]).to(mean.dtype)

    def problem(self, x: Tensor, seen: Tensor) -> str | None:
        sums = x[seen.all(-1)].sum(-1, dtype=torch.float64)
        off = sums[(sums - 1).abs() > 1e-3]
        sentence = "has a row that sums to {:g}; categorical rows sum to 1: one-hot"
        return super().problem(x, seen) or (sentence.format(float(off[0])) if len(off) else None)


class Tokens(Likelihood):
    name = "tokens"
    logits, text, scaled = True, True, False

    def error(self, out: Tensor, x: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        words = x.long().expand(out.shape[:-1]).unsqueeze(-1)
        return -out.log_softmax(-1).gather(-1, words).squeeze(-1)

    def mean(self, out: Tensor, context: Context = NO_CONTEXT) -> Tensor:
        return out.argmax(-1).float()

    def draw(self, mean: Tensor, std: Tensor) -> Tensor:
        return mean

    def variance(self, mean: Array, uncertain: Array, noise: Array) -> Array:
        return np.zeros_like(mean)

    def problem(self, x: Tensor, seen: Tensor) -> str | None:
        wrong = x[seen & ((x < 0) | (x != x.round()))]
        fix = "tokens are whole numbers from 0: number the words"
        return f"holds {float(wrong[0]):g}; {fix}" if len(wrong) else None


Likelihoods = Sequence[Likelihood]  # one per view
OWN = {kind.name: kind for kind in (Normal, Laplace, Bernoulli, Categorical, Tokens)}


class _Registry:
    """Likelihoods by name: our own, those of the modules in this folder, and those of others. Each
    access makes a new one, since the model of a fit moves and trains its own."""

    def __getitem__(self, name: str) -> Likelihood:
        return (OWN[name] if name in OWN else _others()[name])()

    def __iter__(self) -> Iterator[str]:
        return iter(OWN | _others())


LIKELIHOODS = _Registry()


def _others() -> dict[str, type[Likelihood]]:
    """Import the likelihoods of other distributions, and those of the modules in this folder."""
    classes = list(map(plugins.imported, plugins.registered(GROUP).values()))
    for module in pkgutil.iter_modules(__path__):
        members = inspect.getmembers(import_module(f"{__name__}.{module.name}"), inspect.isclass)
        classes += [c for _, c in members if issubclass(c, Likelihood) and c is not Likelihood]
    return dict(zip(map(attrgetter("name"), classes), classes, strict=True))
