"""DSIMVC: deep safe incomplete multi-view clustering (Tang & Liu, ICML 2022).

Missing views are imputed from neighbours, and a small network learns how far to trust each
completed sample: its weight is optimised so that a training step helps the complete samples C.

    z_v = encoder_v(x_v)   h_v = f(z_v), |h_v| <= sqrt 3   q_v = softmax g(z_v)   f, g for all views

    features  l_i = sum_{v<w}  -2/B h_i^v.h_i^w + 1/(B(B-1)) sum_{j!=i} (h_i^v.h_j^w)^2
    labels    sum_{v<w}  contrast of the columns of q_v and q_w (temperature 1, negatives of the
              same view)  +  sum of log K - H(mean q) of both

1. Pretrain autoencoders on C; their encoders initialise the model.
2. Train a guide, a network of the same kind with the same initial encoders, on features + labels of
   C with |h| = 1. Each missing view is the mean of donors that are near by the h of the guide.
3. Batches of C, and of the completed samples I with trust w_i = sigmoid net(mean_v q_i^v):

     L(t, w)   = features_C + labels_C + sum_I w_i l_i / sum_I w_i + labels_I
     F(t)      = features_C + labels_C,     t' = t - meta_lr dL/dt      one step ahead
     minimise    L(t, w) over t, and F(t') over the weights of the trust net
4. The cluster is the argmax of the mean of q_v over the observed views, without imputation.

Departs from the released code. Model and guide share one pretraining. Neighbours are searched among
samples that have the view (in the code among all, in lists of 600); if fewer than three donors
exist, these or the mean of the view are used. The batch of I has no duplicates. Both problems take
their step at once, with the same w. As released, imputed views stay fixed; `reimpute=True` imputes
them again after every step, by a running mean of the model's h, as the algorithm is described.
Label heads are initialised balanced. A single view is contrasted with itself. Defaults have light
networks; the paper's are presets.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import normalize

from vedute.data.rows import by_row
from vedute.data.views import Shapes, Views
from vedute.estimators.settings import estimator, length, setting
from vedute.methods.deep.shared import hyperparameters
from vedute.methods.deep.shared.autoencoders import ENCODED_ROWS, AutoencoderEstimator, Autoencoders
from vedute.methods.deep.shared.mixture import mean_seen
from vedute.nn.convolutions import mlp
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import cluster_contrastive, entropy_balance, spectral_contrastive
from vedute.nn.neighbors import nearest
from vedute.training.model import Clusterer, Stage, Terms


class Network(nn.Module):
    """Encoders and the heads they share: a batch -> h (B, L, H) and q (B, L, K)."""

    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "DSIMVC", K: int) -> None:
        super().__init__()
        D = hp.latent_dim
        self.nets = Autoencoders(shapes, likelihoods, hp)
        self.features, self.labels = mlp(D, D, hp.feature_dim), mlp(D, D, K)

    def forward(self, batch: Views) -> tuple[Tensor, Tensor]:
        z = self.nets(batch)
        return self.features(z), self.labels(z).softmax(-1)

    def balance(self, data: Views) -> None:
        """Initialise the label head without a preferred cluster: its layers have mean 0 and
        variance 1 on these samples (Krahenbuhl et al., ICLR 2016)."""
        out = self.nets.latents(data).flatten(0, 1)
        for layer in self.labels:
            if isinstance(layer, nn.Linear):
                std, mean = torch.std_mean(layer(out), dim=0, correction=0)
                std = std.clamp(min=1e-6)
                layer.weight /= std.unsqueeze(1)
                layer.bias.copy_((layer.bias - mean) / std)
            out = layer(out)


class DSIMVCModel(Clusterer):
    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "DSIMVC", length: int) -> None:
        super().__init__()
        self.hp, self.likelihoods, self.length = hp, likelihoods, length
        K = int(hp.n_clusters or 0)
        self.net, self.guide = (Network(shapes, likelihoods, hp, K) for _ in range(2))
        self.trust = nn.Sequential(mlp(K, 100, 1), nn.Sigmoid(), nn.Flatten(0))
        self.memory: Tensor = nn.Buffer(torch.zeros(0, len(shapes), hp.feature_dim))
        for v in range(len(shapes)):  # completed samples, during training only
            self.register_buffer(f"completed{v}", torch.zeros(0))

    def stages(self, data: Views) -> Iterator[Stage]:
        hp, whole = self.hp, data.mask.all(1)
        complete = data[whole]
        if len(complete) < 2:
            raise ValueError(
                "DSIMVC learns from samples that have every view, at least 2; of these, X has "
                f"{len(complete)} sample(s)"
            )
        if hp.pretrain > 0:
            yield hp.stage(self.net.nets.reconstruction, hp.pretrain, rows=whole)
        self.net.balance(complete)
        if len(complete) == len(data):
            yield hp.stage(self.complete_loss, self.length, rows=whole, fresh=True)
            return
        self.guide.nets.load_state_dict(self.net.nets.state_dict())
        self.guide.balance(complete)
        if hp.warmup > 0:
            yield hp.stage(self.guide_loss, hp.warmup, rows=whole, fresh=True)
        self.complete(data, unit_features(self.guide, data))
        length = 1 if hp.reimpute else self.length
        settings = dict(lr=hp.lr, rates=(("trust.", hp.trust_lr),), fresh=True, capture=False)
        bilevel = hp.stage(self.loss, length, rows=whole, **settings)
        for done in range(self.length // length):
            yield bilevel
            if hp.reimpute:
                h = unit_features(self.net, data)
                old = self.memory if done else h
                self.memory = normalize(hp.momentum * old + (1 - hp.momentum) * h, dim=-1)
                self.complete(data, self.memory)
        self.memory = self.memory[:0]
        for v in range(len(data.x)):
            setattr(self, f"completed{v}", torch.zeros(0, device=data.mask.device))

    def complete_loss(self, batch: Views) -> Terms:
        h, q = self.net(batch)
        return {"features": features(h).sum(), "labels": labels(q)}

    def guide_loss(self, batch: Views) -> Terms:
        h, q = self.guide(batch)
        return {"features": features(normalize(h, dim=-1)).sum(), "labels": labels(q)}

    def loss(self, batch: Views) -> Terms:
        kept = [getattr(self, f"completed{v}") for v in range(len(batch.x))]
        rows = torch.randperm(len(kept[0]), device=kept[0].device)[: self.hp.batch_size]
        x, seen = tuple(a[rows] for a in kept), batch.mask.new_ones(len(rows), len(kept))
        completed = replace(batch, x=x, mask=seen, index=rows, holes=(None,) * len(kept))
        h, q = self.net(completed)
        trust = self.trust(q.mean(1).detach())
        share = trust / trust.sum()
        weights = share.detach().requires_grad_()  # the trust net gets gradients of F(t') only
        terms = self.complete_loss(batch)
        terms["features_completed"] = (weights * features(h)).sum()
        terms["labels_completed"] = labels(q)
        later = self.ahead(batch, torch.stack(list(terms.values())).sum())
        (slope,) = torch.autograd.grad(later, weights, retain_graph=True)
        gain = (slope * share).sum()
        return {**terms, "ahead": later.detach() + gain - gain.detach()}

    def ahead(self, batch: Views, total: Tensor) -> Tensor:
        """The loss F(t') of complete samples after a gradient step on the total."""
        now = {k: p for k, p in self.net.named_parameters() if ".decoders." not in k}
        steps = torch.autograd.grad(total, list(now.values()), create_graph=True)
        moved = zip(now.items(), steps, strict=True)
        then = {k: p.detach() - self.hp.meta_lr * step for (k, p), step in moved}
        h, q = functional_call(self.net, then, (batch,))
        return features(h).sum() + labels(q)

    def complete(self, data: Views, h: Tensor) -> None:
        """Impute and store the incomplete samples; h (n, L, H) are features to find donors by."""
        lacking = ~data.mask.all(1)
        for v, x in enumerate(data.floating().x):
            rows = (~data.mask[:, v]).nonzero()[:, 0]
            donor = donors(h, data.mask, v, rows, self.hp.n_neighbors)
            filled = x.float().clone()
            filled[rows] = borrowed(filled, data.mask[:, v], donor, self.likelihoods[v].text)
            setattr(self, f"completed{v}", filled[lacking])

    def embed(self, batch: Views) -> Tensor:
        """The mean of h_v over the observed views."""
        return mean_seen(self.net(batch)[0], batch.mask.unsqueeze(-1), -2)

    def assign(self, batch: Views) -> Tensor:
        return mean_seen(self.net(batch)[1], batch.mask.unsqueeze(-1), -2)


@estimator
class DSIMVC(AutoencoderEstimator):
    """Clusters of complete samples, and of completed ones if trusted."""

    latent_dim: int = 128
    feature_dim: int = setting(64, "Numbers in the representation, h.", at_least=1)
    pretrain: int = 300
    warmup: int = length(200, "Time of training the guide, before the model.")
    steps: int = 200
    n_neighbors: int = hyperparameters.n_neighbors(3, "Donors of a missing view.")
    meta_lr: float = setting(1e-3, "Length of the step ahead.", at_least=0)
    trust_lr: float = setting(4e-4, "Learning rate of the trust net.", at_least=0)
    momentum: float = hyperparameters.share(0.5, "Momentum of the h that `reimpute` searches with.")
    reimpute: bool = setting(False, "Impute missing views again after every step.")

    paper = "Tang & Liu, ICML 2022"
    absent = "borrowed from neighbours, in training only"
    model_class = DSIMVCModel


def features(h: Tensor) -> Tensor:
    """The feature loss l_i of each sample: (B, L, H) -> (B,)."""
    return spectral_contrastive(*pairs(h)).sum(0)


def labels(q: Tensor) -> Tensor:
    """The contrast of clusters between views, and their balance: (B, L, K) -> scalar."""
    a, b = pairs(q)
    balance = entropy_balance(a) + entropy_balance(b)
    return (cluster_contrastive(a, b, 1.0, "same") + balance).sum()


def pairs(t: Tensor) -> tuple[Tensor, Tensor]:
    """Views of every pair, t (B, L, ...) -> (pairs, B, ...); a single view pairs with itself."""
    views = t.unbind(1)
    first, second = zip(*(list(combinations(views, 2)) or [(t[:, 0], t[:, 0])]), strict=True)
    return torch.stack(first), torch.stack(second)


def unit_features(net: Network, data: Views) -> Tensor:
    """Unit-length features h of all samples and views, (n, L, H), to search neighbours."""
    parts = [net(part.floating())[0] for part in data.batches(ENCODED_ROWS)]
    return normalize(torch.cat(parts), dim=-1)


def donors(h: Tensor, mask: Tensor, v: int, rows: Tensor, k: int) -> Tensor:
    """Donors of view v for each of `rows` (m,), which lack it: (m, k (L - 1)) long, -1 for none.

    A donor for sample i has v and another view w that i has, and is near to i in w, by the features
    h (n, L, H). The views w of a row are searched in order. The first ones contribute their nearest
    donors until k are reached; a later one only its nearest sample, if that is a donor.
    """
    others = [w for w in range(mask.shape[1]) if w != v]
    result = torch.full((len(rows), len(others), k), -1, device=h.device)
    count = torch.zeros(len(rows), 1, dtype=torch.long, device=h.device)
    for slot, w in enumerate(others):
        have_w, owners = mask[rows, w].nonzero()[:, 0], mask[:, w].nonzero()[:, 0]
        query, place = h[rows[have_w], w], torch.arange(k, device=h.device)
        _, near = nearest(query, h[:, w], k, blocked=~(mask[:, v] & mask[:, w]))
        itself = torch.searchsorted(owners, rows[have_w])
        first = owners[nearest(query, h[owners, w], 1, blocked=itself)[1]]
        missing = k - count[have_w]
        chosen = torch.where(missing > 0, place < missing, (place == 0) & (near == first))
        result[have_w, slot] = near.where(chosen, -1)
        count[have_w] += (result[have_w, slot] >= 0).sum(1, keepdim=True)
    return result.flatten(1)


def borrowed(x: Tensor, seen: Tensor, donor: Tensor, whole: bool = False) -> Tensor:
    """The mean of x (n, *shape) over the donors (m, s), -1 for none: (m, *shape). Without a donor,
    that over the samples `seen` (n,). whole: the first donor's value, which cannot be averaged."""
    total = x.new_zeros(len(donor), *x.shape[1:])
    count = by_row(torch.zeros(len(donor), dtype=torch.long, device=x.device), x)
    for column in donor.unbind(1):
        use = by_row(column >= 0, x) & ((count == 0) | (not whole))
        total += torch.where(use, x[column.clamp(min=0)], 0.0)
        count += use
    return torch.where(count > 0, total / count.clamp(min=1), x[seen].mean(0))
