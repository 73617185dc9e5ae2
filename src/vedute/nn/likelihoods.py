"""log p(x | decoder output): normal, laplace, bernoulli, categorical, tokens.

Densities have a fixed scale and carry their constants. `error` is -log p without the constant, at
the scale where it is the bare squared error (normal, variance 1/2) or absolute error (laplace, 1).
A categorical view is one-hot over its last axis; its output and the bernoulli one are logits.
A view of tokens holds integers (T,); its output (T, V) has the logits of every word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

ROUNDING = 1e-6  # what scaling to [0, 1] may leave beyond
KINDS = ("normal", "laplace", "bernoulli", "categorical", "tokens")


def log_prob(kind: str, out: Tensor, x: Tensor, scale: float = 1.0) -> Tensor:
    """Element-wise log-density; `scale` is the standard deviation (normal) or b (laplace).

    out (..., *shape), x broadcastable -> (..., *shape); categorical: the terms sum to log p.
    """
    match kind:
        case "normal":
            z = (x - out) / scale
            return -0.5 * z.square() - math.log(scale) - 0.5 * math.log(2 * math.pi)
        case "laplace":
            return -(x - out).abs() / scale - math.log(2 * scale)
        case _:
            return -error(kind, out, x)


def error(kind: str, out: Tensor, x: Tensor) -> Tensor:
    """Element-wise -log p(x | out) up to its constant: (x - out)^2, |x - out|, or cross-entropy."""
    match kind:
        case "normal":
            return (x - out).square()
        case "laplace":
            return (x - out).abs()
        case "bernoulli":
            return F.binary_cross_entropy_with_logits(out, x.expand_as(out), reduction="none")
        case "categorical":
            return -x * out.log_softmax(-1)
        case "tokens":
            words = x.long().expand(out.shape[:-1]).unsqueeze(-1)
            return -out.log_softmax(-1).gather(-1, words).squeeze(-1)
        case _:
            raise ValueError(f"no likelihood {kind!r}; choose from {', '.join(KINDS)}")


def complaint(kind: str, x: Tensor, seen: Tensor) -> str | None:
    """What this likelihood cannot tell of a view, and the mend; x and seen (n, *shape)."""
    if kind in ("normal", "laplace"):
        return None
    told = x[seen]
    if kind == "tokens":
        wrong = (told < 0) | (told != told.round())
        mend = "tokens are whole numbers from 0: number the words"
    elif x.dtype == torch.uint8:
        return f"holds bytes; pass {kind} values as floats between 0 and 1"
    else:
        wrong = (told < -ROUNDING) | (told > 1 + ROUNDING)
        mend = f"{kind} values lie between 0 and 1: rescale them"
    if bool(wrong.any()):
        return f"holds {float(told[wrong][0]):g}; {mend}"
    sums = x[seen.all(-1)].sum(-1) if kind == "categorical" else x.new_ones(1)
    off = (sums - 1).abs() > 1e-3
    if bool(off.any()):
        return f"has a row that sums to {float(sums[off][0]):g}; categorical rows sum to 1: one-hot"
    return None


def mean(kind: str, out: Tensor) -> Tensor:
    """E[x | out]; of tokens the likeliest ones."""
    match kind:
        case "bernoulli":
            return out.sigmoid()
        case "categorical":
            return out.softmax(-1)
        case "tokens":
            return out.argmax(-1).float()
        case _:
            return out


def guess(x: Tensor, seen: Tensor) -> str:
    """The likelihood of a view from its observed entries: x and seen (n, *shape).

    Zeros and ones are bernoulli; categorical where every row has exactly one of three or more.
    Integers get here only as tokens: the door makes floats of all other numbers.
    """
    if x.dtype == torch.int64:
        return "tokens"
    values = x[seen]
    flags = bool(((values == 0) | (values == 1)).all()) and len(values) > 0
    if not x.is_floating_point() or not flags:
        return "normal"
    whole = x[seen.flatten(1).all(1)]
    one_hot = x.ndim == 2 and x.shape[1] > 2 and len(whole) and bool((whole.sum(1) == 1).all())
    return "categorical" if one_hot else "bernoulli"


def words(given: str | Sequence[str] | Mapping[str, str], names: Sequence[str]) -> list[str]:
    """One word per view, "auto" included, from one for all, a list, or a dict by name."""
    if isinstance(given, Mapping):
        strange = [k for k in given if k not in names]
        if strange:
            raise ValueError(f"likelihood names view {strange[0]!r}; X has {', '.join(names)}")
        given = [given.get(k, "auto") for k in names]
    each = [given] * len(names) if isinstance(given, str) else list(given)
    if len(each) != len(names):
        raise ValueError(f"likelihood names {len(each)} views, X has {len(names)}")
    for word in each:
        if word not in (*KINDS, "auto"):
            raise ValueError(f"no likelihood {word!r}; choose from auto, {', '.join(KINDS)}")
    return each


def draw(kind: str, mean: Tensor, noise: Tensor) -> Tensor:
    """A value given the mean; `noise` is the standard deviation for real-valued views."""
    match kind:
        case "bernoulli":
            return torch.bernoulli(mean.clamp(0, 1))
        case "categorical":
            gumbel = -torch.empty_like(mean).exponential_().log()
            choice = (mean.clamp_min(1e-12).log() + gumbel).argmax(-1)
            return F.one_hot(choice, mean.shape[-1]).to(mean.dtype)
        case "tokens":
            return mean
        case "laplace":
            up, down = (torch.empty_like(mean).exponential_() for _ in range(2))
            return mean + noise / math.sqrt(2) * (up - down)
        case _:
            return mean + noise * torch.randn_like(mean)
