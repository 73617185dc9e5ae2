"""vedute cluster: one label per sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedute.commands._rows import writes_rows

if TYPE_CHECKING:
    from vedute.data.views import Views
    from vedute.estimators.base import Estimator

EXAMPLE = "vedute cluster run new/ -o labels.csv"


@writes_rows
def run(model: Estimator, views: Views) -> dict[str, Any]:
    """Write the cluster of each sample, whatever views it has.

    RUN must have been fitted with --clusters. DATA is read as the data of RUN were, unless an
    option says otherwise.
    """
    return {"labels": model.predict(views)}
