"""A summary of a fitted estimator, as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vedute.data import html


def learned(model: Any) -> str:
    """Return views with kinds and R2, clusters, and whether it was refitted; empty before fit."""
    results = model.results()
    if "embedding_" not in results:
        return ""
    r2 = results.get("r2_", {})
    heads = ("view", "shape", "kind", *(["variance of hidden views explained"] if r2 else []))
    rows = [
        [view.name, html.shape(view.shape), view.kind, *([_share(r2.get(view.name))] if r2 else [])]
        for view in model.views_
    ]
    n, D = model.embedding_.shape
    title = f"Fitted on {n} samples with {len(rows)} views: a representation of {D} numbers"
    return html.section(title, html.table(heads, rows), html.lines(_sentences(results)))


def _sentences(results: dict[str, Any]) -> Iterator[str]:
    if "labels_" in results:
        sizes = np.bincount(results["labels_"]).tolist()
        shown = ", ".join(map(str, sizes[:20])) + (", ..." if len(sizes) > 20 else "")
        yield f"{len(sizes)} cluster{'' if len(sizes) == 1 else 's'} of {shown} samples"
    if results.get("learned_again_"):
        yield "Refitted with all views after evaluation on the hidden ones"


def _share(r2: float | None) -> str:
    return "none was hidden" if r2 is None or not np.isfinite(r2) else f"{round(100 * r2)} %"
