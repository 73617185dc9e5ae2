"""The training loop of every method."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
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
from vedute.training.step import Step, make_optimizer, set_lr, set_rates

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
    """The training of `model` in place on `data`.

    held         views hidden from `data`, for early stopping
    likelihoods  one per view
    on_epoch     called with every record of the history
    on_step      called after every step
    reason       why training ended
    """

    model: Model
    data: Views
    settings: Settings
    held: HoldOut | None = None
    likelihoods: Likelihoods = ()
    on_epoch: Callable[[Record], None] | None = None
    on_step: Callable[[], None] | None = None
    reason: str = field(init=False, default="")

    def __post_init__(self) -> None:
        held, settings = self.held, self.settings
        if held is not None:
            held = held.part(slice(MAX_WATCHED))
            parts = len(held.hidden) >= ranks.size()  # each rank checks its share
            self.held = held.part(ranks.share(len(held.hidden))) if parts else held
        self.at = Progress()
        self.best: dict[str, Tensor] | None = None
        self.optimizer = make_optimizer(self.model, settings.lr, settings.weight_decay)
        self.step: Step | None = None
        self.history: list[Record] = []

    def run(self) -> list[Record]:
        """Train; return the average of every loss term per epoch."""
        refit = self.settings.refit
        stages = self.model.stages_again(self.data) if refit else self.model.stages(self.data)
        try:
            with stopping.deferred():
                self._train(stages)
        except KeyboardInterrupt:
            if ranks.size() > 1:  # the others may be at another step
                raise
            log.warning("interrupted at step %d; keeping the best weights so far", self.at.step)
            self.at.ended = INTERRUPTED
            self._restore_best()
            while self._advance(stages) is not None:  # code after the last stage still runs
                pass
        self._copy_first()
        self.model.eval()
        counted = self.settings.epochs is not None
        amount = f"{self.at.epoch} epochs" if counted else f"{self.at.step} steps"
        self.reason = self.at.ended or f"all {amount} done"
        return self.history

    def _train(self, stages: Iterator[Stage]) -> None:
        c = self.settings.checkpoint
        saved = None if c is None else ranks.by_first(c.read)
        first = 0 if saved is None else saved.facts["progress"]["stage"]
        if saved is not None and saved.facts["progress"]["finished"]:
            self._load(saved)
            return
        for number, stage in enumerate(iter(lambda: self._advance(stages), None)):
            if number < first or (stage.measure is not None and self.held is None):
                continue
            if saved is not None:
                self._enter(stage, resume=True)
                self._load(saved)
                saved = None
            else:
                same = self.step is not None and self.step.stage is stage
                self.at.stage, self.at.stage_done = number, 0 in self._length(stage)
                self.at.stage_step = self.at.stage_epoch = 0
                self._enter(stage, resume=same)
            while not self.at.stage_done:
                self._epoch(stage)
                self._save()
            self._restore_best()
        self.at.finished = True
        self._save()

    def _advance(self, stages: Iterator[Stage]) -> Stage | None:
        self.model.eval()
        with torch.no_grad():
            return next(stages, None)

    def _enter(self, stage: Stage, resume: bool) -> None:
        """Set up the optimizer and the step of a stage."""
        self._copy_first()
        last = None if self.step is None else self.step.stage
        follows = last is not None and last.watch and last.measure is None and stage.watch
        if stage.measure is not None:
            self.at.best_error = self._errors(stage)[1]
        elif not follows:
            self.at.best_error = float("inf")
        comparable = self.at.best_error < float("inf")  # then keep only improvements
        self.best = self._weights() if comparable else None
        self.at.last_check = self.at.best_step = self.at.step
        if resume and self.step is not None:
            return
        s = self.settings
        if stage.fresh:
            self.optimizer = make_optimizer(self.model, s.lr, s.weight_decay)
        set_rates(self.optimizer, self.model, stage)
        self.feed = Feed(self.data, self._batch_size(stage))
        data = self.feed.window
        self.step = Step(self.model, data, stage, self.optimizer, s.clip, s.bf16, s.compiled)

    def _epoch(self, stage: Stage) -> None:
        assert self.step is not None
        at = self.at
        steps, epochs = self._length(stage)
        self.model.train()
        for rows in self.feed(_split(self._rows(stage), self._batch_size(stage))):
            if steps is not None and at.stage_step >= steps:
                break
            self.step(rows)
            at.stage_step += 1
            at.step += 1
            if self.on_step is not None:
                self.on_step()
        at.stage_epoch += 1
        at.epoch += 1
        for group in self.optimizer.param_groups:
            group["lr"] *= stage.decay
        at.stage_done = (steps is not None and at.stage_step >= steps) or (
            epochs is not None and at.stage_epoch >= epochs
        )
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
            self.best = self._weights()
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
        outs = zip(self.likelihoods, model.decode(held.inputs), strict=True)
        context = held.inputs.context
        values = [likelihood.mean(out[0].float(), context) for likelihood, out in outs]
        squared = ranks.mean(held.mean_error(values), len(held.hidden))
        if stage.measure is None:
            return squared, squared
        return squared, ranks.mean(stage.measure(held, values), len(held.hidden))

    def _weights(self) -> dict[str, Tensor]:
        return {k: v.clone() for k, v in self.model.state_dict().items()}

    def _copy_first(self) -> None:
        """Copy the weights of the first rank to all."""
        if ranks.size() > 1:
            state = ranks.by_first(lambda: {k: v.cpu() for k, v in self._weights().items()})
            load_state(self.model, state)

    def _restore_best(self) -> None:
        if self.best is not None:
            self.model.load_state_dict(self.best)
            self.best = None

    def _length(self, stage: Stage) -> tuple[int | None, int | None]:
        if stage.steps is not None or stage.epochs is not None:
            return stage.steps, stage.epochs
        s = self.settings
        return (None, s.epochs) if s.epochs is not None else (s.steps, None)

    def _batch_size(self, stage: Stage) -> int:
        return self.settings.batch_size if stage.batch_size is None else stage.batch_size

    def _rows(self, stage: Stage) -> Tensor:
        """Return the rows of an epoch, shuffled unless the stage takes full batches in order."""
        rows = torch.arange(len(self.data)) if stage.rows is None else stage.rows.cpu()
        rows = rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows
        if self._batch_size(stage):
            on_disk = self.data.on_disk
            rows = shuffled(rows) if on_disk else rows[torch.randperm(len(rows))]
        return rows.to(self.data.mask.device, non_blocking=True)

    def _save(self) -> None:
        """Write a checkpoint if it is due, and end training if a signal asked for it."""
        c, first = self.settings.checkpoint, ranks.rank() == 0
        number = max(ranks.gathered(stopping.requested() or 0))
        if first and c is not None and (c.due() or self.at.finished or number):
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
                set_lr(group, lr)
        checkpoints.set_random_state(saved.tensors)


def batches(n: int, size: int) -> int:
    """Return the number of batches of B = min(size, n) rows; a last one under B/8 is dropped."""
    full, left = divmod(n, min(size or n, n))
    return full + (8 * left >= min(size or n, n))


def _split(rows: Tensor, size: int) -> list[Tensor]:
    return list(torch.split(rows, min(size, len(rows)) or len(rows)))[: batches(len(rows), size)]
