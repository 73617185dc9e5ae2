"""vedute cluster: one label per sample."""

from __future__ import annotations

from vedute.commands import _options

EXAMPLE = "vedute cluster run new.npz -o labels.csv"


def run(
    run: _options.Run,
    out: _options.Table,
    data: _options.OptionalSource = None,
    force: _options.Force = False,
) -> None:
    """Write the cluster of each sample, whatever views it has.

    RUN must have been fitted with --clusters.
    """
    from vedute.commands import _outputs, _runs

    with _outputs.table(out, force) as write:
        model, _, views = _runs.open_run(run, data)
        write(views.ids, {"labels": model.predict(views)})
