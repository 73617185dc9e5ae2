"""Mixtures of Laplace experts, shared by mmVAE and MMVAE+: q(z | x) = 1/n sum_u q_u(z | x_u) over
the n observed views, K draws from each of them, and the bounds made of their weights w_e^k.

    iwae_loose    1/n sum_e log 1/K sum_k w_e^k        iwae_tight    log 1/(nK) sum_e sum_k w_e^k
    dreg          the value of iwae_loose, and the gradient of
                  1/n sum_e sum_k s_e^k log w_e^k,     s = softmax_k(log w) held fixed,
                  times s once more where it passes through a draw; the draws are evaluated under
                  a q whose parameters are held fixed, too (`fixed`)

The second s is a hook on the tensor that is decoded and evaluated. On a copy that the loss does not
depend on, as in released code, the hook never fires, and the gradient is a different one.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vedute.data.views import Views
from vedute.methods.deep.shared.vae import any_of
from vedute.nn import laplace, shards
from vedute.nn.laplace import Laplace

OBJECTIVES = ("iwae_loose", "iwae_tight", "dreg")


def sample_many(q: Laplace, K: int, rows: int = 0) -> Tensor:
    """Draw K values of q, (K, ...); `rows`: the axis of the samples."""
    return laplace.sample(q.map(lambda t: t.expand(K, *t.shape)), rows=rows)


def centred(widths: Tensor) -> Laplace:
    """A prior Lap(0, b), (..., D), with learned scales b that sum to D."""
    return Laplace(torch.zeros_like(widths), laplace.shared_width(widths))


def fixed(objective: str, q: Laplace) -> Laplace:
    """The q under which the bound evaluates draws: detached from its parameters for dreg."""
    return q.map(torch.Tensor.detach) if objective == "dreg" else q


def mean_seen(t: Tensor, mask: Tensor, dim: int) -> Tensor:
    """The mean of the observed entries along `dim` (from the end); `mask` broadcasts against t."""
    return torch.where(mask, t, 0.0).sum(dim) / mask.sum(dim)


def mixture_std(mean: Tensor, variance: Tensor, mask: Tensor) -> Tensor:
    """The standard deviation of a uniform mixture of the observed experts, whose variance is the
    mean of variances plus the variance of means: (B, L, D) each, mask (B, L) -> (B, D)."""
    share = (mask.to(mean) / mask.sum(1, keepdim=True)).unsqueeze(-1)
    center = (share * mean).sum(1, keepdim=True)
    return (share * (variance + (mean - center).square())).sum(1).sqrt()


def log_probs(q: Laplace, z: Tensor) -> Tensor:
    """The log densities log q_u(z_e): (B, U, D) and (K, B, E, D) -> (K, B, E, U)."""
    return laplace.log_prob(q.map(lambda t: t.unsqueeze(1)), z.unsqueeze(-2))


def log_mixture(log_q: Tensor, mask: Tensor) -> Tensor:
    """The mixture log density over observed u: (K, B, E, U) and (B, U) -> (K, B, E)."""
    among = log_q.masked_fill(~mask.unsqueeze(1), -torch.inf)
    return among.logsumexp(-1) - mask.sum(1, keepdim=True).to(log_q).log()


def bound(objective: str, log_w: Tensor, mask: Tensor, draws: Sequence[Tensor]) -> Tensor:
    """The bound of every sample, from the log-weights of its observed sources: (K, B, E) -> (B,).

    draws (K, B, E, D): the draws behind the weights
    """
    K = len(log_w)
    if objective == "iwae_tight":
        among = log_w.masked_fill(~mask, -torch.inf)
        return among.logsumexp((0, 2)) - (K * mask.sum(1)).to(log_w).log()
    loose = mean_seen(log_w.logsumexp(0) - math.log(K), mask, -1)
    if objective == "iwae_loose":
        return loose
    surrogate = mean_seen(doubly_reparameterised(log_w, draws), mask, -1)
    return loose.detach() + surrogate - surrogate.detach()


def doubly_reparameterised(log_w: Tensor, draws: Sequence[Tensor]) -> Tensor:
    """The surrogate sum_k s^k log w^k, (K, ...) -> (...); gradients of draws get a second s."""
    s = log_w.detach().softmax(0)
    for z in draws:
        if z.requires_grad:
            z.register_hook(lambda gradient: s.unsqueeze(-1) * gradient)  # type: ignore[no-untyped-call]
    return (s * log_w).sum(0)


def source_errors(
    batch: Views, codes: Tensor, errors: Callable[[Views, Tensor, Tensor], Tensor]
) -> Tensor:
    """-log p of all observed views, decoded from each source: codes (K, B, L, D) -> (K, B, L).

    errors(samples, codes, sources): errors (K, M, L) of M samples, decoded from the codes
    (K, M, D) of these sources (M,). On a CPU, missing sources are left out.
    """
    K, B, L, _ = codes.shape
    pairs = torch.arange(B * L, device=codes.device)
    pairs = pairs if batch.present() is None else pairs[batch.mask.flatten()]
    with shards.present():
        codes = codes.flatten(1, 2).index_select(1, pairs)
        summed = errors(batch[pairs // L], codes, pairs % L).sum(-1)
    return summed.new_zeros(K, B * L).index_copy(1, pairs, summed).view(K, B, L)


def one_of(z: Tensor, mask: Tensor) -> Tensor:
    """Select the draw of a random observed view: (S, B, L, D) and (B, L) -> (S, B, D)."""
    chosen = any_of(mask.expand(z.shape[:-1]), rows=1)
    return z.take_along_dim(chosen[..., None, None], 2).squeeze(2)
