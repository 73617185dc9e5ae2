"""The networks of an estimator: built, restored from saved weights, and what they answer."""

from __future__ import annotations

import platform
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from itertools import repeat
from operator import attrgetter
from typing import Any, Self, get_args, get_type_hints

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from vedute.data import fill
from vedute.data.mapped import Stack
from vedute.data.views import Names, Shapes, Views
from vedute.estimators import categories, front, saving, sentence_decoding
from vedute.estimators.base import Estimator, check_count
from vedute.estimators.imputation import batch_rows
from vedute.estimators.method import Ability, Array
from vedute.nn import noise
from vedute.nn.likelihoods import Likelihoods
from vedute.training.history import Record
from vedute.training.model import Clusterer, Generative, Model

ARM = platform.machine().lower() in ("aarch64", "arm64")


@cache
def models(cls: type[Any]) -> tuple[type[Any], ...]:
    """Return the classes of models that an estimator builds: its `model_class`, or the return
    annotation of `build`."""
    annotation = getattr(cls, "model_class", None) or get_type_hints(cls.build)["return"]
    return get_args(annotation) or (annotation,)


class NetworkEstimator(Estimator):
    """An estimator whose verbs are those of trained networks, in batches on its device."""

    model_: Model
    front_: front.Front
    settings_: dict[str, Any]
    history_: list[Record]
    steps_: int
    length_: int | None  # the useful length of training, once known
    epochs: int | None
    device: str | torch.device
    precision: str

    generative = Ability(lambda cls: all(map(issubclass, models(cls), repeat(Generative))))
    generates = Ability(
        lambda cls: cls.generative and all(m.prior is not Generative.prior for m in models(cls))
    )
    soft = Ability(lambda cls: all(map(issubclass, models(cls), repeat(Clusterer))))

    @abstractmethod
    def build(self, shapes: Shapes, likelihoods: Likelihoods, names: Names, length: int) -> Model:
        """Build the untrained model for views of these shapes, likelihoods and names, without a
        fitted state. length: of training, in steps, or in epochs if these are set."""

    def having(self, settings: Mapping[str, Any]) -> Self:
        """Return an unfitted copy with some settings replaced."""
        return type(self)(**self.get_params(deep=False) | settings)

    def build_networks(self) -> Model:
        """Build the networks, channels-last for images, which makes convolutions fast; on ARM cores
        it halves their speed, so they stay channels-first."""
        shapes, likelihoods, names = [], [], []
        for view, part in zip(self.views_, self.front_, strict=True):
            shapes.append(view.output_shape if part is None else (part.basis.shape[1],))
            likelihoods.append(view.likelihood)
            names.append(view.name)
        length = self.steps_ if self.epochs is None else self.epochs
        hp = self.having(self.settings_)  # later changes apply to the next fit
        hp.check_settings()
        model = hp.build(shapes, likelihoods, names, length)
        model.observation = nn.ModuleList(likelihoods)  # their parameters are trained and saved
        channels_last = 4 in map(Tensor.dim, model.parameters())
        channels_last &= not (ARM and self.torch_device().type == "cpu")
        return model.to(memory_format=torch.channels_last) if channels_last else model  # type: ignore[call-overload]

    def torch_device(self) -> torch.device:
        """Return the device to compute on; raise if it is not available."""
        device = str(self.device)  # a torch.device, too
        if device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        available = {"cpu": True, "cuda": torch.cuda.is_available()}
        available["mps"] = torch.backends.mps.is_available()
        kind = device.partition(":")[0]
        if kind not in available:
            raise ValueError(f"no device {device!r}; choose auto, cpu or cuda")
        if not available[kind]:
            raise ValueError(f"device {device!r} is not available; choose auto or cpu")
        return torch.device(device)

    def bf16(self, data: Views, device: torch.device) -> bool:
        """Return whether networks compute in bfloat16."""
        images = device.type == "cuda" and max(map(len, data.shapes)) > 1
        return self.precision == "bf16" or (self.precision == "auto" and images)

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

    def table_numbers(self) -> int:
        model: Any = getattr(self, "model_", None)  # none before fit, as for the method of pairs
        return model.table_numbers if isinstance(model, Model) else 1

    @torch.no_grad()
    def embed(self, data: Views) -> Array:
        return self._batched(data, self.model_.eval().embed)

    @torch.no_grad()
    def embed_std(self, data: Views) -> Array:
        if type(self.model_).std is Model.std:
            return super().embed_std(data)
        return self._batched(data, self.model_.eval().std)

    @torch.no_grad()
    def soft_labels(self, data: Views) -> Array | None:
        model = self.model_.eval()
        return self._batched(data, model.assign) if isinstance(model, Clusterer) else None

    @torch.no_grad()
    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        model = self.model_.eval()
        if not isinstance(model, Generative):
            return super().decode(data, draws)
        batch = front.narrow(self.front_, data.bare()).to(self.torch_device()).floating()
        values = []
        for v, out in enumerate(model.decode(batch, draws)):
            if self.views_[v].likelihood.text and not draws:  # one sentence, not likely words
                out = sentence_decoding.decode_sentence(model, batch, out[0], v).unsqueeze(0)
            values.append(np.array(self._values(v, out, batch.context), order="K"))  # of draws
        return values

    @torch.no_grad()
    def generate(self, n: int, random_state: Any = None) -> dict[str, Any]:
        check_is_fitted(self, "views_")
        check_count("n", n)
        if not self.generates:
            return super().generate(n)
        model: Any = self.model_.eval()
        with noise.seeded(self.learner.seed(random_state)):
            values = {}
            for v, (view, out) in enumerate(zip(self.views_, model.prior(n), strict=True)):
                mean = self._values(v, out[0], {})
                drawn = view.noisy(mean, view.by_entry(attrgetter("noise"), None))
                p = categories.of_view(view, view.in_units(mean))
                drawn = categories.drawn(drawn, p) if p else drawn
                values[view.name] = fill.as_fitted(drawn, view.spec)
            return values

    def _batched(self, data: Views, f: Callable[[Views], Tensor]) -> Array:
        rows = batch_rows(self.n_features_in_, self.model_.table_numbers)
        results, device = Stack(len(data)), self.torch_device()
        for batch in front.narrow(self.front_, data.bare()).batches(rows):
            results.add(f(batch.to(device).floating()).float().cpu().numpy())
        return results.array

    def _values(self, v: int, out: Tensor, context: Mapping[str, Tensor]) -> Array:
        """Return the expected values of view v, with all its columns, given decoder outputs."""
        part, likelihood = self.front_[v], self.views_[v].likelihood
        mean = likelihood.mean(out.float(), context).cpu().numpy()
        return mean if part is None else part.widen(mean)
