"""Saved estimators: safetensors and JSON with a format version. Loading never executes code.

model-<SHA-256 of its content>.safetensors   arrays
model.json                                   all else, with the names and checksums of files
array-<SHA-256 of its content>.npy           an array that was memory-mapped and stays so
model-card.md                                a description of the model

The arrays are written first, under new names; replacing model.json switches to the new model
atomically.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from time import time
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.numpy import load, save
from torch import nn

from vedute.data import limits
from vedute.data.frames import ViewSpec
from vedute.data.limits import plain_file
from vedute.data.mapped import npy_pieces
from vedute.data.scaling import Scaler
from vedute.data.store import digest
from vedute.estimators import settings
from vedute.estimators.calibration import NORMAL_REACH, Calibration
from vedute.estimators.fitted_view import FittedView
from vedute.estimators.front import Components
from vedute.io.files import replace
from vedute.nn.likelihoods import LIKELIHOODS, Likelihood
from vedute.training.model import load_state

FORMAT, FACTS, CARD = 1, "model.json", "model-card.md"
ARRAYS = re.compile(r"(model|array)-[0-9a-f]{64}\.(safetensors|npy)")
PART = re.compile(r"\.(model|array)[-.\w]*\.\d+\.part")
ABANDONED = 3600.0  # seconds after which files that no model.json names are removed
TRIES = 5  # to read a model while another process replaces it
_TYPES: dict[str, Any] = {
    c.__name__: c for c in (Calibration, Components, FittedView, Scaler, ViewSpec)
}
_PARTS: dict[str, tuple[type, Callable[[Any], list[Any]], Callable[..., Any]]] = {
    # labels of columns and categories among them: type, its parts, and constructor from parts
    "$slice": (slice, lambda s: [s.start, s.stop, s.step], slice),
    "$tuple": (tuple, list, lambda *parts: parts),
    "$timestamp": (datetime, lambda t: [t.isoformat()], pd.Timestamp),
    "$date": (date, lambda d: [d.isoformat()], date.fromisoformat),
    "$period": (pd.Period, lambda p: [str(p), p.freqstr], pd.Period),
    "$interval": (pd.Interval, lambda i: [i.left, i.right, i.closed], pd.Interval),
}
DAMAGED = (  # errors of reading a file that was changed
    *(ArithmeticError, AssertionError, AttributeError, FileNotFoundError, LookupError),
    *(RecursionError, SafetensorError, TypeError, ValueError),
)
PLAIN = (np.ndarray, int, float, str, list, tuple, dict, type(None))


class Saved(NamedTuple):
    """The name of a method, its settings, and its learned attributes."""

    method: str
    params: dict[str, Any]
    learned: dict[str, Any]


def name_of(cls: type) -> str:
    """Return the name of a method in a saved model: mvp, or my_module:Mine outside vedute."""
    if cls.__module__.startswith("vedute.methods."):
        return cls.__module__.rpartition(".")[2]
    return f"{cls.__module__}:{cls.__qualname__}"


def is_name_of(cls: type, name: str) -> bool:
    """Return whether a name may belong to this class, which may have moved."""
    moved = name.rpartition(":")[2]
    return name == name_of(cls) or (":" in name and moved == cls.__qualname__)


def write(folder: Path, saved: Saved, card: Callable[[str], str]) -> None:
    """Write a model; card makes its description, given the name of the file of arrays."""
    arrays: dict[str, Any] = {}
    packed = {k: _pack(v, k, arrays) for k, v in zip(saved._fields, saved, strict=True)}
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file; choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    before = files_of(folder)
    on_disk = {k: arrays.pop(k) for k, a in list(arrays.items()) if isinstance(a, np.memmap)}
    mapped = {k: _put(folder, "array-{}.npy", npy_pieces(a)) for k, a in on_disk.items()}
    tensors = _put(folder, "model-{}.safetensors", [save(arrays)])
    description = card(tensors)
    head = {"tensors": tensors, "mapped": mapped, "card": _sum(description)}
    _put(folder, CARD, [description.encode()])
    _put(folder, FACTS, [sealed(head | packed).encode()])  # switches to the new model
    clean(folder, before)


def sealed(facts: Mapping[str, Any]) -> str:
    """Return the text of model.json, including the SHA-256 of its other characters."""
    text = json.dumps({**facts, "format": FORMAT, "sha256": ""}, indent=1)
    return text.replace('"sha256": ""', f'"sha256": "{_sum(text)}"', 1)


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _put(folder: Path, name: str, content: Iterable[bytes]) -> str:
    """Write a file atomically and durably, {} in its name being its checksum; return its name."""
    part, total = folder / f".{name.format('new')}.{os.getpid()}.part", hashlib.sha256()
    try:
        with part.open("wb") as file:
            for piece in content:
                file.write(piece)
                total.update(piece)
        path = folder / name.format(total.hexdigest())
        replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path.name


def files_of(folder: Path) -> set[str]:
    """Return the files of arrays of the model in the folder, if any."""
    try:
        facts = json.loads(plain_file(folder / FACTS).read_text(encoding="utf-8"))
        return {facts["tensors"], *facts["mapped"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()


def clean(folder: Path, before: set[str]) -> None:
    """Remove the arrays of the previous model, and files left by killed saves."""
    now = files_of(folder)
    for path in folder.iterdir():
        ours = PART.fullmatch(path.name) or ARRAYS.fullmatch(path.name)
        if not ours or path.name in now or not path.is_file():
            continue
        if path.name in before or time() - path.stat().st_mtime > ABANDONED:
            path.unlink(missing_ok=True)


def read(folder: str | Path) -> Saved:
    """Read a model that `write` wrote."""
    folder = Path(folder)
    if not (folder / FACTS).is_file():  # not a pipe or a device
        raise FileNotFoundError(
            f"{folder} holds no saved model ({FACTS}); give the folder that `save` or "
            "`vedute fit` wrote"
        )
    try:
        for _ in range(TRIES):  # another process may replace the model
            limits.check((folder / FACTS).stat().st_size, folder / FACTS)
            text = (folder / FACTS).read_text(encoding="utf-8")
            facts = json.loads(text)
            if facts["format"] != FORMAT:
                break
            if _sum(text.replace(str(facts["sha256"]), "", 1)) != facts["sha256"]:
                raise ValueError(f"{FACTS} is not as it was saved")
            files = [facts["tensors"], *facts["mapped"].values()]
            gone = [name for name in files if not _file(folder, name).is_file()]
            if not gone:
                arrays = _arrays(folder, facts)
                facts = json.loads(text, object_hook=partial(_unpack, arrays))
                return Saved(*(facts[k] for k in Saved._fields))
        else:
            raise ValueError(f"{gone[0]} is gone")
    except DAMAGED as e:
        raise ValueError(f"the saved model in {folder} is damaged ({e}); save it again") from None
    raise ValueError(
        f"{folder} has format {facts['format']!r}, this vedute reads {FORMAT}; "
        "use the version that saved it"
    )


def _arrays(folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Read the arrays, memory-mapped ones as such, and verify their checksums and the card's."""
    card, path = folder / CARD, _file(folder, facts["tensors"])
    if card.is_file() and digest(card) != facts["card"]:
        warnings.warn(f"{card} is not as it was saved with the model", stacklevel=2)
    limits.check(path.stat().st_size, path)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() not in path.name:
        raise ValueError(f"{path.name} is not as it was saved")
    arrays = {k: np.array(a) for k, a in load(content).items()}
    for key, name in facts["mapped"].items():
        path = plain_file(_file(folder, name))
        arrays[key] = np.load(path, mmap_mode="r", allow_pickle=False)
        if digest(path) not in name:
            raise ValueError(f"{name} is not as it was saved")
    return arrays


def _file(folder: Path, name: object) -> Path:
    """Return a file of arrays; names that lead elsewhere are rejected."""
    if not ARRAYS.fullmatch(str(name)):
        raise ValueError(f"{name!r} is no file of its arrays")
    return folder / str(name)


def check_learned(cls: type, learned: Mapping[str, Any]) -> None:
    """Reject attributes that the method does not learn, or of another type, as loading sets nothing
    else; and views of different shapes, or without finite units. Networks are saved by weights."""
    hints, declared = settings.hints(cls), settings.attributes(cls)
    for name, value in learned.items():
        if not name.endswith("_") or name not in hints.keys() | declared.keys():
            raise ValueError(f"it holds {name!r}, which is not learned")
        hint = hints.get(name, PLAIN)
        hint = dict if isinstance(hint, type) and issubclass(hint, nn.Module) else hint
        if not (isinstance(value, hint) if hint in (PLAIN, dict) else settings.fits(value, hint)):
            raise ValueError(f"{name} is a {type(value).__name__}")
    views = learned.get("views_", ())
    for view in views:
        if not isinstance(view, FittedView):
            raise ValueError(f"one of views_ is a {type(view).__name__}")
        shape = tuple(view.shape)
        shapes = [(getattr(view.scaler, k), shape) for k in ("shift", "scale", "mean", "std")]
        for c in (view.calibration, view.at_holes):
            if c is not None:
                most = max(len(views), c.by_seen.size)  # for a pair, of all views
                shapes += [(c.noise, shape), (c.by_seen, (most,)), (c.reach, NORMAL_REACH.shape)]
        if any(array.shape != expected for array, expected in shapes):
            raise ValueError(f"view {view.name!r} has two shapes")
        if not all(a.dtype.kind == "f" and np.isfinite(a).all() for a, _ in shapes):
            raise ValueError(f"view {view.name!r} has units that are not finite")


def check_sizes(module: nn.Module, weights: Mapping[str, Any]) -> None:
    """Reject weights that do not fit a module, which is built without memory."""
    for name, parameter in module.named_parameters():
        shape = weights[name].shape if name in weights else "missing"
        if shape != tuple(parameter.shape):
            raise ValueError(f"{name} should be {tuple(parameter.shape)} and is {shape}")
    limits.check(sum(b.numel() * b.element_size() for b in module.buffers()), "the model")


def load_weights(module: nn.Module, weights: Mapping[str, Any]) -> None:
    """Load arrays into a module."""
    load_state(module, {k: torch.from_numpy(np.array(v)) for k, v in weights.items()})


def _pack(value: Any, key: str, arrays: dict[str, Any]) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        on_disk = isinstance(value, np.memmap) and value.size > 0
        arrays[key] = value if on_disk else np.array(value, order="C")
        return {"$array": key}
    if is_dataclass(value) and type(value).__name__ in _TYPES:
        names = [f.name for f in fields(value) if f.init]
        packed = {k: _pack(getattr(value, k), f"{key}.{k}", arrays) for k in names}
        return {"$type": type(value).__name__, "fields": packed}
    if isinstance(value, Likelihood):
        return {"$likelihood": value.name}
    if isinstance(value, Mapping):
        inside = [(k, v, f"{key}.{k}") for k, v in value.items()]
        return {"$dict": [[_pack(k, at, arrays), _pack(v, at, arrays)] for k, v, at in inside]}
    if isinstance(value, (list, range, np.ndarray, pd.Index)):
        return [_pack(v, f"{key}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, (np.generic, Path)):
        return value.item() if isinstance(value, np.generic) else str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for mark, (kind, parts, _) in _PARTS.items():
        if isinstance(value, kind):
            return {mark: _pack(parts(value), key, arrays)}
    raise TypeError(
        f"{key} holds {value!r}, a {type(value).__name__}, which cannot be saved; "
        "use numbers or text in its place"
    )


def _unpack(arrays: Mapping[str, Any], value: dict[str, Any]) -> Any:
    """Make the value of an object in JSON whose inner objects were made."""
    if "$array" in value:
        return arrays[value["$array"]]
    if "$type" in value:
        inside, kind = value["fields"], _TYPES[value["$type"]]
        for name, hint in get_type_hints(kind).items():
            if name in inside and not settings.fits(inside[name], hint):
                raise ValueError(f"{name} of {kind.__name__} is a {type(inside[name]).__name__}")
        return kind(**inside)
    if "$likelihood" in value:
        return LIKELIHOODS[value["$likelihood"]]
    for mark, (_, _, made) in _PARTS.items():
        if mark in value:
            return made(*value[mark])
    return dict(value["$dict"]) if "$dict" in value else value
