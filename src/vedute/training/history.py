"""The history of a training run, one record per epoch. Reading one needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

Record = dict[str, Any]


def kept(history: Sequence[Record]) -> Record:
    """Return the record whose weights were kept, the last one if no error was measured. Early
    stopping compares records of watched stages only. Any other stage replaces the weights; a stage
    with its own measure does so only if it improved."""
    best = None
    checked = (r for r in history if r["hidden_error"] is not None)
    for record in (r for r in checked if r.get("better", True)):
        compared = best is not None and best["watched"] and record["watched"]
        if best is None or not compared or record["hidden_error"] < best["hidden_error"]:
            best = record
    return best or history[-1]


def useful_steps(history: Sequence[Record]) -> int:
    """Count the steps that led to the kept weights: those up to the last improvement in watched
    stages and stages with their own measure, and all steps of the others."""
    total, best, start = 0, float("inf"), 0
    for _, group in groupby(history, key=lambda record: record["stage"]):
        records = list(group)
        watched = [r for r in records if r["watched"]]
        better = [r for r in watched if r["hidden_error"] < best]
        if better:
            first = min(better, key=lambda r: float(r["hidden_error"]))
            best = first["hidden_error"]
            total += first["step"] - start
        elif not watched:
            measured = any("better" in r for r in records)
            useful = [r["step"] for r in records if r.get("better", not measured)]
            total += max(useful, default=start) - start
        start = records[-1]["step"]
    return max(total, 1)


def second(history: Sequence[Record]) -> int:
    """Return the step after which the refit started; 0 without a refit."""
    if history and "ended" in history[-1] and not any("ended" in r for r in history[:-1]):
        return 0  # a single training run
    checked = [i for i, r in enumerate(history) if r["hidden_error"] is not None]
    last = history[checked[-1]] if checked else None
    after = history[checked[-1] + 1 :] if checked else []
    return int(last["step"]) if last and after and after[0]["stage"] > last["stage"] else 0


def warmup_end(history: Sequence[Record]) -> int:
    """Return the last step before the first stage with early stopping; that of the first stage if
    none has it."""
    first = min((r["stage"] for r in history if r["watched"]), default=1)
    return max((int(r["step"]) for r in history if r["stage"] < first), default=0)


def ended(history: Sequence[Record], reason: str) -> list[Record]:
    """Return the history with the reason why training ended in its last record."""
    return [*history[:-1], *({**record, "ended": reason} for record in history[-1:])]


def continued(before: Sequence[Record], after: Sequence[Record]) -> list[Record]:
    """Return one history of two successive training runs; `before` may be empty."""
    last = before[-1] if before else {"step": 0, "epoch": 0, "stage": -1}
    shift = {"step": last["step"], "epoch": last["epoch"], "stage": last["stage"] + 1}
    return [*before, *({**r, **{k: r[k] + by for k, by in shift.items()}} for r in after)]
