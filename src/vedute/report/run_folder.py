"""RUN folders, what `vedute fit` leaves behind: written and read here.

model.json, model-*.safetensors   the estimator, for `vedute.load`
config.toml                       method and settings
data.json                         what it was fitted on, how that was read, by which version
history.jsonl                     per epoch: step, stage, loss terms, error on hidden views
embedding.npz                     embedding, mask, and where known labels and ids; of a store
                                  without the embedding, which the model has in a file
hidden.npz                        per hidden view: row, view, error, error of mean-fill
report.npz                        further measurements for the page, see `vedute.report.measure`
"""

from __future__ import annotations

import json
import sys
import tomllib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from string import digits
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from vedute import __version__, datasets, io, methods
from vedute.data import missing
from vedute.data.limits import plain_file
from vedute.data.views import Views
from vedute.estimators import clustering
from vedute.estimators.base import Estimator, saveable
from vedute.estimators.saving import name_of
from vedute.io import toml
from vedute.methods.best_pair import BestPair
from vedute.report.measure import Array, Results, evidence, personal
from vedute.training import history

Content = TypeVar("Content")
RUN_FILES = ("config.toml", "data.json", "embedding.npz")
KEPT_FACTS = ("source", "n", "names", "shapes", "mask")  # in data.json

AS_GOOD = 1.02  # times the error of the model
CLEAR = 0.05  # a sample this much nearer to its center than to the next is not uncertain


class Keep(NamedTuple):
    """Data of single samples to keep: ids, and names of files and folders; values and labels."""

    ids: bool = True
    values: bool = True

    def left_out(self) -> list[str]:
        """Words for what is not kept."""
        return [word for word, kept in self._asdict().items() if not kept]


EVERYTHING = Keep()


def write(
    folder: Path,
    model: Estimator,
    views: Views,
    source: str,
    preset: str | None,
    reading: Mapping[str, Any],
    keep: Keep = EVERYTHING,
) -> None:
    """Write the RUN folder of a fitted model; reading: options that the data were read with."""
    if not keep.values:
        _forget(model)
    if not keep.ids:
        folders = [k for k in model.get_params() if k.rpartition("__")[2] == "checkpoint"]
        model.set_params(**dict.fromkeys(folders))
    model.save(folder)
    run = _of(model, views, source, preset, keep)
    facts = run.facts | {"reading": dict(reading)}
    if not keep.ids:  # datasets keep their names; files and folders do not
        name = source if datasets.has(source) else ""
        command = [word if word == name else public(word, source) for word in facts["command"]]
        facts |= {"source": name, "command": command}
    (folder / "config.toml").write_text(toml.dumps(run.config), encoding="utf-8")
    (folder / "data.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    lines = [json.dumps(record) + "\n" for record in run.history]
    (folder / "history.jsonl").write_text("".join(lines), encoding="utf-8")
    arrays = {"mask": run.mask, "labels": run.labels, "ids": run.ids}
    if not isinstance(model.embedding_, np.memmap):  # else `save` wrote its file
        arrays["embedding"] = model.embedding_
    io.npz.write_npz(folder / "embedding.npz", arrays)
    io.npz.write_npz(folder / "hidden.npz", run.hidden)


def of_model(model: Estimator, X: Any, keep: Keep = EVERYTHING) -> FittedRun:
    """A run in memory of a fitted model and the X that it was fitted on."""
    check_is_fitted(model, "views_")
    views = Views.of(X, None, model.columns, like=model.specs, dtype=torch.float64)
    n, m = len(model.results().get("labels_", model.embedding_)), len(views)
    if n and n != m:
        raise ValueError(f"X has {m} samples, the model was fitted on {n}; pass the X of fit")
    run = _of(model, views, "Data", None, keep)
    facts = run.facts | {"command": [repr(clone(model)), ".fit(X)"]}
    return replace(run, facts=facts, results=evidence(model, views).kept(keep.values))


def used_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were passed, and those resolved from the data."""
    return {**config.get("settings", {}), **config.get("used", {})}


def _forget(model: Estimator) -> None:
    """Remove values of single samples from a fitted model."""
    model.embedding_ = model.embedding_[:0]  # which can be decoded
    known = getattr(model, "hidden_predictions_", {})
    values = personal()  # hidden_predictions_ has them by view: mean0, mean1, ...
    model.hidden_predictions_ = {k: a for k, a in known.items() if k.rstrip(digits) not in values}
    for part in (model, *model.parts()):
        network: Any = getattr(part, "model_", None)
        if hasattr(network, "posteriors"):  # MVP generates samples like these; draws do as well
            rows = network.posteriors.cpu().double().numpy()
            drawn = clustering.mixture(rows, model.seed_).sample(len(rows))[0]
            network.posteriors = network.posteriors.new_tensor(drawn)


def public(word: str, source: str) -> str:
    """A word of a command without private names: DATA for its source, files without folders."""
    if source and Path(word).name == Path(source).name:
        return "DATA"
    return Path(word).name if "/" in word or "\\" in word else word


def _of(model: Estimator, views: Views, source: str, preset: str | None, keep: Keep) -> FittedRun:
    """A run without further measurements. Facts are on the data, the versions and the command."""
    learned, seen, names = model.results(), views.mask.numpy(), list(views.names)
    rates, observed = missing.rates(seen), seen.mean(0).tolist()
    asked = model.unwrapped() if isinstance(model, BestPair) else model
    settings, used = saveable(asked.get_params(deep=False)), asked.decided()
    config = {"method": name_of(type(asked)), "preset": preset, "settings": settings}
    facts = {
        "source": source if datasets.has(source) else str(Path(source).resolve()),
        "date": date.today().isoformat(),
        "n": len(views),
        "names": names,
        "shapes": [list(s) for s in views.shapes],
        "missing_rows": rates.rows,
        "missing_slots": rates.slots,
        "missing_by_view": dict(zip(names, (~seen).mean(0).tolist(), strict=True)),
        "holes_by_view": {k: views.share_of_holes(v) * observed[v] for v, k in enumerate(names)},
        "mask": missing.fingerprint(seen),
        "versions": {
            "vedute": __version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": np.__version__,
            "torch": version("torch"),
        },
        "command": ["vedute", *sys.argv[1:]],
        "seed": model.random_state,
        "left_out": keep.left_out(),
        "weights": getattr(model, "weights_", {}),
    }
    return FittedRun(
        config=config | {"used": used} if used else config,
        facts=facts,
        history=learned.get("history_", []),
        mask=seen,
        labels=learned.get("labels_"),
        ids=views.ids if keep.ids else None,
        hidden=learned.get("hidden_", {}),
        private=not keep.ids,
    )


def source_of(run: Path) -> str:
    """The dataset or path of the data of a RUN; an error if they are gone."""
    source = str(_facts(run)["source"]) if (run / "data.json").is_file() else ""
    if not source:
        raise FileNotFoundError(f"{run} does not say what it was fitted on; name DATA as well")
    if not Path(source).exists() and not datasets.has(source):
        raise FileNotFoundError(f"{source}, which {run} was fitted on, is gone; name DATA as well")
    return source


def keeps(run: Path) -> Keep:
    """The data of single samples that a RUN keeps."""
    left_out = _facts(run).get("left_out", ())
    return Keep(*(word not in left_out for word in Keep._fields))


def reading_of(run: Path) -> dict[str, Any]:
    """Options used to read the data of a RUN; empty if not recorded."""
    try:
        return dict(_facts(run).get("reading", {}))
    except (ValueError, TypeError, OSError):
        return {}


def _facts(run: Path) -> dict[str, Any]:
    path = plain_file(run / "data.json")
    try:
        facts: dict[str, Any] = json.loads(_text(path))
        return {name: facts[name] for name in KEPT_FACTS} | facts
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged; name DATA as well, or fit again") from None


@dataclass(frozen=True, eq=False)
class FittedRun:
    """A fit, its data and its measurements."""

    config: dict[str, Any]
    facts: dict[str, Any]  # data.json
    history: list[dict[str, Any]]
    mask: NDArray[np.bool_]  # (n, L)
    labels: Array | None  # (n,)
    ids: Array | None
    hidden: dict[str, Array]  # row, view, error and mean_error of each instance
    results: Results = field(default_factory=Results)
    private: bool = False  # names of samples are left out

    @classmethod
    def of(cls, folder: Path, keep: Keep = EVERYTHING) -> FittedRun:
        """Read a RUN folder."""
        lacking = [name for name in RUN_FILES if not (folder / name).is_file()]
        if lacking:
            fix = "give a folder that `vedute fit` wrote"
            raise FileNotFoundError(f"{folder} has no {lacking[0]}; {fix}")
        arrays = _whole(folder / "embedding.npz", _arrays)
        facts = _whole(folder / "data.json", lambda _: _facts(folder))
        keep = Keep(*(a and b for a, b in zip(keep, keeps(folder), strict=True)))
        measured = _whole(folder / "report.npz", lambda p: Results.of(_arrays(p)))
        return cls(
            config=_whole(folder / "config.toml", lambda p: tomllib.loads(_text(p))),
            facts=facts | {"left_out": keep.left_out()},
            history=_whole(folder / "history.jsonl", _records),
            mask=_whole(folder / "embedding.npz", lambda _: arrays["mask"].astype(bool)),
            labels=arrays.get("labels"),
            ids=arrays.get("ids"),
            hidden=_whole(folder / "hidden.npz", _arrays),
            results=measured.kept(keep.values),
            private=not keep.ids,
        )

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.facts["names"]]

    @property
    def method(self) -> str:
        name = str(self.config["method"])
        return methods.baselines().get(name, self.results.method or name.upper())

    @property
    def source(self) -> str:
        """The name of the data without folder and ending; in a private run only of datasets."""
        source = Path(str(self.facts["source"]))
        return "Data" if self.private and source.is_absolute() else source.stem or "Data"

    def sample(self, row: int) -> str:
        """The name of a sample; empty in a private run."""
        if self.private:
            return ""
        return f"row {row}" if self.ids is None else str(self.ids[row])

    def views_of(self, row: int) -> str:
        """The views that a sample has, or lacks, whichever list is shorter."""
        names = np.array(self.names, object)
        seen, lost = names[self.mask[row]], names[~self.mask[row]]
        if len(lost) > len(seen):
            return f"only {', '.join(seen)}"
        return f"without {', '.join(lost)}" if len(lost) else "all views observed"

    def gaps(self, row: int) -> dict[str, str]:
        """Missing entries of the observed views of a sample, by view: "2 values of blood"."""
        counts = dict(zip(self.names, self.gap_counts[row].tolist(), strict=True))
        return {name: f"{k} value{'s' * (k != 1)} of {name}" for name, k in counts.items() if k}

    @cached_property
    def gap_counts(self) -> Array:
        """The number of missing entries of observed views, (n, L)."""
        return self.results.gaps if len(self.results.gaps) else np.zeros_like(self.mask, int)

    def held_out(self) -> bool:
        """Whether hidden views were predicted before the model learned from them."""
        known = self.results.held_out  # None: not measured
        return not self.history or self.watched() if known is None else known

    def hidden_views(self) -> Array:
        """The view of each measured hidden instance, (h,)."""
        return self._hidden("view") if self.hidden and self.held_out() else np.empty(0, int)

    def hidden_rows(self) -> Array:
        """The row of each measured hidden instance, (h,)."""
        return self._hidden("row")

    def base(self) -> Array:
        """The error of mean-fill at the measured hidden instances, (h,)."""
        return self._hidden("mean_error")

    def errors(self) -> dict[str, Array]:
        """Errors of the model and then of the simple fills at the hidden instances, (h,) each."""
        measured = self.results.fill_errors | {"mean_fill": self.base()}
        fills = {name: measured[k] for k, name in methods.baselines().items() if k in measured}
        error = self.results.error if len(self.results.error) else self._hidden("error")
        return {self.method: error} | fills | {self.method: error}

    def advice(self) -> str | None:
        """A simple fill that is as good as the trained model, and its time; None if none is."""
        results, names = self.results, methods.baselines()
        errors = {k: results.fill_errors[k].mean() for k in names if k in results.fill_seconds}
        best = min(errors, key=lambda k: errors[k], default="")
        if not best or not self.history or errors[best] > AS_GOOD * results.error.mean():
            return None
        seconds, rows = float(results.fill_seconds[best]), results.fill_rows
        time = f"{seconds:.0f} s" if seconds >= 2 else f"{max(seconds, 0.1):.1f} s"
        subset = "" if rows == len(self.mask) else f" for {rows} samples"
        return f"{names[best]} is as good on these data and takes {time}{subset}: --method {best}"

    def warmup(self) -> int:
        """The last step of the warm-up, whose weights are never kept; 0 without one."""
        settings = used_settings(self.config)
        warms = settings.get("warmup") or "experts" in settings  # of which MVP may have one
        return history.warmup_end(self.history) if warms else 0

    def second(self) -> int:
        """The step after which the model was refit; 0 without a refit."""
        return history.second(self.history)

    def watched(self) -> bool:
        """Whether hidden views decided when to stop."""
        return any(r["hidden_error"] is not None for r in self.history)

    @cached_property
    def uncertain(self) -> NDArray[np.bool_]:
        """Whether another cluster is about as near, or nearer without one of the views, (n,)."""
        results = self.results
        if not len(results.margin):
            return np.zeros(len(self.mask), bool)
        return np.asarray((results.stays < results.tries) | (results.margin < CLEAR))

    def _hidden(self, name: str) -> Array:
        picked = self.results.picked
        return np.asarray(self.hidden[name][picked] if len(picked) else self.hidden[name])


def _whole(path: Path, read: Callable[[Path], Content]) -> Content:
    """Read a file; raise a ValueError if it is damaged."""
    try:
        return read(path)
    except (ValueError, KeyError, TypeError, EOFError, NotImplementedError, BadZipFile, zlib.error):
        raise ValueError(f"{path} is damaged; fit again") from None


def _arrays(path: Path) -> dict[str, Array]:
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _text(path).splitlines()] if path.is_file() else []


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
