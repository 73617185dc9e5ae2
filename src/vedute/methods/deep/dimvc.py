"""DIMVC: deep incomplete multi-view clustering by mining cluster complementarity (Xu et al., AAAI
2022). Views are neither imputed nor fused: each is clustered separately, with a common target P
that is computed on the samples with every view.

    z_v = encoder_v(x_v)        q_ik^v ~ 1 / (1 + |z_i^v - u_k^v|^2)             soft labels

1. Pretrain autoencoders on all instances of each view; u^v from k-means on complete samples C.
2. On C, `rounds` times:
     P     h_i = [w_v z_i^v]_v,  w_v = 1 + log2(1 + s_v / sum s),  s_v the variance of the centers
           u^v scaled to [0, 1] column by column;  P = S^2 / row sums, S the soft labels of h for
           its k-means centers, in the order of the clusters of the last P (Hungarian)
     z, u  minimise   sum_v mean_i [ -sum_k P_ik log q_ik^v  +  error(decoder_v(z_i^v), x_i^v) ]
3. The cluster of a sample is argmax_k of the sum of q^v over its observed views.

Departs from the released code: a sample is scored as a whole (in the code, each view of an
incomplete one is scored separately); padding never draws missing instances; batches are shuffled;
log q is exact. Initially, u^v are matched to the order of P, which the code only reaches by
training; `released_order=True` keeps the order of k-means. Defaults have light networks and short
stages; the paper's sizes are presets.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import estimator, setting
from vedute.methods.deep.shared import hyperparameters
from vedute.methods.deep.shared.autoencoders import AutoencoderEstimator, Autoencoders, kmeans
from vedute.methods.deep.shared.mixture import mean_seen
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import log_student_t, match_clusters, per_view_mean, sharpen
from vedute.training.model import Clusterer, Stage, Terms


class DIMVCModel(Clusterer):
    adds_over_rows = True

    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "DIMVC", length: int) -> None:
        super().__init__()
        self.hp, self.length, self.K = hp, length, int(hp.n_clusters or 0)
        self.nets = Autoencoders(shapes, likelihoods, hp)
        self.centers = nn.Parameter(torch.zeros(len(shapes), self.K, hp.latent_dim))
        self.targets: Tensor = nn.Buffer(torch.zeros(0, self.K))  # P, one row per training sample

    def stages(self, data: Views) -> Iterator[Stage]:
        hp, whole = self.hp, data.mask.all(1)
        complete = data[whole]
        if len(complete) < self.K:
            raise ValueError(
                f"DIMVC finds its {self.K} clusters on samples that have every view; "
                f"X has {len(complete)} of them, it needs at least {self.K}"
            )
        if hp.pretrain > 0:
            yield hp.stage(self.nets.reconstruction, hp.pretrain)
        for z, centers in zip(self.nets.latents(complete).unbind(1), self.centers, strict=True):
            centers.copy_(kmeans(z, self.K, hp.starts))
        self.targets = self.centers.new_zeros(len(data), self.K)
        steps = max(1, self.length // hp.rounds)
        search = hp.stage(self.loss, steps, lr=hp.lr, rows=whole, fresh=True)
        for done in range(min(hp.rounds, self.length)):
            z = self.nets.latents(complete)
            target = self.target(z)
            if done:
                target = target[:, order(self.targets[whole].argmax(1), target.argmax(1), self.K)]
            elif not hp.released_order:
                self.order_centers(z, target)
            self.targets[whole] = target
            yield search
        self.targets = self.targets[:0]

    def loss(self, batch: Views) -> Terms:
        z = self.nets(batch)
        log_q = log_student_t(z, self.centers)  # (B, L, K)
        cross_entropy = -(self.targets[batch.index].unsqueeze(1) * log_q).sum(-1)
        errors = self.nets.errors(z, batch)
        return {
            "reconstruction": self.hp.rec_weight * per_view_mean(errors, batch.mask),
            "clustering": self.hp.cluster_weight * per_view_mean(cross_entropy, batch.mask),
        }

    def target(self, z: Tensor) -> Tensor:
        """The target P of complete samples, (m, L, D) -> (m, K), clusters in arbitrary order."""
        h = (view_weights(self.centers).unsqueeze(-1) * z).flatten(1)
        return sharpen(log_student_t(h, kmeans(h, self.K, self.hp.starts)).exp())

    def order_centers(self, z: Tensor, target: Tensor) -> None:
        """Reorder the centers of every view to match the clusters of P."""
        hard_labels = log_student_t(z, self.centers).argmax(-1)  # (m, L)
        for labels, centers in zip(hard_labels.unbind(1), self.centers, strict=True):
            centers.copy_(centers[order(target.argmax(1), labels, self.K)])

    def assign(self, batch: Views) -> Tensor:
        """The mean of q^v over the observed views."""
        q = log_student_t(self.nets(batch), self.centers).exp()
        return mean_seen(q, batch.mask.unsqueeze(-1), -2)

    def embed(self, batch: Views) -> Tensor:
        return self.assign(batch)


@estimator
class DIMVC(AutoencoderEstimator):
    """Views clustered separately, towards one common target."""

    steps: int = 1000
    rounds: int = setting(10, "How often the target is updated.", at_least=1)
    starts: int = setting(10, "Starts of k-means, the best of which is kept.", at_least=1)
    cluster_weight: float = setting(1.0, "Weight of the clustering.", at_least=0)
    rec_weight: float = hyperparameters.rec_weight(1.0)
    released_order: bool = setting(False, "Leave the centers in the order of k-means, as released.")

    paper = "Xu et al., AAAI 2022"
    absent = "left out of the mean of labels"
    model_class = DIMVCModel


def view_weights(centers: Tensor) -> Tensor:
    """Weights w_v in [1, 2], larger for well-separated centers; (L, K, D) -> (L,)."""
    low, high = centers.amin(1, keepdim=True), centers.amax(1, keepdim=True)
    unit = (centers - low) / (high - low).clamp(min=1e-12)  # a constant column stays zero
    spread = unit.flatten(1).var(1, correction=0)
    return 1.0 + torch.log2(1.0 + spread / spread.sum().clamp(min=1e-12))


def order(old: Tensor, new: Tensor, K: int) -> Tensor:
    """The order of K clusters, labels `new` (m,), that matches those with the labels `old` (m,)."""
    return match_clusters(-torch.bincount(old * K + new, minlength=K * K).view(K, K))
