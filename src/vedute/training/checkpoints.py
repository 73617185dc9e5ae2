"""The state of a training run on disk: tensors in safetensors, the rest in JSON; atomic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

STATE = "state.safetensors"


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


def write(folder: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """One file, renamed into place: a kill leaves the previous state."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / (STATE + ".part")
    tensors = {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}
    save_file(tensors, part, metadata={"facts": json.dumps(facts)})
    part.replace(folder / STATE)


def facts(folder: Path) -> dict[str, Any] | None:
    """What is on disk, or None."""
    return read(folder)[1] if (folder / STATE).exists() else None


def read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    from safetensors import safe_open

    with safe_open(folder / STATE, framework="pt") as f:
        found: dict[str, Any] = json.loads(f.metadata()["facts"])
    return load_file(folder / STATE), found


def clear(folder: Path) -> None:
    (folder / STATE).unlink(missing_ok=True)
