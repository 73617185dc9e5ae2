"""MVP: multi-view permutation of variational auto-encoders (Gao & Pu, ICLR 2025).

Latents form an L x L table. Row i is inferred from view i: z_ii = encoder_i(x_i), and
z_ij = f_ij(z_ii), the latent of view j predicted from view i through the correspondence f_ij. The
product of row i is the consensus w_i. All entries of column j are latents of view j, so permuting
them cyclically among the observed views should change nothing. With Z0 the table, Z1 the
permuted one, sums over observed v:

    R_a  = sum_v -log p(x_v | w^a_v, z^a_vv)          D_ab = sum_v sum_l KL(Z^a_vl || Z^b_vl)
    W_ab = sum_v KL(w^a_v || w^b_v)

    eq1   R_1 + D_10 + W_10
    eq2   R_0 + D_01 + W_01: always in the warm-up
    eq3   half of both; with one-sided divergences half of R_0 + R_1, and D_01 + W_01
    joint as eq1, but half of R_1 + R_f: views are also decoded from the products below

weighted as rec_weight R + kl_weight (beta_views D / L + beta_consensus W).
Inference multiplies over the observed rows: consensus w = prod w_i, view l = prod_i z_il.
With `view_dropout`, views hidden in a step are predicted from the others in this way, and
compared with the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from vedute.data.views import Names, Shapes, Views
from vedute.estimators import clustering
from vedute.estimators.neural import FEW_ROWS, NeuralEstimator
from vedute.estimators.search_space import Range
from vedute.estimators.settings import choice, estimator, length, setting
from vedute.methods import _settings
from vedute.methods._mvp_priors import TABLES, divergence, fixed_prior, joint_prior
from vedute.methods._sharpening import blur, sharp
from vedute.methods._trimmings import Trimmed, by_rows, first_dropout, hide_some
from vedute.nn import gaussian, noise
from vedute.nn.coders import WIDEST, Decoder, Encoder, by_convolution, encode
from vedute.nn.correspondences import Correspondences
from vedute.nn.gaussian import Gaussian, product
from vedute.nn.likelihoods import Kinds
from vedute.nn.losses import view_errors
from vedute.nn.permutations import random_cycles, random_permutations
from vedute.nn.sources import Sources
from vedute.training.model import Stage, Terms

Sizes = tuple[int, ...]
Pair = tuple[Gaussian, Gaussian]  # consensus and latents, of rows or of samples
PRIORS = ("cyclic", "random", "diagonal", "fusion", "standard", "all_pairs", "joint")
PRIOR_ROWS = 2000  # training posteriors kept for `generate`
STEPS, FEW_STEPS = (500, 256), (240, 128)  # and rows of each
LIGHT: dict[str, Any] = {  # what settings are that were left at None
    "lr": 6e-3,
    "weight_decay": 0.1,
    "latent_dim": 32,
    "map_hidden": (64,),
    "linear_paths": True,
    "average": True,
    "rec_weight": 100.0,
    "output": "linear",
    "view_dropout": 0.3,
    "bounded": True,
    "objective": "eq3",
    "prior": "cyclic",
    "evenness": 0.0,
    "warmup": 50,
    "cooldown": 250,
    "patience": 200,
}
IMAGES: dict[str, Any] = {  # the same where all views are images
    "lr": 5e-4,
    "weight_decay": 0.05,
    "latent_dim": 128,
    "map_hidden": (256, 512, 256),
    "linear_paths": False,
    "average": False,  # an image has as much to tell as it has pixels
    "rec_weight": 0.16,
    "output": "tanh",  # white is white: a linear layer leaves noise there
    "view_dropout": 0.25,
    "clip": 1.0,
    "bounded": False,
    "objective": "joint",
    "prior": "joint",
    "evenness": 0.5,
}
IMAGE_PASSES, IMAGE_STEPS = 100, (500, 20_000)  # over the data; least and most
IMAGE_SHARES = {"warmup": 5, "cooldown": 5}  # the n-th part of a training


def by_data(name: str, meaning: str, images: str = "", **declared: Any) -> Any:
    """A setting that depends on the data where it is None."""
    plain, of_images = LIGHT[name], images or IMAGES[name]
    words = f"{meaning} None: {plain}, for images {of_images}."
    return setting(None, words, **declared)


@estimator
class MVP(NeuralEstimator):
    """Multi-view permutation of VAEs; imputes with uncertainty.

    The defaults are light and free of scale: errors are averaged over a view's features, so that
    their weight against the divergences does not depend on its width, and hidden views end the
    training. The paper's settings are presets. Images have defaults of their own: `for_images`.
    """

    steps: int | None = setting(  # type: ignore[assignment]
        None, "Most steps of optimisation; None: 500, below 1000 rows 240.", at_least=1, length=True
    )
    batch_size: int | None = setting(  # type: ignore[assignment]
        None,
        "Rows per step; None: 256, below 1000 rows 128. An epoch, in an order of its own, leaves "
        "out a last batch under an eighth of this.",
        at_least=1,
    )
    lr: float | None = by_data(  # type: ignore[assignment]
        "lr", "Learning rate.", above=0, tune=Range(3e-4, 1e-2, log=True)
    )
    weight_decay: float | None = by_data(  # type: ignore[assignment]
        "weight_decay", "Weight decay of the optimizer.", at_least=0
    )
    clip: float | None = setting(
        None, "Largest norm of the gradient. None: any, for images 1.0.", above=0
    )
    patience: int | None = by_data(  # type: ignore[assignment]
        "patience",
        "Steps to wait for a smaller hidden error.",
        "a quarter of the training",
        at_least=1,
    )
    again: int | None = setting(
        40,
        "Below 1000 rows, steps with all views that go on from those with some hidden, `steps` at "
        "most; None: as many as these, from the start.",
        at_least=1,
        length=True,
    )
    latent_dim: int | None = by_data(
        "latent_dim", "Numbers in a latent.", at_least=1, tune=_settings.LATENTS
    )
    shared_dim: int | None = setting(
        None, "How many of `latent_dim` make the consensus; None: all.", at_least=1
    )
    hidden: Sizes | dict[str, Sizes] = _settings.hidden((128,), ": for all, or by view")
    network: str = _settings.network()
    map_hidden: Sizes | None = by_data("map_hidden", "Hidden layers of the maps.", at_least=1)
    beta_views: float = _settings.beta(0.2, "Weight of the agreement of latents.")
    beta_consensus: float = _settings.beta(0.1, "Weight of the agreement of consensuses.")
    beta_prior: float = setting(
        0.2, "Weight of N(0, 1) in the prior `joint`, beside the agreement.", at_least=0
    )
    rec_weight: float | None = by_data("rec_weight", "Weight of the reconstruction.", at_least=0)
    kl_weight: float = setting(1.0, "Weight of both agreements.", at_least=0)
    average: bool | None = by_data(
        "average", "Average errors over a view's features; the paper sums: False."
    )
    balance: float | None = _settings.balance(None)
    output: str | None = by_data("output", "Last layer of decoders.", choices=("linear", "tanh"))
    linear_paths: bool | None = by_data(
        "linear_paths", "Linear shortcuts through decoders and maps."
    )
    dropout: float | None = _settings.layer_dropout(None)
    view_dropout: float | None = by_data(
        "view_dropout",
        "Share of views hidden and predicted.",
        at_least=0,
        below=1,
        tune=Range(0.0, 0.6),
    )
    warmup: int | None = by_data(
        "warmup",
        "Time before permuted latents are decoded, too.",
        "a fifth of the training",
        at_least=0,
        length=True,
    )
    cooldown: int | None = by_data(
        "cooldown",
        "Time without dropout at the end, at a tenth of the learning rate.",
        "a fifth of the training",
        at_least=0,
        length=True,
    )
    sharpen: bool | None = setting(
        None,
        "The second half of the cool-down trains decoders alone, on absolute errors: images are "
        "less blurred, squared errors larger. None: with the defaults for images, from 1000 rows "
        "on, if hidden views gain more in SSIM than they lose in root mean squared error.",
    )
    lr_halving: int | None = length(None, "Time before the learning rate is halved; None: never.")
    permutation: str = choice(("cyclic", "random", "none"), "How a column's sources are permuted.")
    prior: str | None = by_data("prior", "What latents are pulled to.", choices=PRIORS)
    objective: str | None = by_data(
        "objective",
        "After the warm-up: views are decoded from permuted latents and their own (`eq3`), from "
        "permuted ones (`eq1`), from their own (`eq2`), or from permuted ones and from the product "
        "over all views that are there (`joint`).",
        choices=("eq3", "eq1", "eq2", "joint"),
    )
    divergence: str = choice(("symmetric", "forward"), "Of latents and permuted ones, in `eq3`.")
    per_view: bool = setting(True, "Divide the agreement of latents by the number of views.")
    maps: str = choice(("mlp", "linear", "identity"), "Maps between views.")
    bounded: bool | None = by_data("bounded", "Latents of encoders are within 1 and -1, by tanh.")
    observed: str = choice(
        ("fused", "own"), "Views that are there are decoded from all that are, or from themselves."
    )

    evenness: float | None = setting(
        None,
        "Dimensions of the representation are divided by their standard deviation to this power: 0 "
        "leaves them as they were learned, with 1 all vary alike; None: 0, for images 0.5.",
        at_least=0,
        at_most=1,
    )
    for_images: bool = setting(
        True,
        "Where all views are images, settings that are None are those of "
        "`vedute.methods.mvp.IMAGES`, and `steps` are 100 passes over the data, 20000 at most.",
    )

    paper = "Gao & Pu, ICLR 2025"
    most_views = 24  # a map for each pair of views
    absent = "predicted from the observed views"

    def build(self, shapes: Shapes, likelihoods: Kinds, names: Names, length: int) -> MVPModel:
        hp: Any = self.settled(shapes, length)
        _settings.check_shared(hp.shared_dim, hp.latent_dim)
        return MVPModel(shapes, likelihoods, hp, names, length)

    def check(self, raw: Views) -> None:
        super().check(raw)
        self.sizes(raw.names)

    def settled(self, shapes: Shapes, length: int, rows: int | None = None) -> MVP:
        images = self._has_images(shapes)
        parts = {k: length // part for k, part in IMAGE_SHARES.items()}
        of_data = IMAGES | parts if images else LIGHT
        of_data = of_data | by_rows(rows)
        left = {k: v for k, v in of_data.items() if getattr(self, k) is None}
        return super().settled(shapes, length, rows).having(left)

    def patience_for(self, shapes: Shapes, steps: int) -> int:
        of_data = max(steps // 4, 1) if self._has_images(shapes) else LIGHT["patience"]
        return int(of_data) if self.patience is None else self.patience

    def _has_images(self, shapes: Shapes) -> bool:
        return self.for_images and all(by_convolution(s, self.network) for s in shapes)

    def amounts(self, shapes: Shapes, rows: int) -> tuple[int, int]:
        steps, size = FEW_STEPS if rows < FEW_ROWS else STEPS
        size = self.batch_size or size
        if self._has_images(shapes):
            least, most = IMAGE_STEPS
            steps = min(max(IMAGE_PASSES * rows // size, least), most)
        return self.steps or steps, size

    def refit_length(self, steps: int) -> int | None:
        goes_on = self.again is not None and self.epochs is None
        return min(self.again or 0, steps) if goes_on else None

    def sizes(self, names: Names) -> list[Sizes]:
        """The hidden sizes of each view's encoder and decoder."""
        hidden = self.hidden if isinstance(self.hidden, dict) else dict.fromkeys(names, self.hidden)
        if set(hidden) != set(names):
            raise ValueError(f"hidden names {[*hidden]}; give the sizes of each of {list(names)}")
        return [tuple(hidden[k]) for k in names]


class MVPModel(Trimmed):
    hp: Any  # an MVP of which the data have decided all settings
    fusible = ("rows", "_divergences")
    posteriors: Tensor
    scale: Tensor

    def __init__(
        self, shapes: Shapes, likelihoods: Kinds, hp: Any, names: Names, length: int
    ) -> None:
        super().__init__(hp, len(shapes), length)
        self.likelihoods = likelihoods
        self.images = all(by_convolution(shape, hp.network) for shape in shapes)
        L, D, k = len(shapes), hp.latent_dim, hp.shared_dim or hp.latent_dim
        self.table_numbers = L * L * D
        self.shared, dropout = k, first_dropout(hp.dropout)
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for shape, likelihood, hidden in zip(shapes, likelihoods, hp.sizes(names), strict=True):
            output = "linear" if likelihood.logits else hp.output
            paths = (output, hp.linear_paths, hp.network, likelihood)
            kind = (hp.network, likelihood, hp.bounded)
            self.encoders.append(Encoder(shape, hidden, D, dropout, *kind))
            self.decoders.append(Decoder(k + D, hidden, shape, *paths))
        self.maps = Correspondences(L, D, hp.map_hidden, hp.maps, hp.linear_paths)
        self.register_buffer("posteriors", torch.zeros(0, k + L * D))
        if hp.evenness:
            self.register_buffer("scale", torch.ones(k))

    def finish(self, data: Views) -> None:
        rows = torch.randperm(len(data))[:PRIOR_ROWS].to(data.mask.device)
        consensus, latents = self.fuse(data[rows].floating())
        self.posteriors = torch.cat([consensus.mean, latents.mean.flatten(1)], dim=1)
        if self.hp.evenness:
            self.scale = evening(consensus.mean, self.hp.evenness)

    def main_stages(self, length: int) -> Iterator[Stage]:
        hp = self.hp
        warm, turn = min(hp.warmup, length), min(hp.lr_halving or length, length)
        if warm > 0:
            yield hp.stage(self.warmup_loss, warm)
        if turn > warm:
            yield hp.stage(self.loss, turn - warm, watch=True)
        if length > max(turn, warm):
            yield hp.stage(self.loss, length - max(turn, warm), watch=True, lr=hp.lr / 2)

    def _cooling(self, length: int) -> Iterator[Stage]:
        hp = self.hp
        asked = hp.sharpen is None and hp.for_images and self.images
        tried = asked and hp.early_stopping and not self.few
        last = length // 2 if hp.sharpen or tried else 0
        yield from super()._cooling(length - last)
        if last > 0:  # squared errors of hidden views do not fall by this: it is not for them
            stage = hp.stage(self.sharpening_loss, last, lr=hp.lr / 2)
            yield replace(stage, watch=True, measure=blur) if tried else stage

    # The objective.

    def sources(self, batch: Views) -> Sources:
        return Sources.of(batch.mask, whole=batch.present() is None)

    def latents(self, batch: Views, sources: Sources) -> Gaussian:
        """Z0, (P, L, D): row (b, i), column j is z_ij, the latent of view j predicted from i."""
        z: Gaussian = self.maps(encode(self.encoders, batch), sources)
        if self.hp.bounded:
            return z
        return z.map(lambda t: t.clamp(-WIDEST, WIDEST))  # maps may leave what encoders keep to

    def rows(self, z: Gaussian) -> Gaussian:
        """w_i: the product of each row's first k dimensions, (P, L, D) -> (P, k)."""
        return product(z.map(lambda t: t[..., : self.shared]), dim=1)

    def warmup_loss(self, batch: Views) -> Terms:
        return self._terms(batch, warm=True)

    def loss(self, batch: Views) -> Terms:
        return self._terms(batch, warm=False)

    def sharpening_loss(self, batch: Views) -> Terms:
        """Absolute errors of what decoders make of the product over the views that are there."""
        for module in self._dropouts():
            module.eval()
        with torch.no_grad():
            code = _drawn(self.fuse(hide_some(batch, self.hp.view_dropout))).unsqueeze(0)
        errors = self._decoded_errors(sharp(self.likelihoods), code, batch)
        return {"sharpening": self.hp.rec_weight * (batch.mask * errors).sum(1).mean()}

    def _terms(self, batch: Views, warm: bool) -> Terms:
        hp, everything = self.hp, batch
        batch = hide_some(batch, hp.view_dropout)
        sources = self.sources(batch)
        z0 = self.latents(batch, sources)
        z1 = _permuted(z0, sources, hp.permutation)
        w0, w1 = (self.rows(z).map(sources.spread) for z in (z0, z1))
        both = (own, swapped) = (w0, z0), (w1, z1)
        objective = "eq2" if warm else hp.objective
        cyclic = [both[a] for a in TABLES[objective]]
        tables = {"cyclic": cyclic, "none": [own], "random": [swapped]}[hp.permutation]
        joint = "joint" in (hp.objective, hp.prior)
        fused = self._fused(w0, z0, sources) if joint else None
        views, consensus = self._divergences(sources, own, swapped, objective, fused)
        L, seen = batch.mask.shape[1] if hp.per_view else 1, batch.mask.float()
        errors = self._errors(everything, tables, own, sources, fused)
        terms = {
            "reconstruction": hp.rec_weight * (seen * errors).sum(1).mean(),
            "kl_views": hp.kl_weight * hp.beta_views * (seen * views / L).sum(1).mean(),
            "kl_consensus": hp.kl_weight * hp.beta_consensus * (seen * consensus).sum(1).mean(),
        }
        if hp.view_dropout > 0:
            unseen = everything.mask & ~batch.mask
            terms["prediction"] = hp.rec_weight * (unseen * errors).sum(1).mean()
        return terms

    def _errors(
        self,
        batch: Views,
        tables: list[Pair],
        own: Pair,
        sources: Sources,
        fused: Pair | None = None,
    ) -> Tensor:
        """-log p(x_v | w_v, z_vv) up to a constant, averaged over the tables, (B, L); views
        that are no source are decoded from the product over those that are. fused: that product,
        where it is known; `joint` decodes all views from it."""
        hidden = None
        if self.hp.view_dropout > 0:
            hidden = self._inferred(batch, own, sources) if fused is None else fused
        codes = []
        for w, z in tables:
            own_z = z.map(lambda t: sources.spread(sources.own(t)))
            code = torch.cat([gaussian.sample(w), gaussian.sample(own_z)], dim=-1)
            if hidden is not None:
                code = torch.where(sources.mask.unsqueeze(-1), code, _drawn(hidden))
            codes.append(code)
        if self.hp.objective == "joint" and fused is not None:
            codes.append(_drawn(fused))
        return self._decoded_errors(self.likelihoods, torch.stack(codes), batch)

    def _decoded_errors(self, kinds: Kinds, code: Tensor, batch: Views) -> Tensor:
        """Averaged over the first axis of the codes, (1 to 3, B, L, k + D) -> (B, L)."""
        mean, decoders, parts = self.hp.average, self.decoders, code.unbind(2)
        errors = view_errors(
            kinds, lambda v, rows: decoders[v](parts[v][:, rows]), batch, mean, code
        )
        return self.share * errors.mean(0)

    def _inferred(self, batch: Views, own: Pair, sources: Sources) -> Pair:
        """As `fuse`, the consensus, and of the latents those that are compared with the truth."""
        w, z = own
        if sources.whole:  # all are inferred, in one shape
            return self._fused(w, z, sources)
        hidden = Sources.of(batch.mask & ~sources.mask, whole=False)
        seen = sources.mask[hidden.pairs // sources.mask.shape[1]].unsqueeze(-1)  # (Q, L, 1)
        consensus = product(w, 1, sources.mask.unsqueeze(-1))
        latents = product(z.map(lambda t: sources.column(t, hidden.pairs)), 1, seen)
        return consensus, latents.map(hidden.spread)

    def _divergences(
        self, sources: Sources, own: Pair, swapped: Pair, objective: str, fused: Pair | None = None
    ) -> tuple[Tensor, Tensor]:
        """Divergence of each row's latents and consensus from their prior, (B, L) each."""
        (w0, z0), (w1, z1) = own, swapped
        if self.hp.prior in ("cyclic", "random"):
            if self.hp.prior != self.hp.permutation:
                z1 = _permuted(z0, sources, self.hp.prior)
                w1 = self.rows(z1).map(sources.spread)
            apart = divergence(objective, self.hp.divergence)
            return sources.spread(apart(z0, z1).sum(1)), apart(w0, w1)
        tables = [(own, swapped)[a] for a in TABLES[objective]]
        if self.hp.prior == "joint":
            assert fused is not None
            found = [joint_prior(sources, t, fused, self.hp.beta_prior) for t in tables]
        else:
            found = [fixed_prior(self.hp.prior, sources, t, z0) for t in tables]
        views, consensus = zip(*found, strict=True)
        return torch.stack(views).mean(0), torch.stack(consensus).mean(0)

    # Inference.

    def fuse(self, batch: Views) -> Pair:
        """The consensus (B, k) and the latent of every view (B, L, D), given the observed views."""
        sources = self.sources(batch)
        z = self.latents(batch, sources)
        return self._fused(self.rows(z).map(sources.spread), z, sources)

    def _fused(self, w: Gaussian, z: Gaussian, sources: Sources) -> Pair:
        seen = sources.mask.unsqueeze(-1)
        return product(w, 1, seen), product(z.map(sources.spread), 1, seen.unsqueeze(-1))

    def embed(self, batch: Views) -> Tensor:
        return self._even(self.fuse(batch)[0].mean)

    def std(self, batch: Views) -> Tensor:
        return self._even(gaussian.std(self.fuse(batch)[0]))

    def _even(self, z: Tensor) -> Tensor:
        return z * self.scale if self.hp.evenness else z

    def decode(self, batch: Views, draws: int = 0) -> list[Tensor]:
        sources = self.sources(batch)
        z = self.latents(batch, sources)
        w = self.rows(z).map(sources.spread)
        consensus, latents = (_codes(q, draws) for q in self._fused(w, z, sources))
        consensus = _for_all(consensus, len(self.decoders))
        if self.hp.observed == "own":
            seen = sources.mask.unsqueeze(-1)
            own = z.map(lambda t: sources.spread(sources.own(t)))
            consensus = torch.where(seen, _codes(w, draws), consensus)
            latents = torch.where(seen, _codes(own, draws), latents)
        return self._decode_latents(consensus, latents)

    def prior(self, n: int) -> list[Tensor]:
        """From a Gaussian mixture, its size by BIC, fitted to the (w, z) of training samples."""
        rows = self.posteriors.cpu().double().numpy()
        drawn = clustering.draw_like(rows, n, noise.seed())
        return self.decode_code(torch.from_numpy(drawn).to(self.posteriors))

    def codes(self, batch: Views, draws: int) -> tuple[Tensor, Tensor]:
        consensus, latents = self.fuse(batch)
        parts = zip(consensus, latents, strict=True)
        q = Gaussian(*(torch.cat([w, z.flatten(1)], dim=-1) for w, z in parts))
        code = gaussian.draws(q, draws)
        return code, gaussian.log_prob(q, code)

    def log_prior(self) -> Callable[[Tensor], Tensor]:
        """Of the mixture that `prior` draws from."""
        rows = self.posteriors.cpu().double().numpy()
        found = clustering.mixture(rows, noise.seed())

        def density(code: Tensor) -> Tensor:
            flat = code.flatten(0, -2).cpu().double().numpy()
            return torch.from_numpy(found.score_samples(flat)).view(code.shape[:-1]).to(code)

        return density

    def decode_code(self, code: Tensor) -> list[Tensor]:
        """The views of (n, k + L D), a consensus and latents like the rows of `posteriors`."""
        consensus, latents = code[None, :, : self.shared], code[:, self.shared :]
        latents = latents.reshape(1, len(code), len(self.decoders), -1)
        return self._decode_latents(_for_all(consensus, len(self.decoders)), latents)

    def _decode_latents(self, consensus: Tensor, latents: Tensor) -> list[Tensor]:
        """Decode (S, n, L, k) and (S, n, L, D)."""
        codes = torch.cat([consensus, latents], dim=-1).unbind(2)
        return [decoder(code) for decoder, code in zip(self.decoders, codes, strict=True)]


def evening(z: Tensor, power: float) -> Tensor:
    """What to multiply the columns of z (n, k) by, (k,). Nothing fixes the scale of latents that
    are not bounded: what changes many pixels, such as the place of an object, varies most, and
    k-means would see little else. Columns that hardly vary, or by rounding, are not made to."""
    spread, rounding = z.std(0, correction=0), 1e-5 * z.abs().amax(0)
    spread = spread.clamp(min=1e-3 * spread.max().item())
    return torch.where(spread > rounding, spread, 1.0) ** -power


def _permuted(z: Gaussian, sources: Sources, kind: str) -> Gaussian:
    """The table with the sources of every column exchanged among the observed views."""
    draw = {"cyclic": random_cycles, "random": random_permutations}.get(kind)
    if draw is None:
        return z
    sigma = draw(sources.mask, sources.mask.shape[1])
    return z.map(lambda t: sources.permuted(t, sigma))


def _drawn(q: Pair) -> Tensor:
    """A draw of a consensus (B, k) and of latents (B, L, D) as codes, (B, L, k + D)."""
    consensus, latents = gaussian.sample(q[0]), gaussian.sample(q[1])
    return torch.cat([_for_all(consensus, latents.shape[1]), latents], dim=-1)


def _for_all(consensus: Tensor, L: int) -> Tensor:
    """The same for every view, (..., k) -> (..., L, k)."""
    return consensus.unsqueeze(-2).expand(*consensus.shape[:-1], L, -1)


def _codes(q: Gaussian, draws: int) -> Tensor:
    """The mean, or some draws, (S, n, ...)."""
    return gaussian.draws(q, draws) if draws else q.mean.unsqueeze(0)
