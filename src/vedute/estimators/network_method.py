"""Methods that train networks: settings, and construction of the networks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from numpy.typing import NDArray

from vedute.data.views import Names, Shapes, Views
from vedute.estimators import checks, front
from vedute.estimators.abilities import Ability, models
from vedute.estimators.base import Estimator
from vedute.estimators.search_space import Range
from vedute.estimators.settings import estimator, setting
from vedute.estimators.threads import ARM
from vedute.nn import coders, convolutions
from vedute.nn.likelihoods import Likelihoods
from vedute.training.history import Record
from vedute.training.model import Clusterer, Generative, Model, Stage, Terms, load_state


class LearnedNetworks:
    """The attributes that training sets."""

    model_: Model
    front_: front.Front
    history_: list[Record]
    settings_: dict[str, Any]
    steps_: int
    length_: int | None  # useful length of training, once known


@estimator
class NetworkMethod(LearnedNetworks, Estimator):
    """A method with networks, with settings that depend on data and device."""

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
        in_steps = self.epochs is None
        return Stage(
            loss,
            steps=amount if in_steps else None,
            epochs=None if in_steps else amount,
            watch=watch,
            lr=lr,
        )

    def check(self, raw: Views) -> None:
        super().check(raw)
        if getattr(self, "network", "mlp") != "mlp":
            for name, shape, part in zip(raw.names, raw.shapes, raw.parts, strict=True):
                convolutions.check_image(name, shape, part.dtype == torch.uint8)
        self.torch_device()
        checks.ranks_can_share(type(self))

    def amounts(self, shapes: Shapes, rows: int) -> tuple[int, int]:
        """Return steps and batch size of training on `rows` rows of these shapes."""
        return self.steps, self.batch_size

    def settled(self, shapes: Shapes, length: int, rows: int | None = None) -> Self:
        """Return the estimator with settings that depend on data and device filled in. shapes: of
        the views; length: of training, in steps, or in epochs if these are set; rows: their number,
        or None if unknown."""
        network = getattr(self, "network", None)
        if network != convolutions.AUTO:
            return self
        if not any(coders.by_convolution(shape, network) for shape in shapes):
            return self
        return self.having({"network": convolutions.chosen(self.torch_device().type)})

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

    def start(self, data: Views, device: torch.device) -> None:
        """Make the model that training starts from."""
        self.front_ = front.learn(self.views_, data, self.components, self.seed_)
        self.model_ = self.build_networks().to(device)
        coders.start_at(self.model_, [view.scaler.mean for view in self.views_])

    def go_on(self, device: torch.device) -> None:
        """Make a model for another length of training with the learned weights."""
        before = self.model_.state_dict()
        self.model_ = self.build_networks().to(device)
        load_state(self.model_, before)

    def network_input(self, data: Views) -> Views:
        """Convert data to the input of the networks."""
        return front.narrow(self.front_, data.bare())

    def widened(self, v: int, values: NDArray[Any]) -> NDArray[Any]:
        """Expand decoded values of view v to all its columns."""
        part = self.front_[v]
        return values if part is None else part.widen(values)

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
        images = any(len(s) > 1 for s in data.shapes)
        return self.precision == "bf16" or (
            self.precision == "auto" and device.type == "cuda" and images
        )

    def total_steps(self, data: Views) -> int:
        """Return the number of steps of training, also if it is counted in epochs."""
        steps, size = self.amounts(data.shapes, len(data))
        return steps if self.epochs is None else self.epochs * len(data) // size
