"""Damaged files of every format: they are read, or refused with one sentence."""

from __future__ import annotations

import gzip
import io as memory
import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from PIL import Image
from scipy.io import savemat

from vedute import io
from vedute_bench.soak.inputs import chance, pick
from vedute_bench.soak.through_files import MISTAKES, command
from vedute_bench.soak.watching import in_subprocess, refused, watched

SIZE = 60
BATCHES, QUICK = 10, range(2)
os.environ["VEDUTE_MAX_BYTES"] = str(20 * 10**6)
TEXT = "id,a1,a2\n" + "".join(f"p{i},{i}.5,{-i}\n" for i in range(12))


def cases(batch: int) -> Iterator[tuple[str, Callable[[Path], str]]]:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        yield str(seed), partial(case, seed)


def case(seed: int, place: Path) -> str:
    rng = np.random.default_rng([6, seed])
    kind = [*FORMATS][seed % len(FORMATS)]
    path = FORMATS[kind](place)
    if chance(rng, 0.15) and kind in LIES:
        path.write_bytes(LIES[kind]())
    else:
        path.write_bytes(damaged(rng, path.read_bytes()))
    return f"{kind}: {in_subprocess(partial(read, place, kind))}"


def damaged(rng: Generator, content: bytes) -> bytes:
    """Damage the content: truncated, flipped, overwritten, repeated, or in another encoding."""
    n = len(content)
    at, to = sorted(int(i) for i in rng.integers(0, n + 1, 2))
    flipped = bytearray(content)
    for _ in range(1 + int(rng.integers(20))):
        flipped[int(rng.integers(n))] ^= 1 << int(rng.integers(8))
    options = [
        content[:at], content[at:], content[:at] + content[to:], content + content,
        bytes(flipped), bytes(flipped), bytes(flipped),
        content[:at] + bytes(rng.integers(0, 256, 64, dtype=np.uint8)) + content[at:],
        content[:at] + b"\0" * (to - at) + content[to:], content + b"\xff" * 100, b"", b"\0" * 64,
        content.decode("latin-1").encode("utf-16"), b"\xef\xbb\xbf" + content,
        content.replace(b"1", b"9"), content.replace(b"\n", b"\r"), content.replace(b",", b";;"),
    ]  # fmt: skip
    return bytes(pick(rng, options))


def read(place: Path, kind: str) -> str:
    """Read the file in Python and on the command line, and check that nothing is written."""
    if kind == "records":
        words, source = ["report", "r.jsonl", "-o", "out"], "r.jsonl"
    elif kind in ("spec", "table", "wide parquet"):
        source = "d.parquet" if kind == "wide parquet" else "d.csv"
        words = ["inspect", source, "--views", "views.toml"]
    else:
        source = next(name for name in ("d", "d.npz", "d.mat") if (place / name).exists())
        words = ["inspect", source]
    with watched(place):
        code = command(*words)
        if kind in ("records", "spec", "table", "wide parquet"):
            return "refused" if code else "read"
        try:
            io.enter(io.read(place / source, io.Reading()))
        except Exception as error:
            return refused(error, MISTAKES)
    return "read"


# Writers of one valid file of each format; they return the path of the file to damage.


def _beside(place: Path) -> Path:
    (place / "d").mkdir()
    (place / "d/b.csv").write_text("id,b1\n" + "".join(f"p{i},{i * i}\n" for i in range(12)))
    return place / "d"


def _text(name: str, pack: Callable[[bytes], bytes], place: Path) -> Path:
    path = _beside(place) / name
    path.write_bytes(pack(TEXT.encode()))
    return path


def _frame() -> pd.DataFrame:
    return pd.DataFrame({"a1": np.arange(12.0), "a2": [f"k{i % 2}" for i in range(12)]},
                        [f"p{i}" for i in range(12)])  # fmt: skip


def _parquet(place: Path) -> Path:
    path = _beside(place) / "a.parquet"
    _frame()[["a1"]].to_parquet(path)
    return path


def _npy(ids: bool, place: Path) -> Path:
    path = _beside(place) / "a.npy"
    np.save(path, np.arange(24.0).reshape(12, 2))
    path.with_name("a.ids.txt").write_text("".join(f"p{i}\n" for i in range(12)))
    return path.with_name("a.ids.txt") if ids else path


def _npz(place: Path) -> Path:
    a, b = np.arange(36.0).reshape(12, 3), np.arange(24).reshape(12, 2)
    np.savez_compressed(place / "d.npz", a=a, b=b, ids=[f"p{i}" for i in range(12)])
    return place / "d.npz"


def _mat(packed: bool, place: Path) -> Path:
    cell = np.empty((1, 2), object)
    cell[0, 0], cell[0, 1] = np.arange(36.0).reshape(12, 3), np.arange(24.0).reshape(12, 2)
    savemat(place / "d.mat", {"X": cell, "Y": np.arange(12)[:, None]}, do_compression=packed)
    return place / "d.mat"


def _image(ending: str, place: Path) -> Path:
    (_beside(place) / "front").mkdir()
    rng = np.random.default_rng(0)
    for i in range(4):
        pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"d/front/p{i}.{ending}")
    return place / f"d/front/p1.{ending}"


def _records(place: Path) -> Path:
    record = {"study": "s", "label": "A", "method": "mean_fill", "seed": 1, "dataset": "synthetic"}
    record |= {"rate": 0.5, "overrides": {}, "settings": {}, "seconds": 1.0, "wall": 1.0}
    record |= {"scores": {"acc": 50.0, "error": 0.5}, "device": "a", "preset": None, "mask": "x"}
    lines = [json.dumps(record | {"seed": seed}) + "\n" for seed in range(3)]
    (place / "r.jsonl").write_text("".join(lines))
    return place / "r.jsonl"


def _spec(which: str, place: Path) -> Path:
    (place / "d.csv").write_text(TEXT.replace("a2", "b2"))
    _frame()[["a1"]].assign(b2=1.5).to_parquet(place / "d.parquet")
    (place / "views.toml").write_text('[views]\na = "a*"\nb = "b*"\n')
    return place / which


FORMATS: dict[str, Callable[[Path], Path]] = {
    "csv": partial(_text, "a.csv", lambda b: b),
    "tsv": partial(_text, "a.tsv", lambda b: b.replace(b",", b"\t")),
    "csv.gz": partial(_text, "a.csv.gz", gzip.compress),
    "parquet": _parquet,
    "npy": partial(_npy, False),
    "ids": partial(_npy, True),
    "npz": _npz,
    "mat": partial(_mat, False),
    "packed mat": partial(_mat, True),
    "png": partial(_image, "png"),
    "jpg": partial(_image, "jpg"),
    "records": _records,
    "spec": partial(_spec, "views.toml"),
    "table": partial(_spec, "d.csv"),
    "wide parquet": partial(_spec, "d.parquet"),
}


# Headers of huge arrays, and small files that decompress to large ones.


def _header(shape: tuple[int, ...]) -> bytes:
    file = memory.BytesIO()
    facts: dict[str, Any] = {"shape": shape, "fortran_order": False, "descr": "<f8"}
    np.lib.format.write_array_header_1_0(file, facts)
    return file.getvalue()


def _zip_bomb() -> bytes:
    file = memory.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", _header((10**6, 5)) + b"\0" * (40 * 10**6))
    return file.getvalue()


def _wide_image() -> bytes:
    file = memory.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "png")
    content = bytearray(file.getvalue())
    content[16:24] = struct.pack(">II", 60_000, 60_000)
    return bytes(content)


LIES: dict[str, Callable[[], bytes]] = {
    "npy": lambda: _header((10**12, 9)),
    "npz": _zip_bomb,
    "csv.gz": lambda: gzip.compress(b"id,a\n" + b"p,1\n" * 8_000_000, 1),
    "records": lambda: b"[" * 10**6 + b"\n",
    "spec": lambda: b"[views]\na = " + b"[" * 10**5,
    "png": _wide_image,
}
