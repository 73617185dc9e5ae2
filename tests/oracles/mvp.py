"""MVP written slowly, from sections 3 and 8 of its specification: loops over samples, views and
columns. The weights are the model's own, so that gradients can be compared as well as terms."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn import functional as F  # noqa: N812

from vedute.data.views import Views
from vedute.methods.mvp import MVPModel
from vedute.nn.correspondences import StackedLinear
from vedute.training.model import Terms

Table = dict[tuple[int, int], Normal]  # [v, l]: view v's opinion of view l, v observed
Consensus = dict[int, Normal]
PLAIN = dict(
    permutation="cyclic", divergence="symmetric", per_view=True, beta_consensus=None
)  # what MVP does, and models of studies may do otherwise


def settings(model: MVPModel) -> SimpleNamespace:
    """Switches and settings of a model, by name."""
    return SimpleNamespace(**PLAIN | model.hp.get_params(deep=False) | vars(model.variant))


@dataclass(frozen=True)
class Draws:
    """All the chance in one step; cycles[b, l] and permutations[b, l] are those of column l."""

    cycles: Tensor  # (B, L, L)
    permutations: Tensor  # (B, L, L), fixed points allowed
    hidden: Tensor  # (B, L): view dropout
    w: Tensor  # (2, B, L, k): noise of the consensus under Z0 and Z1
    z: Tensor  # (2, B, L, D): noise of the diagonals
    agreed: Tensor  # (2, B, k): noise of the consensus that tells the views dropped
    told: Tensor  # (2, B, L, D)
    joint_w: Tensor  # (B, k): noise of the product over all views, where it is decoded
    joint_z: Tensor  # (B, L, D)


def sattolo(items: Sequence[int], swaps: Iterable[int]) -> list[int]:
    """A cycle through the items: place n-1, n-2, ..., 1 is exchanged with an earlier one."""
    out = list(items)
    for place, earlier in zip(range(len(out) - 1, 0, -1), swaps, strict=True):
        out[place], out[earlier] = out[earlier], out[place]
    return out


def draw(mask: Tensor, k: int, D: int, dropout: float = 0.0) -> Draws:
    """Sample by sample, column by column; repeatable under torch's seed."""
    B, L = mask.shape
    rng = random.Random(int(torch.randint(2**31 - 1, ())))
    cycles, permutations, hidden = [], [], []
    for row in mask.tolist():
        luck = {v: rng.random() for v in range(L) if row[v]}
        seen = [v for v in luck if luck[v] >= min(dropout, max(luck.values()))]
        hidden.append([v in luck and v not in seen for v in range(L)])
        swaps = [[rng.randrange(i) for i in range(len(seen) - 1, 0, -1)] for _ in range(L)]
        cycles.append([_onto(L, seen, sattolo(seen, s)) for s in swaps])
        permutations.append([_onto(L, seen, rng.sample(seen, len(seen))) for _ in range(L)])
    sizes = [(2, B, L, k), (2, B, L, D), (2, B, k), (2, B, L, D), (B, k), (B, L, D)]
    chance = [torch.tensor(t, device=mask.device) for t in (cycles, permutations, hidden)]
    return Draws(*chance, *(torch.randn(size, device=mask.device) for size in sizes))


def _onto(L: int, seen: list[int], images: list[int]) -> list[int]:
    image = dict(zip(seen, images, strict=True))
    return [image.get(v, v) for v in range(L)]


def halves(equation: int) -> tuple[int, ...]:
    """eq2, the warm-up, is about Z0; eq1 about Z1; eq3, what is trained at last, is their mean."""
    return {1: (1,), 2: (0,), 3: (0, 1)}[equation]


def reconstructed(permutation: str, equation: int) -> tuple[int, ...]:
    """The tables whose diagonals are decoded."""
    return {"cyclic": halves(equation), "none": (0,), "random": (1,)}[permutation]


def slow_loss(model: MVPModel, batch: Views, draws: Draws, equation: int = 3) -> Terms:
    """The terms of `model` on a batch, with this chance."""
    hp, (B, L) = settings(model), batch.mask.shape
    R, D, W, P = (torch.zeros(()) for _ in range(4))
    for b in range(B):
        seen = [v for v in range(L) if batch.mask[b, v] and not draws.hidden[b, v]]
        z0 = {(v, c): _opinion(model, v, c, batch.x[v][b]) for v in seen for c in range(L)}
        z1 = _permuted(z0, draws, b, hp.permutation)
        tables = [(z, _rows(z, seen, L, model.shared)) for z in (z0, z1)]
        told = reconstructed(hp.permutation, equation)
        count = len(told) + (hp.objective == "joint")
        for v in batch.mask[b].nonzero()[:, 0].tolist() if hp.objective == "joint" else ():
            agreed = _at(_product(list(tables[0][1].values())), draws.joint_w[b])
            z_v = _at(_product([z0[u, v] for u in seen]), draws.joint_z[b, v])
            error = _error(model, batch, b, v, model.decoders[v](torch.cat([agreed, z_v]))) / count
            R, P = (R + error, P) if v in seen else (R, P + error)
        for a in told:
            z, w = tables[a]
            for v in seen:
                code = [_at(w[v], draws.w[a, b, v]), _at(z[v, v], draws.z[a, b, v])]
                out = model.decoders[v](torch.cat(code))
                R = R + _error(model, batch, b, v, out) / count
            for v in draws.hidden[b].nonzero()[:, 0].tolist():
                agreed = _at(_product(list(tables[0][1].values())), draws.agreed[a, b])
                z_v = _at(_product([z0[u, v] for u in seen]), draws.told[a, b, v])
                out = model.decoders[v](torch.cat([agreed, z_v]))
                P = P + _error(model, batch, b, v, out) / count
        one_sided = equation == 3 and hp.divergence == "forward"
        compared = (0,) if one_sided else halves(equation)
        ways = list(_compared(model, tables, draws, b, seen, compared))
        for (z, w), (z_prior, w_prior) in ways:
            D = D + sum(_kl(z[c], z_prior[c]) for c in z_prior) / len(ways)
            W = W + sum(_kl(w[v], w_prior[v]) for v in seen) / len(ways)
        if hp.prior == "joint":
            one = [_product([z0[u, c] for u in seen]) for c in range(L)]
            D = D + hp.beta_prior * sum(_kl(q, _standard(q)) for q in one)
            agreed = _product(list(tables[0][1].values()))
            W = W + hp.beta_prior * _kl(agreed, _standard(agreed))
    terms = {
        "reconstruction": hp.rec_weight * R / B,
        "kl_views": hp.beta * D / (L if hp.per_view else 1) / B,
        "kl_consensus": (hp.beta / 2 if hp.beta_consensus is None else hp.beta_consensus) * W / B,
    }
    return terms | ({"prediction": hp.rec_weight * P / B} if hp.view_dropout > 0 else {})


def _opinion(model: MVPModel, i: int, j: int, x: Tensor) -> Normal:
    """Z0[i, j] of one sample."""
    told = [t[0] for t in model.encoders[i](x[None])]
    L, maps = len(model.likelihoods), model.maps
    paths = [p for p in (maps.curve, maps.linear) if p is not None and i != j]
    for part in range(2 if paths else 0):  # mean, log-variance: ordered pairs, row by row
        g = part * L * (L - 1) + i * (L - 1) + j - (j > i)
        told[part] = sum(_slice(path, g, told[part]) for path in paths)
    return Normal(told[0], (told[1] / 2).exp())


def _slice(path: nn.Module, g: int, z: Tensor) -> Tensor:
    """Map g of the stacked ones."""
    for layer in path if isinstance(path, nn.Sequential) else [path]:
        stacked = isinstance(layer, StackedLinear)
        z = z @ layer.weight[g] + layer.bias[g, 0] if stacked else F.leaky_relu(z)
    return z


def _permuted(z0: Table, draws: Draws, b: int, kind: str) -> Table:
    """Z1[v, l] = Z0[sigma_l(v), l]."""
    if kind == "none":
        return z0
    sigma = draws.cycles if kind == "cyclic" else draws.permutations
    return {(v, c): z0[int(sigma[b, c, v]), c] for v, c in z0}


def _rows(z: Table, seen: list[int], L: int, k: int) -> Consensus:
    return {v: _product([z[v, c] for c in range(L)], k) for v in seen}


def _compared(
    model: MVPModel,
    tables: list[tuple[Table, Consensus]],
    draws: Draws,
    b: int,
    seen: list[int],
    which: tuple[int, ...],
) -> Iterator[tuple[tuple[Table, Consensus], tuple[Table, Consensus]]]:
    """(Z, w) and the priors they are held against."""
    (z0, _), L, k, hp = tables[0], len(model.likelihoods), model.shared, settings(model)
    kind = hp.prior
    if kind in ("cyclic", "random"):
        if kind != hp.permutation:
            z1 = _permuted(z0, draws, b, kind)
            tables = [tables[0], (z1, _rows(z1, seen, L, k))]
        yield from ((tables[a], tables[1 - a]) for a in which)
        return
    for z, w in (tables[a] for a in which):
        match kind:
            case "standard":
                one = {c: _standard(q) for c, q in (z | w).items()}
                yield (z, w), ({c: one[c] for c in z}, {v: one[v] for v in w})
            case "fusion" | "joint":
                column = [_product([z0[u, c] for u in seen]) for c in range(L)]
                agreed = _product(list(w.values()))
                both = (z, w), ({(v, c): column[c] for v, c in z}, dict.fromkeys(w, agreed))
                yield both if kind == "fusion" else both[::-1]
            case "diagonal":  # a view nobody saw has no encoding to follow: its column is left out
                agreed = _product([z0[u, u] for u in seen], k)
                own = {(v, c): z0[c, c] for v, c in z if c in seen}
                yield (z, w), (own, dict.fromkeys(w, agreed))
            case "all_pairs":  # the mean over the ways to take the next, the next but one, ...
                for ahead in range(1, len(seen)) if len(seen) > 1 else (0,):
                    other = {v: seen[(i + ahead) % len(seen)] for i, v in enumerate(seen)}
                    told = {(v, c): z[other[v], c] for v, c in z}
                    yield (z, w), (told, {v: w[other[v]] for v in seen})


def _product(experts: list[Normal], k: int | None = None) -> Normal:
    """Precisions add up; the first k dimensions."""
    precision = sum(q.variance[:k] ** -1 for q in experts)
    return Normal(sum(q.mean[:k] / q.variance[:k] for q in experts) / precision, precision**-0.5)


def _standard(q: Normal) -> Normal:
    return Normal(torch.zeros_like(q.mean), 1.0)


def _kl(q: Normal, p: Normal) -> Tensor:
    return kl_divergence(q, p).sum()


def _at(q: Normal, noise: Tensor) -> Tensor:
    return q.mean + q.stddev * noise


def _error(model: MVPModel, batch: Views, b: int, v: int, out: Tensor) -> Tensor:
    """e(x_v, out) of one sample, over the entries that are there."""
    x, holes = batch.x[v][b], batch.holes[v]
    match model.likelihoods[v].name:
        case "normal":
            errors = (x - out) ** 2
        case "laplace":
            errors = (x - out).abs()
        case _:
            errors = -Bernoulli(logits=out).log_prob(x)
    errors = errors if holes is None else errors[~holes[b]]
    return model.share[v] * errors.sum() / (errors.numel() if model.hp.average else 1)
