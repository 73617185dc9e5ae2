"""The state of a training run on disk: tensors in safetensors, the rest in JSON; atomic."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from vedute.data.plain_files import plain_file

Tensors = dict[str, Tensor]
STATE, HISTORY = "state.safetensors", "history.jsonl"


class MismatchError(ValueError):
    """A checkpoint of another run."""


def moments(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state by parameter name, and the state of the random generators."""
    out = {
        f"optimizer.{key}.{name}": value
        for name, p in model.named_parameters()
        for key, value in optimizer.state.get(p, {}).items()
    }
    out["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        out["random.cuda"] = torch.cuda.get_rng_state()
    return out


def load_moments(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        part, _, rest = key.partition(".")
        if part == "optimizer":
            kind, _, name = rest.partition(".")
            p = parameters[name]
            same = value.shape == p.shape  # then also its layout: fused updates walk memory
            moment = torch.empty_like(p).copy_(value) if same else value.to(p.device)
            optimizer.state[p][kind] = moment.detach()


def set_random_state(tensors: dict[str, Tensor]) -> None:
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])


@dataclass
class Checkpoint:
    """The state of one training on disk, whole at any moment.

    state.safetensors   tensors, and in its metadata what else is known; renamed into place
    history.jsonl       one line per epoch, appended; the state says how many lines count
    """

    folder: Path
    signature: str  # hash of data and settings: a checkpoint of another run is refused
    minutes: float
    saved_at: float = field(default_factory=time.monotonic)
    lines: int = 0  # of the history, on disk

    def due(self) -> bool:
        return time.monotonic() - self.saved_at >= 60 * self.minutes

    def write(self, tensors: Tensors, facts: dict[str, Any], history: Sequence[Any]) -> None:
        """Write a checkpoint; where the disk is full or gone, training goes on, with a warning."""
        try:
            self._write(tensors, facts, history)
        except OSError as error:
            warnings.warn(
                f"no checkpoint could be written to {self.folder} ({error.strerror}); training "
                "goes on without",
                stacklevel=2,
            )
        self.saved_at = time.monotonic()

    def _write(self, tensors: Tensors, facts: dict[str, Any], history: Sequence[Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / HISTORY).open("a" if self.lines else "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in history[self.lines :])
            file.flush()
            os.fsync(file.fileno())
        self.lines = len(history)
        known = {**facts, "signature": self.signature, "lines": self.lines}
        plain = {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}
        part = self.folder / (STATE + ".part")
        save_file(plain, part, metadata={"facts": json.dumps(known)})
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(self.folder / STATE)

    def read(self) -> Found | None:
        """The last state; None, with a warning, where it is damaged."""
        if not (self.folder / STATE).exists():
            return None
        try:
            found = read(self.folder)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            warnings.warn(
                f"the checkpoint in {self.folder} is damaged ({error}); training begins anew",
                stacklevel=2,
            )
            return None
        if found.facts["signature"] != self.signature:
            raise MismatchError(
                f"the checkpoint in {self.folder} is of other data or settings; "
                "delete it or name another folder"
            )
        self._cut(found.facts["lines"])
        return found

    def _cut(self, lines: int) -> None:
        """Drop records after the state that was read."""
        path = self.folder / HISTORY
        kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]
        path.write_text("".join(kept), encoding="utf-8")
        self.lines = lines


class Found(NamedTuple):
    """What a checkpoint holds."""

    tensors: Tensors
    facts: dict[str, Any]
    history: list[dict[str, Any]]


def read(folder: Path) -> Found:
    """The state in a folder, whoever wrote it."""
    with safe_open(plain_file(folder / STATE), framework="pt") as file:
        facts: dict[str, Any] = json.loads(file.metadata()["facts"])
    lines = plain_file(folder / HISTORY).read_text(encoding="utf-8").splitlines()
    if len(lines) < facts["lines"]:
        raise ValueError("its history is cut off")
    history = [json.loads(line) for line in lines[: facts["lines"]]]
    return Found(load_file(folder / STATE), facts, history)


def are_in(folder: Path) -> bool:
    """Whether there is a checkpoint in a folder, or below it: of a second training, or a pair."""
    return any(folder.rglob(STATE)) if folder.is_dir() else False


def clear(folder: Path) -> None:
    """Remove all checkpoints in and below a folder, and nothing else."""
    if not folder.is_dir():
        return
    halves = folder.rglob("training-*/.tmp*")  # of safetensors, when it was killed
    for path in [*folder.rglob(STATE + "*"), *folder.rglob(HISTORY), *halves]:
        path.unlink(missing_ok=True)
    for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
