"""Log-likelihood of test samples by importance sampling.

    log p(x) >= E log 1/K sum_k p(x | c_k) p(c_k) / q(c_k | x)        c_k ~ q(c | x)

The bound rises with K. Every view is Gaussian around the decoded values. Its one variance is that
of the residuals of training samples at their posterior means, so that methods trained with
different likelihoods are compared with the same noise. The unit is bits per entry of the network's
input, lower is better. MVP has no prior; the mixture from which it generates is used instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from vedute.data.views import Views
from vedute.nn import noise
from vedute.nn.likelihoods import Likelihood

ROWS, DRAWS, DRAWS_PER_BATCH = 100, 64, 16  # batch size; draws per sample, and draws per batch


class Weighed(Protocol):
    """Model whose codes have a density, see `densities`."""

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]: ...

    def decode_code(self, code: Tensor) -> list[Tensor]:
        """Decode codes (n, D) to L views (1, n, *shape_v)."""

    def codes(self, batch: Views, draws: int) -> tuple[Tensor, Tensor]:
        """Draw codes (draws, B, D) from q(c | x), with their log q (draws, B)."""

    def log_prior(self) -> Callable[[Tensor], Tensor]:
        """Return the function log p(c), (..., D) -> (...)."""


@torch.no_grad()
def bits_per_entry(
    model: Weighed, kinds: Sequence[Likelihood], train: Views, test: Views, seed: int = 42
) -> float:
    """Bits per entry of complete test samples, scaled for the model."""
    variances = _residuals(model, kinds, train)
    with noise.alone():
        torch.manual_seed(seed)
        log_prior = model.log_prior()
        bounds = [
            _log_likelihood(model, kinds, variances, log_prior, batch.floating())
            for batch in test.bare().batches(ROWS)
        ]
    entries = sum(math.prod(x.shape[1:]) for x in test.x)
    return float(-torch.cat(bounds).mean() / math.log(2) / entries)


def _residuals(model: Weighed, kinds: Sequence[Likelihood], train: Views) -> list[Tensor]:
    """Mean squared error of each view."""
    sums, n = [torch.zeros((), dtype=torch.float64) for _ in train.x], 0
    for batch in train.bare().batches(ROWS):
        seen = batch.floating()
        n += len(seen)
        for v, out in enumerate(model.decode(seen)):
            error = (kinds[v].mean(out[0].float()) - seen.x[v]).square()
            sums[v] = sums[v] + error.flatten(1).mean(1).double().sum().cpu()
    return [total / n for total in sums]


def _log_likelihood(
    model: Weighed,
    kinds: Sequence[Likelihood],
    variances: Sequence[Tensor],
    log_prior: Callable[[Tensor], Tensor],
    batch: Views,
) -> Tensor:
    """Bound on the log-likelihood of each sample, (B,)."""
    parts = []
    for _ in range(DRAWS // DRAWS_PER_BATCH):
        codes, log_q = model.codes(batch, DRAWS_PER_BATCH)  # (S, B, D), (S, B)
        log_w = (log_prior(codes) - log_q).double()
        outs = model.decode_code(codes.flatten(0, 1))
        for v, (out, variance) in enumerate(zip(outs, variances, strict=True)):
            mean = kinds[v].mean(out[0].float())
            mean = mean.view(*log_q.shape, *mean.shape[1:])  # (S, B, *shape)
            error = (mean - batch.x[v]).square().flatten(2).double()
            s2 = variance.to(error)
            log_w = log_w - 0.5 * (error / s2 + (2 * math.pi * s2).log()).sum(-1)
        parts.append(log_w)
    return torch.cat(parts).logsumexp(0) - math.log(DRAWS)
