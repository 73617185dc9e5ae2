"""The training loop of every method."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor

from vedute.data.holdout import HoldOut
from vedute.data.views import Views
from vedute.nn.likelihoods import Likelihoods
from vedute.scale import ranks
from vedute.scale.feed import Feed, shuffled
from vedute.training import checkpoints, stopping
from vedute.training.checkpoints import Checkpoint
from vedute.training.history import Record
from vedute.training.model import Generative, Model, Stage, load_state
from vedute.training.step import Step, make_optimizer, set_rates

log = logging.getLogger(__name__)
CHECK_STEPS = 25  # early stopping checks every max(1 epoch, this many steps)
INTERRUPTED = "interrupted"
MAX_WATCHED = 1000  # hidden instances per check


@dataclass(frozen=True)
class Settings:
    """Settings of training that all methods share."""

    steps: int | None = 1000
    epochs: int | None = None
    batch_size: int = 128
    lr: float = 1e-3
    weight_decay: float = 0.0
    clip: float | None = None
    patience: int = 500
    bf16: bool = False
    compiled: bool = False
    refit: bool = False  # continue from the weights of the model
    checkpoint: Checkpoint | None = None


@dataclass
class Progress:
    """The state of training that a checkpoint holds beside tensors."""

    stage: int = -1
    stage_step: int = 0
    stage_epoch: int = 0
    step: int = 0
    epoch: int = 0
    best_error: float = float("inf")
    best_step: int = 0
    last_check: int = 0
    stage_done: bool = True
    finished: bool = False
    ended: str = ""  # the reason, if before all steps were done


@dataclass(eq=False)
class Loop:
    """The training of `model` in place on `data`."""

    model: Model
    data: Views
    settings: Settings
    held: HoldOut | None = None  # views hidden from `data`, for early stopping
    likelihoods: Likelihoods = ()  # one per view
    on_epoch: Callable[[Record], None] | None = None  # called with every record of the history
    on_step: Callable[[], None] | None = None  # called after every step
    reason: str = field(init=False, default="")  # why training ended

    def __post_init__(self) -> None:
        held, settings = self.held, self.settings
        if held is not None:
            self.held = held = held.part(slice(MAX_WATCHED))
            if 1 < ranks.size() <= len(held.hidden):  # each rank checks its share
                self.held = held.part(ranks.share(len(held.hidden)))
        self.at = Progress()
        self.best: dict[str, Tensor] | None = None  # weights
        self.optimizer = make_optimizer(self.model, settings.lr, settings.weight_decay)
        self.step: Step | None = None
        self.history: list[Record] = []

    def run(self) -> list[Record]:
        """Train; return the average of every loss term per epoch."""
        stages = self._stages()
        try:
            with stopping.deferred():
                self._train(stages)
        except KeyboardInterrupt:
            if ranks.size() > 1:  # the others may be at another step
                raise
            log.warning("interrupted at step %d; keeping the best weights so far", self.at.step)
            self.at.ended = INTERRUPTED
            for _ in stages:  # code after the last stage still runs
                pass
        if ranks.size() > 1:
            self._copy_first()
        self.model.eval()
        counted = self.settings.epochs is not None
        amount = f"{self.at.epoch} epochs" if counted else f"{self.at.step} steps"
        self.reason = self.at.ended or f"all {amount} done"
        return self.history

    def _stages(self) -> Iterator[Stage]:
        """Yield the stages of the model, whose code runs in eval mode, without gradients, and with
        the best weights of the last stage."""
        refit = self.settings.refit
        stages = self.model.stages_again(self.data) if refit else self.model.stages(self.data)
        while True:
            if self.best is not None:
                self.model.load_state_dict(self.best)
                self.best = None
            self.model.eval()
            with torch.no_grad():
                stage = next(stages, None)
            if stage is None:
                return
            yield stage

    def _train(self, stages: Iterator[Stage]) -> None:
        c = self.settings.checkpoint
        saved = None if c is None else ranks.by_first(c.read)
        first = 0 if saved is None else saved.facts["progress"]["stage"]
        if saved is not None and saved.facts["progress"]["finished"]:
            self._load(saved)
            return
        for number, stage in enumerate(stages):
            if number < first or (stage.measure is not None and self.held is None):
                continue
            self._enter(stage, number)
            if saved is not None:
                self._load(saved)
                saved = None
            while not self.at.stage_done:
                self._epoch(stage)
                self._save()
        self.at.finished = True
        self._save()

    def _enter(self, stage: Stage, number: int) -> None:
        """Set up the optimizer and the step of a stage."""
        if ranks.size() > 1:
            self._copy_first()
        s, at, last = self.settings, self.at, None if self.step is None else self.step.stage
        self.steps, self.epochs = stage.steps, stage.epochs
        if stage.steps is None and stage.epochs is None:
            self.steps, self.epochs = (s.steps, None) if s.epochs is None else (None, s.epochs)
        self.batch_size = s.batch_size if stage.batch_size is None else stage.batch_size
        at.stage, at.stage_step, at.stage_epoch = number, 0, 0
        at.stage_done = 0 in (self.steps, self.epochs)
        follows = last is not None and last.watch and last.measure is None and stage.watch
        if stage.measure is not None:
            at.best_error = self._errors(stage)[1]
        elif not follows:
            at.best_error = float("inf")
        comparable = at.best_error < float("inf")  # then keep only improvements
        self.best = deepcopy(self.model.state_dict()) if comparable else None
        at.last_check = at.best_step = at.step
        if stage is last:
            return
        if stage.fresh:
            self.optimizer = make_optimizer(self.model, s.lr, s.weight_decay)
        set_rates(self.optimizer, self.model, stage)
        self.feed = Feed(self.data, self.batch_size)
        data = self.feed.window
        self.step = Step(self.model, data, stage, self.optimizer, s.clip, s.bf16, s.compiled)

    def _epoch(self, stage: Stage) -> None:
        assert self.step is not None
        """Train for an epoch, in batches that are shuffled unless the stage takes full ones."""
        at = self.at
        self.model.train()
        rows = torch.arange(len(self.data)) if stage.rows is None else stage.rows.cpu()
        rows = rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows
        if self.batch_size:
            rows = shuffled(rows) if self.data.on_disk else rows[torch.randperm(len(rows))]
        rows = rows.to(self.data.mask.device, non_blocking=True)
        size = min(self.batch_size, len(rows)) or len(rows)
        for batch in self.feed(torch.split(rows, size)[: batches(len(rows), size)]):
            if at.stage_step == self.steps:
                break
            self.step(batch)
            at.stage_step += 1
            at.step += 1
            if self.on_step is not None:
                self.on_step()
        at.stage_epoch += 1
        at.epoch += 1
        for group in self.optimizer.param_groups:
            group["lr"] *= stage.decay
        at.stage_done = at.stage_step == self.steps or at.stage_epoch == self.epochs
        record: Record = {"step": at.step, "epoch": at.epoch, "stage": at.stage}
        record |= {"terms": self.step.read_terms(at.step), "hidden_error": None, "watched": False}
        self._watch(stage, record)
        self.history.append(record)
        if self.on_epoch is not None:
            self.on_epoch(record)

    def _watch(self, stage: Stage, record: Record) -> None:
        """Check early stopping: the error at hidden views, and the best weights so far."""
        at = self.at
        due = at.step - at.last_check >= CHECK_STEPS or at.stage_done
        if self.held is None or not (due and isinstance(self.model, Generative)):
            return
        at.last_check = at.step
        record["hidden_error"], error = self._errors(stage)
        record["watched"] = stage.watch and stage.measure is None
        if not stage.watch:
            return
        better = error < at.best_error
        if stage.measure is not None:
            record["better"] = better
        if better:
            at.best_error, at.best_step = error, at.step
            self.best = deepcopy(self.model.state_dict())
            return
        patience = self.settings.patience
        if record["watched"] and at.step - at.best_step >= patience and not at.stage_done:
            at.stage_done = True
            at.ended = f"hidden error has not improved for {patience} steps"

    @torch.no_grad()
    def _errors(self, stage: Stage) -> tuple[float, float]:
        """Return the mean squared error at hidden views, and what early stopping compares."""
        model, held = self.model, self.held
        assert held is not None
        assert isinstance(model, Generative)
        model.eval()
        values = []
        for likelihood, out in zip(self.likelihoods, model.decode(held.inputs), strict=True):
            values.append(likelihood.mean(out[0].float(), held.inputs.context))
        squared = compared = held.mean_error(values)
        if stage.measure is not None:
            compared = stage.measure(held, values)
        if ranks.size() > 1:
            squared, compared = ranks.means([squared, compared], len(held.hidden))
        return squared, compared

    def _copy_first(self) -> None:
        """Copy the weights of the first rank to all."""
        state = ranks.by_first(lambda: {k: v.cpu() for k, v in self.model.state_dict().items()})
        load_state(self.model, state)

    def _save(self) -> None:
        """Write a checkpoint if it is due, and end training if a signal asked for it."""
        c, number = self.settings.checkpoint, stopping.State.requested
        if ranks.size() > 1:
            number = max(ranks.gathered(number))
        due = c is not None and (c.due() or self.at.finished or number)
        if c is not None and due and ranks.rank() == 0:
            tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
            tensors |= {f"best.{k}": v for k, v in (self.best or {}).items()}
            lrs = [float(g["lr"]) for g in self.optimizer.param_groups]
            moments = checkpoints.moments(self.optimizer, self.model)
            facts = {"progress": asdict(self.at), "lrs": lrs, "history": self.history}
            c.write(tensors | moments, facts)
        if number:
            raise stopping.TerminatedError(number)

    def _load(self, saved: checkpoints.SavedState) -> None:
        device = self.data.mask.device
        weights, best = (
            {k.removeprefix(p): t.to(device) for k, t in saved.tensors.items() if k.startswith(p)}
            for p in ("model.", "best.")
        )
        load_state(self.model, weights)
        self.best = best or None
        self.at, self.history = Progress(**saved.facts["progress"]), saved.facts["history"]
        if not self.at.finished:
            checkpoints.load_moments(self.optimizer, self.model, saved.tensors)
            for group, lr in zip(self.optimizer.param_groups, saved.facts["lrs"], strict=True):
                group["lr"] = group["lr"] * 0 + lr  # on a GPU a tensor
        torch.set_rng_state(saved.tensors["random.cpu"])
        if "random.cuda" in saved.tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(saved.tensors["random.cuda"])


def batches(n: int, size: int) -> int:
    """Return the number of batches of B = min(size, n) rows; a last one under B/8 is dropped."""
    full, left = divmod(n, min(size or n, n))
    return full + (8 * left >= min(size or n, n))
