"""Numbers and tables in README and the docs, made from the records.

    python -m vedute_bench.pages.numbers           rewrite them in place
    python -m vedute_bench.pages.numbers --check   exit with 1 if one is stale

A page marks a number and a table by comments, and what stands between them is replaced:

    <!-- n rivals.sets -->12<!-- /n -->
    <!-- table store -->
    <!-- /table -->
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from functools import cache
from math import exp, log
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from vedute_bench.experiments import auto_clusters, sample_size
from vedute_bench.pages import leaders
from vedute_bench.places import DOCS, RESULTS, ROOT
from vedute_bench.rivals import gaps, rivals
from vedute_bench.rivals.rivals_page import RATE, Table, markdown
from vedute_bench.runner import lines, records
from vedute_bench.soak import __main__ as soak
from vedute_bench.speed import cost_model, first_use, memory, store

NUMBER = re.compile(r"(<!-- n ([\w.]+) -->)(.*?)(<!-- /n -->)")
TABLE = re.compile(r"(<!-- table ([\w.]+) -->\n)(.*?)(<!-- /table -->)", re.DOTALL)
README_SETS = {
    "handwritten": "handwritten",
    "cub": "cub",
    "scene15": "scene15",
    "msrc_v1": "msrc_v1",
    "reuters tf-idf": "reuters1200_tfidf",
    "tcga_brca": "tcga_brca",
}
README_METHODS = {
    "**Blend**": "blend",
    "MVP": "mvp",
    "kernel fill": "kernel_fill",
    "low-rank fill": "lowrank_fill",
    "scikit-learn's KNNImputer": "knn_imputer",
    "MOFA": "mofa",
}
TEXT = ("bbcsport", "movies617", "reuters1200_tfidf")  # mostly zeros


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(DOCS.rglob("*.md"))]


def rewritten(text: str) -> str:
    """Return a page with current numbers and tables."""
    text = NUMBER.sub(lambda m: f"{m[1]}{NUMBERS[m[2]]()}{m[4]}", text)
    return TABLE.sub(lambda m: f"{m[1]}{TABLES[m[2]]().rstrip()}\n{m[4]}", text)


# Who infers hidden views best: the twelve development sets.


@cache
def compared() -> Table:
    return Table.of(records.read_all(rivals.OUT))


def result_table() -> str:
    """Errors of hidden views on six sets, the least of each in bold."""
    t, rows = compared(), []
    errors = {
        m: [t.mean(m, s, "error") for s in README_SETS.values()] for m in README_METHODS.values()
    }
    best = [
        min(e for e in column if e is not None) for column in zip(*errors.values(), strict=True)
    ]
    for name, method in README_METHODS.items():
        texts = ["–" if e is None else f"{e:.3f}" for e in errors[method]]
        cells = (f"**{x}**" if x == f"{b:.3f}" else x for x, b in zip(texts, best, strict=True))
        rows.append([name, *cells])
    return markdown(["error of hidden views", *README_SETS], rows)


def largest_spread() -> str:
    """The largest standard deviation over seeds in `result_table`."""
    t = compared()
    runs = [
        t.cells.get((m, s, RATE), []) for m in README_METHODS.values() for s in README_SETS.values()
    ]
    errors = [[r["scores"]["error"] for r in cell if "error" in r["scores"]] for cell in runs]
    return f"{max(stdev(e) for e in errors if len(e) > 1):.3f}"


def ratio_to_best(most: bool = False) -> float:
    """Error of Blend relative to the best other method, as a geometric mean or at most."""
    t, ratios = compared(), []
    for name in t.sets:
        error, other = t.mean("blend", name, "error"), t.best_other(name)
        assert error is not None
        assert other is not None
        ratios.append(error / other[0])
    return max(ratios) if most else exp(fmean(map(log, ratios)))


def mean_accuracy(method: str) -> str:
    t = compared()
    return f"{fmean(v for s in t.sets if (v := t.mean(method, s, 'acc')) is not None):.1f}"


def behind(other: str) -> str:
    """How much larger the error of MVP is than that of another method on README's sets, percent."""
    t = compared()
    pairs = [(t.mean("mvp", s, "error"), t.mean(other, s, "error")) for s in README_SETS.values()]
    return f"{100 * (exp(fmean(log(a / b) for a, b in pairs if a and b)) - 1):.1f}"


def coverages() -> list[float]:
    """Coverage of 90 % intervals of Blend, in percent, on the sets that are not text."""
    t = compared()
    found = [t.mean("blend", s, "coverage") for s in t.sets if s not in TEXT]
    return [c for c in found if c is not None]


# Single entries, images, numbers of clusters.


def tables_ahead() -> list[bool]:
    """Whether Blend has less error than every other library's imputer, by table."""
    results = []
    known = list({gaps._place(r): r for r in lines.read(gaps.OUT)}.values())
    for name in dict.fromkeys(r["dataset"] for r in known):
        rows = [r for r in known if r["dataset"] == name]
        by_method = {
            m: fmean(r["scores"]["error"] for r in rows if r["method"] == m)
            for m in dict.fromkeys(r["method"] for r in rows)
        }
        results.append(
            by_method["blend"] < min(by_method[m] for m in gaps.RIVALS if m in by_method)
        )
    return results


def image_score(label: str, score: str) -> str:
    cell = leaders.runs("polymnist").cell(label, "polymnist", RATE, score)
    assert cell is not None
    return f"{cell.mean:.1f}"


def near_classes(method: str) -> str:
    """On how many sets the number of clusters is that of the classes, or off by one."""
    known = [r for r in auto_clusters.known() if (r["method"], r["rate"] > 0) == (method, True)]
    return str(sum(abs(r["found"] - r["true"]) <= 1 for r in known))


def of_file(name: str) -> Callable[[], str]:
    return lambda: (RESULTS / name).read_text(encoding="utf-8")


def rows_of_file(name: str) -> str:
    """The table in a text of results, without the lines around it."""
    text = (RESULTS / name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if line.startswith("|"))


def cost_tables() -> dict[str, Callable[[], str]]:
    names = ("constants", "steps", "store", "ranks", "prediction", "scan")
    return {f"cost_model.{k}": lambda i=i: cost_model.tables()[i] for i, k in enumerate(names)}


NUMBERS: dict[str, Callable[[], str]] = {
    "rivals.sets": lambda: str(len(compared().sets)),
    "rivals.spread": largest_spread,
    "rivals.ratio": lambda: f"{ratio_to_best():.3f}",
    "rivals.most": lambda: f"{100 * (ratio_to_best(most=True) - 1):.1f}",
    "rivals.acc.blend": lambda: mean_accuracy("blend"),
    "rivals.acc.mvp": lambda: mean_accuracy("mvp"),
    "rivals.acc.lowrank_fill": lambda: mean_accuracy("lowrank_fill"),
    "rivals.acc.mopoe": lambda: mean_accuracy("mopoe"),
    "rivals.acc.mvtcae": lambda: mean_accuracy("mvtcae"),
    "rivals.behind.mopoe": lambda: behind("mopoe"),
    "rivals.behind.mvtcae": lambda: behind("mvtcae"),
    "coverage.least": lambda: f"{min(coverages()):.1f}",
    "coverage.most": lambda: f"{max(coverages()):.1f}",
    "gaps.ahead": lambda: str(sum(tables_ahead())),
    "gaps.tables": lambda: str(len(tables_ahead())),
    "images.mvp": lambda: image_score("mvp", "coherence_missing_1"),
    "images.mvtcae": lambda: image_score("MVTCAE (regularised)", "coherence_missing_1"),
    "images.mmjsd": lambda: image_score("mmJSD", "coherence_missing_1"),
    "auto_clusters.mvp": lambda: near_classes("mvp"),
    "auto_clusters.lowrank_fill": lambda: near_classes("lowrank_fill"),
    "demo.minutes": lambda: first_use.minutes("demo"),
    "test.minutes": lambda: first_use.minutes("test"),
    "first_use.machine": first_use.machine,
}
TABLES: dict[str, Callable[[], str]] = {
    "first_use": first_use.table,
    "results": result_table,
    "store": store.table,
    "sample_size": sample_size.table,
    "memory": memory.table,
    "memory.verbs": memory.verb_table,
    "gaps": of_file("gaps/table.md"),
    "auto_clusters": auto_clusters.table,
    "leaders": leaders.first_page,
    "soak": lambda: soak.table(lines.read(soak.RECORDS)),
    "large": lambda: rows_of_file("large-intel-xeon-1-threads.md"),
    "large_fills": lambda: rows_of_file("fills-intel-xeon-2-50ghz-1-threads.md"),
    **cost_tables(),
}


def stale() -> Iterator[Path]:
    """Pages that differ from what the records say."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if rewritten(text) != text:
            yield page


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options: Any = parser.parse_args()
    for page in (changed := list(stale())):
        print(page.relative_to(ROOT))
        if not options.check:
            page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(bool(options.check and changed))


if __name__ == "__main__":
    main()
