"""Tensors as arrays, wherever they are and whether or not they need gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def as_array(view: Any) -> NDArray[Any]:
    """`np.asarray`, also of tensors that need gradients, are on a GPU or in bfloat16."""
    if not isinstance(view, torch.Tensor):
        return np.asarray(view)
    if view.layout != torch.strided:
        raise ValueError("a view is a sparse tensor; pass to_dense() of it, or a matrix of scipy")
    view = view.detach().cpu()
    found: NDArray[Any] = (view.float() if view.dtype == torch.bfloat16 else view).numpy()
    return found
