"""Nearest-neighbour graphs of two views, either of which may be missing, and networks on them.

A sample that lacks a view takes its neighbours from the other one. With S_v[i, j] the nearness
of i and j in view v, -|x_i - x_j|^2, known where both have it, the row of i in graph v is

    S_v[i, :]   if i has view v, else   S_w[i, :]   of the other view w

and i is linked to the k largest of its row; links are symmetric, and every sample links to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vedute.nn.neighbors import PAIRS_PER_CHUNK, nearest

Tables = Sequence[Tensor]  # of the two views
MANY_NODES = 20_000  # samples; beyond, activations inside layers are recomputed for gradients


def relations(
    x: Tables, mask: Tensor, others: Tables, others_mask: Tensor, k: int, itself: bool
) -> list[Tensor]:
    """Per view the k nearest of `others` for every row, (m, k) long, -1 if there are fewer.

    x and others (m, d_v) and (n, d_v) per view, mask and others_mask (m, 2) and (n, 2)
    itself: row i is the i-th of the others, and excluded from its own neighbours
    """
    per_view = []
    for v in (0, 1):
        has, candidates = mask[:, v].nonzero()[:, 0], others_mask[:, v].nonzero()[:, 0]
        blocked = torch.arange(len(has), device=mask.device) if itself else None
        _, near = nearest(x[v][has], others[v][candidates], k, blocked, "euclidean")
        table = torch.full((len(mask), k), -1, device=mask.device)
        if len(candidates):
            table[has] = torch.where(near >= 0, candidates[near.clamp(min=0)], -1)
        per_view.append(table)
    return [torch.where(mask[:, [v]], per_view[v], per_view[1 - v]) for v in (0, 1)]


def released_relations(
    x: Tables, mask: Tensor, others: Tables, others_mask: Tensor, k: int, itself: bool
) -> list[Tensor]:
    """Neighbours as in the released code, ranked by exp(-|x_i - x_j|^2 / 2).

    This underflows to zero far away, and is zero if j lacks the view, so ties are broken
    arbitrarily; in a row copied from the second view to the first, samples without the second view
    count as at the origin.
    """
    k, parts, step = (
        min(k, len(others_mask) - itself),
        [],
        max(1, PAIRS_AT_ONCE // max(len(others_mask), 1)),
    )
    for start in range(0, len(mask), step):
        rows = slice(start, start + step)
        first, second = (
            torch.exp(-0.5 * torch.cdist(a[rows].double(), b.double()).square())
            for a, b in zip(x, others, strict=True)
        )
        seen = mask[rows]
        first = torch.where(seen[:, :1], first * others_mask[:, 0], second)
        second = torch.where(seen[:, 1:], second * others_mask[:, 1], first)
        near = torch.stack([first, second])
        if itself:
            at = torch.arange(len(mask), device=mask.device)[rows]
            near[:, at - start, at] = -1.0
        parts.append(near.sort(dim=-1, descending=True, stable=True).indices[..., :k])
    return list(torch.cat(parts, dim=1))


def links(table: Tensor) -> Tensor:
    """Symmetric links of neighbours (n, k), with self-links: (2, E), sorted."""
    n, k = table.shape
    index = torch.arange(n, device=table.device)
    valid = table.flatten() >= 0
    i, j = index.repeat_interleave(k)[valid], table.flatten()[valid]
    pairs = torch.cat([i * n + j, j * n + i, index * n + index]).unique()  # type: ignore[no-untyped-call]
    return torch.stack([pairs // n, pairs % n])


class Sums(torch.autograd.Function):
    """The sum P x of x_j over the links i -> j; as P = P^T, the gradient multiplies by P, too."""

    @staticmethod
    def forward(ctx: Any, ends: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(ends)
        return link_sums(ends, x, len(x))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (ends,) = ctx.saved_tensors
        return None, link_sums(ends, grads[0], len(grads[0]))


def link_sums(ends: Tensor, x: Tensor, m: int) -> Tensor:
    """The sum of x_j over the links i -> j, ends (2, E): x (n, D) -> (m, D)."""
    ones = torch.ones(ends.shape[1], dtype=x.dtype, device=x.device)
    matrix = torch.sparse_coo_tensor(
        ends, ones, (m, len(x)), is_coalesced=True, check_invariants=False
    )
    total: Tensor = torch.sparse.mm(matrix, x)
    return total


class Layer(nn.Module):
    """A layer relu(norm(A H W + b)), + H if hidden and of equal width; the last is linear."""

    sent: Tensor

    def __init__(self, d_in: int, d_out: int, inside: bool, last: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))
        self.bias = nn.Parameter(torch.zeros(d_out))
        self.norm = None if last else full_norm(d_out)
        self.skip = inside and d_in == d_out
        self.register_buffer("sent", torch.zeros(0, d_out))

    def forward(self, x: Tensor, messages: Tensor) -> Tensor:
        out = messages + self.bias
        if self.norm is None:
            return out
        out = torch.relu(self.norm(out))
        return out + x if self.skip else out


Aggregate = Callable[[Layer, Tensor], Tensor]  # sums messages over the links


class GraphNetwork(nn.Module):
    """Layers on the graph of one view, (n, d) -> (n, D), with its training samples.

    A = D^(-1/2) P D^(-1/2) (`symmetric`) or D^(-1/2) P, with P the links and D the degrees.
    """

    x: Tensor
    ends: Tensor
    degree: Tensor

    def __init__(self, sizes: Sequence[int], symmetric: bool) -> None:
        super().__init__()
        last, widths = len(sizes) - 2, enumerate(pairwise(sizes))
        self.layers = nn.ModuleList(Layer(a, b, at > 0, at == last) for at, (a, b) in widths)
        self.symmetric = symmetric
        self.register_buffer("x", torch.zeros(0, sizes[0]))
        self.register_buffer("ends", torch.zeros(2, 0, dtype=torch.long))
        self.register_buffer("degree", torch.zeros(0, 1))

    def set_graph(self, x: Tensor, table: Tensor) -> None:
        """Store the training samples (n, d) and the links to their neighbours (n, k)."""
        self.x, self.ends = x, links(table)
        self.degree = torch.bincount(self.ends[0]).unsqueeze(1).to(x)

    def forward(self, x: Tensor) -> Tensor:
        """Represent the training samples, each with messages from its neighbours."""

        def sums(layer: Layer, sent: Tensor) -> Tensor:
            total: Tensor = Sums.apply(self.ends, sent)  # type: ignore[no-untyped-call]
            return total

        return self._through(x, self.degree, sums)

    def freeze(self) -> Tensor:
        """Represent the training samples, keep the messages of all layers, delete the links."""

        def keep(layer: Layer, sent: Tensor) -> Tensor:
            layer.sent = sent
            return link_sums(self.ends, sent, len(sent))

        out = self._through(self.x, self.degree, keep)
        self.ends = self.ends[:, :0]
        return out

    def attach(self, x: Tensor, table: Tensor) -> Tensor:
        """Represent new rows (m, d), with messages from training samples (m, k) and themselves."""
        valid = table >= 0
        ends = torch.stack([valid.nonzero()[:, 0], table[valid]])
        degree = valid.sum(1, keepdim=True).to(x) + 1

        def gather(layer: Layer, sent: Tensor) -> Tensor:
            return sent + link_sums(ends, layer.sent, len(sent))

        return self._through(x, degree, gather)

    def _through(self, x: Tensor, degree: Tensor, aggregate: Aggregate) -> Tensor:
        root = degree.rsqrt()

        def through(layer: Layer, x: Tensor) -> Tensor:
            sent = x @ layer.weight
            out: Tensor = layer(x, root * aggregate(layer, root * sent if self.symmetric else sent))
            return out

        for layer in self.layers:
            assert isinstance(layer, Layer)
            x = lean(len(x), partial(through, layer), x)
        return x


def lean(n: int, f: Callable[..., Tensor], *x: Tensor) -> Tensor:
    """Compute f(*x); if the n samples are many, recompute activations for the gradient."""
    if n <= MANY_NODES or not torch.is_grad_enabled():
        return f(*x)
    out: Tensor = checkpoint(f, *x, use_reentrant=False, preserve_rng_state=False)
    return out


def full_norm(width: int) -> nn.BatchNorm1d:
    """A batch norm that keeps the last statistics, as every batch is the whole training set."""
    return nn.BatchNorm1d(width, momentum=1.0)


def freeze_norms(model: nn.Module, n: int) -> None:
    """Rescale stored variances to those used in training: over n, not n - 1."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d) and module.running_var is not None:
            module.running_var.mul_((n - 1) / n)
