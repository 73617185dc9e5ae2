"""MVP with every switch as a setting, and variants that studies compare it with.

The objectives eq2, eq3 and `joint` are those of `vedute.methods.mvp`. After the warm-up, eq1 is
R_1 + D_10 + W_10; with one-sided divergences, eq3 is (R_0 + R_1) / 2 + D_01 + W_01.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from operator import call
from typing import Any

import torch
from torch import Tensor

from vedute import methods
from vedute.data.views import Names, Shapes, Views
from vedute.estimators.base import Estimator
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods import mvp
from vedute.methods.mvp import MVP, MVPModel, Pair, Variant
from vedute.nn import gaussian, noise
from vedute.nn.correspondences import Correspondences, Sources, StackedLinear
from vedute.nn.gaussian import Gaussian, kl, product, standard_like, symmetric_kl
from vedute.nn.likelihoods import Likelihoods

OBJECTIVES = ("eq3", "eq1", "eq2", "joint")
PRIORS = ("cyclic", "random", "diagonal", "fusion", "standard", "all_pairs", "joint")
TABLES = {"eq1": (1,), "eq2": (0,), "eq3": (0, 1), "joint": (1,)}  # of Z0 and Z1, those decoded
SWITCHES = [f.name for f in fields(Variant) if f.name not in ("name", "defaults")]


def switch(meaning: str, **declared: Any) -> Any:
    """Declare a setting that defaults to the variant's value."""
    return setting(None, f"{meaning} None: by the variant.", **declared)


@estimator
class PaperMVP(MVP):
    """MVP with all its switches, for studies of variants."""

    beta_consensus: float | None = setting(
        None, "Weight of the agreement of consensuses; None: half of `beta`.", at_least=0
    )
    beta_prior: float | None = switch(
        "Weight of N(0, 1) in the prior `joint`, beside the agreement.", at_least=0
    )
    output: str | None = switch("Last layer of decoders.", choices=("linear", "tanh"))
    linear_paths: bool | None = switch("Linear shortcuts through decoders and correspondences.")
    bounded: bool | None = switch("Latents of encoders are within 1 and -1, by tanh.")
    prior: str | None = switch("What latents are pulled to.", choices=PRIORS)
    objective: str | None = switch(
        "After the warm-up: views are decoded from permuted latents and their own (`eq3`), from "
        "permuted ones (`eq1`), from their own (`eq2`), or from permuted ones and from the product "
        "over all views that are there (`joint`).",
        choices=OBJECTIVES,
    )
    evenness: float | None = switch(
        "Dimensions of the representation are divided by their standard deviation to this power.",
        at_least=0,
        at_most=1,
    )
    lr_halving: int | None = switch(
        "Epochs after which the learning rate is halved, 0: never.", at_least=0
    )
    permutation: str = choice(("cyclic", "random", "none"), "How a column's sources are permuted.")
    divergence: str = choice(("symmetric", "forward"), "Of latents and permuted ones, in `eq3`.")
    per_view: bool = setting(True, "Divide the agreement of latents by the number of views.")
    maps: str = choice(("mlp", "linear", "identity"), "Maps between views.")
    observed: str = choice(
        ("fused", "own"), "Views that are there are decoded from all that are, or from themselves."
    )

    def switches(self, shapes: Shapes) -> Variant:
        values = {name: getattr(self, name) for name in SWITCHES}
        changed = {name: value for name, value in values.items() if value is not None}
        return replace(super().switches(shapes), **changed)

    @property
    def correspondences(self) -> type[Correspondences]:  # type: ignore[override]
        return {"mlp": Correspondences, "linear": LinearMaps, "identity": Identities}[self.maps]

    def build(
        self, shapes: Shapes, likelihoods: Likelihoods, names: Names, length: int
    ) -> PaperModel:
        return PaperModel(shapes, likelihoods, self, names, length)


def find(method: str) -> type[Estimator]:
    """Class of a method; for MVP, the class with all switches."""
    return PaperMVP if method in ("mvp", "paper_mvp") else methods.find(method)


class PaperModel(MVPModel):
    def __init__(
        self, shapes: Shapes, likelihoods: Likelihoods, estimator: MVP, names: Names, length: int
    ) -> None:
        super().__init__(shapes, likelihoods, estimator, names, length)
        hp, objective = self.hp, self.variant.objective
        self.divisor = len(shapes) if hp.per_view else 1
        if hp.beta_consensus is not None:
            self.beta_consensus = hp.beta_consensus
        fixed = {"none": (0,), "random": (1,)}.get(hp.permutation)
        self.decoded = {True: fixed or TABLES["eq2"], False: fixed or TABLES[objective]}

    def _permuted(self, z: Gaussian, sources: Sources) -> Gaussian:
        return self._exchanged(z, sources, self.hp.permutation)

    def _exchanged(self, z: Gaussian, sources: Sources, kind: str) -> Gaussian:
        if kind == "cyclic":
            return super()._permuted(z, sources)
        if kind == "none":
            return z
        sigma = random_permutations(sources.mask, sources.mask.shape[1])
        return z.map(lambda t: sources.permuted(t, sigma))

    def _compared(self, original: Pair, permuted: Pair, warm: bool) -> list[Pair]:
        """Tables that enter the objective."""
        return [(original, permuted)[a] for a in TABLES["eq2" if warm else self.variant.objective]]

    def _divergences(
        self, sources: Sources, original: Pair, permuted: Pair, warm: bool, fused: Pair | None
    ) -> tuple[Tensor, Tensor]:
        prior, (w0, z0), (w1, z1) = self.variant.prior, original, permuted
        if prior in ("cyclic", "random"):
            if prior != self.hp.permutation:
                z1 = self._exchanged(z0, sources, prior)
                w1 = self.rows(z1).map(sources.spread)
            distance = divergence("eq2" if warm else self.variant.objective, self.hp.divergence)
            return sources.spread(distance(z0, z1).sum(1)), distance(w0, w1)
        tables = self._compared(original, permuted, warm)
        if prior == "joint" and fused is not None:
            terms = [self._from_product(sources, table, fused) for table in tables]
        else:
            terms = [fixed_prior(prior, sources, table, z0) for table in tables]
        views, consensus = zip(*terms, strict=True)
        return torch.stack(views).mean(0), torch.stack(consensus).mean(0)

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        if self.hp.observed == "own":
            return decode_given_views_alone(self, batch, draws)
        return super().decode(batch, draws)


def decode_given_views_alone(model: MVPModel, batch: Views, draws: int = 0) -> list[Tensor]:
    """Decode like `MVPModel.decode`, but each observed view from itself alone."""
    sources = Sources.of(batch.mask, batch.present() is None)
    z = model.latents(batch, sources)
    w = model.rows(z).map(sources.spread)
    own = z.map(lambda t: sources.spread(sources.own(t)))
    fused = mvp.codes(*(gaussian.draws(q, draws) for q in model._fused(w, z, sources)))
    alone = torch.cat([gaussian.draws(q, draws) for q in (w, own)], dim=-1)
    seen = sources.mask.unsqueeze(-1)
    return list(map(call, model.decoders, torch.where(seen, alone, fused).unbind(2)))


class LinearMaps(Correspondences):
    """Linear maps between views, which start as the identity."""

    def __init__(self, n_views: int, dim: int, hidden: Sequence[int], skip: bool = False) -> None:
        with noise.WeightsFrom(torch.Generator()):  # replaced
            super().__init__(n_views, dim, hidden, skip)
        self.curve = self.linear = None
        if n_views > 1:
            maps = StackedLinear(2 * len(self.source), dim, dim)
            with torch.no_grad():
                maps.weight.copy_(torch.eye(dim))
                maps.bias.zero_()
            self.curve = maps


class Identities(Correspondences):
    """Identity maps: all views share a view's latents."""

    def __init__(self, n_views: int, dim: int, hidden: Sequence[int], skip: bool = False) -> None:
        with noise.WeightsFrom(torch.Generator()):  # unused
            super().__init__(n_views, dim, hidden, skip)
        self.curve = self.linear = None


def random_permutations(mask: Tensor, count: int) -> Tensor:
    """Draw uniform permutations of the observed views, with fixed points, like `random_cycles`."""
    B, L = mask.shape
    order = noise.like(torch.empty(B, count, L, device=mask.device), Tensor.uniform_)
    ring = order.masked_fill(~mask[:, None], 2.0).argsort(-1)  # missing views last
    inside, outside = mask[:, None].expand_as(ring), torch.arange(mask.shape[1], device=mask.device)
    rank = inside.long().cumsum(-1) - 1  # index among the observed views
    return torch.where(inside, ring.gather(-1, rank.clamp(min=0)), outside)


def divergence(objective: str, kind: str) -> Callable[[Gaussian, Gaussian], Tensor]:
    """Divergence between the entries of the two tables of latents."""
    if objective in ("eq1", "joint"):
        return lambda own, permuted: kl(permuted, own)
    return symmetric_kl if (objective, kind) == ("eq3", "symmetric") else kl


def fixed_prior(kind: str, sources: Sources, table: Pair, z0: Gaussian) -> tuple[Tensor, Tensor]:
    """KL of the latents and of the consensus of each row to their prior, (B, L) each.

    table: (w, z), consensus (B, L, k) and latents (P, L, D); z0: the latents before permuting.

    Priors:

        standard   N(0, 1).

        fusion     prod_u z0_ul for column l, prod_u w_u: products over the observed views.

        diagonal   z0_ll, prod_l z0_ll: each view's own latent, without those of missing views.

        all_pairs  z_ul for column l, w_u: the mean over the other observed views u.
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


def _all_rows(t: Tensor) -> Tensor:
    """Insert an axis to broadcast over sources: (B, ...) -> (B, 1, ...)."""
    return t.unsqueeze(1)


def _by_other(t: Tensor) -> Tensor:
    """Insert an axis to compare with all other sources: (B, L, ...) -> (B, L, 1, ...)."""
    return t.unsqueeze(2)
