"""DVIMC: deep variational incomplete multi-view clustering (Xu et al., AAAI 2024). One latent z for
all views, from a product of the observed experts, with a mixture of Gaussians as prior.

    q_v = N(mu_v(x_v), softplus(.) + 1e-6)      q(z | x) = product of q_v over the views V_i seen
    p(c) = 1/K      p(z | c) = N(m_c, s_c)      p(x_v | z) from decoder_v, the same z for all views

    rec        sum over V_i of error(decoder_v(z), x_v), summed over entries,        z ~ q
    kl_z       sum_c gamma_c KL(q || N(m_c, s_c))     gamma = p(c | z'),             z' ~ q
    kl_c       sum_c gamma_c log(gamma_c K)
    coherence  mean over V_i of KL(q || q_v)

    loss = mean over samples of  rec + kl_z + kl_c + coherence_weight * coherence

1. Pretrain an autoencoder per view, z_v = mu_v.
2. Initialise m_c by k-means on the mean of mu_v over the views of complete samples, and s = 1.
3. Minimise the loss above; the mixture has a separate learning rate, and all rates decay per epoch,
   down to the share `lr_end`.
Cluster: argmax of gamma at the mean of q. Representation: that mean.

Departs from the released code. gamma is a softmax in the log domain; the code adds 1e-10 to each
exp(log joint), so that a point six standard deviations away belongs equally to all clusters, as
with `released_floor=True`. Autoencoders give latents of arbitrary scale, and if clusters are closer
than s = 1 the mixture collapses to one component: latents are first stretched to a standard
deviation of 2, which decoders undo, unless `released_scale=True`. The paper also learns the weights
p(c). Learned freely, they starve most clusters; the code updates all by about the same amount and
normalises them, so they stay nearly equal. Here they are equal. s is the exp of a parameter; the
code updates s itself, which may cross zero. Learning rates decay smoothly instead of by 0.9 every
ten epochs. If fewer than K samples are complete, k-means uses all samples and their observed views.
Defaults have light networks and short stages; the paper's sizes are presets.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from vedute.data.views import Shapes, Views
from vedute.estimators.settings import estimator, setting
from vedute.methods.deep.shared.autoencoders import AutoencoderEstimator, Autoencoders, kmeans
from vedute.nn import gaussian, noise
from vedute.nn.coders import encode
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import view_errors
from vedute.training.loop import batches
from vedute.training.model import Clusterer, Generative, Stage, Terms

LEAST_VARIANCE = 1e-6
SPREAD = 2.0  # initial spread of latents, in standard deviations of a cluster
FLOOR = 1e-10  # added to the joint density, as released


class Mixture(nn.Module):
    """The prior sum_c N(m_c, s_c) / K, with diagonal s_c."""

    def __init__(self, K: int, dim: int) -> None:
        super().__init__()
        self.log_weights = nn.Buffer(torch.full((K,), -math.log(K)), persistent=False)
        self.mean = nn.Parameter(torch.zeros(K, dim))
        self.logvar = nn.Parameter(torch.zeros(K, dim))

    @property
    def parts(self) -> gaussian.Gaussian:
        return gaussian.Gaussian(self.mean, self.logvar)

    def log_responsibilities(self, z: Tensor, floor: float = 0.0) -> Tensor:
        """Log responsibilities log p(c | z), (B, D) -> (B, K); `floor` is added to p(c, z)."""
        joint = self.log_weights + gaussian.log_prob(self.parts, z.unsqueeze(-2))
        return (joint if not floor else (joint.exp() + floor).log()).log_softmax(-1)

    def sample(self, n: int) -> Tensor:
        weights = self.log_weights.exp().cpu()
        which = torch.multinomial(weights, n, True, generator=noise.generator(weights.device))
        return gaussian.sample(self.parts.map(lambda t: t[which.to(t.device)]))


class DVIMCModel(Generative, Clusterer):
    adds_over_rows = True

    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: "DVIMC", length: int) -> None:
        super().__init__()
        self.hp, self.likelihoods, self.length = hp, likelihoods, length
        self.K = int(hp.n_clusters or 0)
        self.nets = Autoencoders(shapes, likelihoods, hp)
        self.mixture = Mixture(self.K, hp.latent_dim)

    def stages(self, data: Views) -> Iterator[Stage]:
        hp = self.hp
        if hp.pretrain > 0:
            yield hp.stage(self.nets.reconstruction, hp.pretrain, lr=hp.pretrain_lr)
        if not hp.released_scale:
            spread = float(self.averages(data).std(0, correction=0).mean())
            self.nets.stretch(SPREAD / max(spread, 1e-6))
        self.mixture.mean.copy_(kmeans(self.averages(data), self.K))
        per_epoch = 1 if hp.epochs is not None else batches(len(data), hp.batch_size)
        epochs = max(1, math.ceil(self.length / per_epoch))
        rates, decay = (("mixture.", hp.mixture_lr),), hp.lr_end ** (1 / epochs)
        how = dict(watch=True, lr=hp.lr, fresh=True, rates=rates, decay=decay)
        yield hp.stage(self.loss, self.length, **how)

    def averages(self, data: Views) -> Tensor:
        """Means of mu_v over the views of complete samples (m, D), or of all if these are few."""
        whole = data.mask.all(1)
        data = data[whole] if int(whole.sum()) >= self.K else data
        return self.nets.latents(data).sum(1) / data.mask.sum(1, keepdim=True)

    def loss(self, batch: Views) -> Terms:
        q, experts = self.posterior(batch)
        z, other = gaussian.sample(q), gaussian.sample(q)
        log_gamma = self.log_gamma(other)
        gamma = log_gamma.exp()  # (B, K)
        kl_z = gaussian.kl(q.map(lambda t: t.unsqueeze(1)), self.mixture.parts)  # (B, K)
        return {
            "reconstruction": (batch.mask * self.errors(z, batch)).sum(1).mean(),
            "kl_z": (gamma * kl_z).sum(1).mean(),
            "kl_c": (gamma * (log_gamma - self.mixture.log_weights)).sum(1).mean(),
            "coherence": self.hp.coherence_weight * coherence(q, experts, batch.mask).mean(),
        }

    def posterior(self, batch: Views) -> tuple[gaussian.Gaussian, gaussian.Gaussian]:
        """The posterior q(z | x), (B, D), and its experts q_v, (B, L, D)."""
        mean, raw = encode(self.nets.encoders, batch)
        experts = gaussian.Gaussian(mean, (softplus(raw) + LEAST_VARIANCE).log())
        return gaussian.product(experts, 1, batch.mask.unsqueeze(-1)), experts

    def log_gamma(self, z: Tensor) -> Tensor:
        return self.mixture.log_responsibilities(z, FLOOR if self.hp.released_floor else 0.0)

    def errors(self, z: Tensor, batch: Views) -> Tensor:
        """-log p(x_v | z) up to a constant, (B, L)."""
        codes = [z] * batch.shape[1]
        return view_errors(self.likelihoods, self.nets.decoders, codes, batch, mean=False)

    def embed(self, batch: Views) -> Tensor:
        return self.posterior(batch)[0].mean

    def std(self, batch: Views) -> Tensor:
        return gaussian.std(self.posterior(batch)[0])

    def assign(self, batch: Views) -> Tensor:
        return self.log_gamma(self.embed(batch)).exp()

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        return self._decode_latent(gaussian.draws(self.posterior(batch)[0], draws))

    def prior(self, n: int) -> list[Tensor]:
        return self._decode_latent(self.mixture.sample(n).unsqueeze(0))

    def _decode_latent(self, z: Tensor) -> list[Tensor]:
        return [decoder(z) for decoder in self.nets.decoders]


@estimator
class DVIMC(AutoencoderEstimator):
    """One latent for all views under a mixture of Gaussians."""

    scaling: str = "auto"
    pretrain: int = 500
    steps: int = 1000
    coherence_weight: float = setting(10.0, "Weight of agreement with the product.", at_least=0)
    pretrain_lr: float = setting(1e-3, "Learning rate of the pretraining.", at_least=0)
    mixture_lr: float = setting(5e-2, "Learning rate of the mixture.", at_least=0)
    lr_end: float = setting(0.05, "Share to which all learning rates fall.", above=0, at_most=1)
    clip: float | None = 10.0
    released_floor: bool = setting(False, "Add 1e-10 to the density of clusters, as released.")
    released_scale: bool = setting(False, "Leave the scale of the latents as it is, as released.")

    paper = "Xu et al., AAAI 2024"
    absent = "left out of the product"
    model_class = DVIMCModel


def coherence(q: gaussian.Gaussian, experts: gaussian.Gaussian, mask: Tensor) -> Tensor:
    """The mean over the observed views of KL(q || q_v): q (B, D), experts (B, L, D) -> (B,)."""
    divergence = gaussian.kl(q.map(lambda t: t.unsqueeze(1)), experts).masked_fill(~mask, 0.0)
    return divergence.sum(1) / mask.sum(1)
