"""What the mixtures of Laplace experts share: q(z | x) = 1/n sum_u q_u(z | x_u) over the n views
that are seen, K draws from each of them in turn, and the bounds made of their weights w_e^k.

    iwae_loose    1/n sum_e log 1/K sum_k w_e^k        iwae_tight    log 1/(nK) sum_e sum_k w_e^k
    dreg          the value of the loose one, and the gradient of
                  1/n sum_e sum_k s_e^k log w_e^k,     s = softmax_k(log w) held fixed,
                  times s once more where it passes through a draw; the caller measures the draws
                  by a q whose parameters are held fixed as well

The second s is a hook on the very tensor that is decoded and measured. On a copy that nothing
depends on, as in released code, it never fires, and the gradient is another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vedute.data.views import Views
from vedute.methods._vae import any_of
from vedute.nn import laplace
from vedute.nn.laplace import Laplace

OBJECTIVES = ("iwae_loose", "iwae_tight", "dreg")


def many(q: Laplace, K: int) -> Laplace:
    """q (...) as the posterior of K draws, (K, ...)."""
    return q.map(lambda t: t.expand(K, *t.shape))


def mean_seen(t: Tensor, mask: Tensor, dim: int) -> Tensor:
    """The average of what is seen along `dim` (from the end); `mask` broadcasts against t."""
    return torch.where(mask, t, 0.0).sum(dim) / mask.sum(dim)


def each_by_each(q: Laplace, z: Tensor) -> Tensor:
    """log q_u(z_e): (B, U, D) and (K, B, E, D) -> (K, B, E, U)."""
    return laplace.log_prob(q.map(lambda t: t.unsqueeze(1)), z.unsqueeze(-2))


def log_mixture(log_q: Tensor, mask: Tensor) -> Tensor:
    """log 1/n sum_u q_u over seen u: (K, B, E, U) and (B, U) -> (K, B, E)."""
    among = log_q.masked_fill(~mask.unsqueeze(1), -torch.inf)
    return among.logsumexp(-1) - mask.sum(1, keepdim=True).to(log_q).log()


def bound(objective: str, log_w: Tensor, mask: Tensor, draws: Sequence[Tensor]) -> Tensor:
    """Of every sample, from the log-weights of its seen sources: (K, B, E) -> (B,). `draws`
    (K, B, E, D): those of the posteriors that the weights were made of."""
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
    """sum_k s^k log w^k, (K, ...) -> (...), with a second s on the way through the draws."""
    s = log_w.detach().softmax(0)
    for z in draws:
        if z.requires_grad:
            z.register_hook(lambda gradient: s.unsqueeze(-1) * gradient)  # type: ignore[no-untyped-call]
    return (s * log_w).sum(0)


def source_errors(
    batch: Views, codes: Tensor, tell: Callable[[Views, Tensor, Tensor], Tensor]
) -> Tensor:
    """-log p of all that is seen, told by each source in turn: codes (K, B, L, D) -> (K, B, L).

    tell(samples, codes, sources): errors (K, M, L) of M samples told by the codes (K, M, D) of
    these sources (M,). What missing sources say means nothing: a CPU spares them.
    """
    K, B, L, _ = codes.shape
    at = torch.arange(B * L, device=codes.device)
    if batch.present() is not None:
        at = at[batch.mask.flatten()]
    errors = tell(batch[at // L], codes.flatten(1, 2).index_select(1, at), at % L).sum(-1)
    return errors.new_zeros(K, B * L).index_copy(1, at, errors).view(K, B, L)


def one_of(z: Tensor, mask: Tensor) -> Tensor:
    """One seen view's, each as likely: (S, B, L, D) and (B, L) -> (S, B, D)."""
    chosen = any_of(mask.expand(z.shape[:-1]))
    return z.take_along_dim(chosen[..., None, None], 2).squeeze(2)
