"""vedute ampute: hide views on purpose."""

from __future__ import annotations

from typing import Annotated

from vedute.commands import _options
from vedute.commands._command import Answer, command, say

EXAMPLE = "vedute ampute data/ --rate .5 --protocol bernoulli --seed 1 -o half"


@command
def run(
    reading: _options.ReadingOptions,
    data: _options.Source,
    out: _options.OutViews,
    rate: Annotated[float, "R: From 0 to 1; see the protocols."],
    protocol: Annotated[
        str,
        "uniform (also dsimvc), bernoulli, with_replacement, completer, dcp, icmvc; "
        "cohorts of two views: chain, ring, star, two_components; by value: mar, mnar; group.",
    ] = "bernoulli",
    groups: _options.Groups = None,
    seed: Annotated[int, "Seed of the choice of views."] = 42,
    safe_csv: _options.SafeCsv = False,
    force: _options.Force = False,
) -> Answer:
    """Hide whole views of DATA, and keep the truth in a separate file.

    Protocols differ in what the rate means: for uniform, bernoulli and with_replacement it is the
    share of rows that lose a view, for cohorts that of rows which keep two views only, for mar,
    mnar and group the share of all views that go; both rates that came out are printed. mar hides
    by the values of the first view, mnar by those of the hidden one, group the same views in all
    samples of a group (--groups, else twenty at random). No row loses its last view. Beside OUT:
    OUT.truth.npz, the data before as numbers, and OUT.mask.npz, what is left.
    """
    from vedute import io
    from vedute.commands import _data
    from vedute.data import missing

    how = reading.checked()
    truth, kept = (out.with_name(f"{out.stem}.{word}.npz") for word in ("truth", "mask"))
    if out.suffix.lower() in io.NOT_HIDDEN:
        raise ValueError(f"views cannot be hidden in {out.suffix} files; let OUT end in .npz")
    with (
        _data.guarded_ids(safe_csv),
        _data.new_file(kept, force) as kept_part,
        _data.new_file(truth, force) as truth_part,
        _data.new_views(out, force, data) as part,
    ):
        given = _data.open_data(data, how)
        if given.whole is not None:
            raise ValueError(f"{data} is a store; hide views in the data, and convert them then")
        known = None if groups is None else io.table.read_groups(groups, given)
        views = io.enter(given).views
        left = missing.drop_views(views, rate, seed, protocol, known)
        io.write_hidden(part, given, left.mask.numpy())
        whole = io.of_views(views)
        io.npz.write(truth_part, whole, whole.views, {}, whole.mask)
        missing.save_mask(kept_part, left.mask, views.ids, protocol, rate, seed)
    before, after = missing.rates(views.mask), missing.rates(left.mask)
    rates = {"before": before.named(), "after": after.named()}
    mask = missing.fingerprint(left.mask)
    chosen = {"protocol": protocol, "rate": rate, "seed": seed, "mask": mask}

    def show() -> None:
        words = "rows that lack a view", "views that are missing"
        for what, was, share in zip(words, before, after, strict=True):
            said = f" (before: {100 * was:.1f} %)" if was else ""
            say(f"{what}: {100 * share:.1f} %{said}")
        say(f"mask {mask}: {protocol}, rate {rate:g}, seed {seed}")

    return Answer(rates | chosen | {"wrote": [out, truth, kept]}, show)
