"""vedute cluster: one label per sample."""

from __future__ import annotations

from vedute.commands import _data, _options

EXAMPLE = "vedute cluster run new/ -o labels.csv"


def run(
    run: _options.Run,
    out: _data.OutRows,
    data: _data.OptionalSource = None,
    spec: _data.Spec = None,
    label: _data.Label = None,
    one_hot: _data.OneHot = False,
    samples: _data.Samples = None,
    decimal: _data.Decimal = None,
    force: _options.Force = False,
) -> None:
    """Write the cluster of each sample, whatever views it has.

    RUN must have been fitted with --clusters. DATA is read as the data of RUN were, unless an
    option says otherwise.
    """
    how = _data.reading(spec, label, one_hot, samples, decimal)
    source = _data.source_of(run, data)
    with _data.new_rows(out, force, source) as write:
        model, _, entry = _data.open_run(run, source, how)
        views = entry.views
        write(views.ids, {"labels": model.predict(views)})
