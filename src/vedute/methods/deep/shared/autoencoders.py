"""One autoencoder per view, each trained on the observed instances.

    z_v = encoder_v(x_v)        sum over views of the mean over O_v of error(decoder_v(z_v), x_v)

with O_v the samples that have view v and the error averaged over the entries of a view. Layers have
the sizes `hidden`, with ReLU between them and linear ends; images and tokens use convolutions.
Weights are initialised Xavier-normal, as in all methods of this package; the released code of such
methods draws them uniformly within 1/sqrt(inputs), which gives narrower initial latents.
"""

import torch
from torch import Tensor, nn

from vedute.data.views import Shapes, Views
from vedute.estimators import clustering
from vedute.estimators.settings import estimator, length
from vedute.methods.deep.shared import DeepEstimator, hyperparameters
from vedute.nn import noise
from vedute.nn.coders import Decoder, Encoder, encode
from vedute.nn.gaussian import Gaussian
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.losses import per_view_mean, view_errors
from vedute.training.model import Terms

ENCODED_ROWS = 8192  # rows per batch of encoding


@estimator
class AutoencoderEstimator(DeepEstimator):
    """The settings of methods that pretrain autoencoders."""

    scaling: str = "minmax"
    latent_dim: int = hyperparameters.latent_dim(10)
    hidden: tuple[int, ...] = hyperparameters.hidden((256, 256))
    pretrain: int = length(600, "Time of pretraining the autoencoders.")
    batch_size: int = 256
    lr: float = 1e-3
    early_stopping: bool = False


class RawEncoder(Encoder):
    """An encoder whose two outputs are not bounded."""

    def forward(self, x: Tensor) -> Gaussian:
        return Gaussian(*self.net(self.input(x)).float().chunk(2, dim=-1))


class Autoencoders(nn.Module):
    """One autoencoder per view, (B, *shape_v) to latents (B, L, D), zero where a view is missing.
    An encoder's first output is the latent; the second is a variance, where a method uses one."""

    def __init__(self, shapes: Shapes, likelihoods: Likelihoods, hp: AutoencoderEstimator) -> None:
        super().__init__()
        self.likelihoods, hidden, latent_dim = tuple(likelihoods), hp.hidden, hp.latent_dim
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for shape, likelihood in zip(shapes, likelihoods, strict=True):
            self.encoders.append(RawEncoder(shape, hidden, latent_dim, likelihood=likelihood))
            output = ("linear", False, "auto", likelihood)
            self.decoders.append(Decoder(latent_dim, hidden, shape, *output))

    def forward(self, batch: Views) -> Tensor:
        return encode(self.encoders, batch).mean.masked_fill(~batch.mask.unsqueeze(-1), 0.0)

    def latents(self, data: Views) -> Tensor:
        """Latents of all samples, (n, L, D), in batches."""
        return torch.cat([self(part.floating()) for part in data.batches(ENCODED_ROWS)])

    def errors(self, z: Tensor, batch: Views) -> Tensor:
        """The error of decoder_v(z_v), averaged over the entries of x_v: (B, L, D) -> (B, L)."""
        return view_errors(self.likelihoods, self.decoders, z.unbind(1), batch, mean=True)

    def reconstruction(self, batch: Views) -> Terms:
        errors = self.errors(self(batch), batch)
        return {"reconstruction": per_view_mean(errors, batch.mask)}

    def stretch(self, factor: float) -> None:
        """Multiply latents by `factor`; decoders undo it, so reconstructions do not change."""
        for encoder, decoder in zip(self.encoders, self.decoders, strict=True):
            last = [m for m in encoder.modules() if isinstance(m, nn.Linear)][-1]
            first = next(m for m in decoder.modules() if isinstance(m, nn.Linear))
            half = first.in_features  # the other half of the outputs are variances
            last.weight[:half].mul_(factor)
            last.bias[:half].mul_(factor)
            first.weight.div_(factor)


def kmeans(z: Tensor, K: int, starts: int = 10) -> Tensor:
    """The k-means centers of latents z (n, D), (K, D)."""
    points, seed = z.double().cpu().numpy(), noise.seed()
    return torch.from_numpy(clustering.centers(points, K, seed, starts)).to(z)
