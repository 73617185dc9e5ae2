"""MVP as one would first write it in torch: a small network per ordered pair of views for the mean
and another for the log-variance, loops over views and pairs, permutations drawn sample by sample.
It trains like the model it is made of, and is what the speed of that one is measured against."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from oracles.mvp import Draws, draw, settings
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vedute.data.views import Views
from vedute.methods.mvp import MVPModel
from vedute.nn.correspondences import Correspondences, StackedLinear
from vedute.training.model import Terms

Pair = tuple[Tensor, Tensor]  # mean and log-variance, (B, D) each


class SlowMVP(nn.Module):
    """The objective of eq2 and eq3 with cyclic permutations and priors; weights copied."""

    def __init__(self, model: MVPModel) -> None:
        super().__init__()
        if settings(model).permutation != "cyclic" or model.variant.prior != "cyclic":
            raise ValueError("SlowMVP is written for cyclic permutations and priors")
        self.hp, self.shared = model.hp, model.shared
        self.kinds = [likelihood.name for likelihood in model.likelihoods]
        self.share = model.share
        self.L = L = len(model.likelihoods)
        self.encoders, self.decoders = copy.deepcopy(model.encoders), copy.deepcopy(model.decoders)
        self.maps = nn.ModuleDict()
        for g, (i, j) in enumerate((i, j) for i in range(L) for j in range(L) if i != j):
            both = (PairMap(model.maps, g), PairMap(model.maps, g + L * (L - 1)))
            self.maps[f"{i} to {j}"] = nn.ModuleList(both)

    @classmethod
    def of(cls, model: MVPModel) -> SlowMVP:
        return cls(model)

    def loss(self, batch: Views) -> Terms:
        hp = self.hp
        return self.terms(batch, draw(batch.mask, self.shared, hp.latent_dim, hp.view_dropout))

    def terms(self, batch: Views, draws: Draws, warm: bool = False) -> Terms:
        """Terms of the loss with given random draws; `warm`: eq2 instead of eq3."""
        hp, L, B, everything = self.hp, self.L, len(batch), batch
        batch = batch.hide(draws.hidden)
        z0 = [[self._opinion(q, i, j) for j in range(L)] for i, q in enumerate(self._encode(batch))]
        z1 = [[_source(z0, draws.cycles, i, j) for j in range(L)] for i in range(L)]
        w0, w1 = ([_product(row, self.shared) for row in z] for z in (z0, z1))
        both = [(z0, w0, z1, w1)] if warm else [(z0, w0, z1, w1), (z1, w1, z0, w0)]
        R = D = W = P = torch.zeros((), device=batch.mask.device)
        for a, (z, w, z_prior, w_prior) in enumerate(both):
            for v in range(L):
                seen = batch.mask[:, v] / len(both)
                code = [_sample(w[v], draws.w[a, :, v]), _sample(z[v][v], draws.z[a, :, v])]
                R = R + (seen * self._error(v, code, batch)).sum()
                W = W + (seen * _kl(w[v], w_prior[v])).sum()
                for j in range(L):
                    D = D + (seen * _kl(z[v][j], z_prior[v][j])).sum()
        terms = {
            "reconstruction": hp.rec_weight * R / B,
            "kl_views": hp.beta * D / L / B,
            "kl_consensus": hp.beta / 2 * W / B,
        }
        if hp.view_dropout > 0:
            consensus = _product(w0, None, batch.mask)
            columns = [_product([row[v] for row in z0], None, batch.mask) for v in range(L)]
            for a, v in ((a, v) for a in range(len(both)) for v in range(L)):
                code = [
                    _sample(consensus, draws.agreed[a]),
                    _sample(columns[v], draws.told[a, :, v]),
                ]
                hidden = draws.hidden[:, v] / len(both)
                P = P + (hidden * self._error(v, code, everything)).sum()
            terms["prediction"] = hp.rec_weight * P / B
        return terms

    def _encode(self, batch: Views) -> list[Pair]:
        return [encoder(x) for encoder, x in zip(self.encoders, batch.x, strict=True)]

    def _opinion(self, q: Pair, i: int, j: int) -> Pair:
        if i == j:
            return q
        mean_map, logvar_map = self.maps[f"{i} to {j}"]
        return mean_map(q[0]), logvar_map(q[1])

    def _error(self, v: int, code: list[Tensor], batch: Views) -> Tensor:
        measures = {"normal": F.mse_loss, "laplace": F.l1_loss}
        measure = measures.get(self.kinds[v], F.binary_cross_entropy_with_logits)
        e = measure(self.decoders[v](torch.cat(code, -1)), batch.x[v], reduction="none")
        holes = batch.holes[v]
        there = torch.ones_like(e) if holes is None else 1.0 - holes.float()
        total, count = (e * there).flatten(1).sum(1), there.flatten(1).sum(1)
        return self.share[v] * (total / count if self.hp.average else total)


class PairMap(nn.Module):
    """One f_ij: a copy of map g of the stacked ones."""

    def __init__(self, maps: Correspondences, g: int) -> None:
        super().__init__()
        paths = [p for p in (maps.curve, maps.linear) if p is not None]
        layers = [list(p) if isinstance(p, nn.Sequential) else [p] for p in paths]
        self.paths = nn.ModuleList(nn.Sequential(*(_unstack(x, g) for x in p)) for p in layers)

    def forward(self, z: Tensor) -> Tensor:
        return sum(path(z) for path in self.paths) if len(self.paths) else z


def _unstack(layer: nn.Module, g: int) -> nn.Module:
    if not isinstance(layer, StackedLinear):
        return copy.deepcopy(layer)
    linear = nn.Linear(*layer.weight.shape[1:]).to(layer.weight)
    with torch.no_grad():
        linear.weight.copy_(layer.weight[g].T)
        linear.bias.copy_(layer.bias[g, 0])
    return linear


def _source(z: list[list[Pair]], cycles: Tensor, i: int, j: int) -> Pair:
    """Z1[i, j] = Z0[sigma_j(i), j], sigma another for every sample."""
    rows = torch.arange(len(cycles), device=cycles.device)
    mean, logvar = (torch.stack(t, 1) for t in zip(*(row[j] for row in z), strict=True))
    return mean[rows, cycles[:, j, i]], logvar[rows, cycles[:, j, i]]


def _product(qs: Sequence[Pair], k: int | None, mask: Tensor | None = None) -> Pair:
    precisions = [(-logvar[:, :k]).exp() for _, logvar in qs]
    if mask is not None:
        precisions = [p * mask[:, [v]] for v, p in enumerate(precisions)]
    total = sum(precisions)
    mean = sum(p * q[0][:, :k] for p, q in zip(precisions, qs, strict=True)) / total
    return mean, -total.log()


def _sample(q: Pair, noise: Tensor) -> Tensor:
    return q[0] + (0.5 * q[1]).exp() * noise


def _kl(q: Pair, p: Pair) -> Tensor:
    variances = (q[1] - p[1]).exp() - (q[1] - p[1]) - 1
    return 0.5 * (variances + (q[0] - p[0]) ** 2 / p[1].exp()).sum(-1)
