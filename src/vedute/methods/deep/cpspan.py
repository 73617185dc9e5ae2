"""CPSPAN: cross-view partial sample and prototype alignment network (Jin et al., CVPR 2023).
Autoencoders with latents aligned sample by sample and cluster by cluster; the latent of a missing
view is copied from the sample that is nearest in the jointly observed views.

1. Pretrain each view's autoencoder, z_v = encoder_v(x_v), on all its instances.
2. Minimise sum_v error(decoder_v(z_v), x_v) + instance_weight I + prototype_weight C, with
     I = sum_{a<b} mean over samples with both of (1 - cos(z_a, z_b))^2
     C = sum_{a<b} mean_k (1 - cos(c_k^a, c_{P(k)}^b))^2
   c_k^v is the mean of z_v over the k-th k-means cluster of view v, and P the matching of clusters
   with the least sum of 1 - cos between their centers; both are renewed `rounds` times.
3. Structure transfer: sample i without view v copies z_v from the training sample j with the
   largest mean of cos(z_i^w, z_j^w) over the jointly observed views w.
4. Cluster the concatenated latents by k-means.

`variant="paper"` is the above, with the Hungarian method for P instead of a relaxation.
`variant="released"` follows the public code: C pulls the cosine of *every* latent dimension of one
view with *every* one of another, as columns over the samples that have both, to 1. View v of sample
i is copied from the sample with the nearest z_v. That code searches with the encoding of the
missing view itself, which leaks it. Here missing inputs are zeroed before a model gets them, so the
search uses the encoding of zeros, and all samples get the same copy.
Defaults have light networks and short stages; the paper's sizes are presets.
"""

from collections.abc import Iterator
from operator import call

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from vedute.data.views import Shapes, Views
from vedute.estimators import clustering
from vedute.estimators.settings import choice, estimator, setting
from vedute.methods.deep.shared.autoencoders import AutoencoderEstimator, Autoencoders
from vedute.nn import neighbors, noise
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import match_clusters, per_view_mean
from vedute.training.model import Generative, Stage, Terms

SIMILARITIES = 2**22  # similarities per batch, 32 MiB


class CPSPANModel(Generative):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "CPSPAN", length: int) -> None:
        super().__init__()
        self.hp, self.length = hp, length
        L, K, D = len(shapes), hp.n_prototypes, hp.latent_dim
        self.nets = Autoencoders(shapes, likelihoods, hp)
        pairs = torch.triu_indices(L, L, 1)
        self.pairs = nn.Buffer(pairs)  # (2, P): the views a < b
        self.partner = nn.Buffer(torch.arange(K).repeat(pairs.shape[1], 1))  # (P, K): P(k)
        # the cluster of samples in each view; latents of the training samples, and which belong to
        # observed views; fallback latents without a neighbour
        self.groups: Tensor = nn.Buffer(torch.zeros(0, L, dtype=torch.long))
        self.bank: Tensor = nn.Buffer(torch.zeros(0, L, D))
        self.known: Tensor = nn.Buffer(torch.zeros(0, L, dtype=torch.bool))
        self.usual: Tensor = nn.Buffer(torch.zeros(L, D))

    def stages(self, data: Views) -> Iterator[Stage]:
        hp = self.hp
        if hp.pretrain > 0:
            yield hp.stage(self.nets.reconstruction, hp.pretrain)
        self.groups = torch.zeros_like(data.mask, dtype=torch.long)
        align = hp.stage(self.loss, max(1, self.length // hp.rounds), lr=hp.align_lr, fresh=True)
        for _ in range(min(hp.rounds, self.length)):
            if hp.variant == "paper":
                self.find_prototypes(self.nets.latents(data), data.mask)
            yield align
        self.groups = self.groups[:0]
        self.store_donors(data)

    def loss(self, batch: Views) -> Terms:
        hp, z = self.hp, self.nets(batch)
        if hp.variant == "paper":
            means = self.prototypes(z, batch)
            prototypes = prototype_alignment(*means, self.pairs, self.partner)
        else:
            prototypes = released_prototype_alignment(z, batch.mask, self.pairs)
        return {
            "reconstruction": per_view_mean(self.nets.errors(z, batch), batch.mask),
            "instances": hp.instance_weight * instance_alignment(z, batch.mask, self.pairs),
            "prototypes": hp.prototype_weight * prototypes,
        }

    def prototypes(self, z: Tensor, batch: Views) -> tuple[Tensor, Tensor]:
        """Means of z (B, L, D) per cluster, (L, K, D), and which clusters have samples, (L, K)."""
        k = torch.arange(self.hp.n_prototypes, device=z.device)
        inside = (self.groups[batch.index].unsqueeze(-1) == k) & batch.mask.unsqueeze(-1)
        total, count = torch.einsum("blk,bld->lkd", inside.to(z), z), inside.sum(0)
        return total / count.clamp(min=1).unsqueeze(-1), count > 0

    def find_prototypes(self, z: Tensor, mask: Tensor) -> None:
        """Cluster every view of z (n, L, D), and match the clusters of every two."""
        centers = z.new_zeros(z.shape[1], self.hp.n_prototypes, z.shape[2])
        for v, seen in enumerate(mask.unbind(1)):
            points = z[seen, v].double().cpu().numpy()
            if not len(points):  # all samples with the view are hidden
                continue
            K = min(self.hp.n_prototypes, len(points))
            means = clustering.centers(points, K, noise.seed(), starts=1)
            centers[v, :K] = torch.from_numpy(means).to(z)
            labels = clustering.nearest(points, means)
            self.groups[seen, v] = torch.from_numpy(labels).to(z.device)
        unit = normalize(centers, dim=-1)
        for p, (a, b) in enumerate(self.pairs.t().tolist()):
            self.partner[p] = match_clusters(1.0 - unit[a] @ unit[b].t())

    def store_donors(self, data: Views) -> None:
        """Store the latents of the training samples as donors."""
        self.bank, self.known = self.nets.latents(data), data.mask
        if self.hp.variant == "paper":
            self.usual = self.bank.sum(0) / self.known.sum(0).clamp(min=1).unsqueeze(-1)
            return
        blank = data[:1].hide(torch.ones_like(data.mask[:1])).floating()
        for v, encoder in enumerate(self.nets.encoders):
            query, keys = encoder(blank.x[v]).mean, self.bank[:, v]
            _, index = neighbors.nearest(query, keys, 1, blocked=~self.known[:, v])
            self.usual[v] = keys[index[0, 0]]

    def filled(self, z: Tensor, mask: Tensor) -> Tensor:
        """Fill latents z (B, L, D) of views that are missing in mask (B, L)."""
        donated = self.usual.expand_as(z)
        if self.hp.variant == "paper" and len(self.bank):
            donor = donors(z, mask, self.bank, self.known)  # (B, L)
            copied = self.bank[donor, torch.arange(z.shape[1], device=z.device)]
            donated = torch.where(donor.unsqueeze(-1) < 0, donated, copied)
        return torch.where(mask.unsqueeze(-1), z, donated)

    def embed(self, batch: Views) -> Tensor:
        return self.filled(self.nets(batch), batch.mask).flatten(1)

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        """Decode all views; copies have no posterior, so all draws are equal."""
        z = self.filled(self.nets(batch), batch.mask)
        outs = map(call, self.nets.decoders, z.unbind(1))
        return [out.expand(max(draws, 1), *out.shape) for out in outs]

    def prior(self, n: int) -> list[Tensor]:
        """Decode random training samples, completed and drawn with replacement."""
        source = noise.generator(torch.device("cpu"))
        rows = torch.randint(len(self.bank), (n,), generator=source).to(self.bank.device)
        z = self.filled(self.bank[rows], self.known[rows])
        return list(map(call, self.nets.decoders, z.unsqueeze(0).unbind(2)))


@estimator
class CPSPAN(AutoencoderEstimator):
    """Aligned autoencoders; the nearest sample lends missing latents."""

    variant: str = choice(("paper", "released"), "As the paper or as its released code has it.")
    steps: int = 200
    rounds: int = setting(10, "How often clusters and their matching are renewed.", at_least=1)
    n_prototypes: int = setting(10, "Clusters to align, in the paper `n_clusters`.", at_least=1)
    instance_weight: float = setting(1e-3, "Weight of the alignment of samples.", at_least=0)
    prototype_weight: float = setting(1e-3, "Weight of the alignment of clusters.", at_least=0)
    align_lr: float = setting(1e-4, "Learning rate of the alignment.", at_least=0)

    paper = "Jin et al., CVPR 2023"
    absent = "latent copied from the nearest sample"
    keeps_samples = True
    relearns = True
    model_class = CPSPANModel

    def learns_again(self, rows: int) -> bool:
        """Always refit: a sample stored with the view that is hidden later is its own donor."""
        return True


def instance_alignment(z: Tensor, mask: Tensor, pairs: Tensor) -> Tensor:
    """The loss I: z (B, L, D), mask (B, L), pairs (2, P)."""
    a, b = pairs
    cos = (normalize(z[:, a], dim=-1) * normalize(z[:, b], dim=-1)).sum(-1)  # (B, P)
    return per_view_mean((1.0 - cos).square(), mask[:, a] & mask[:, b])


def prototype_alignment(c: Tensor, mask: Tensor, pairs: Tensor, partner: Tensor) -> Tensor:
    """The loss C: prototypes c (L, K, D), mask (L, K), pairs (2, P), partner (P, K)."""
    a, b = pairs
    unit, matched = normalize(c, dim=-1), (b.unsqueeze(1), partner)
    cos = (unit[a] * unit[matched]).sum(-1)  # (P, K)
    return per_view_mean((1.0 - cos).square().t(), (mask[a] & mask[matched]).t())


def released_prototype_alignment(z: Tensor, mask: Tensor, pairs: Tensor) -> Tensor:
    """The released loss C, over all pairs of latent dimensions, as columns over the samples."""
    a, b = pairs
    both = (mask[:, a] & mask[:, b]).unsqueeze(-1)  # (B, P, 1)
    one, other = (normalize(z[:, v] * both, dim=0) for v in (a, b))
    loss = (1.0 - torch.einsum("bpd,bpe->pde", one, other)).square().mean((1, 2))
    return (loss * both.any(0).squeeze(-1)).sum()


def donors(z: Tensor, mask: Tensor, bank: Tensor, bank_mask: Tensor) -> Tensor:
    """The donor in bank (n, L, D) for each missing view of z (B, L, D): (B, L). It is the most
    similar sample that has the view, the first of equals; -1 if none shares a view with the sample,
    or if the view is observed. Computed in batches of at most SIMILARITIES."""
    seen, has = mask.double(), bank_mask.double()
    a, b = (normalize(t.double(), dim=-1) for t in (z, bank))
    a, b = (a * seen.unsqueeze(-1)).flatten(1), (b * has.unsqueeze(-1)).flatten(1)
    result = torch.full_like(mask, -1, dtype=torch.long)
    for v in range(mask.shape[1]):
        lacking, keys = (~mask[:, v]).nonzero()[:, 0], bank_mask[:, v].nonzero()[:, 0]
        views, latents = has[keys].t(), b[keys].t()
        step = max(1, SIMILARITIES // max(1, len(keys)))
        for i in range(0, len(lacking), step) if len(keys) else ():
            rows = lacking[i : i + step]
            shared = seen[rows] @ views  # number of jointly observed views
            cos = (a[rows] @ latents).div_(shared).masked_fill_(shared == 0, -torch.inf)
            best, which = cos.round_(decimals=9).max(1)  # rounded, so that ties go to the first
            result[rows, v] = keys[which].where(best > -torch.inf, -1)
    return result
