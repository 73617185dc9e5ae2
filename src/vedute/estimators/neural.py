"""Methods that train networks: settings, training runs, and the verbs of trained networks."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_type_hints

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from vedute.data import fill
from vedute.data.holdout import HoldOut
from vedute.data.mapped import stacked
from vedute.data.views import Names, Shapes, Views
from vedute.estimators import categories, front, saving, sentence_decoding
from vedute.estimators.base import Estimator, check_count
from vedute.estimators.context import FitContext
from vedute.estimators.imputation import TABLE, batch_rows
from vedute.estimators.method import Ability, Array
from vedute.estimators.neural_training import ARM, Training
from vedute.estimators.settings import Range, estimator, setting
from vedute.nn import coders, convolutions, noise
from vedute.nn.likelihoods import Likelihoods
from vedute.scale import ranks
from vedute.training.history import Record
from vedute.training.model import Clusterer, Generative, Model, Stage, Terms

log = logging.getLogger("vedute")
FEW_ROWS = 1000  # below, hidden views only decide the length of training, and are refitted


@cache
def models(cls: type[Any]) -> tuple[type[Any], ...]:
    """Return the classes of models that an estimator builds: the return annotation of `build`."""
    annotation = get_type_hints(cls.build)["return"]
    return get_args(annotation) or (annotation,)


class LearnedNetworks:
    """The attributes that training sets; length_: its useful length, once known."""

    model_: Model
    front_: front.Front
    history_: list[Record]
    settings_: dict[str, Any]
    steps_: int
    length_: int | None


@estimator
class NeuralEstimator(LearnedNetworks, Estimator):
    """An estimator trained for `steps`, or `epochs` if set, with early stopping on hidden views."""

    steps: int = setting(2300, "Most steps of optimisation.", at_least=1, length=True)
    epochs: int | None = setting(
        None,
        "Count training, and all its stages, in passes over the data instead of steps.",
        at_least=1,
        length=True,
    )
    batch_size: int = setting(
        128,
        "Rows per step; each epoch is shuffled and drops a last batch smaller than an eighth "
        "of this.",
        at_least=1,
    )
    lr: float = setting(2e-3, "Learning rate.", above=0, tune=Range(3e-4, 1e-2, log=True))
    weight_decay: float = setting(0.0, "Weight decay of the optimizer.", at_least=0)
    clip: float | None = setting(None, "Largest norm of the gradient; None: no limit.", above=0)
    early_stopping: bool = setting(
        True, "Hide about a tenth of the observed views; they end the training."
    )
    patience: int = setting(400, "Steps to wait for a smaller hidden error.", at_least=1)
    components: int | None = setting(
        64,
        "Number of principal components that replace a much wider view of text or counts; "
        "None: all columns.",
        at_least=1,
    )
    device: str | torch.device = setting(
        "auto", "`cpu`, `cuda`, `mps`, or `auto`: a GPU if available."
    )
    precision: str = setting(
        "auto",
        "Precision of networks; `auto`: bf16 for images on a GPU.",
        choices=("auto", "float32", "bf16"),
    )
    checkpoint: str | Path | None = setting(
        None, "A folder to resume from after an interruption; needs `random_state`."
    )
    checkpoint_minutes: float = setting(5.0, "Minutes between two checkpoints.", at_least=0)
    callbacks: Sequence[Callable[[Record], object]] | None = setting(
        None, "Functions that are called with every record of the history; not saved."
    )

    attributes: ClassVar[dict[str, str]] = {
        "history_": "Per epoch: step, stage, loss terms, error on hidden views; in the last also "
        "why training ended.",
        "model_": "The trained networks, a `torch.nn.Module`.",
        "settings_": "Settings as they were used: what was passed or, for None and "
        "`auto`, what data and device decided.",
        "front_": "Per view, the principal components as input of networks; None: all columns.",
    }
    streams = True
    generative = Ability(lambda cls: all(issubclass(m, Generative) for m in models(cls)))
    generates = Ability(
        lambda cls: cls.generative and all(m.prior is not Generative.prior for m in models(cls))
    )
    soft = Ability(lambda cls: all(issubclass(m, Clusterer) for m in models(cls)))

    @abstractmethod
    def build(self, shapes: Shapes, likelihoods: Likelihoods, names: Names, length: int) -> Model:
        """Build the untrained model for views of these shapes, likelihoods and names. length: of
        training, in steps, or in epochs if these are set. Needs no fitted state."""

    def stage(
        self,
        loss: Callable[[Views], Terms],
        amount: int,
        watch: bool = False,
        lr: float | None = None,
    ) -> Stage:
        """Return a stage of this length, in the unit of training: steps or epochs."""
        steps, epochs = (amount, None) if self.epochs is None else (None, amount)
        return Stage(loss, steps, epochs, watch=watch, lr=lr)

    # Hooks.

    def hides(self) -> bool:
        return self.generative and self.early_stopping

    def learns_again(self, rows: int) -> bool:
        few = self.hides() and self.epochs is None and rows < FEW_ROWS
        return super().learns_again(rows) or few

    def check(self, raw: Views) -> None:
        super().check(raw)
        if getattr(self, "network", "mlp") != "mlp":
            for name, shape, part in zip(raw.names, raw.shapes, raw.parts, strict=True):
                convolutions.check_image(name, shape, part.dtype == torch.uint8)
        self.torch_device()
        if ranks.size() > 1 and not all(m.adds_over_rows for m in models(type(self))):
            raise ValueError(
                f"{type(self).__name__} compares the samples of a batch with each other, which "
                "ranks that have a part of it each cannot; fit it in one process, without torchrun"
            )

    def amounts(self, shapes: Shapes, rows: int) -> tuple[int, int]:
        """Return steps and batch size of training on `rows` rows of these shapes."""
        return self.steps, self.batch_size

    def settled(self, shapes: Shapes, length: int, rows: int | None = None) -> Self:
        """Return the estimator with settings that depend on data and device filled in. shapes: of
        the views; length: of training, in steps, or in epochs if these are set; rows: their number,
        or None if unknown."""
        network = getattr(self, "network", "mlp")
        auto = network == convolutions.AUTO
        if auto and any(coders.by_convolution(shape, network) for shape in shapes):
            return self.having({"network": convolutions.chosen(self.torch_device().type)})
        return self

    def having(self, settings: Mapping[str, Any]) -> Self:
        """Return an unfitted copy with some settings replaced."""
        return type(self)(**self.get_params(deep=False) | settings)

    def patience_for(self, shapes: Shapes, steps: int) -> int:
        """Return the patience of early stopping in a training of this many steps."""
        return self.patience

    def refit_length(self, steps: int) -> int | None:
        """Return the steps of a refit that continues from the first training of up to `steps`;
        None: it starts over."""
        return None

    # The trained networks.

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        Training(self, context).learn(data, held)

    @torch.no_grad()
    def embed(self, data: Views) -> Array:
        return self._batched(data, lambda model, batch: model.embed(batch))

    @torch.no_grad()
    def embed_std(self, data: Views) -> Array:
        if type(self.fitted_model()).std is Model.std:
            return super().embed_std(data)
        return self._batched(data, lambda model, batch: model.std(batch))

    @torch.no_grad()
    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        model = self.fitted_model()
        if not isinstance(model, Generative):
            return super().decode(data, draws)
        batch = self.network_input(data).to(self.torch_device()).floating()
        values = []
        for v, out in enumerate(model.decode(batch, draws)):
            if self.views_[v].likelihood.text and not draws:  # one sentence, not likely words
                out = sentence_decoding.decode_sentence(model, batch, out[0], v).unsqueeze(0)
            values.append(np.array(self._values(v, out, batch.context), order="K"))  # of draws
        return values

    @torch.no_grad()
    def soft_labels(self, data: Views) -> Array | None:
        if not isinstance(self.fitted_model(), Clusterer):
            return None
        return self._batched(data, lambda model, batch: model.assign(batch))

    @torch.no_grad()
    def generate(self, n: int, random_state: Any = None) -> dict[str, Any]:
        """Draw n new samples from the model, noise included, in your units: name -> array
        (n, *shape), or frame if frames were fitted. Samples are the same in every call, unless
        `random_state` is passed."""
        check_is_fitted(self, "views_")
        check_count("n", n)
        if not self.generates:
            return super().generate(n)
        model: Any = self.fitted_model()
        with noise.seeded(self.learner.seed(random_state)):
            values = {}
            for v, (view, out) in enumerate(zip(self.views_, model.prior(n), strict=True)):
                mean = self._values(v, out[0], {})
                drawn = view.noisy(mean, view.calibrated.noise)
                p = categories.of_view(view, view.in_units(mean))
                drawn = categories.drawn(drawn, p) if p else drawn
                values[view.name] = fill.as_fitted(drawn, view.spec)
            return values

    def restore(self, learned: dict[str, Any]) -> Self:
        """Restore, on another device if that of the fit is not available."""
        try:
            self.torch_device()
        except ValueError:
            self.device = "auto"
        return super().restore(learned)

    def modules(self) -> dict[str, nn.Module]:
        model: Any = getattr(self, "model_", None)
        if not isinstance(model, nn.Module):  # when loading: build it, then load its weights
            with torch.device("meta"):  # without memory
                saving.check_sizes(self.build_networks(), model or {})
            with noise.WeightsFrom(torch.Generator()):  # replaced by saved weights
                model = self.build_networks().to(self.torch_device())
        return {"model_": model}

    def _batched(self, data: Views, f: Any) -> Array:
        device, model = self.torch_device(), self.fitted_model()
        rows = max(1, min(batch_rows(self.n_features_in_), TABLE // self.table_numbers()))
        parts = (f(model, b.to(device).floating()) for b in self.network_input(data).batches(rows))
        return stacked(len(data), (part.float().cpu().numpy() for part in parts))

    def network_input(self, data: Views) -> Views:
        """Convert data to the input of the networks."""
        return front.narrow(self.front_, data.bare())

    def _values(self, v: int, out: Tensor, context: Mapping[str, Tensor]) -> Array:
        """Return the expected values of view v, with all its columns, given decoder outputs."""
        part, likelihood = self.front_[v], self.views_[v].likelihood
        mean = likelihood.mean(out.float(), context).cpu().numpy()
        return mean if part is None else part.widen(mean)

    def table_numbers(self) -> int:
        model: Any = getattr(self, "model_", None)
        return model.table_numbers if isinstance(model, Model) else 1

    def build_networks(self) -> Model:
        """Build the networks, channels-last for images, which makes convolutions fast; on ARM cores
        it halves their speed, so they stay channels-first."""
        shapes = [
            view.output_shape if part is None else (part.basis.shape[1],)
            for view, part in zip(self.views_, self.front_, strict=True)
        ]
        likelihoods = [view.likelihood for view in self.views_]
        length = self.steps_ if self.epochs is None else self.epochs
        hp = self.having(self.settings_)  # later changes apply to the next fit
        hp.check_settings()
        model = hp.build(shapes, likelihoods, [view.name for view in self.views_], length)
        model.observation = nn.ModuleList(likelihoods)  # their parameters are trained and saved
        channels_last = any(p.ndim == 4 for p in model.parameters())
        channels_last &= not (ARM and self.torch_device().type == "cpu")
        return model.to(memory_format=torch.channels_last) if channels_last else model  # type: ignore[call-overload]

    def fitted_model(self) -> Model:
        """Return the trained networks in eval mode."""
        model: Model = self.model_
        return model.eval()

    def torch_device(self) -> torch.device:
        """Return the device to compute on; raise if it is not available."""
        device = str(self.device)  # a torch.device, too
        if device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        kind = device.partition(":")[0]
        if kind not in ("cpu", "cuda", "mps"):
            raise ValueError(f"no device {device!r}; choose auto, cpu or cuda")
        available = {"cpu": True, "cuda": torch.cuda.is_available()}
        if not available.get(kind, torch.backends.mps.is_available()):
            raise ValueError(f"device {device!r} is not available; choose auto or cpu")
        return torch.device(device)

    def bf16(self, data: Views, device: torch.device) -> bool:
        """Return whether networks compute in bfloat16."""
        images = device.type == "cuda" and any(len(s) > 1 for s in data.shapes)
        return self.precision == "bf16" or (self.precision == "auto" and images)
