"""Counts with mean m and variance m + m^2 / theta; theta is learned for each feature."""

import torch
from scipy.stats import nbinom
from torch import nn

from vedute.nn import noise
from vedute.nn.likelihoods import NO_CONTEXT, Likelihood

LARGEST = 15.0  # logarithm of the largest mean


class NegativeBinomial(Likelihood):
    name = "negative_binomial"
    logits, scaled, bounds = True, False, (0.0, float("inf"))

    def __init__(self, shape=()):
        super().__init__()
        self.log_theta = nn.Parameter(torch.zeros(tuple(shape)))

    def for_view(self, shape):
        return self if self.log_theta.shape == tuple(shape) else NegativeBinomial(shape)

    def encoder_input(self, x):
        return x.log1p()

    def error(self, out, x, context=NO_CONTEXT):
        m, theta = self.mean(out, context), self.log_theta.exp()
        bernoulli = theta * (theta / (theta + m)).log() + x * (m / (theta + m)).log()
        return (x + 1).lgamma() + theta.lgamma() - (x + theta).lgamma() - bernoulli

    def mean(self, out, context=NO_CONTEXT):
        return out.clamp(max=LARGEST).exp() * context.get("size", 1.0)

    def draw(self, mean, std):
        theta = self.log_theta.detach().exp().to(mean)
        u = noise.like(mean, torch.Tensor.uniform_).numpy()
        drawn = nbinom.ppf(
            u, *(t.numpy() for t in torch.broadcast_tensors(theta, theta / (theta + mean)))
        )
        return torch.from_numpy(drawn).to(mean)

    def variance(self, mean, uncertain, noise):
        return uncertain + mean + mean**2 / self.log_theta.detach().exp().cpu().numpy()
