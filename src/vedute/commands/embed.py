"""vedute embed: one representation per sample."""

from __future__ import annotations

from vedute.commands import _options

EXAMPLE = "vedute embed run new.npz -o embedding.csv"


def run(
    run: _options.Run,
    out: _options.Table,
    data: _options.OptionalSource = None,
    force: _options.Force = False,
) -> None:
    """Write one representation per sample, whatever views it has."""
    from vedute.commands import _outputs, _runs

    with _outputs.table(out, force) as write:
        model, _, views = _runs.open_run(run, data)
        write(views.ids, {"embedding": model.transform(views)})
