"""vedute embed: one representation per sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedute.commands._rows import writes_rows

if TYPE_CHECKING:
    from vedute.data.views import Views
    from vedute.estimators.base import Estimator

EXAMPLE = "vedute embed run new/ -o embedding.csv"


@writes_rows
def run(model: Estimator, views: Views) -> dict[str, Any]:
    """Write one representation per sample, whatever views it has.

    DATA is read as the data of RUN were, unless an option says otherwise.
    """
    return {"embedding": model.transform(views)}
