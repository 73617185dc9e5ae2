"""What the pages take from the code: python docs/tables.py

The table of methods in choosing.md (a new file in src/vedute/methods is a new line there), and the
defaults in the table of settings in api.md. tests/test_docs.py says when to run it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

from vedute import methods
from vedute.estimators.base import Estimator
from vedute.estimators.neural import NeuralEstimator
from vedute.methods.mvp import MVP

HERE = Path(__file__).parent
START, END = "<!-- methods: made by docs/tables.py -->\n", "<!-- end of methods -->\n"


def main() -> None:
    for name, renew in PAGES.items():
        page = HERE / name
        page.write_text(renew(page.read_text(encoding="utf-8")), encoding="utf-8")


def with_methods(page: str) -> str:
    """The page with the table as it should be."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def with_defaults(page: str) -> str:
    """The page with the defaults of MVP as they are; what a setting does is written by hand."""
    for field in fields(MVP):
        line = re.compile(rf"^\| `{field.name}` \| `.*?` \| (.*)$", re.MULTILINE)
        if not line.search(page):
            raise ValueError(f"api.md lacks the setting {field.name!r}; say what it does")
        default = f"| `{field.name}` | `{field.default!r}` |"
        page = line.sub(lambda m, default=default: f"{default} {m[1]}", page)
    return page


PAGES: Mapping[str, Callable[[str], str]] = {
    "choosing.md": with_methods,
    "api.md": with_defaults,
}


def table() -> str:
    """One line per method: those that train first, the newest of them first."""
    found = {name: methods.find(name) for name in methods.available()}
    order = sorted(
        found, key=lambda k: (not issubclass(found[k], NeuralEstimator), -(found[k].year or 0))
    )
    rows = [row(name, found[name]) for name in order]
    lines = [tuple(rows[0]), ("---",) * len(rows[0]), *(tuple(r.values()) for r in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def row(name: str, cls: type[Estimator]) -> dict[str, str]:
    known = methods.facts(name) | {"method": f"`{name}`"}
    return known | {"clusters": "its own" if cls.soft else "k-means", "cost": cost(cls)}


def cost(cls: type[Estimator]) -> str:
    if not issubclass(cls, NeuralEstimator):
        return "seconds"
    default = {f.name: f.default for f in fields(cls)}
    return f"up to {default['steps']} steps of {default['batch_size']} rows; a GPU helps"


if __name__ == "__main__":
    main()
