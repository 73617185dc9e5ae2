"""Comparison of our multimodal VAEs with those of MultiVae, the library of Senellart and others.

    python -m vedute_bench.rivals.against_multivae [--quick] [--device cuda]

Both libraries get the same encoders and decoders, samples and noise, and the losses and their
gradients in these networks are compared. Then training steps of both are timed in turns: gathering
rows, loss, gradients and AdamW. Ours is the step of training, theirs that of its trainer, without
its loader, which collects samples one by one. `ratio` is their time over ours, with quartiles.

MultiVae is not a dependency of vedute: install it beside vedute in a separate environment, with a
torchvision that fits the torch. (A file named multivae.py would shadow the library.)

The comparison accounts for these differences of the definitions:

- All: Their likelihoods include constants, which are added to ours.
- MMVAE, MMVAE+: Their loss is a sum over the batch and is divided by its size. MMVAE ignores its
  beta, which is 1 here. With dreg, their value is the surrogate and ours the bound, so only
  gradients are compared. Their scale of the prior of MMVAE+ is 1.000001.
- MoPoE: They distribute subsets along a complete batch, we draw them per sample; here both get the
  same subsets. Their products add 1e-8 to variances, also for MVTCAE.
- MVAE: With single views, they average each bound over the samples that have the view, which is the
  same only for complete data. Its warm-up of beta is switched off.
- mmJSD: MultiVae does not have it.

The script writes bench/results/multivae-<device>.jsonl and .md.
"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.distributions import Laplace, Normal

from vedute import methods
from vedute.data.missing import drop_views
from vedute.data.views import Views
from vedute.datasets import synthetic
from vedute.estimators.settings import declared
from vedute.methods.deep import mopoe
from vedute.nn import gaussian, laplace
from vedute.training.step import make_optimizer
from vedute_bench.places import RESULTS
from vedute_bench.runner import lines
from vedute_bench.speed import stopwatch
from vedute_bench.speed.stopwatch import Job

try:
    from multivae import models as library
    from multivae.models.nn.base_architectures import BaseMultilatentEncoder
    from pythae.data.datasets import DatasetOutput
    from pythae.models.base.base_utils import ModelOutput
    from pythae.models.nn.base_architectures import BaseDecoder
except ImportError as error:
    sys.exit(f"MultiVae is not installed here ({error}); pip install multivae, then run this again")

Fact = dict[str, Any]
CONSTANTS = {
    "normal": lambda s: 0.5 * math.log(2 * math.pi * s**2),
    "laplace": lambda b: math.log(2 * b),
}
PAIRS = 9  # minimum number of pairs of steps


class Case(NamedTuple):
    """A model in both libraries. `constants`: multiple of the likelihoods' ones in their loss."""

    ours: str
    settings: dict[str, Any]
    theirs: str
    config: dict[str, Any]
    constants: float = 1.0

    @property
    def name(self) -> str:
        shown = {k: v for k, v in self.settings.items() if k != "beta"}
        return ", ".join([self.theirs, *(f"{k} {v}" for k, v in shown.items())])


BETA = {"beta": 2.5}
LOOSE = {"K": 1, "loss": "iwae_looser"}
DREG = {"samples": 10, "objective": "dreg"}
BOUNDS = {"use_subsampling": False, "warmup": 0}
CASES = (
    Case("mvae", BETA, "MVAE", BETA | BOUNDS),
    Case(
        "mvae",
        BETA | {"subsample": "unimodal"},
        "MVAE",
        BETA | BOUNDS | {"use_subsampling": True},
        2.0,
    ),
    Case("mopoe", BETA, "MoPoE", BETA),
    Case("mvtcae", BETA | {"alpha": 0.8}, "MVTCAE", BETA | {"alpha": 0.8}),
    Case("mmvae", {}, "MMVAE", LOOSE),
    Case("mmvae", DREG, "MMVAE", {"K": 10, "loss": "dreg_looser"}),
    Case("mmvaeplus", BETA, "MMVAEPlus", BETA | LOOSE),
    Case("mmvaeplus", DREG, "MMVAEPlus", {"K": 10, "loss": "dreg_looser"}),
)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a short trial run")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    name = stopwatch.device_name(options.device)
    print(f"{name}, torch {torch.__version__}, MultiVae {version('multivae')}")
    facts = []
    for fact in compare(options):
        facts.append(fact)
        print("  ".join(f"{k} {_short(v)}" for k, v in fact.items()), flush=True)
    write(options, name, facts)


def compare(options: Namespace) -> Iterator[Fact]:
    for kind, (views, settings) in data(options.quick).items():
        for rows, seen in {"complete": views, "incomplete": drop_views(views, 0.5, 42)}.items():
            for case in CASES:
                slow = kind == "images" and case.config.get("K", 1) > 1 and options.device == "cpu"
                if slow or (case.constants == 2 and rows == "incomplete"):
                    continue
                chosen = settings | case.settings
                loss, gradient = agreement(case, seen, chosen)
                job = our_job(case, seen, options.device, chosen)
                facts = {"views": kind, "model": case.name, "rows": rows, "batch": job.batch}
                facts |= {"loss_difference": loss, "gradient_difference": gradient}
                yield facts | times(case, job, 0.1 if options.quick else 3.0)


def data(quick: bool) -> dict[str, tuple[Views, dict[str, Any]]]:
    """Views as six tables with the widths of handwritten digits, and as five small images."""
    tables = synthetic.load(2000, (240, 76, 216, 47, 64, 6))
    noise = torch.randint(
        256, (5, 500, 3, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    small = {"latent_dim": 4, "hidden": (8,), "batch_size": 16} if quick else {}
    seen = {
        "network": "polymnist",
        "latent_dim": 64,
        "batch_size": 32,
        "likelihood": "laplace",
        "scale": 1.5,
    }
    both = {"rescale": True}
    return {
        "tables": (tables, both | {"likelihood": "normal", "scale": 0.7} | small),
        "images": (Views.of(list(noise.numpy())), both | seen | small),
    }


def our_job(case: Case, views: Views, device: str, settings: dict[str, Any]) -> Job:
    """Job of our model as in the papers, without dropout and view dropout."""
    cls = methods.find(case.ours)
    plain = {k: 0.0 for k in ("dropout", "view_dropout") if k in declared(cls)}
    return Job.of(views, device, plain | settings, cls)


# The same model in MultiVae.


class Encoder(BaseMultilatentEncoder):  # type: ignore[misc]
    """One of our encoders; the first `shared` entries of a code are z, the others w."""

    def __init__(self, ours: nn.Module, shared: int) -> None:
        super().__init__()
        self.ours, self.shared = ours, shared

    def forward(self, x: Tensor) -> Any:
        (z, w), (h_z, h_w) = (t.tensor_split([self.shared], dim=-1) for t in self.ours(x))
        return ModelOutput(
            embedding=z,
            log_covariance=h_z.clone(),  # they modify it in place
            style_embedding=w,
            style_log_covariance=h_w,
        )


class Decoder(BaseDecoder):  # type: ignore[misc]
    """One of our decoders."""

    def __init__(self, ours: nn.Module) -> None:
        super().__init__()
        self.ours = ours

    def forward(self, z: Tensor) -> Any:
        return ModelOutput(reconstruction=self.ours(z))


def their_model(case: Case, job: Job) -> Any:
    """MultiVae's model with our networks, sharing the parameter tensors."""
    ours, names, D = job.model, job.data.names, job.model.hp.latent_dim
    shared = ours.shared if case.ours == "mmvaeplus" else D
    private = {"modalities_specific_dim": D - shared} if case.ours == "mmvaeplus" else {}
    config = getattr(library, f"{case.theirs}Config")(
        n_modalities=len(names),
        latent_dim=shared,
        input_dims=dict(zip(names, job.data.shapes, strict=True)),
        uses_likelihood_rescaling=True,
        decoders_dist=dict(zip(names, [k.name for k in ours.likelihoods], strict=True)),
        decoder_dist_params={name: {"scale": ours.hp.scale} for name in names},
        **case.config,
        **private,
    )
    encoders = {n: Encoder(e, shared) for n, e in zip(names, ours.encoders, strict=True)}
    decoders = {n: Decoder(d) for n, d in zip(names, ours.decoders, strict=True)}
    theirs = getattr(library, case.theirs)(config, encoders, decoders)
    with torch.no_grad():
        if case.ours == "mmvae":
            theirs.prior_log_var.copy_(ours.widths.normal_(0.0, 0.3))
        if case.ours == "mmvaeplus":
            for name, width in zip(names, ours.widths.normal_(0.0, 0.3), strict=True):
                theirs.logvars_priors[name].copy_(width)
    return theirs.to(job.data.mask.device).train()


def their_loss(case: Case, model: Any, batch: Views, masks: bool) -> Tensor:
    """Their loss as a mean over the batch; masks: whether to pass them."""
    inputs = {"data": dict(zip(batch.names, batch.x, strict=True))}
    if masks:
        inputs["masks"] = dict(zip(batch.names, batch.mask.unbind(1), strict=True))
    loss: Tensor = model(DatasetOutput(**inputs)).loss
    return loss / len(batch) if case.ours in ("mmvae", "mmvaeplus") else loss


# Losses.


def agreement(case: Case, views: Views, settings: dict[str, Any]) -> tuple[float | None, float]:
    """Relative differences of their loss and its gradient from ours, in double precision."""
    with doubles():
        return _agreement(case, our_job(case, views, "cpu", settings))


@contextmanager
def doubles() -> Iterator[None]:
    """Create tensors in double precision, also where networks convert to floats."""
    torch.set_default_dtype(torch.float64)
    try:
        with patch.object(Tensor, "float", Tensor.double):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def _agreement(case: Case, job: Job) -> tuple[float | None, float]:
    torch.manual_seed(1)
    with torch.no_grad():
        for p in job.model.parameters():
            p.add_(torch.randn_like(p), alpha=0.02)  # also test parameters that start at zero
    batch = job.data[job.rows()].floating()
    batch = replace(batch, x=tuple(x.double() for x in batch.x))
    theirs, masks = their_model(case, job), not bool(batch.mask.all())
    with same_noise(job.model, theirs, batch):
        ours, others = sum(job.model.loss(batch).values()), their_loss(case, theirs, batch, masks)
    hp, widest = job.model.hp, max(math.prod(s) for s in job.data.shapes)
    factor = (len(batch.x) - hp.alpha) / len(batch.x) if case.ours == "mvtcae" else case.constants
    constant = (
        factor
        * widest
        * CONSTANTS[job.model.likelihoods[0].name](hp.scale)
        * batch.mask.sum()
        / len(batch)
    )
    networks = [*job.model.encoders.parameters(), *job.model.decoders.parameters()]
    a, b = (
        torch.cat([g.flatten() for g in torch.autograd.grad(t, networks)]) for t in (ours, others)
    )
    loss = float(((ours + constant - others) / others).detach().abs())
    surrogate = case.settings.get("objective") == "dreg"
    return None if surrogate else loss, float((a - b).norm() / b.norm())


def same_noise(model: Any, theirs: Any, batch: Views) -> ExitStack:
    """Patch both libraries to draw the same noise, and the same subsets for MoPoE."""
    (B, L), name, hp = batch.mask.shape, type(theirs).__name__, model.hp
    if name in ("MMVAE", "MMVAEPlus"):
        K, D = hp.samples, hp.latent_dim
        S = model.shared if name == "MMVAEPlus" else D
        z, w = (_laplace_noise(K, B, L, size) for size in (S, D - S))
        fresh = _laplace_noise(K, B, L, L, D - S)  # from source e for view n
        private = name == "MMVAEPlus"
        ours = [z, w, fresh.flatten(1, 2)[:, batch.mask.flatten()]]
        others = []
        for e in range(L):
            others += [z[:, :, e], w[:, :, e]] if private else [z[:, :, e]]
            others += [fresh[:, :, e, n] for n in range(L) if n != e and private]
    else:
        bounds = 1 + L if getattr(hp, "subsample", "none") == "unimodal" else 1
        ours = [torch.randn(B, bounds, hp.latent_dim)]
        others = list(ours[0].unbind(1))
    stack, our_draws, their_draws = ExitStack(), iter(ours), iter(others)

    def rsample(q: Any, shape: object = ()) -> Tensor:
        return q.loc + q.scale * next(their_draws)

    def gaussian_sample(q: gaussian.Gaussian) -> Tensor:
        return q.mean + (q.logvar / 2).exp() * next(our_draws).reshape(q.mean.shape)

    def laplace_sample(q: laplace.Laplace) -> Tensor:
        return q.loc + q.scale * next(our_draws)

    stack.enter_context(patch.object(gaussian, "sample", gaussian_sample))
    stack.enter_context(patch.object(laplace, "sample", laplace_sample))
    stack.enter_context(patch.object(Normal, "rsample", rsample))
    stack.enter_context(patch.object(Laplace, "rsample", rsample))
    if name == "MoPoE":
        _same_subsets(stack, model, theirs, batch)
    return stack


def _laplace_noise(*shape: int) -> Tensor:
    return Laplace(0.0, 1.0).sample(shape)


def _same_subsets(stack: ExitStack, model: Any, theirs: Any, batch: Views) -> None:
    """Patch both libraries to choose the same available subset per sample."""
    available = ~(model.members & ~batch.mask.unsqueeze(1)).any(-1)
    chosen = mopoe.any_of(available)
    order = [set(names) for names in theirs.subsets.values() if names]
    ours = [{n for n, m in zip(batch.names, row, strict=True) if m} for row in model.members]
    place = torch.tensor([order.index(ours[i]) for i in chosen])

    def pick(means: Tensor, logvars: Tensor, _weights: Tensor) -> list[Tensor]:
        return [t[place, torch.arange(len(batch))] for t in (means, logvars)]

    stack.enter_context(patch.object(mopoe, "any_of", lambda _available: chosen))
    for rule in ("random", "deterministic"):
        stack.enter_context(patch.object(theirs, f"{rule}_mixture_component_selection", pick))


# Time.


def times(case: Case, job: Job, budget: float) -> Fact:
    """Milliseconds of a step, and quartiles of the ratio of their time to ours."""
    theirs, hp, device = their_model(case, job), job.model.hp, job.data.mask.device.type
    optimizer = make_optimizer(theirs, hp.lr, hp.weight_decay)
    step, rows = job.step(), [job.rows() for _ in range(16)]
    turn, masks = iter(range(10**9)), not bool(job.data.mask.all())

    def their_step() -> None:
        optimizer.zero_grad(set_to_none=True)
        batch = job.data[rows[next(turn) % 16]].floating()
        with torch.autocast(device, torch.bfloat16) if job.bf16 else nullcontext():
            loss = their_loss(case, theirs, batch, masks)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    pairs = in_turns(lambda: step(rows[next(turn) % 16]), their_step, budget)
    ratios = quantiles((b / a for a, b in pairs), n=4)
    return {
        "ours_ms": 1e3 * median(a for a, _ in pairs),
        "multivae_ms": 1e3 * median(b for _, b in pairs),
        "ratio": ratios[1],
        "ratio_lower": ratios[0],
        "ratio_upper": ratios[2],
        "pairs": len(pairs),
    }


def in_turns(
    f: Callable[[], object], g: Callable[[], object], budget: float
) -> list[tuple[float, float]]:
    """Time f and g in turns, in seconds, so that other load on the machine slows both."""
    pairs: list[tuple[float, float]] = []
    for _ in range(2):
        f(), g()
    end = perf_counter() + budget
    while len(pairs) < PAIRS or perf_counter() < end:
        stopwatch.synchronize()
        start = perf_counter()
        f()
        stopwatch.synchronize()
        half = perf_counter()
        g()
        stopwatch.synchronize()
        pairs.append((half - start, perf_counter() - half))
    return pairs


def write(options: Namespace, name: str, facts: list[Fact]) -> None:
    """Write records and a table."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"multivae-{stopwatch.slug(name)}{'-quick' if options.quick else ''}"
    about = {"device": name, "torch": torch.__version__, "multivae": version("multivae")}
    lines.write(path.with_name(path.name + ".jsonl"), [{**fact, **about} for fact in facts])
    heads = list(facts[0])
    rows = ["|".join(_short(fact[k]) for k in heads) for fact in facts]
    table = "".join(
        f"|{row}|\n" for row in ["|".join(heads), "|".join("---" for _ in heads), *rows]
    )
    command = "python -m vedute_bench.rivals.against_multivae"
    text = f"# MultiVae {about['multivae']} and vedute on {name}\n\n"
    text += (
        f"torch {torch.__version__}; `{command}`; what is compared up to what, says the script.\n"
    )
    path.with_name(path.name + ".md").write_text(f"{text}\n{table}", encoding="utf-8")
    print(f"wrote {path}.*")


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


if __name__ == "__main__":
    main()
