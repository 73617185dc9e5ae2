"""What a RUN folder tells, read once: files only, no model, no torch."""

from __future__ import annotations

import json
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Found = TypeVar("Found")
FILES = ("config.toml", "data.json", "embedding.npz")
FACTS = ("source", "n", "names", "shapes", "mask")  # in data.json
FILLS = {"lowrank_fill": "low-rank fill", "knn_fill": "kNN fill", "mean_fill": "mean fill"}
CLEAR = 0.05  # a sample this much nearer to its center than to the next is not uncertain


@dataclass(frozen=True, eq=False)
class Run:
    """A fit, its data and its evidence.

    facts: data.json; found: report.npz as `vedute.evidence` tells, empty for older runs
    mask (n, L), labels (n,) or None, hidden: row, view, error and mean_error of each instance
    private: whether samples are to stay without a name
    """

    config: dict[str, Any]
    facts: dict[str, Any]
    history: list[dict[str, Any]]
    mask: NDArray[np.bool_]
    labels: Array | None
    ids: Array | None
    hidden: dict[str, Array]
    found: dict[str, Array]
    private: bool = False

    @classmethod
    def of(cls, folder: Path, private: bool = False) -> Run:
        lacking = [name for name in FILES if not (folder / name).is_file()]
        if lacking:
            raise FileNotFoundError(
                f"{folder} has no {lacking[0]}; give a folder that `vedute fit` wrote"
            )
        results = _whole(folder / "embedding.npz", _arrays)
        if "mask" not in results:
            raise ValueError(f"{folder / 'embedding.npz'} is damaged; fit again")
        return cls(
            config=_whole(folder / "config.toml", lambda p: tomllib.loads(_text(p))),
            facts=_whole(folder / "data.json", _facts),
            history=_whole(folder / "history.jsonl", _lines),
            mask=results["mask"].astype(bool),
            labels=results.get("labels"),
            ids=results.get("ids"),
            hidden=_whole(folder / "hidden.npz", _arrays),
            found=_whole(folder / "report.npz", _arrays),
            private=private,
        )

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.facts["names"]]

    @property
    def method(self) -> str:
        own = str(self.found.get("method", str(self.config["method"]).upper()))
        return FILLS.get(str(self.config["method"]), own)

    @property
    def source(self) -> str:
        """Of the data, as short as it can be told."""
        return Path(str(self.facts["source"])).stem

    def sample(self, row: int) -> str:
        """What a sample is called; nothing in private."""
        if self.private:
            return ""
        return f"row {row}" if self.ids is None else str(self.ids[row])

    def views_of(self, row: int) -> str:
        """Which views a sample has, or lacks, whichever is shorter to tell."""
        seen = self.mask[row]
        lost = [name for name, s in zip(self.names, seen, strict=True) if not s]
        if not lost:
            return "all views observed"
        if 2 * len(lost) <= len(seen):
            return f"without {', '.join(lost)}"
        return f"only {', '.join(name for name in self.names if name not in lost)}"

    def hidden_views(self) -> Array:
        """Which view each measured hidden instance is of, (h,)."""
        return np.asarray(self.hidden["view"][self._picked()]) if self.hidden else np.empty(0, int)

    def base(self) -> Array:
        """What the mean of each feature gets wrong at these, (h,)."""
        return np.asarray(self.hidden["mean_error"][self._picked()])

    def errors(self) -> dict[str, Array]:
        """Of the model and of the simple fills at these, (h,) each; the model first."""
        fills = {name: self.found[key] for key, name in FILLS.items() if key in self.found}
        fills |= {FILLS["mean_fill"]: self.base()}
        return {self.method: self.hidden["error"][self._picked()]} | {
            name: e for name, e in fills.items() if name != self.method
        }

    def warmup(self) -> int:
        """The last step of the warm-up, whose weights are never kept; 0 where there is none."""
        if not self.config.get("settings", {}).get("warmup"):
            return 0
        first = min((r["stage"] for r in self.history if r["watched"]), default=1)
        return max((int(r["step"]) for r in self.history if r["stage"] < first), default=0)

    def watched(self) -> bool:
        """Whether hidden views decided when to stop."""
        return any(r["hidden_error"] is not None for r in self.history)

    def uncertain(self) -> NDArray[np.bool_]:
        """(n,): another cluster is about as near, or nearer once a view is left out."""
        if "margin" not in self.found:
            return np.zeros(len(self.mask), bool)
        moves = self.found["stays"] < self.found["tries"]
        return np.asarray(moves | (self.found["margin"] < CLEAR))

    def _picked(self) -> Any:
        return self.found.get("picked", slice(None))


def _whole(path: Path, read: Callable[[Path], Found]) -> Found:
    """What is in a file that nobody cut short."""
    try:
        return read(path)
    except (ValueError, KeyError, TypeError, EOFError, NotImplementedError, BadZipFile, zlib.error):
        raise ValueError(f"{path} is damaged; fit again") from None


def _facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_text(path))
    return {name: facts[name] for name in FACTS} | facts


def _arrays(path: Path) -> dict[str, Array]:
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _text(path).splitlines()] if path.is_file() else []


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
