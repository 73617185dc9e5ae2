"""Saved estimators: safetensors and JSON with a format version. Loading never executes code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import nn

from vedute.calibration import Calibration
from vedute.frames import ViewSpec
from vedute.scaling import Scaler

FORMAT = 1
TENSORS, FACTS = "model.safetensors", "model.json"
_TYPES: dict[str, Any] = {c.__name__: c for c in (Calibration, Scaler, ViewSpec)}
_LABELS: dict[str, tuple[type, Callable[[Any], list[Any]], Callable[..., Any]]] = {
    # what columns and categories may be called: type, parts, made of its parts
    "$timestamp": (datetime, lambda t: [t.isoformat()], pd.Timestamp),
    "$date": (date, lambda d: [d.isoformat()], date.fromisoformat),
    "$period": (pd.Period, lambda p: [str(p), p.freqstr], pd.Period),
    "$interval": (pd.Interval, lambda i: [i.left, i.right, i.closed], pd.Interval),
}


class Saved(NamedTuple):
    """The name of a method, its settings, and what it learned."""

    method: str
    params: dict[str, Any]
    learned: dict[str, Any]


def write(folder: Path, saved: Saved) -> None:
    """Values may be arrays, the dataclasses above, plain Python, and nested."""
    arrays: dict[str, Any] = {}
    packed = {k: _pack(v, k, arrays) for k, v in saved._asdict().items()}
    text = json.dumps({"format": FORMAT, **packed}, indent=1)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(arrays, folder / TENSORS)
    (folder / TENSORS).chmod(0o644)
    (folder / FACTS).write_text(text, encoding="utf-8")


def read(folder: str | Path) -> Saved:
    """What `write` wrote."""
    folder = Path(folder)
    if not (folder / FACTS).exists() or not (folder / TENSORS).exists():
        raise FileNotFoundError(
            f"{folder} holds no saved model ({FACTS} and {TENSORS}); give the folder that "
            "`save` or `vedute fit` wrote"
        )
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if facts["format"] == FORMAT:
            arrays = load_file(folder / TENSORS)
            return Saved(*(_unpack(facts[k], arrays) for k in Saved._fields))
    except (ValueError, KeyError, TypeError, SafetensorError) as e:
        raise ValueError(f"the saved model in {folder} is damaged ({e}); save it again") from None
    raise ValueError(
        f"{folder} has format {facts['format']!r}, this vedute reads {FORMAT}; "
        "use the version that saved it"
    )


def load_weights(module: nn.Module, weights: Mapping[str, Any]) -> None:
    """Fill a module; buffers whose size depended on the training data are sized anew."""
    state = {k: torch.from_numpy(np.array(v)) for k, v in weights.items()}
    for key, buffer in module.named_buffers():
        if key in state and buffer.shape != state[key].shape:
            owner, _, leaf = key.rpartition(".")
            setattr(module.get_submodule(owner), leaf, torch.empty_like(state[key]))
    module.load_state_dict(state)


def _pack(value: Any, key: str, arrays: dict[str, Any]) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[key] = np.array(value, order="C")
        return {"$array": key}
    if is_dataclass(value) and type(value).__name__ in _TYPES:
        inside = {f.name: getattr(value, f.name) for f in fields(value)}
        packed = {k: _pack(v, f"{key}.{k}", arrays) for k, v in inside.items()}
        return {"$type": type(value).__name__, "fields": packed}
    if isinstance(value, Mapping):
        inside = {f"{key}.{k}": (k, v) for k, v in value.items()}
        return {
            "$dict": [[_pack(part, name, arrays) for part in kv] for name, kv in inside.items()]
        }
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return {"$slice": [_pack(end, key, arrays) for end in ends]}
    if isinstance(value, tuple):
        return {"$tuple": [_pack(v, f"{key}.{i}", arrays) for i, v in enumerate(value)]}
    if isinstance(value, (list, range, np.ndarray, pd.Index)):
        return [_pack(v, f"{key}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for mark, (kind, parts, _) in _LABELS.items():
        if isinstance(value, kind):
            return {mark: [_pack(v, f"{key}.{i}", arrays) for i, v in enumerate(parts(value))]}
    if isinstance(value, Path):
        return str(value)
    raise TypeError(
        f"{key} holds {value!r}, a {type(value).__name__}, which cannot be saved; "
        "use numbers or text in its place"
    )


def _unpack(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpack(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        return arrays[value["$array"]]
    if "$type" in value:
        inside = {k: _unpack(v, arrays) for k, v in value["fields"].items()}
        return _TYPES[value["$type"]](**inside)
    for mark, (_, _, made) in _LABELS.items():
        if mark in value:
            return made(*_unpack(value[mark], arrays))
    if "$slice" in value:
        return slice(*_unpack(value["$slice"], arrays))
    if "$tuple" in value:
        return tuple(_unpack(v, arrays) for v in value["$tuple"])
    return {_unpack(k, arrays): _unpack(v, arrays) for k, v in value["$dict"]}
