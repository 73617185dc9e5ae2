"""vedute embed: one representation per sample."""

from vedute.commands._rows import writes_rows

EXAMPLE = "vedute embed run new/ -o embedding.csv"

run = writes_rows(
    lambda model, views: {"embedding": model.transform(views)},
    """Write one representation per sample, whatever views it has.

    DATA is read as the data of RUN were, unless an option says otherwise.
    """,
)
