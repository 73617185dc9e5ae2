"""Distributions inside tests: what pip would leave behind."""

import sys

from vedute.data import plugins


def install(folder, monkeypatch, group, **points):
    """A distribution with entry points of one group: name -> (module or module:Class, its code)."""
    about = folder / "site" / "vedute_own-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: vedute-own\nVersion: 1.0\n")
    lines = [f"{name} = {target}" for name, (target, _) in points.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    for target, code in points.values():
        module = target.partition(":")[0]
        (folder / "site" / f"{module}.py").write_text(code, encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(folder / "site")
    monkeypatch.setattr(plugins, "registered", plugins.registered.__wrapped__)
