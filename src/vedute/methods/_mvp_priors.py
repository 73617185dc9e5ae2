"""What the L x L table of latents is compared with: itself, permuted, or a prior that needs no
permutation, as in variants of the MVP paper. z_ij is the latent of view j predicted from view i."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from vedute.nn.gaussian import Gaussian, kl, product, standard_like, symmetric_kl
from vedute.nn.sources import Sources

TABLES = {"eq1": (1,), "eq2": (0,), "eq3": (0, 1), "joint": (1,)}  # of Z0 and Z1, those decoded


def divergence(objective: str, kind: str) -> Callable[[Gaussian, Gaussian], Tensor]:
    """Between what a table holds and what the permuted one has in its place."""
    if objective in ("eq1", "joint"):
        return lambda own, permuted: kl(permuted, own)
    return symmetric_kl if (objective, kind) == ("eq3", "symmetric") else kl


def fixed_prior(
    kind: str, sources: Sources, table: tuple[Gaussian, Gaussian], z0: Gaussian
) -> tuple[Tensor, Tensor]:
    """KL of the latents and of the consensus of each row to their prior, (B, L) each.

    table: (w, z), consensus (B, L, k) and latents (P, L, D); z0: the latents before permuting
        standard   N(0, 1)
        fusion     prod_u z0_ul for column l, prod_u w_u: products over the observed views
        diagonal   z0_ll, prod_l z0_ll: each view's own latent; columns of missing views have
                   none and are skipped
        all_pairs  z_ul for column l, w_u: the mean over the other observed views u
    """
    w, z0, z = table[0], z0.map(sources.spread), table[1].map(sources.spread)
    mask, seen = sources.mask, sources.mask.unsqueeze(-1)
    match kind:
        case "standard":
            return kl(z, standard_like(z)).sum(2), kl(w, standard_like(w))
        case "fusion":
            column = product(z0, dim=1, mask=seen.unsqueeze(-1))
            return kl(z, column.map(_all_rows)).sum(2), kl(w, product(w, 1, seen).map(_all_rows))
        case "all_pairs":
            same = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
            others = mask.unsqueeze(1) & ~same
            share = others / others.sum(2, keepdim=True).clamp(min=1)  # (B, L, L), of v and u
            views = kl(z.map(_by_other), z.map(_all_rows)).sum(3)
            return (share * views).sum(2), (share * kl(w.map(_by_other), w.map(_all_rows))).sum(2)
        case _:
            own = z0.map(lambda t: t.diagonal(dim1=1, dim2=2).transpose(1, 2))  # (B, L, D)
            agreed = product(own.map(lambda t: t[..., : w.mean.shape[-1]]), dim=1, mask=seen)
            views = (kl(z, own.map(_all_rows)) * mask.unsqueeze(1)).sum(2)
            return views, kl(w, agreed.map(_all_rows))


def joint_prior(
    sources: Sources,
    table: tuple[Gaussian, Gaussian],
    fused: tuple[Gaussian, Gaussian],
    beta: float,
) -> tuple[Tensor, Tensor]:
    """`fusion` the other way round, so that a view may leave open what others tell: with f the
    products over the observed views, KL(f || w) and sum_l KL(f_l || z_l) of each row, and of f as
    much of KL(f || N(0, 1)) as beta says, shared out among the rows, (B, L) each."""
    (w, z), (agreed, columns) = table, fused
    z = z.map(sources.spread)
    share = beta / sources.mask.sum(1, keepdim=True)
    to_w, to_z = (kl(f, standard_like(f)) for f in fused)  # (B,) and (B, L)
    views = kl(_like(z, columns), z).sum(2) + share * to_z.sum(1, keepdim=True)
    return views, kl(_like(w, agreed), w) + share * to_w.unsqueeze(1)


def _all_rows(t: Tensor) -> Tensor:
    """(B, ...) -> (B, 1, ...): the same for every source."""
    return t.unsqueeze(1)


def _like(rows: Gaussian, q: Gaussian) -> Gaussian:
    """The same for every source, in the shape of `rows`: (B, ...) -> (B, L, ...)."""
    return q.map(lambda t: t.unsqueeze(1).expand(rows.mean.shape))


def _by_other(t: Tensor) -> Tensor:
    """(B, L, ...) -> (B, L, 1, ...): beside every other source."""
    return t.unsqueeze(2)
