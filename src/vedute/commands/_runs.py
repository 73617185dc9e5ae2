"""RUN folders: what `vedute fit` leaves behind.

model.json, model-*.safetensors the estimator, for `vedute.load`
config.toml                     method and settings
data.json                       what it was fitted on, by which version and command
history.jsonl                   per epoch: step, stage, loss terms, error on hidden views
embedding.npz                   embedding, mask, and where known labels and ids
hidden.npz                      per hidden view: row, view, error, error of mean-fill
report.npz                      what a page tells beside these, as `vedute.evidence` says
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from vedute import __version__, io, missing
from vedute.commands import _data, _toml
from vedute.estimator import Estimator
from vedute.pairs import BestPair
from vedute.views import Views


def write(folder: Path, model: Estimator, views: Views, source: str, preset: str | None) -> None:
    """Everything that a run leaves behind."""
    model.save(folder)
    learned = vars(model)
    asked = model.unwrapped() if isinstance(model, BestPair) else model
    settings = asked.get_params(deep=False)
    method = type(asked).__module__.rpartition(".")[2]
    config = {"method": method, "preset": preset, "settings": settings}
    (folder / "config.toml").write_text(_toml.dumps(config), encoding="utf-8")
    facts = describe(views, source) | {"seed": settings["random_state"]}
    (folder / "data.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    lines = [json.dumps(record) + "\n" for record in learned.get("history_", [])]
    (folder / "history.jsonl").write_text("".join(lines), encoding="utf-8")
    results = {"embedding": model.embedding_, "mask": views.mask.numpy()}
    results |= {"labels": learned["labels_"]} if "labels_" in learned else {}
    results |= {"ids": views.ids} if views.ids is not None else {}
    io.write_npz(folder / "embedding.npz", results)
    io.write_npz(folder / "hidden.npz", learned.get("hidden_", {}))


def describe(views: Views, source: str) -> dict[str, Any]:
    """Facts on the data, and on who asks."""
    seen = views.mask.numpy()
    rates = missing.rates(seen)
    holes = [0.0 if h is None else float(h.double().mean()) for h in views.holes]
    return {
        "source": source if _data.is_dataset(source) else str(Path(source).resolve()),
        "n": len(views),
        "names": list(views.names),
        "shapes": [list(s) for s in views.shapes],
        "missing_rows": rates.rows,
        "missing_slots": rates.slots,
        "missing_by_view": dict(zip(views.names, (~seen).mean(0).tolist(), strict=True)),
        "holes_by_view": dict(zip(views.names, holes, strict=True)),
        "mask": missing.fingerprint(seen),
        "versions": {
            "vedute": __version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": np.__version__,
            "torch": version("torch"),
        },
        "command": ["vedute", *sys.argv[1:]],
    }
