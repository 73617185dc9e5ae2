"""The Laplace mixtures written slowly, from their specification: one sample, source and draw at a
time, with the weights of the model. And the fixed chance that both ways of writing them meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.distributions import Laplace

from vedute.data.views import Views
from vedute.nn import laplace

LogWeight = Callable[..., Tensor]


def constrained(loc: Tensor, h: Tensor) -> Laplace:
    return Laplace(loc, len(h) * h.exp() / h.exp().sum() + 1e-6)


def mixture(q: Sequence[Laplace], z: Tensor) -> Tensor:
    """log of the mean density."""
    return (sum(one.log_prob(z).sum().exp() for one in q) / len(q)).log()


def noise_like(*shape: int) -> Tensor:
    return Laplace(0.0, 1.0).sample(shape)


def fix_noise(monkeypatch, *noise: Tensor) -> None:
    """The draws of a loss, in their order, are loc + scale * noise."""
    given = iter(noise)

    def sample(q: laplace.Laplace, rows: int = 0) -> Tensor:
        eps = next(given)
        assert eps.shape == q.loc.shape
        return q.loc + q.scale * eps

    monkeypatch.setattr(laplace, "sample", sample)


def slow_loss(
    objective: str,
    batch: Views,
    K: int,
    experts: Callable[[int], dict[int, Sequence[Laplace]]],
    noise: Sequence[Tensor],
    log_weight: LogWeight,
) -> dict[str, Tensor]:
    """experts(b): per seen view its posteriors, one for each kind of latent; noise: (K, B, L, D) of
    each kind; log_weight(b, e, k, draws, experts) of source e, told by its draws."""
    bounds, surrogate = [], torch.zeros(())
    for b in range(len(batch)):
        q, logs = experts(b), {}
        fixed = {v: [Laplace(p.loc.detach(), p.scale.detach()) for p in q[v]] for v in q}
        for e in q:
            draws = [
                [p.loc + p.scale * eps[k, b, e] for p, eps in zip(q[e], noise, strict=True)]
                for k in range(K)
            ]
            logs[e] = torch.stack([log_weight(b, e, k, draws[k], q) for k in range(K)])
            for k in range(K) if objective == "dreg" else ():
                s = logs[e].detach().softmax(0)[k]
                leaves = [z.detach().requires_grad_() for z in draws[k]]
                told = log_weight(b, e, k, leaves, fixed)
                slopes = torch.autograd.grad(told, leaves, retain_graph=True)
                through = sum((g * z).sum() for g, z in zip(slopes, draws[k], strict=True))
                surrogate = surrogate + (s * told + s**2 * through) / len(q) / len(batch)
        if objective == "iwae_tight":
            bounds.append(torch.cat(list(logs.values())).exp().mean().log())
        else:
            bounds.append(sum(w.exp().mean().log() for w in logs.values()) / len(q))
    value = sum(bounds) / len(bounds)
    if objective == "dreg":
        value = value.detach() + surrogate - surrogate.detach()
    return {"bound": -value}
