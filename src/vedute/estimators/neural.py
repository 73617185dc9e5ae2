"""Estimators that train a `Model` with the one loop."""

from __future__ import annotations

import platform
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from vedute.data import fill
from vedute.data.holdout import HoldOut
from vedute.data.stack import stacked
from vedute.data.views import Names, Shapes, Views
from vedute.estimators import categories, front, progress, saving, sentence_decoding
from vedute.estimators.abilities import Ability, models
from vedute.estimators.base import Array, Estimator, check_count, log
from vedute.estimators.digest import digest
from vedute.estimators.imputation import TABLE, batch_rows
from vedute.estimators.pace import Pace
from vedute.estimators.search_space import Range
from vedute.estimators.settings import LOOSE, estimator, setting
from vedute.nn import coders, convolutions, noise
from vedute.nn.convolutions import AUTO, LARGE, check_image
from vedute.nn.likelihoods import Kinds
from vedute.training import ranks
from vedute.training.checkpoints import Checkpoint
from vedute.training.history import Record, continued, ended, useful_steps
from vedute.training.loop import INTERRUPTED, Settings, batches, train
from vedute.training.model import Clusterer, Generative, Model, Stage, Terms, load_state

UNWATCHED_STEPS = 1000  # where nothing can be hidden, and so nothing says when to stop
FEW_ROWS = 1000  # below, hidden views are dear: they say how long to learn, then all are learned
UNSIGNED = (*LOOSE, "n_clusters")  # may differ when training goes on
FROM_CALLBACK = "raised by a callback"  # a note on errors
SMALL_STEP = 1e9  # weights times rows of a step, below which one thread is as fast as several
ARM = platform.machine().lower() in ("aarch64", "arm64")
COMPILED_STEPS = 40_000  # from which on image networks are compiled on a GPU


@estimator
class NeuralEstimator(Estimator):
    """Training is counted in `steps`, or in `epochs` where given, and ended by hidden views."""

    steps: int = setting(2300, "Most steps of optimisation.", at_least=1, length=True)
    epochs: int | None = setting(
        None,
        "Count training, and all its parts, in passes over the data instead of steps.",
        at_least=1,
        length=True,
    )
    batch_size: int = setting(
        128,
        "Rows per step; an epoch, in an order of its own, leaves out a last batch under an eighth "
        "of this.",
        at_least=1,
    )
    lr: float = setting(2e-3, "Learning rate.", above=0, tune=Range(3e-4, 1e-2, log=True))
    weight_decay: float = setting(0.0, "Weight decay of the optimizer.", at_least=0)
    clip: float | None = setting(None, "Largest norm of the gradient; None: any.", above=0)
    early_stopping: bool = setting(
        True, "Hide about a tenth of the observed views; they end the training."
    )
    patience: int = setting(400, "Steps to wait for a smaller hidden error.", at_least=1)
    components: int | None = setting(
        64,
        "Of a view of text or counts that is much wider, so many principal components are seen; "
        "None: all columns.",
        at_least=1,
    )
    device: str | torch.device = setting(
        "auto", "`cpu`, `cuda`, `mps`, or `auto`: a GPU where there is one."
    )
    precision: str = setting(
        "auto",
        "Of networks; `auto` takes bf16 for images on a GPU.",
        choices=("auto", "float32", "bf16"),
    )
    checkpoint: str | Path | None = setting(
        None, "A folder to go on from after an interruption; needs `random_state`."
    )
    checkpoint_minutes: float = setting(5.0, "Time between two checkpoints.", at_least=0)
    callbacks: Sequence[Callable[[Record], object]] | None = setting(
        None, "Functions that are called with every record of the history; not saved."
    )

    attributes: ClassVar[dict[str, str]] = {
        "history_": "Per epoch: step, stage, loss terms, error on hidden views; in the last also "
        "why training ended.",
        "model_": "The trained networks, a `torch.nn.Module`.",
        "settings_": "Settings as they were used: what was passed, and where that is None or "
        "`auto`, what data and device decided.",
        "front_": "Per view, the principal components that they see of it; None: all columns.",
    }
    streams = True
    generative = Ability(lambda cls: all(issubclass(m, Generative) for m in models(cls)))
    generates = Ability(
        lambda cls: cls.generative and all(m.prior is not Generative.prior for m in models(cls))
    )
    soft = Ability(lambda cls: all(issubclass(m, Clusterer) for m in models(cls)))

    @abstractmethod
    def build(self, shapes: Shapes, likelihoods: Kinds, names: Names, length: int) -> Model:
        """The untrained model for views of these shapes, likelihoods and names, which is to be
        trained for so many steps, or epochs where these are counted. Needs no fitted state."""

    def stage(
        self,
        loss: Callable[[Views], Terms],
        amount: int,
        watch: bool = False,
        lr: float | None = None,
    ) -> Stage:
        """A stage of this length, in the unit that training is counted in."""
        in_steps = self.epochs is None
        return Stage(
            loss,
            steps=amount if in_steps else None,
            epochs=None if in_steps else amount,
            watch=watch,
            lr=lr,
        )

    def _check(self, raw: Views) -> None:
        super()._check(raw)
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError("checkpoint needs random_state: without it no run can be resumed")
        if vars(self).get("network", "mlp") != "mlp":
            for name, shape, part in zip(raw.names, raw.shapes, raw.parts, strict=True):
                check_image(name, shape, part.dtype == torch.uint8)
        self.length_: int | None = None  # how long training was worth it, once this is known
        self._trainings = 0
        self._device()
        if ranks.size() > 1 and not all(m.adds_over_rows for m in models(type(self))):
            raise ValueError(
                f"{type(self).__name__} compares the samples of a batch with each other, which "
                "ranks that have a part of it each cannot; fit it in one process, without torchrun"
            )

    def _hides(self) -> bool:
        return self.generative and self.early_stopping

    def _learns_again(self, rows: int) -> bool:
        few = self._hides() and self.epochs is None and rows < FEW_ROWS
        return super()._learns_again(rows) or few

    def _learn(self, data: Views, held: HoldOut | None) -> None:
        self._trainings += 1
        device = self._device()
        settings = self._prepare(data, device, watched=held is not None)
        seen = front.narrow(self.front_, data)
        watched_views = None if held is None else front.narrow_held(self.front_, held)
        before: list[Record] = vars(self)["history_"] if self._trainings > 1 else []
        reasons: list[str] = []
        with _speeds(self.model_, seen, settings.batch_size), self._counted():
            history = train(
                self.model_,
                seen.to(device),
                settings,
                None if watched_views is None else watched_views.to(device),
                [view.likelihood for view in self.views_],
                partial(self._report, before),
                reasons.append,
                self._pace(data) if device.type == "cpu" else None,  # a GPU does not wait for steps
            )
        self._end(reasons[0], again=bool(before))
        led_here = settings.again or self.length_ is not None  # else nothing to compare with
        self.history_ = continued(before if led_here else [], ended(history, reasons[0]))
        self.length_ = None if held is None else useful_steps(history)

    def _prepare(self, data: Views, device: torch.device, watched: bool) -> Settings:
        """The model that training starts from, and how it goes."""
        steps, batch_size = self._amounts(data.shapes, len(data))
        again = self._again(steps) if self._trainings > 1 else None
        if again is None:
            counted = watched or not self.early_stopping or self.epochs is not None
            self.steps_ = steps if counted else min(steps, self.length_ or UNWATCHED_STEPS)
            self.settings_ = self._used(data)
            self._start(data, device)
        else:
            self.steps_ = again
            self._go_on(device)
        hp = self.having(self.settings_)
        return Settings(
            steps=self.steps_,
            epochs=self.epochs,
            batch_size=batch_size,
            lr=hp.lr,
            weight_decay=hp.weight_decay,
            clip=hp.clip,
            patience=hp.patience,
            bf16=self._bf16(data, device),
            compiled=self._pays_to_compile(data, device),
            again=again is not None,
            checkpoint=self._checkpoint(data),
        )

    def _amounts(self, shapes: Shapes, rows: int) -> tuple[int, int]:
        """Steps, and rows of each, of a training with so many rows of these shapes."""
        return self.steps, self.batch_size

    def _used(self, data: Views) -> dict[str, Any]:
        """The settings of a training on these data."""
        steps, batch_size = self._amounts(data.shapes, len(data))
        hp = self._settled(data.shapes, self.epochs or self.steps_, len(data))
        patience = self._patience(data.shapes, self._total_steps(data))
        amounts = {"batch_size": batch_size, "patience": patience}
        amounts |= {"steps": steps} if self.epochs is None else {}
        params = hp.get_params(deep=False) | amounts
        return {k: v for k, v in params.items() if k not in (*LOOSE, "columns", "random_state")}

    def _settled(self, shapes: Shapes, length: int, rows: int | None = None) -> Self:
        """The estimator with what data and device decide of its settings. shapes: of the views;
        length: of training, in steps, or epochs where these are counted; rows: None where their
        number is not known."""
        network = vars(self).get("network")
        if network != AUTO or not any(coders.by_convolution(s, network) for s in shapes):
            return self
        return self.having({"network": convolutions.chosen(self._device().type)})

    def having(self, settings: Mapping[str, Any]) -> Self:
        """An unfitted copy with these settings instead."""
        return type(self)(**self.get_params(deep=False) | settings)

    def _patience(self, shapes: Shapes, steps: int) -> int:
        """How long to wait for a smaller hidden error in a training of so many steps."""
        return self.patience

    def _again(self, steps: int) -> int | None:
        """Steps of a second training that goes on from the first, which may have had `steps`;
        None: it starts anew."""
        return None

    def _start(self, data: Views, device: torch.device) -> None:
        self.front_ = front.learn(self.views_, data, self.components, self.seed_)
        self.model_ = self._build().to(device)
        coders.start_at(self.model_, [view.scaler.mean for view in self.views_])

    def _go_on(self, device: torch.device) -> None:
        """A model for another length of training, with the weights that were learned."""
        before = self.model_.state_dict()
        self.model_ = self._build().to(device)
        load_state(self.model_, before)

    @torch.no_grad()
    def _embed(self, data: Views) -> Array:
        return self._each(data, lambda model, batch: model.embed(batch))

    @torch.no_grad()
    def _embed_std(self, data: Views) -> Array:
        if type(self._fitted()).std is Model.std:
            return super()._embed_std(data)
        return self._each(data, lambda model, batch: model.std(batch))

    @torch.no_grad()
    def _decode(self, data: Views, draws: int = 0) -> list[Array]:
        model = self._fitted()
        if not isinstance(model, Generative):
            return super()._decode(data, draws)
        batch = self._seen(data).to(self._device()).floating()
        outs, values = model.decode(batch, draws), []
        for v, view in enumerate(self.views_):
            if view.likelihood.text and not draws:  # one sentence, not the likeliest word of each
                outs[v] = sentence_decoding.decode_sentence(model, batch, outs[v][0], v).unsqueeze(
                    0
                )
            mean = self._wide(v, view.likelihood.mean(outs[v].float()).cpu().numpy())
            values.append(np.array(mean, order="K"))  # draws that are one and the same are copied
        return values

    def _seen(self, data: Views) -> Views:
        """What the networks see of data."""
        return front.narrow(self._front(), data.bare())

    def _front(self) -> front.Front:
        """One part per view; models of before there was one have none."""
        return vars(self).get("front_") or [None] * len(self.views_)

    def _wide(self, v: int, values: Array) -> Array:
        """What they decode of view v, in all its columns."""
        part = self._front()[v]
        return values if part is None else part.widen(values)

    @torch.no_grad()
    def _soft_labels(self, data: Views) -> Array | None:
        if not isinstance(self._fitted(), Clusterer):
            return None
        return self._each(data, lambda model, batch: model.assign(batch))

    @torch.no_grad()
    def generate(self, n: int, random_state: Any = None) -> dict[str, Any]:
        """n new samples from the model, noise included, in your units: name -> array (n, *shape),
        or frame where frames were fitted. The same every time, unless `random_state` asks for
        others."""
        check_is_fitted(self, "views_")
        check_count("n", n)
        if not self.generates:
            return super().generate(n)
        model: Any = self._fitted()
        with noise.seeded(self._seed(random_state)):
            values = {}
            for v, (view, out) in enumerate(zip(self.views_, model.prior(n), strict=True)):
                mean = self._wide(v, view.likelihood.mean(out[0].float()).cpu().numpy())
                drawn = view.noisy(mean, view.calibrated.noise)
                p = categories.of_means(view, view.in_units(mean))
                drawn = categories.drawn(drawn, p) if p else drawn
                values[view.name] = fill.as_fitted(drawn, view.spec)
            return values

    def restore(self, learned: dict[str, Any]) -> Self:
        """Where the device that it was fitted on is not there, on what is. Models from before
        `settings_` have the large network."""
        try:
            self._device()
        except ValueError:
            self.device = "auto"
        older = {"network": LARGE} if vars(self).get("network") == AUTO else {}
        return super().restore({"settings_": older} | learned)

    def _table_numbers(self) -> int:
        model = vars(self).get("model_")
        return model.table_numbers if isinstance(model, Model) else 1

    def _modules(self) -> dict[str, torch.nn.Module]:
        model = vars(self).get("model_")
        if not isinstance(model, torch.nn.Module):  # loading: build it, then fill it
            with torch.device("meta"):  # without memory
                saving.check_sizes(self._build(), model or {})
            with noise.WeightsFrom(torch.Generator()):  # they are replaced by those that were saved
                model = self._build().to(self._device())
        return {"model_": model}

    def _build(self) -> Model:
        """Images lie channel by channel in memory outside and pixel by pixel inside, which is how
        convolutions are fast; on ARM cores half as fast, and all stays channel by channel."""
        shapes = [
            view.output_shape if part is None else (part.basis.shape[1],)
            for view, part in zip(self.views_, self._front(), strict=True)
        ]
        likelihoods = [view.likelihood for view in self.views_]
        length = self.steps_ if self.epochs is None else self.epochs
        hp = self.having(vars(self).get("settings_", {}))  # what is set later is for the next fit
        hp._check_settings()
        model = hp.build(shapes, likelihoods, [view.name for view in self.views_], length)
        inside = any(p.ndim == 4 for p in model.parameters())
        inside &= not (ARM and self._device().type == "cpu")
        return model.to(memory_format=torch.channels_last) if inside else model  # type: ignore[call-overload]

    def _fitted(self) -> Model:
        model: Model = self.model_
        return model.eval()

    def _each(self, data: Views, f: Any) -> Array:
        device, model = self._device(), self._fitted()
        rows = max(1, min(batch_rows(self.n_features_in_), TABLE // self._table_numbers()))
        parts = (f(model, b.to(device).floating()) for b in self._seen(data).batches(rows))
        return stacked(len(data), (part.float().cpu().numpy() for part in parts))

    def _device(self) -> torch.device:
        device = str(self.device)  # a torch.device, too
        if device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        kind = device.partition(":")[0]
        if kind not in ("cpu", "cuda", "mps"):
            raise ValueError(f"no device {device!r}; choose auto, cpu or cuda")
        there = {"cpu": True, "cuda": torch.cuda.is_available()}
        if not there.get(kind, torch.backends.mps.is_available()):
            raise ValueError(f"device {device!r} is not there; choose auto or cpu")
        return torch.device(device)

    def _bf16(self, data: Views, device: torch.device) -> bool:
        images = any(len(s) > 1 for s in data.shapes)
        return self.precision == "bf16" or (
            self.precision == "auto" and device.type == "cuda" and images
        )

    def _pays_to_compile(self, data: Views, device: torch.device) -> bool:
        """Half a minute of compilation saves half a millisecond per step on images."""
        steps = self._total_steps(data)
        images = any(len(s) > 1 for s in data.shapes)
        return device.type == "cuda" and images and steps >= COMPILED_STEPS

    def _total_steps(self, data: Views) -> int:
        """Of a training, in whatever unit it is counted."""
        steps, size = self._amounts(data.shapes, len(data))
        return steps if self.epochs is None else self.epochs * len(data) // size

    def _checkpoint(self, data: Views) -> Checkpoint | None:
        """Of this training: the first, or the second, with all views."""
        if self.checkpoint is None:
            return None
        folder = Path(self.checkpoint) / f"training-{self._trainings}"
        return Checkpoint(folder, self._signature(data), self.checkpoint_minutes)

    def _signature(self, data: Views) -> str:
        free = [k for k in UNSIGNED if k != "n_clusters" or not self.soft]
        params = self.get_params(deep=False) | self.settings_
        params = {k: v for k, v in params.items() if k not in free}
        return digest(params, [data.mask, *data.parts, *data.hole_parts])

    def _pace(self, data: Views) -> Pace:
        """Says how long this training takes, if it is long, and what is faster."""
        size = self.settings_["batch_size"]
        steps = self.steps_ if self.epochs is None else self.epochs * batches(len(data), size)

        def say(step: float, left: float) -> None:
            faster = ", ".join(self._faster(data.shapes))
            line = f"up to {progress.duration(left)} for {steps} steps of {step:.2g} s"
            self._log(f"{type(self).__name__}: {line}; faster: {faster}")
            progress.say(f"{line}; faster: {faster}")

        return Pace(steps, say)

    def _faster(self, shapes: Shapes) -> Iterator[str]:
        """What shortens a training on a CPU."""
        yield "fewer `epochs`" if self.epochs else "fewer `steps`"
        network = self.settings_.get("network", "mlp")
        if any(coders.by_convolution(shape, network) for shape in shapes):
            if network == LARGE:
                yield f"network={convolutions.SMALL!r}"
            yield "smaller images"
        yield "a GPU"

    def _counted(self) -> AbstractContextManager[None]:
        """While inside, progress is shown in the unit of training."""
        if self.epochs is None:
            return progress.counted(self.steps_, "step")
        return progress.counted(self.epochs, "epoch")

    def _end(self, reason: str, again: bool) -> None:
        """Training has ended, and why; again: it was the second, with the hidden views."""
        which = "second training, with all views: " if again else ""
        if reason == INTERRUPTED:  # of which there has been a warning
            self._interrupted = True
            return
        log.info("%s: %s%s", type(self).__name__, which, reason)
        progress.ended(f"{which}{reason}")

    def _report(self, before: Sequence[Record], record: Record) -> None:
        """before: the history of the first training, if this is the second."""
        progress.trained(record)
        for call in self.callbacks or ():
            try:
                call(deepcopy(continued(before, [record])[-1]))
            except Exception as error:
                error.add_note(FROM_CALLBACK)
                raise
        if record["hidden_error"] is not None:
            terms = "  ".join(f"{k} {v:.4g}" for k, v in record["terms"].items())
            hidden = f"hidden error {record['hidden_error']:.4f}"
            self._log(f"step {record['step']:5d}  {terms}  {hidden}")


@contextmanager
def _speeds(model: Model, data: Views, batch_size: int) -> Iterator[None]:
    """While training: TF32 on a GPU, one thread where a step is so small that threads would wait
    for each other longer than they work, and on ARM no oneDNN, whose products of small matrices
    take up to seven times as long as OpenBLAS's."""
    exact, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    images = any(len(shape) > 1 for shape in data.shapes)
    work = sum(p.numel() for p in model.parameters()) * min(batch_size or len(data), len(data))
    torch.set_float32_matmul_precision("high")
    _set_threads(1 if work < SMALL_STEP and not images else threads, threads)
    before = _one_dnn(False) if ARM and not images else None
    try:
        yield
    finally:
        if before is not None:
            _one_dnn(before)
        torch.set_float32_matmul_precision(exact)
        _set_threads(threads, threads)


def _set_threads(number: int, others: int) -> None:
    """How many this thread of the process computes with; those that start later have `others`."""
    torch.set_num_threads(number)
    if number != others:
        new = Thread(target=torch.set_num_threads, args=(others,))
        new.start()
        new.join()


def _one_dnn(enabled: bool) -> bool:
    """Switch oneDNN; what it was before."""
    return bool(torch.backends.mkldnn.set_flags(enabled)[0])  # type: ignore[no-untyped-call]
