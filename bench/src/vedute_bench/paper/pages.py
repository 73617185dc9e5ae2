"""The pages docs/paper: the whole MVP paper beside our records, with pictures in docs/images.

    python -m vedute_bench.paper.pages        or: make paper

The pages have every table and figure of Gao & Pu, ICLR 2025, in its order. Each has the printed
numbers, ours, the command, seeds and devices of the records in bench/results, and a verdict by the
rule on the first page. Exhibits without records name the command that makes them. Nothing is
fitted here.
"""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vedute_bench.paper import clustering, images, training, variants
from vedute_bench.paper.exhibit import Made, World
from vedute_bench.paper.numbers import HERE, RULE, Results, table
from vedute_bench.places import DOCS, RESULTS

MAKE = {f.__name__: f for part in (clustering, images, training, variants) for f in part.EXHIBITS}
MADE = "<!-- made by bench/src/vedute_bench/paper/pages.py: change it there -->"
INTRO = (
    "Every table and figure of *Deep Incomplete Multi-view Learning via Cyclic Permutation of "
    "VAEs* (MVP; Gao & Pu, ICLR 2025), in its order, beside what the records in "
    "`bench/results` say. `make -C bench paper` writes these pages from the records; it fits "
    "nothing. Where there is no record, the page names the command that makes one."
)


@dataclass(frozen=True)
class Exhibit:
    """Table, figure or claim of the paper."""

    name: str
    title: str
    page: str
    about: str
    make: str = ""
    verdict: str = ""
    why: str = ""

    def made(self, world: World) -> Made:
        made = MAKE[self.make](world) if self.make else Made(self.verdict, [])
        missed = any(f"{word} reproduced" in made.verdict for word in ("Not", "Partly"))
        return made._replace(verdict=f"{made.verdict} {self.why}".strip()) if missed else made


def exhibits() -> tuple[dict[str, str], list[Exhibit]]:
    """Titles of the pages, and the exhibits in the paper's order."""
    words = tomllib.loads((HERE / "words.toml").read_text(encoding="utf-8"))
    return words["pages"], [Exhibit(**fields) for fields in words["exhibits"]]


def pages(world: World) -> dict[str, str]:
    """Texts of the pages by file name."""
    titles, listed = exhibits()
    made = [(exhibit, exhibit.made(world)) for exhibit in listed]
    texts = {"index.md": _index(titles, made)}
    for page, title in titles.items():
        parts = [_section(e, m) for e, m in made if e.page == page]
        texts[f"{page}.md"] = "\n\n".join([f"# The MVP paper: {title}", MADE, *parts]) + "\n"
    return texts


def _index(titles: dict[str, str], made: Sequence[tuple[Exhibit, Made]]) -> str:
    rows = [
        [f"[{e.name}]({e.page}.md#{_anchor(e)})", e.title, titles[e.page], m.verdict]
        for e, m in made
    ]
    listed = table(["in the paper", "what", "page", "verdict"], rows).replace("--:", "---")
    parts = ["# The whole MVP paper", MADE, INTRO, f"**The rule.** {RULE}", listed]
    return "\n\n".join(parts) + "\n"


def _section(exhibit: Exhibit, made: Made) -> str:
    head = f"## {_title(exhibit)}"
    return "\n\n".join([head, f"**{made.verdict}**", exhibit.about.strip(), *made.body])


def _title(exhibit: Exhibit) -> str:
    return f"{exhibit.name}: {exhibit.title}"


def _anchor(exhibit: Exhibit) -> str:
    """Anchor that mkdocs makes for the heading."""
    kept = "".join(c for c in _title(exhibit).lower() if c.isascii() and (c.isalnum() or c in " -"))
    return "-".join(kept.replace("-", " ").split())


def main(words: list[str] | None = None) -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=DOCS)
    options = parser.parse_args(words)
    pictures, folder = options.docs / "images", options.docs / "paper"
    for target in (pictures, folder):
        target.mkdir(parents=True, exist_ok=True)
    for name, text in pages(World(Results(options.results), pictures)).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
