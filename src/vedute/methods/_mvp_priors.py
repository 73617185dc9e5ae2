"""Priors for the L x L table of latents that need no permutation: the variants that the MVP paper
compares with. z_ij is the latent of view j predicted from view i."""

from __future__ import annotations

from torch import Tensor

from vedute.nn.gaussian import Gaussian, kl, product, standard_like
from vedute.nn.sources import Sources


def fixed_prior(
    kind: str, sources: Sources, table: tuple[Gaussian, Gaussian], z0: Gaussian
) -> tuple[Tensor, Tensor]:
    """KL of the latents and of the consensus of each row to their prior, (B, L) each.

    table: (w, z), consensus (B, L, k) and latents (P, L, D); z0: the latents before permuting
        standard   N(0, 1)
        fusion     prod_u z0_ul for column l, prod_u w_u: products over the observed views
        diagonal   z0_ll, prod_l z0_ll: each view's own latent; columns of missing views have
                   none and are skipped
    """
    w, z0, z = table[0], z0.map(sources.spread), table[1].map(sources.spread)
    mask, seen = sources.mask, sources.mask.unsqueeze(-1)
    match kind:
        case "standard":
            return kl(z, standard_like(z)).sum(2), kl(w, standard_like(w))
        case "fusion":
            column = product(z0, dim=1, mask=seen.unsqueeze(-1))
            return kl(z, column.map(_all_rows)).sum(2), kl(w, product(w, 1, seen).map(_all_rows))
        case _:
            own = z0.map(lambda t: t.diagonal(dim1=1, dim2=2).transpose(1, 2))  # (B, L, D)
            agreed = product(own.map(lambda t: t[..., : w.mean.shape[-1]]), dim=1, mask=seen)
            views = (kl(z, own.map(_all_rows)) * mask.unsqueeze(1)).sum(2)
            return views, kl(w, agreed.map(_all_rows))


def _all_rows(t: Tensor) -> Tensor:
    """(B, ...) -> (B, 1, ...): the same for every source."""
    return t.unsqueeze(1)
