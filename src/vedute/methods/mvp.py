"""MVP: multi-view permutation of variational auto-encoders (Gao & Pu, ICLR 2025).

Latents form an L x L table. Row i is inferred from view i: z_ii = encoder_i(x_i), and
z_ij = f_ij(z_ii), the latent of view j predicted from view i through the correspondence f_ij. The
product of row i is the consensus w_i. All entries of column j are latents of view j, so permuting
them cyclically among the observed views should change nothing. With Z0 the table and Z1 its
permutation, summed over observed v:

    R_a  = sum_v -log p(x_v | w^a_v, z^a_vv)          D_ab = sum_v sum_l KL(Z^a_vl || Z^b_vl)
    W_ab = sum_v KL(w^a_v || w^b_v)

    eq2     R_0 + D_01 + W_01, during the warm-up
    eq3     the mean of eq2 and of eq2 with 0 and 1 exchanged, after the warm-up
    joint   on images, after the warm-up: the mean of R_1 and R_f, where R_f decodes views from the
            products f below; D and W are KL(f || Z) and KL(f || w), plus a small multiple of
            KL(f || N(0, 1))

weighted as rec_weight R + beta (D / L + W / 2).
Inference multiplies over the observed rows: consensus w = prod w_i, view l = prod_i z_il.
With `view_dropout`, views hidden in a training step are predicted the same way and compared with
their true values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from operator import call
from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.views import Names, Shapes, Views
from vedute.estimators import clustering, neural
from vedute.estimators.settings import KEY, estimator, setting
from vedute.methods.deep.shared import hyperparameters, regularization
from vedute.metrics import ssim
from vedute.nn import coders, gaussian, losses, noise, shards
from vedute.nn.correspondences import Correspondences, Sources
from vedute.nn.likelihoods import Likelihoods
from vedute.nn.permutations import random_cycles
from vedute.training.model import Stage, Terms

Sizes = tuple[int, ...]
Pair = tuple[gaussian.Gaussian, gaussian.Gaussian]  # consensus and latents, per row or per sample
PRIOR_ROWS = 2000  # training posteriors kept for `generate`
STEPS, FEW_STEPS = (500, 256), (240, 128)  # steps and batch size
QUARTER, FIFTH = "a quarter of the training", "a fifth of the training"
IMAGE_PASSES, IMAGE_STEPS = 100, (500, 20_000)  # epochs; minimum and maximum of steps


@dataclass(frozen=True)
class Variant:
    """The switches of a model, and the values of settings left at None. Saved models store the name
    of their variant, so a variant never changes: other defaults get a new one."""

    name: str
    output: str  # last layer of decoders: linear or tanh
    linear_paths: bool  # linear shortcuts through decoders and correspondences
    bounded: bool  # encoder latents lie within -1 and 1, by tanh
    objective: str  # after the warm-up: eq3 or joint
    prior: str  # what latents are regularized towards: cyclic or joint
    defaults: Mapping[str, Any]  # of settings; the others depend on the numbers of rows and steps
    beta_prior: float = 0.2  # weight of N(0, 1) in the prior `joint`, relative to the agreement
    evenness: float = 0.0  # whitening power: divide the representation by its std to this power
    lr_halving: int | None = None  # epochs after which the learning rate is halved


TABLES = Variant(
    "tables", output="linear", linear_paths=True, bounded=True, objective="eq3", prior="cyclic",
    defaults=dict(
        lr=6e-3, weight_decay=0.1, patience=200, latent_dim=32, map_hidden=(64,), beta=0.2,
        rec_weight=100.0, average=True, view_dropout=0.3, warmup=50, cooldown=250,
    ),
)  # fmt: skip
IMAGES = Variant(  # errors add up over pixels; only tanh reaches pure white
    "images", output="tanh", linear_paths=False, bounded=False, objective="joint", prior="joint",
    evenness=0.5,
    defaults=dict(
        lr=5e-4, weight_decay=0.05, clip=1.0, latent_dim=128, map_hidden=(256, 512, 256), beta=0.2,
        rec_weight=0.16, average=False, view_dropout=0.25,
    ),
)  # fmt: skip
PAPER = Variant(  # the authors' code applies tanh even to z-scores and always halves the rate
    "paper", output="tanh", linear_paths=False, bounded=True, objective="eq3", prior="cyclic",
    lr_halving=200,
    defaults=dict(
        lr=1e-3, weight_decay=1e-5, clip=12.0, patience=400, latent_dim=16,
        map_hidden=(128, 256, 128), beta=5.0, rec_weight=1.0, average=False, balance=0.0,
        dropout=0.0, view_dropout=0.0, warmup=100, cooldown=0,
    ),
)  # fmt: skip
PAPER_IMAGES = replace(PAPER, bounded=False, lr_halving=None)
VARIANTS = {variant.name: variant for variant in (TABLES, IMAGES, PAPER)}


def by_variant(name: str, basis: Any = None, images: str = "") -> Any:
    """Declare a setting whose default, None, stands for the variant's value; without `basis`, its
    declaration is that of `NeuralEstimator`."""
    declared = (basis or neural.NeuralEstimator.__dataclass_fields__[name]).metadata[KEY]
    tables, image_value, paper = (variant.defaults.get(name) for variant in VARIANTS.values())
    values = f"None: {tables}, for images {images or image_value}, in the paper {paper}."
    meaning = f"{declared.meaning} {values}"
    return field(default=None, metadata={KEY: replace(declared, meaning=meaning)})


@estimator
class MVP(neural.NeuralEstimator):
    """Multi-view permutation of VAEs; imputes with uncertainty.

    Errors are averaged over a view's features, so their weight does not depend on its width; early
    stopping uses hidden views. Images and the model of the paper have different defaults, see
    `variant`; the paper's settings for each dataset are presets.
    """

    variant: str | None = setting(
        None,
        "The model and its defaults: `tables`; `images`, which are trained for 100 passes over the "
        "data, 500 steps at least and 20000 at most; `paper`, as published. None: `images` where "
        "all views are, else `tables`.",
        choices=tuple(VARIANTS),
    )
    steps: int | None = setting(  # type: ignore[assignment]
        None, "Most steps of optimisation; None: 500, below 1000 rows 240.", at_least=1, length=True
    )
    batch_size: int | None = setting(  # type: ignore[assignment]
        None,
        "Rows per step; None: 256, below 1000 rows 128. Rows are shuffled in every epoch, and a "
        "last batch smaller than an eighth of this is dropped.",
        at_least=1,
    )
    lr: float | None = by_variant("lr")  # type: ignore[assignment]
    weight_decay: float | None = by_variant("weight_decay")  # type: ignore[assignment]
    clip: float | None = setting(
        None,
        "Largest norm of the gradient. None: no limit, for images 1.0, in the paper 12.0.",
        above=0,
    )
    patience: int | None = by_variant("patience", images=QUARTER)  # type: ignore[assignment]
    again: int | None = setting(
        40,
        "Below 1000 rows, steps of the refit on all views, which starts from the fit with hidden "
        "views, at most `steps`; None: refit from scratch, for as many steps as the fit.",
        at_least=1,
        length=True,
    )
    latent_dim: int | None = by_variant("latent_dim", hyperparameters.latent_dim(0))
    shared_dim: int | None = setting(
        None, "Dimensions of `latent_dim` that form the consensus; None: all.", at_least=1
    )
    hidden: Sizes | dict[str, Sizes] = hyperparameters.hidden((128,), ": for all, or by view")
    network: str = hyperparameters.network()
    map_hidden: Sizes | None = by_variant(
        "map_hidden", setting((), "Hidden layers of the correspondences.", at_least=1)
    )
    beta: float | None = by_variant(
        "beta",
        hyperparameters.beta(
            0, meaning="Weight of the divergence of latents; that of consensuses has half of it."
        ),
    )
    rec_weight: float | None = by_variant("rec_weight", hyperparameters.rec_weight(0))
    average: bool | None = by_variant(
        "average", setting(True, "Average errors over a view's features, or sum them.")
    )
    balance: float | None = hyperparameters.balance(None, ", in the paper 0")
    dropout: float | None = hyperparameters.layer_dropout(None, ", in the paper 0")
    view_dropout: float | None = by_variant("view_dropout", hyperparameters.view_dropout(0))
    warmup: int | None = by_variant(
        "warmup",
        setting(0, "Time before permuted latents are also decoded.", at_least=0, length=True),
        FIFTH,
    )
    cooldown: int | None = by_variant("cooldown", hyperparameters.cooldown(0), FIFTH)
    sharpen: bool | None = setting(
        None,
        "The second half of the cool-down trains decoders alone, on absolute errors: images are "
        "less blurred, squared errors larger. None: for the variant `images` with 1000 or more "
        "rows, if hidden views gain more in SSIM than they lose in root mean squared error.",
    )

    paper = "Gao & Pu, ICLR 2025"
    most_views = 24  # one map per pair of views
    absent = "predicted from the observed views"
    correspondences = Correspondences

    def build(
        self, shapes: Shapes, likelihoods: Likelihoods, names: Names, length: int
    ) -> MVPModel:
        return MVPModel(shapes, likelihoods, self, names, length)

    def all_images(self, shapes: Shapes) -> bool:
        """Whether all views of these shapes are images, to be encoded by convolutions."""
        return all(map(coders.by_convolution, shapes, repeat(self.network)))

    def switches(self, shapes: Shapes) -> Variant:
        """Variant for views of these shapes."""
        images = self.all_images(shapes)
        name = self.variant or ("images" if images else "tables")
        return PAPER_IMAGES if images and name == "paper" else VARIANTS[name]

    def check(self, raw: Views) -> None:
        super().check(raw)
        self.sizes(raw.names)

    def settled(self, shapes: Shapes, length: int, rows: int | None = None) -> MVP:
        variant = self.switches(shapes)
        defaults = {"variant": variant.name, "warmup": length // 5, "cooldown": length // 5}
        unset = {}
        for name, value in {**defaults, **regularization.by_rows(rows), **variant.defaults}.items():
            if getattr(self, name) is None:
                unset[name] = value
        return super().settled(shapes, length, rows).having(unset)

    def patience_for(self, shapes: Shapes, steps: int) -> int:
        return self.patience or self.switches(shapes).defaults.get("patience", max(steps // 4, 1))

    def amounts(self, shapes: Shapes, rows: int) -> tuple[int, int]:
        steps, size = FEW_STEPS if rows < neural.FEW_ROWS else STEPS
        size = self.batch_size or size
        if self.switches(shapes).name == "images":
            least, most = IMAGE_STEPS
            steps = min(max(IMAGE_PASSES * rows // size, least), most)
        return self.steps or steps, size

    def refit_length(self, steps: int) -> int | None:
        return None if self.again is None or self.epochs is not None else min(self.again, steps)

    def sizes(self, names: Names) -> dict[str, Sizes]:
        """Hidden layer sizes of each view's encoder and decoder."""
        hidden = self.hidden if isinstance(self.hidden, dict) else dict.fromkeys(names, self.hidden)
        if set(hidden) != set(names):
            raise ValueError(f"hidden names {[*hidden]}; give the sizes of each of {list(names)}")
        return hidden


class MVPModel(regularization.Regularized):
    fusible = ("rows", "_divergences")
    posteriors: Tensor
    scale: Tensor

    def __init__(
        self, shapes: Shapes, likelihoods: Likelihoods, estimator: MVP, names: Names, length: int
    ) -> None:
        hp: Any = estimator.settled(shapes, length)
        hyperparameters.check_shared(hp.shared_dim, hp.latent_dim)
        super().__init__(hp, len(shapes), length)
        self.likelihoods, self.images = likelihoods, hp.all_images(shapes)
        self.variant = variant = hp.switches(shapes)
        L, D, k = len(shapes), hp.latent_dim, hp.shared_dim or hp.latent_dim
        self.table_numbers, self.shared = L * L * D, k
        self.divisor, self.beta_consensus = L, hp.beta / 2
        later: tuple[int, ...] = (1,) if variant.objective == "joint" else (0, 1)
        self.decoded = {True: (0,), False: later}  # of Z0 and Z1, by `warm`
        dropout = hp.dropout or 0.0
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for name, shape, likelihood in zip(names, shapes, likelihoods, strict=True):
            hidden, kind = hp.sizes(names)[name], (hp.network, likelihood)
            output = "linear" if likelihood.logits else variant.output
            self.encoders.append(coders.Encoder(shape, hidden, D, dropout, *kind, variant.bounded))
            paths = output, variant.linear_paths
            self.decoders.append(coders.Decoder(k + D, hidden, shape, *paths, *kind))
        self.maps = hp.correspondences(L, D, hp.map_hidden, variant.linear_paths)
        self.register_buffer("posteriors", torch.zeros(0, k + L * D))
        self.register_buffer("scale", torch.ones(k), persistent=variant.evenness > 0)

    def main_stages(self, length: int) -> Iterator[Stage]:
        hp, halving = self.hp, self.variant.lr_halving
        warm, turn = min(hp.warmup, length), min((hp.epochs and halving) or length, length)
        if warm > 0:
            yield hp.stage(self.warmup_loss, warm)
        if turn > warm:
            yield hp.stage(self.loss, turn - warm, watch=True)
        if length > max(turn, warm):
            yield hp.stage(self.loss, length - max(turn, warm), watch=True, lr=hp.lr / 2)

    def _cooling(self, length: int) -> Iterator[Stage]:
        hp = self.hp
        auto = hp.sharpen is None and self.variant.name == "images" and self.images
        tentative = auto and hp.early_stopping and not self.few
        last = length // 2 if hp.sharpen or tentative else 0
        yield from super()._cooling(length - last)
        if last > 0:  # squared errors of hidden views do not fall here: they cannot stop it
            stage = hp.stage(self.sharpening_loss, last, lr=hp.lr / 2)
            yield replace(stage, watch=True, measure=ssim.blur) if tentative else stage

    def finish(self, data: Views) -> None:
        rows = torch.randperm(len(data))[:PRIOR_ROWS].to(data.mask.device)
        w, z = self.fuse(data[rows].floating())
        self.posteriors = torch.cat([w.mean, z.mean.flatten(1)], dim=1)
        self.scale = whitening_factors(w.mean, self.variant.evenness)

    # The objective.

    def warmup_loss(self, batch: Views) -> Terms:
        return self.loss(batch, warm=True)

    def loss(self, batch: Views, warm: bool = False) -> Terms:
        hp, variant, full = self.hp, self.variant, batch
        batch = shards.hide(batch, hp.view_dropout)
        sources, seen = Sources.of(batch.mask, batch.present() is None), batch.mask.float()
        z0 = self.latents(batch, sources)
        z1 = self._permuted(z0, sources)
        tables = (self.rows(z0).map(sources.spread), z0), (self.rows(z1).map(sources.spread), z1)
        joint = "joint" in (variant.objective, variant.prior)
        fused: Any = self._fused(*tables[0], sources) if joint else None
        views, consensus = self._divergences(sources, *tables, warm, fused)
        hides, unseen, drawn = hp.view_dropout > 0, full.mask & ~batch.mask, []
        if hides and fused is None:
            fused = self._fused(*tables[0], sources, unseen)
        for a in self.decoded[warm]:
            w, z = tables[a]
            own = z.map(sources.own).map(sources.spread)
            code = torch.cat([gaussian.sample(w), gaussian.sample(own)], dim=-1)
            if hides:  # hidden views are decoded from the product over the sources
                inferred = codes(*map(gaussian.sample, fused))
                code = torch.where(sources.mask.unsqueeze(-1), code, inferred)
            drawn.append(code)
        if variant.objective == "joint":
            drawn.append(codes(*map(gaussian.sample, fused)))
        how = self.likelihoods, self.decoders, torch.stack(drawn).unbind(2), full, hp.average
        errors = self.share * losses.view_errors(*how).mean(0)  # (B, L)
        terms = {
            "reconstruction": hp.rec_weight * (seen * errors).sum(1).mean(),
            "kl_views": hp.beta * (seen * views / self.divisor).sum(1).mean(),
            "kl_consensus": self.beta_consensus * (seen * consensus).sum(1).mean(),
        }
        if hides:
            terms["prediction"] = hp.rec_weight * (unseen * errors).sum(1).mean()
        return terms

    def latents(self, batch: Views, sources: Sources) -> gaussian.Gaussian:
        """Z0, (P, L, D): row (b, i), column j is z_ij, the latent of view j predicted from i."""
        z: gaussian.Gaussian = self.maps(coders.encode(self.encoders, batch), sources)
        if self.variant.bounded:
            return z
        return z.map(lambda t: t.clamp(-coders.MAX_OUTPUT, coders.MAX_OUTPUT))  # maps are unbounded

    def rows(self, z: gaussian.Gaussian) -> gaussian.Gaussian:
        """w_i, the product over each row's first k dimensions, (P, L, D) -> (P, k)."""
        k = self.shared
        return gaussian.product(gaussian.Gaussian(z.mean[..., :k], z.logvar[..., :k]), dim=1)

    def _permuted(self, z: gaussian.Gaussian, sources: Sources) -> gaussian.Gaussian:
        """Z1: each column's sources permuted cyclically among the observed views."""
        cycles = random_cycles(sources.mask, sources.mask.shape[1])
        return z.map(partial(sources.permuted, permutations=cycles))

    def _divergences(
        self, sources: Sources, original: Pair, permuted: Pair, warm: bool, fused: Pair | None
    ) -> tuple[Tensor, Tensor]:
        """The divergence of each row's latents and consensus from their prior, (B, L) each."""
        if self.variant.prior == "joint" and fused is not None:
            return self._from_product(sources, original if warm else permuted, fused)
        divergence = gaussian.kl if warm else gaussian.symmetric_kl
        (w0, z0), (w1, z1) = original, permuted
        return sources.spread(divergence(z0, z1).sum(1)), divergence(w0, w1)

    def _from_product(self, sources: Sources, table: Pair, fused: Pair) -> tuple[Tensor, Tensor]:
        """KL(f || w) and sum_l KL(f_l || z_l) of each row, with f the products over observed views.

        In this direction a view may stay uncertain about what only others determine.
        `beta_prior` KL(f || N(0, 1)) is added, divided equally among the rows.
        """
        w, z = table[0], table[1].map(sources.spread)
        share = self.variant.beta_prior / sources.mask.sum(1, keepdim=True)
        to_w, to_z = (gaussian.kl(f, gaussian.standard_like(f)) for f in fused)  # (B,) and (B, L)
        agreed, columns = (q.map(lambda t: t.unsqueeze(1)) for q in fused)  # for every row
        views = gaussian.kl(columns, z).sum(2) + share * to_z.sum(1, keepdim=True)
        return views, gaussian.kl(agreed, w) + share * to_w.unsqueeze(1)

    def sharpening_loss(self, batch: Views) -> Terms:
        """Absolute errors of decoding the product over the observed views."""
        regularization.stop_dropout(self)
        with torch.no_grad():
            fused = self.fuse(shards.hide(batch, self.hp.view_dropout))
            drawn = codes(*map(gaussian.sample, fused)).unbind(1)
        absolute = [likelihood.absolute() for likelihood in self.likelihoods]
        errors = losses.view_errors(absolute, self.decoders, drawn, batch, self.hp.average)
        return {"sharpening": self.hp.rec_weight * (batch.mask * self.share * errors).sum(1).mean()}

    # Inference.

    def fuse(self, batch: Views) -> Pair:
        """Infer the consensus (B, k) and every view's latent (B, L, D) from the observed views."""
        sources = Sources.of(batch.mask, batch.present() is None)
        z = self.latents(batch, sources)
        return self._fused(self.rows(z).map(sources.spread), z, sources)

    def _fused(
        self,
        w: gaussian.Gaussian,
        z: gaussian.Gaussian,
        sources: Sources,
        wanted: Tensor | None = None,
    ) -> Pair:
        """The products over the sources: the consensus, and the latents of all or wanted views."""
        consensus = gaussian.product(w, 1, sources.mask.unsqueeze(-1))
        return consensus, sources.product(z, wanted)

    def embed(self, batch: Views) -> Tensor:
        return self.fuse(batch)[0].mean * self.scale

    def std(self, batch: Views) -> Tensor:
        return gaussian.std(self.fuse(batch)[0]) * self.scale

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        w, z = self.fuse(batch)
        code = codes(gaussian.draws(w, draws), gaussian.draws(z, draws))
        return list(map(call, self.decoders, code.unbind(2)))

    def prior(self, n: int) -> list[Tensor]:
        """Decode draws of a Gaussian mixture, sized by BIC, of the training samples' (w, z)."""
        rows = self.posteriors.cpu().double().numpy()
        drawn = clustering.mixture(rows, noise.seed()).sample(n)[0]
        return self.decode_code(torch.from_numpy(drawn).to(self.posteriors))

    def decode_code(self, code: Tensor) -> list[Tensor]:
        """Decode (n, k + L D), a consensus and latents laid out like the rows of `posteriors`."""
        w, z = code[None, :, : self.shared], code[None, :, self.shared :]
        code = codes(w, z.view(1, len(code), len(self.decoders), -1))
        return list(map(call, self.decoders, code.unbind(2)))


def codes(consensus: Tensor, latents: Tensor) -> Tensor:
    """What views are decoded from: (..., k) and (..., L, D) -> (..., L, k + D)."""
    w = consensus.unsqueeze(-2).expand(*latents.shape[:-1], -1)
    return torch.cat([w, latents], dim=-1)


def whitening_factors(z: Tensor, power: float) -> Tensor:
    """Factors that whiten the columns of z (n, k), to this power: (k,). Else what changes many
    pixels, such as a position, would dominate k-means. Columns that hardly vary, or only by
    rounding, are not amplified."""
    spread, rounding = z.std(0, correction=0), 1e-5 * z.abs().amax(0)
    spread = spread.clamp(min=1e-3 * spread.max().item())
    return torch.where(spread > rounding, spread, 1.0) ** -power
