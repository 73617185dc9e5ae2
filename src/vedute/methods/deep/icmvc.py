"""ICMVC: incomplete contrastive multi-view clustering with high-confidence guiding (Chao et al.,
AAAI 2024). Two views. A graph network per view gives every sample both representations: a sample
that lacks a view is linked, in the graph of that view, to its neighbours in the other one.

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

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from vedute.data.views import Names, Shapes, Views
from vedute.estimators.neural import NeuralEstimator
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared import graphs, hyperparameters
from vedute.methods.deep.shared.graphs import GraphNetwork, Tables, full_norm, lean
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import cluster_contrastive, entropy_balance, nt_xent, sharpen
from vedute.training.model import Clusterer, Stage, Terms

NORMS = ("sym", "released_row_l2")
TOGETHER = 16  # batches whose similarities are held in memory at once, if samples are many


@estimator
class ICMVC(NeuralEstimator):
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

    def build(
        self, shapes: Shapes, likelihoods: Likelihoods, names: Names, length: int
    ) -> ICMVCModel:
        if any(kind.text for kind in likelihoods):
            raise ValueError("ICMVC measures distances between samples, and tokens have none")
        return ICMVCModel([prod(s) for s in shapes], self, length)


class ICMVCModel(Clusterer):
    mask: Tensor
    fused: Tensor

    def __init__(self, widths: Sequence[int], hp: ICMVC, length: int) -> None:
        super().__init__()
        self.hp, self.length = hp, length
        D, K = hp.latent_dim, int(hp.n_clusters or 0)
        self.relations = graphs.released_relations if hp.released_graph else graphs.relations
        symmetric = hp.norm == "sym"
        self.first, self.second = (GraphNetwork((d, *hp.hidden, D), symmetric) for d in widths)
        self.projectors = nn.ModuleList(nn.Sequential(*_block(D)) for _ in widths)
        self.attention = nn.Sequential(*_block(2 * D), *_block(2 * D), nn.Linear(2 * D, 2))
        self.head = nn.Sequential(*_block(D), nn.Linear(D, K))
        self.register_buffer(
            "mask", torch.zeros(0, 2, dtype=torch.bool)
        )  # mask of training samples
        self.register_buffer("fused", torch.zeros(0, D))  # their representations

    def networks(self) -> tuple[GraphNetwork, GraphNetwork]:
        return self.first, self.second

    def stages(self, data: Views) -> Iterator[Stage]:
        if len(data) < 2:
            raise ValueError("ICMVC links samples to others; X has 1 sample, it needs at least 2")
        x, self.mask = _tables(data.floating()), data.mask
        tables = self.relations(x, data.mask, x, data.mask, self.hp.n_neighbors, itself=True)
        for net, a, table in zip(self.networks(), x, tables, strict=True):
            net.set_graph(a, table)
        yield replace(self.hp.stage(self.loss, self.length), batch_size=0, capture=False)
        self.freeze(x)

    # The objective.

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

    def represent(self, x: list[Tensor]) -> list[Tensor]:
        """Representations h_v of the training samples, (n, D) each."""
        return [lean(len(a), net, a) for net, a in zip(self.networks(), x, strict=True)]

    def fuse(self, h1: Tensor, h2: Tensor) -> Tensor:
        e = (lean(len(h1), self._attend, h1, h2).sigmoid() / 10).softmax(1)
        fused: Tensor = e[:, :1] * h1 + e[:, 1:] * h2
        return fused

    def _attend(self, h1: Tensor, h2: Tensor) -> Tensor:
        out: Tensor = self.attention(torch.cat([h1, h2], dim=1))
        return out

    def contrast(self, z1: Tensor, z2: Tensor) -> Tensor:
        """NT-Xent in random batches; an incomplete last one is dropped."""
        n, B = len(z1), min(self.hp.batch_size, len(z1))
        rows = torch.randperm(n, device=z1.device)[: n // B * B].view(n // B, B)
        parts = rows.split(TOGETHER if n > graphs.MANY_NODES else len(rows))  # type: ignore[no-untyped-call]
        losses = torch.cat([lean(n, _contrast, z1[part], z2[part]) for part in parts])
        return losses.sum() if self.hp.instances == "sum" else losses.mean()

    # Inference.

    def freeze(self, x: list[Tensor]) -> None:
        """Store batch statistics, messages along links, and the representations of all samples."""
        self.train()
        self.head(self.fuse(*self.represent(x)))
        self.eval()
        graphs.freeze_norms(self, len(self.mask))
        self.fused = self.fuse(*(net.freeze() for net in self.networks()))

    def embed(self, batch: Views) -> Tensor:
        """The fused h, looked up for equal training rows and computed by links for others."""
        x, kept = _tables(batch), [net.x for net in self.networks()]
        same = equal_rows(x, batch.mask, kept, self.mask)
        out = self.fused[same.clamp(min=0)]
        new = (same < 0).nonzero()[:, 0]
        if len(new):
            x, mask = [a[new] for a in x], batch.mask[new]
            tables = self.relations(x, mask, kept, self.mask, self.hp.n_neighbors, itself=False)
            networks = zip(self.networks(), x, tables, strict=True)
            out[new] = self.fuse(*(net.attach(a, table) for net, a, table in networks))
        return out

    def assign(self, batch: Views) -> Tensor:
        return torch.softmax(self.head(self.embed(batch)), 1)


def _contrast(z1: Tensor, z2: Tensor) -> Tensor:
    return nt_xent(z1, z2, 1.0)


def guiding(y1: Tensor, y2: Tensor, log_y: Tensor) -> Tensor:
    """The mean KL(t || y), with t (n, K) the sharpened maximum of the three labelings."""
    t = sharpen(torch.maximum(torch.maximum(y1, y2), log_y.exp())).detach()
    return (torch.xlogy(t, t) - t * log_y).sum(1).mean()


def equal_rows(x: Tables, mask: Tensor, others: Tables, others_mask: Tensor) -> Tensor:
    """Index of the first of `others` with identical views and mask; -1: none. (m,) long."""
    first: dict[bytes, int] = {}
    for i, row in enumerate(_bits(others, others_mask)):
        first.setdefault(row, i)
    indices = [first.get(row, -1) for row in _bits(x, mask)]
    return torch.tensor(indices, dtype=torch.long, device=mask.device)


def _bits(x: Tables, mask: Tensor) -> list[bytes]:
    table = torch.cat([*x, mask.float()], dim=1).cpu().numpy()
    return [row.tobytes() for row in table]


def _tables(batch: Views) -> list[Tensor]:
    """The views as (n, d_v), zero where missing."""
    pairs = zip(batch.x, batch.mask.unbind(1), strict=True)
    return [a.float().flatten(1).masked_fill(~seen.unsqueeze(1), 0.0) for a, seen in pairs]


def _block(width: int) -> list[nn.Module]:
    return [nn.Linear(width, width), full_norm(width), nn.ReLU()]
