"""The state of a training run on disk: a file of tensors, with the rest in its metadata."""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from vedute.data.limits import plain_file

Tensors = dict[str, Tensor]
STATE = "state.safetensors"


class MismatchError(ValueError):
    """A checkpoint belongs to another run."""


def moments(optimizer: torch.optim.Optimizer, model: nn.Module) -> Tensors:
    """Return the optimizer's state by parameter name, and that of the random generators."""
    out = {
        f"optimizer.{key}.{name}": value
        for name, p in model.named_parameters()
        for key, value in optimizer.state.get(p, {}).items()
    }
    out["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        out["random.cuda"] = torch.cuda.get_rng_state()
    return out


def load_moments(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Tensors) -> None:
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, moment_name, name = key.split(".", 2)
            p = parameters[name]
            same = value.shape == p.shape  # then also its layout: fused updates walk memory
            moment = torch.empty_like(p).copy_(value) if same else value.to(p.device)
            optimizer.state[p][moment_name] = moment.detach()


class SavedState(NamedTuple):
    facts: dict[str, Any]
    tensors: Tensors


@dataclass
class Checkpoint:
    """The state of one training run on disk, complete at any moment."""

    folder: Path
    signature: str  # hash of data and settings: checkpoints of other runs are rejected
    minutes: float
    saved_at: float = field(default_factory=time.monotonic)

    def due(self) -> bool:
        return time.monotonic() - self.saved_at >= 60 * self.minutes

    def write(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Write a checkpoint; if the disk is full or gone, warn and continue training."""
        plain = {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}
        metadata = {"facts": json.dumps({**facts, "signature": self.signature})}
        part = self.folder / (STATE + ".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save_file(plain, part, metadata=metadata)
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(self.folder / STATE)
        except OSError as error:
            problem = f"no checkpoint could be written to {self.folder} ({error.strerror})"
            warnings.warn(f"{problem}; training continues without", stacklevel=2)
        self.saved_at = time.monotonic()

    def read(self) -> SavedState | None:
        """Read the last state; None, with a warning, if it is damaged."""
        if not (self.folder / STATE).exists():
            return None
        try:
            saved = read(self.folder)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            problem = f"the checkpoint in {self.folder} is damaged ({error})"
            warnings.warn(f"{problem}; training starts over", stacklevel=2)
            return None
        if saved.facts["signature"] != self.signature:
            raise MismatchError(
                f"the checkpoint in {self.folder} is of other data or settings; "
                "delete it or name another folder"
            )
        return saved


def read(folder: Path) -> SavedState:
    """Read the state in a folder, whichever run wrote it."""
    with safe_open(plain_file(folder / STATE), framework="pt") as file:
        facts: dict[str, Any] = json.loads(file.metadata()["facts"])
    return SavedState(facts, load_file(folder / STATE))


def are_in(folder: Path) -> bool:
    """Return whether a folder or its subfolders (refits, pairs of views) hold a checkpoint."""
    return any(folder.rglob(STATE)) if folder.is_dir() else False


def clear(folder: Path) -> None:
    """Remove all checkpoints in a folder and its subfolders, and nothing else."""
    if not folder.is_dir():
        return
    partial = folder.rglob("training-*/.tmp*")  # left by a killed safetensors write
    for path in [*folder.rglob(STATE + "*"), *partial]:
        path.unlink(missing_ok=True)
    for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
