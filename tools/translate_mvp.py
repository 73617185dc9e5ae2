"""Say settings of MVP in their new words, in studies, records and saved models.

    python tools/translate_mvp.py PATH ...

PATH is a file or a folder, of *.toml, *.jsonl, *.jsonl.xz and model.json. Files are rewritten in
place; what is in new words already stays as it is. Switches that MVP has no
longer are settings of `paper_mvp` (`vedute_bench.paper_mvp`): where a run has one, its method is
`paper_mvp`. Needs nothing but Python, so that it runs on any checkout.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Settings = dict[str, Any]
TABLES: Settings = {
    "output": "linear", "linear_paths": True, "bounded": True, "objective": "eq3",
    "prior": "cyclic", "evenness": 0.0, "lr_halving": None, "beta_prior": 0.2,
}  # fmt: skip
PAPER: Settings = TABLES | {"output": "tanh", "linear_paths": False}
SWITCHES = {None: TABLES, "tables": TABLES, "paper": PAPER}  # by variant
ONLY: Settings = {  # studies alone have these, and what MVP does
    "permutation": "cyclic", "divergence": "symmetric", "per_view": True, "maps": "mlp",
    "observed": "fused",
}  # fmt: skip
BETAS = ("beta_views", "beta_consensus", "kl_weight")
OLD = {*TABLES, *ONLY, *BETAS, "for_images"}
LIGHT: Settings = {  # what None was with `for_images = false`, which published settings had
    "lr": 6e-3, "weight_decay": 0.1, "latent_dim": 32, "map_hidden": [64], "rec_weight": 100.0,
    "average": True, "view_dropout": 0.3, "warmup": 50, "cooldown": 250, "patience": 200,
}  # fmt: skip
DECIDED = ("lr", "latent_dim", "rec_weight", "view_dropout")  # None where the data decide
IMAGE_SETS = ("polymnist", "shapes", "mvshapenet")
HALVED = 200  # epochs, in the variant of the paper
EPOCHS = {"scene15": 250, "reuters": 60, "reuters1200": 60, "sensit": 50} | dict.fromkeys(
    IMAGE_SETS, 300
)  # of the old presets, else 150
KL = {"handwritten": 2.0}  # `kl_weight` of the old presets, else 1


def is_old(settings: Mapping[str, Any]) -> bool:
    return bool(OLD & settings.keys()) and not {"variant", "beta"} & settings.keys()


def is_whole(settings: Mapping[str, Any]) -> bool:
    """Whether these are all settings, not some beside those of a preset or the defaults."""
    return {"kl_weight", "lr_halving"} <= settings.keys()


def explicit(settings: Mapping[str, Any], preset: str | None) -> tuple[str, Settings]:
    """The same of a record that says what its script sets: every switch that it names stays."""
    special: Settings = {}
    new = {k: v for k, v in settings.items() if k not in (*BETAS, "for_images")}
    new |= {"variant": "tables"} if settings.get("for_images") is False else {}
    new |= _betas(settings, "paper" if preset else None, preset, special)
    return "paper_mvp", new | special


def translated(settings: Mapping[str, Any], preset: str | None) -> tuple[str, Settings]:
    """The method and the settings of a run, those that a study adds to a preset, or all of it.

    preset: the dataset of the published settings, where a run has them.
    """
    if not is_old(settings):
        return "mvp", dict(settings)
    variant = "paper" if preset else "tables" if settings.get("for_images") is False else None
    whole = is_whole(settings)
    if variant == "paper" and whole:
        usual = {k: v for k, v in (LIGHT | TABLES).items() if k != "lr_halving"}
        settings = {**settings, **{k: v for k, v in usual.items() if settings.get(k) is None}}
    new = {k: v for k, v in settings.items() if k not in OLD}
    special = {k: v for k, v in settings.items() if k in ONLY and v != ONLY[k]}
    special |= _switches(settings, variant, preset)
    if variant == "tables" or (variant and whole):
        new["variant"] = variant
    if variant and new.get("sharpen") is False:
        new["sharpen"] = None  # which is never, but with the defaults for images
    new |= _betas(settings, variant, preset, special)
    return ("paper_mvp" if special else "mvp"), new | special


def _switches(settings: Mapping[str, Any], variant: str | None, preset: str | None) -> Settings:
    """Those that are not as the variant has them; None is as it has them."""
    usual, found = SWITCHES[variant], {}
    if preset in IMAGE_SETS:
        usual = usual | {"bounded": False}
    for name in (k for k in TABLES if k != "lr_halving" and settings.get(k) is not None):
        if settings[name] != usual[name] or (name == "evenness" and variant is None):
            found[name] = settings[name]
    return found | _halving(settings, preset)


def _halving(settings: Mapping[str, Any], preset: str | None) -> Settings:
    """The learning rate of the paper's tables is halved now in every training that is so long."""
    published = HALVED if preset and preset not in IMAGE_SETS else None
    old = settings.get("lr_halving", HALVED if preset == "scene15" else None)
    epochs = settings.get("epochs") or EPOCHS.get(preset or "", 150)
    old, now = (None if k is None or k >= epochs else k for k in (old, published))
    return {} if old == now else {"lr_halving": old or 0}


def _betas(
    settings: Mapping[str, Any], variant: str | None, preset: str | None, special: Settings
) -> Settings:
    """Adds that of consensuses to `special` where it is not half of the other."""
    if not set(BETAS) & settings.keys():
        return {}
    views, consensus = (5.0, 2.5) if preset else (0.2, 0.1)
    weight = settings.get("kl_weight", KL.get(preset or "", 1.0))
    beta = settings.get("beta_views", views) * weight
    other = settings.get("beta_consensus", consensus) * weight
    if other != beta / 2:
        special["beta_consensus"] = other
    first = all(settings.get(k) is not None for k in DECIDED)  # from before data decided
    return {"beta": None if variant != "paper" and beta == views and not first else beta}


def record(old: dict[str, Any]) -> dict[str, Any]:
    """A record in new words."""
    settings = old.get("settings")
    if old.get("method") != "mvp" or not isinstance(settings, dict) or not is_old(settings):
        return old
    preset = old.get("preset")
    preset = old["dataset"] if preset == "paper" else preset
    method, new = translated(settings, preset) if is_whole(settings) else explicit(settings, preset)
    out = {**old, "method": method, "settings": new}
    if settled := old.get("settled"):
        out["settled"] = {k: v for k, v in settled.items() if k not in OLD}
    return out


def _lines(text: str) -> str:
    """Records; lines that do not change stay byte for byte."""
    out = []
    for line in text.split("\n"):
        try:
            old = json.loads(line)
        except ValueError:
            out.append(line)
            continue
        new = record(old) if isinstance(old, dict) else old
        out.append(line if new is old else json.dumps(new))
    return "\n".join(out)


def study(text: str) -> str:
    """A study, as it is written, but for the methods and settings of its runs of MVP."""
    content = tomllib.loads(text)
    runs = content.get("runs", [])
    starts = [m.start() for m in re.finditer(r"^\[\[runs\]\]|^ *\{ *label *=", text, re.MULTILINE)]
    if not runs or len(starts) != len(runs):
        return text
    parts = [text[: starts[0]]]
    for run, start, end in zip(runs, starts, [*starts[1:], len(text)], strict=True):
        parts.append(_run(text[start:end], run, content.get("datasets", [])))
    return "".join(parts)


def _run(part: str, run: Mapping[str, Any], datasets: list[str]) -> str:
    settings = run.get("settings", {})
    published = run.get("preset") == "paper"
    sets = run.get("datasets", datasets) if published else [None]
    if run["method"] != "mvp" or (not is_old(settings) and not _runs_on(settings, sets)):
        return part
    found = [translated(settings, k) for k in sets]
    found += [("mvp", dict(settings)) for k in sets if not is_old(settings)]
    method, new = next((f for f in found if f[0] != "mvp"), found[0])
    if published and not is_old(settings):
        method, new = "paper_mvp", {**settings, "lr_halving": 0}
    elif any(f != (method, new) for f in found):
        raise ValueError(f"{run['label']!r} means other settings on each of {sets}")
    part = part.replace('method = "mvp"', f'method = "{method}"')
    words = ", ".join(f"{k} = {_toml(v)}" for k, v in new.items() if v is not None)
    if words:
        return re.sub(r"settings = \{[^}]*\}", lambda _: f"settings = {{ {words} }}", part)
    return re.sub(r"(,\s*settings = \{[^}]*\}|^settings = \{[^}]*\}\n)", "", part, flags=re.M)


def _runs_on(settings: Mapping[str, Any], sets: list[str | None]) -> bool:
    """Whether a run of published settings lasts beyond the first halving, which it did not have."""
    return any(k is not None and bool(_halving(settings, k)) for k in sets)


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


def model(text: str) -> str:
    """The facts of a saved model."""
    facts = json.loads(text)
    pairs = facts.get("params", {}).get("$dict") if facts.get("method") == "mvp" else None
    if pairs is None or not is_old(dict(pairs)):
        return text
    params = dict(pairs)
    params = {"for_images": False, **params}  # models from before `for_images`
    method, new = translated(params, None)
    if method != "mvp":
        raise ValueError("a model of a study: load it with the version that saved it")
    facts["params"]["$dict"] = [[k, v] for k, v in new.items()]
    return _sealed(facts, text)


def _sealed(facts: dict[str, Any], before: str) -> str:
    """As `saving.sealed` writes them, the checksum where there was one."""
    if "checksum" in facts:
        raise ValueError("sealed; load it with the version that saved it")
    indent = 1 if "\n" in before else None
    return json.dumps(facts, indent=indent)


def rewrite(path: Path) -> bool:
    """Whether the file has changed."""
    packed = path.suffix == ".xz"
    raw = path.read_bytes()
    text = (lzma.decompress(raw) if packed else raw).decode()
    if path.name == "model.json":
        new = model(text)
    else:
        new = study(text) if path.suffix == ".toml" else _lines(text)
    if new == text:
        return False
    data = new.encode()
    path.write_bytes(lzma.compress(data, preset=9) if packed else data)
    return True


def files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for kind in ("*.toml", "*.jsonl", "*.jsonl.xz", "model.json"):
        yield from sorted(path.rglob(kind))


def main() -> None:
    for name in sys.argv[1:] or sys.exit(__doc__):
        for path in files(Path(name)):
            if rewrite(path):
                print(path)


if __name__ == "__main__":
    main()
