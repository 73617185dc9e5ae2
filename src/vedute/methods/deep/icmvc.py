"""ICMVC: incomplete contrastive multi-view clustering with high-confidence guiding (Chao et al.,
AAAI 2024). Two views. A graph network per view gives every sample both representations: a sample
that lacks a view is linked, in the graph of that view, to its neighbours in the other one. With
S_v[i, j] = -|x_i - x_j|^2 the nearness in view v, if i and j have it, the row of i in graph v is

    S_v[i, :]   if i has view v, else   S_w[i, :]   of the other view w

and i is linked to the k largest of its row; links are symmetric, and every sample links to itself.

    layers      H -> relu(norm(A H W + b)) + H, the last one A H W + b: h_v, (n, D)
                A = D^(-1/2) P D^(-1/2), P the links, D their number
    fused       h = e_1 h_1 + e_2 h_2,  e = softmax(sigmoid(mlp [h_1, h_2]) / 10)
    labels      y = softmax g(h),  y_v = softmax g(h_v)

    clusters    contrast of the columns of y_1 and y_2 (temperature 1/2, all others negative)
                + log K - H(mean y_1) + log K - H(mean y_2)
    instances   NT-Xent (temperature 1) of unit f_v(h_v), in batches, summed over them
    guiding     KL(t || y),  t ~ max(y_1, y_2, y)^2, no gradient through t

One step sees all samples. The cluster is argmax y. After training, batch statistics are frozen and
the messages of every layer are stored. A row equal to a training row gets its result. Any
other row is linked to its nearest training rows by the same rule and passed through the frozen
layers, with the stored messages.

Departs from the released code. Neighbours are ranked by distance, not by an exp that underflows for
wide views, and a missing view has no neighbours (`released_graph=True`: as released). A is
normalised as in the paper (`norm="released_row_l2"`: rows of length one). Statistics are frozen;
the released model is never put into evaluation mode. Defaults have light networks and fewer steps;
the paper's are presets.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.utils.checkpoint import checkpoint

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared import DeepEstimator, hyperparameters
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import cluster_contrastive, entropy_balance, nt_xent, sharpen
from vedute.nn.neighbors import PAIRS_PER_CHUNK, nearest
from vedute.training.model import Clusterer, Stage, Terms

Tables = Sequence[Tensor]  # of the two views
NORMS = ("sym", "released_row_l2")
BATCHES_IN_MEMORY = 16  # batches whose similarities are held in memory at once, if samples are many
FULL = 1.0  # momentum of batch norms: the last statistics are those of the whole training set
MANY_NODES = 20_000  # samples; beyond, activations inside layers are recomputed for gradients


class ICMVCModel(Clusterer):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "ICMVC", length: int) -> None:
        super().__init__()
        if any(kind.text for kind in likelihoods):
            raise ValueError("ICMVC measures distances between samples, and tokens have none")
        self.hp, self.length = hp, length
        D, K = hp.latent_dim, int(hp.n_clusters or 0)
        self.relations = released_relations if hp.released_graph else relations
        sizes = ((prod(shape), *hp.hidden, D) for shape in shapes)
        self.first, self.second = self.networks = [GraphNetwork(s, hp.norm == "sym") for s in sizes]
        self.projectors = nn.ModuleList(nn.Sequential(*_block(D)) for _ in shapes)
        self.attention = nn.Sequential(*_block(2 * D), *_block(2 * D), nn.Linear(2 * D, 2))
        self.head = nn.Sequential(*_block(D), nn.Linear(D, K))
        # mask and representations of the training samples
        self.mask: Tensor = nn.Buffer(torch.zeros(0, 2, dtype=torch.bool))
        self.fused: Tensor = nn.Buffer(torch.zeros(0, D))

    def stages(self, data: Views) -> Iterator[Stage]:
        if len(data) < 2:
            raise ValueError("ICMVC links samples to others; X has 1 sample, it needs at least 2")
        x, self.mask = _tables(data.floating()), data.mask
        tables = self.relations(x, data.mask, x, data.mask, self.hp.n_neighbors, itself=True)
        for net, a, table in zip(self.networks, x, tables, strict=True):
            net.set_graph(a, table)
        yield self.hp.stage(self.loss, self.length, batch_size=0, capture=False)
        self.freeze(x)

    def loss(self, batch: Views) -> Terms:
        """The loss of all samples, in order."""
        hp = self.hp
        h1, h2 = self.represent(_tables(batch))
        log_y1, log_y2, log_y = (
            lean(len(h), self.head, h).log_softmax(1) for h in (h1, h2, self.fuse(h1, h2))
        )  # (n, K); the batch statistics of the last call are kept
        y1, y2 = log_y1.exp(), log_y2.exp()
        balance = entropy_balance(y1) + entropy_balance(y2)
        pairs = zip(self.projectors, (h1, h2), strict=True)
        z1, z2 = (lean(len(h), lambda h, f=f: normalize(f(h), dim=1), h) for f, h in pairs)
        return {
            "clusters": hp.cluster_weight * (cluster_contrastive(y1, y2, 0.5, "both") + balance),
            "instances": hp.instance_weight * self.contrast(z1, z2),
            "guiding": hp.guide_weight * guiding(y1, y2, log_y),
        }

    def represent(self, x: Tables) -> list[Tensor]:
        """Representations h_v of the training samples, (n, D) each."""
        return [net(a) for net, a in zip(self.networks, x, strict=True)]

    def fuse(self, h1: Tensor, h2: Tensor) -> Tensor:
        attend = lean(len(h1), lambda *h: self.attention(torch.cat(h, dim=1)), h1, h2)
        e = (attend.sigmoid() / 10).softmax(1)
        return e[:, :1] * h1 + e[:, 1:] * h2

    def contrast(self, z1: Tensor, z2: Tensor) -> Tensor:
        """NT-Xent in random batches; an incomplete last one is dropped."""
        n, B = len(z1), min(self.hp.batch_size, len(z1))
        rows = torch.randperm(n, device=z1.device)[: n // B * B].view(n // B, B)
        parts = rows.split(BATCHES_IN_MEMORY if n > MANY_NODES else len(rows))  # type: ignore[no-untyped-call]
        losses = torch.cat([lean(n, partial(nt_xent, tau=1.0), z1[i], z2[i]) for i in parts])
        return losses.sum() if self.hp.instances == "sum" else losses.mean()

    def freeze(self, x: Tables) -> None:
        """Store batch statistics, messages along links, and the representations of all samples;
        drop the links."""
        self.train()
        self.head(self.fuse(*self.represent(x)))
        self.eval()
        n = len(self.mask)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm1d) and module.running_var is not None:
                module.running_var.mul_((n - 1) / n)  # as used in training: over n, not n - 1
        self.fused = self.fuse(*self.represent(x))
        for net in self.networks:
            net.ends = net.ends[:, :0]

    def embed(self, batch: Views) -> Tensor:
        """The fused h, looked up for equal training rows and computed by links for others."""
        x, kept = _tables(batch), [net.x for net in self.networks]
        same = equal_rows(x, batch.mask, kept, self.mask)
        out = self.fused[same.clamp(min=0)]
        new = (same < 0).nonzero()[:, 0]
        if len(new):
            x, mask = [a[new] for a in x], batch.mask[new]
            tables = self.relations(x, mask, kept, self.mask, self.hp.n_neighbors, itself=False)
            networks = zip(self.networks, x, tables, strict=True)
            out[new] = self.fuse(*(net(a, table) for net, a, table in networks))
        return out

    def assign(self, batch: Views) -> Tensor:
        return torch.softmax(self.head(self.embed(batch)), 1)


@estimator
class ICMVC(DeepEstimator):
    """Graph networks of two views that lend each other neighbours."""

    latent_dim: int = hyperparameters.latent_dim(128)
    hidden: tuple[int, ...] = hyperparameters.hidden((256, 256))
    n_neighbors: int = hyperparameters.n_neighbors(10, "Neighbours that a sample is linked to.")
    norm: str = choice(NORMS, "How links are normalised; `released_row_l2`: rows of length one.")
    released_graph: bool = setting(False, "Rank neighbours as the released code does.")
    cluster_weight: float = setting(1.0, "Weight of the contrast of clusters.", at_least=0)
    instance_weight: float = setting(1.0, "Weight of the contrast of instances.", at_least=0)
    guide_weight: float = setting(1.0, "Weight of the guiding.", at_least=0)
    instances: str = choice(("sum", "mean"), "How the contrast of instances is reduced.")
    steps: int = 200
    batch_size: int = setting(256, "Rows in the contrast; a step sees all samples.", at_least=1)
    lr: float = 1e-3
    early_stopping: bool = False

    paper = "Chao et al., AAAI 2024"
    two_views = True
    absent = "neighbours taken over from the other view"
    unseen = "linked to training rows"
    keeps_samples = True
    model_class = ICMVCModel


def guiding(y1: Tensor, y2: Tensor, log_y: Tensor) -> Tensor:
    """The mean KL(t || y), with t (n, K) the sharpened maximum of the three labelings."""
    t = sharpen(torch.maximum(torch.maximum(y1, y2), log_y.exp())).detach()
    return (torch.xlogy(t, t) - t * log_y).sum(1).mean()


def equal_rows(x: Tables, mask: Tensor, others: Tables, others_mask: Tensor) -> Tensor:
    """Index of the first of `others` with identical views and mask; -1: none. (m,) long."""
    rows, kept = (
        [row.tobytes() for row in torch.cat([*a, seen.float()], dim=1).cpu().numpy()]
        for a, seen in ((x, mask), (others, others_mask))
    )
    first = {row: i for i, row in reversed([*enumerate(kept)])}
    indices = [first.get(row, -1) for row in rows]
    return torch.tensor(indices, dtype=torch.long, device=mask.device)


def _tables(batch: Views) -> list[Tensor]:
    """The views as (n, d_v), zero where missing."""
    pairs = zip(batch.x, batch.mask.unbind(1), strict=True)
    return [a.float().flatten(1).masked_fill(~seen.unsqueeze(1), 0.0) for a, seen in pairs]


def _block(width: int) -> list[nn.Module]:
    return [nn.Linear(width, width), nn.BatchNorm1d(width, momentum=FULL), nn.ReLU()]


# Graphs of nearest neighbours, and networks on them.


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
    """Neighbours as released, ranked by exp(-|x_i - x_j|^2 / 2), which is zero far away and if j
    lacks the view, so that ties are broken arbitrarily; in a row copied from the second view to the
    first, samples without the second view count as at the origin."""
    k, parts = min(k, len(others_mask) - itself), []
    step = max(1, PAIRS_PER_CHUNK // max(len(others_mask), 1))
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
    with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
        matrix = torch.sparse_coo_tensor(ends, ones, (m, len(x)), is_coalesced=True)
        total: Tensor = torch.sparse.mm(matrix, x)
    return total


class Layer(nn.Module):
    """A layer relu(norm(A H W + b)), + H if hidden and of equal width; the last is linear. In
    evaluation, the messages `sent` by training samples are stored for samples linked to them."""

    def __init__(self, d_in: int, d_out: int, symmetric: bool, inside: bool, last: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))
        self.bias = nn.Parameter(torch.zeros(d_out))
        self.norm = None if last else nn.BatchNorm1d(d_out, momentum=FULL)
        self.symmetric, self.skip = symmetric, inside and d_in == d_out
        self.sent: Tensor = nn.Buffer(torch.zeros(0, d_out))

    def forward(self, x: Tensor, ends: Tensor, degree: Tensor, new: bool) -> Tensor:
        root, sent = degree.rsqrt(), x @ self.weight
        sent = root * sent if self.symmetric else sent
        if new:
            total = sent + link_sums(ends, self.sent, len(sent))
        else:
            total = Sums.apply(ends, sent)  # type: ignore[no-untyped-call]
            self.sent = self.sent if self.training else sent
        out = root * total + self.bias
        if self.norm is None:
            return out
        out = torch.relu(self.norm(out))
        return out + x if self.skip else out


class GraphNetwork(nn.Module):
    """Layers on the graph of one view, with its training samples x (n, d), and the links between
    them and their numbers, the degrees. Unless `symmetric`, A = D^(-1/2) P."""

    def __init__(self, sizes: Sequence[int], symmetric: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for at, (a, b) in enumerate(pairwise(sizes)):
            self.layers.append(Layer(a, b, symmetric, at > 0, at == len(sizes) - 2))
        self.x: Tensor = nn.Buffer(torch.zeros(0, sizes[0]))
        self.ends: Tensor = nn.Buffer(torch.zeros(2, 0, dtype=torch.long))
        self.degree: Tensor = nn.Buffer(torch.zeros(0, 1))

    def set_graph(self, x: Tensor, table: Tensor) -> None:
        """Store the training samples (n, d) and the links to their neighbours (n, k)."""
        self.x, self.ends = x, links(table)
        self.degree = torch.bincount(self.ends[0]).unsqueeze(1).to(x)

    def forward(self, x: Tensor, table: Tensor | None = None) -> Tensor:
        """Represent the training samples (n, d), with messages from their neighbours, or new rows
        (m, d), with messages from themselves and their neighbours among these samples (m, k)."""
        ends, degree = self.ends, self.degree
        if table is not None:
            valid = table >= 0
            ends = torch.stack([valid.nonzero()[:, 0], table[valid]])
            degree = valid.sum(1, keepdim=True).to(x) + 1
        for layer in self.layers:
            x = lean(len(x), layer, x, ends, degree, table is not None)
        return x


def lean(n: int, f: Callable[..., Tensor], *x: Any) -> Tensor:
    """Compute f(*x); if the n samples are many, recompute activations for the gradient."""
    if n <= MANY_NODES or not torch.is_grad_enabled():
        return f(*x)
    out: Tensor = checkpoint(f, *x, use_reentrant=False, preserve_rng_state=False)
    return out
