"""The history of a training run, one record per epoch. Reading one needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
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
    for _, group in groupby(history, key=itemgetter("stage")):
        useful, judged = start, False
        for record in group:
            step = record["step"]
            if record["watched"] or "better" in record:
                useful, judged = useful if judged else start, True
            better = record.get("better", not judged)
            if record["watched"] and record["hidden_error"] < best:
                best, better = record["hidden_error"], True
            useful = step if better else useful
        total += useful - start
        start = step
    return max(total, 1)


def second(history: Sequence[Record]) -> int:
    """Return the step after which the refit started; 0 without a refit."""
    if history and "ended" in history[-1] and not any("ended" in r for r in history[:-1]):
        return 0  # a single training run
    checked = [i for i, r in enumerate(history) if r["hidden_error"] is not None]
    last, *after = history[checked[-1] :] if checked else [{}]
    return int(last["step"]) if after and after[0]["stage"] > last["stage"] else 0


def warmup_end(history: Sequence[Record]) -> int:
    """Return the last step before the first stage with early stopping; that of the first stage if
    none has it."""
    first = min((r["stage"] for r in history if r["watched"]), default=1)
    return max((int(r["step"]) for r in history if r["stage"] < first), default=0)


def continued(before: Sequence[Record], after: Sequence[Record]) -> list[Record]:
    """Return one history of two successive training runs; `before` may be empty."""
    last = before[-1] if before else {"step": 0, "epoch": 0, "stage": -1}
    history = [*before]
    for record in after:
        step, epoch = last["step"] + record["step"], last["epoch"] + record["epoch"]
        stage = last["stage"] + 1 + record["stage"]
        history.append({**record, "step": step, "epoch": epoch, "stage": stage})
    return history
