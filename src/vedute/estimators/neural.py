"""Estimators that train a `Model` with the training loop."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from vedute.data import fill
from vedute.data.holdout import HoldOut
from vedute.data.mapped import stacked
from vedute.data.views import Views
from vedute.estimators import categories, saving, sentence_decoding
from vedute.estimators.base import check_count
from vedute.estimators.context import FitContext
from vedute.estimators.imputation import TABLE, batch_rows
from vedute.estimators.method import Array
from vedute.estimators.network_method import NetworkMethod
from vedute.estimators.neural_training import Training
from vedute.estimators.settings import estimator
from vedute.nn import noise
from vedute.training.model import Clusterer, Generative, Model

FEW_ROWS = 1000  # below, hidden views only decide the length of training, and are refitted


@estimator
class NeuralEstimator(NetworkMethod):
    """An estimator trained for `steps`, or `epochs` if set, with early stopping on hidden views."""

    def hides(self) -> bool:
        return self.generative and self.early_stopping

    def learns_again(self, rows: int) -> bool:
        few = self.hides() and self.epochs is None and rows < FEW_ROWS
        return super().learns_again(rows) or few

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
        outs, values = model.decode(batch, draws), []
        for v, view in enumerate(self.views_):
            if (
                view.likelihood.text and not draws
            ):  # one sentence, not the most likely word at each position
                outs[v] = sentence_decoding.decode_sentence(model, batch, outs[v][0], v).unsqueeze(
                    0
                )
            mean = self.widened(v, view.likelihood.mean(outs[v].float()).cpu().numpy())
            values.append(np.array(mean, order="K"))  # copies expanded draws
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
                mean = self.widened(v, view.likelihood.mean(out[0].float()).cpu().numpy())
                drawn = view.noisy(mean, view.calibrated.noise)
                p = categories.of_means(view, view.in_units(mean))
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

    def modules(self) -> dict[str, torch.nn.Module]:
        model: Any = getattr(self, "model_", None)
        if not isinstance(model, torch.nn.Module):  # when loading: build it, then load its weights
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
