"""vedute cluster: one label per sample."""

from vedute.commands._rows import writes_rows

EXAMPLE = "vedute cluster run new/ -o labels.csv"

run = writes_rows(
    lambda model, views: {"labels": model.predict(views)},
    """Write the cluster of each sample, whatever views it has.

    RUN must have been fitted with --clusters. DATA is read as the data of RUN were, unless an
    option says otherwise.
    """,
)
