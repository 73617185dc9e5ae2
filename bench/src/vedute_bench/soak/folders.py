"""Altered folders of saved models: they load and work, or are refused with one sentence.

Nothing is executed or written.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from every_method import METHODS, small
from numpy.random import Generator
from safetensors.numpy import load, save

import vedute
from vedute.estimators import saving
from vedute.methods.best_pair import for_views
from vedute_bench.soak.fits import TINY
from vedute_bench.soak.inputs import chance, pick
from vedute_bench.soak.watching import in_subprocess, refused, watched

SIZE = 50
BATCHES, QUICK = 10, range(2)
KINDS = ("mean_fill", "knn_fill", "lowrank_fill", "mvp", "mopoe", "dvimc", "completer")
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 3, 10**9, 10**30, 0.5, float("nan"), float("inf"), "", "x", "cpu"),
    *([], {}, [[]], {"$dict": []}, {"$tuple": []}, {"$array": "learned.embedding_"}, "../../x"),
    *({"$array": "nothing"}, {"$type": "Scaler", "fields": {}}, {"$likelihood": "normal"}),
    *({"$slice": [0, 1, 0]}, {"$timestamp": ["x"]}, {"$period": ["2020", "x"]}, "/etc/passwd"),
    *({"$type": "os.system", "fields": {}}, {"__reduce__": "x"}, [0] * 1000, "é" * 1000),
)
LOADED = (ValueError, TypeError, OSError)


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        yield str(seed), partial(case, seed)


@cache
def views() -> list[Any]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(24, 2))
    X = [z @ rng.normal(size=(2, w)) + 0.1 * rng.normal(size=(24, w)) for w in (3, 2, 2)]
    X[1][:4] = np.nan
    return X


@cache
def saved(method: str) -> tuple[str, bytes, str]:
    """Contents of model.json and of the arrays' file, and its name."""
    model = for_views(small(METHODS[method], TINY, n_clusters=2), 3).fit(views())
    with tempfile.TemporaryDirectory() as place:
        model.save(place)
        (tensors,) = Path(place).glob("*.safetensors")
        return (Path(place) / "model.json").read_text(), tensors.read_bytes(), tensors.name


def warm() -> None:
    for method in KINDS:
        saved(method)


def case(seed: int, place: Path) -> str:
    rng = np.random.default_rng([5, seed])
    text, tensors, name = saved(pick(rng, KINDS))
    folder = place / "m"
    folder.mkdir()
    (folder / "model.json").write_text(text)
    (folder / name).write_bytes(tensors)
    kind: Callable[[Generator, Path, str], None] = pick(
        rng, (facts, facts, facts, facts, arrays, arrays, arrays, bytes_of, bytes_of, links)
    )
    kind(rng, folder, name)
    resealed = chance(rng, 0.7) and reseal(folder)
    outcome = str(in_subprocess(partial(used, place)))
    if outcome == "loaded" and not resealed:
        whole = (folder / "model.json").read_text(), (folder / name).read_bytes()
        assert whole == (text, tensors), "an edit that was not noticed"
    return outcome


def used(place: Path) -> str:
    """Load the model and use all its verbs."""
    before = {str(p) for p in place.rglob("*")}
    with watched(place):
        try:
            model = vedute.load(place / "m")
        except Exception as error:
            return refused(error, LOADED)
        try:
            answers = [model.transform(views()), model.predict(views())]
            answers += model.impute(views()) if model.generative else []
        except Exception as error:
            return f"{refused(error)} when used"
    assert {str(p) for p in place.rglob("*")} == before, "loading wrote something"
    assert all(len(a) == len(views()[0]) for a in answers), "other rows"
    return "loaded"


# Alterations.


def facts(rng: Generator, folder: Path, name: str) -> None:
    """Change, remove, add or move values in model.json."""
    content = json.loads((folder / "model.json").read_text())
    for _ in range(1 + int(rng.integers(2))):
        places = [*nodes(content)]
        holder, key = places[int(rng.integers(len(places)))]
        match int(rng.integers(6)):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[pick(rng, ("x", "$array", "$type", "format", "__class__", "fit"))] = pick(
                    rng, VALUES
                )
            case 2:
                other, at = places[int(rng.integers(len(places)))]
                holder[key] = copy.deepcopy(other[at])
            case 3 if isinstance(holder[key], (int, float)):
                holder[key] = holder[key] * pick(rng, (-1, 2, 1000, 10**12))
            case _:
                holder[key] = pick(rng, VALUES)
    text = json.dumps(content)
    if chance(rng, 0.05):
        text = pick(rng, (text[: len(text) // 2], "[" * 10**5, "", "null", "3", text + "x"))
    (folder / "model.json").write_text(text)


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container and key in nested lists and dicts."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inside in pairs:
        yield value, key
        if isinstance(inside, (dict, list)):
            yield from nodes(inside)


def reseal(folder: Path) -> bool:
    """Update the checksum of an altered model.json, like an attacker who knows the format."""
    path = folder / "model.json"
    if not path.is_file():  # a pipe or a device would block
        return False
    try:
        path.write_text(saving.sealed(json.loads(path.read_text())))
    except (OSError, ValueError, TypeError, RecursionError):  # a broken link, or not JSON
        return False
    return True


def renamed(folder: Path, name: str, content: bytes) -> None:
    """Write arrays under the name with their checksum, like an attacker who knows the format."""
    new = f"model-{hashlib.sha256(content).hexdigest()}.safetensors"
    (folder / name).unlink()
    (folder / new).write_bytes(content)
    text = (folder / "model.json").read_text().replace(name, new)
    (folder / "model.json").write_text(text)


def arrays(rng: Generator, folder: Path, name: str) -> None:
    """Write arrays of other shapes, types, names or values, with the right checksum."""
    tensors = load((folder / name).read_bytes())
    key = pick(rng, sorted(tensors))
    a = tensors[key]
    odd: list[Callable[[], Any]] = [
        lambda: a[..., :0] if a.ndim else a.reshape(0),
        lambda: np.concatenate([a, a]) if a.ndim else np.stack([a, a]),
        lambda: a.reshape(-1),
        lambda: a[None],
        lambda: a.astype(np.int8),
        lambda: a.astype(np.float16),
        lambda: np.full_like(a, np.nan) if a.dtype.kind == "f" else np.full_like(a, -1),
        lambda: np.full_like(a, np.inf) if a.dtype.kind == "f" else np.full_like(a, 100),
        lambda: np.zeros_like(a),
        lambda: a.T,
        lambda: a > 0,
    ]
    if chance(rng, 0.2):
        tensors[pick(rng, ("x", f"{key}.x", "learned.model_.x"))] = tensors.pop(key)
    else:
        tensors[key] = np.ascontiguousarray(pick(rng, odd)())
    renamed(folder, name, save(tensors))


def bytes_of(rng: Generator, folder: Path, name: str) -> None:
    """Change bits, the end or the header of the arrays' file."""
    content = bytearray((folder / name).read_bytes())
    match int(rng.integers(5)):
        case 0:
            content = content[: int(rng.integers(len(content)))]
        case 1:
            for _ in range(1 + int(rng.integers(8))):
                content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        case 2:
            content[:8] = int(pick(rng, (0, 2**63 - 1, 10**9, 7))).to_bytes(8, "little")
        case 3:
            at = int(rng.integers(8, 200))
            content[at : at + 4] = pick(rng, (b"9999", b"\0\0\0\0", b"}}}}", b"\xff\xff\xff\xff"))
        case _:
            content += b"x" * 100
    if chance(rng, 0.6):
        renamed(folder, name, bytes(content))
    else:
        (folder / name).write_bytes(content)


def links(rng: Generator, folder: Path, name: str) -> None:
    """Replace files with links, folders or pipes."""
    victim = folder / pick(rng, ("model.json", name))
    elsewhere = folder.parent / "elsewhere"
    match int(rng.integers(6)):
        case 0:
            victim.rename(elsewhere)
            victim.symlink_to(elsewhere)
        case 1:
            victim.unlink()
            victim.symlink_to(victim)
        case 2:
            victim.unlink()
            victim.mkdir()
        case 3:
            victim.unlink()
            victim.symlink_to("/dev/zero")
        case 4:
            victim.unlink()
            os.mkfifo(victim)
        case _:
            shutil.copyfile(folder / name, elsewhere)
            text = (folder / "model.json").read_text().replace(name, "../elsewhere")
            (folder / "model.json").write_text(text)
