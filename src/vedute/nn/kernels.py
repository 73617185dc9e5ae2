"""Whether there are kernels of our own for a tensor: on NVIDIA GPUs, by Triton, which comes with
torch for CUDA. What they compute is defined beside their uses, and runs everywhere else."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor


def of(what: str, t: Tensor) -> ModuleType | None:
    """The module of kernels for this; None where t must be computed with in the plain way: not
    on such a GPU, other than float32, or where torch itself makes the kernels."""
    plain = type(t) in (Tensor, torch.nn.Parameter) and t.dtype == torch.float32 and t.numel() > 0
    if not (t.is_cuda and plain) or torch.compiler.is_compiling():
        return None
    return None if torch.is_autocast_enabled("cuda") and what == "layer" else _module(what)


@cache
def _module(what: str) -> ModuleType | None:
    there = find_spec("triton") is not None and torch.version.hip is None
    return import_module(f"vedute.nn.{what}_kernels") if there else None
