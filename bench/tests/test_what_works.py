"""What makes MVP work: known differences come back, sections are made of the records there are."""

from __future__ import annotations

import csv
import json
from io import StringIO
from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy import stats

LEVEL = {"handwritten": 0.2, "cub": 0.4}  # error of the reference
NO_PERMUTATION, NO_HIDING, BOTH, MAPS = (
    1.1,
    1.02,
    1.3,
    {"mlp": 1.0, "linear": 1.05, "identity": 0.9},
)


@pytest.fixture
def what_works(script_of):
    return script_of("pages.what_works")


@pytest.fixture
def paired(script_of):
    return script_of("pages.paired")


def fake(label, dataset, seed, error, acc, rate=0.5):
    scores = {"error": error, "acc": acc}
    place = {"label": label, "dataset": dataset, "rate": rate, "seed": seed}
    return place | {"study": "ingredients", "device": "a GPU", "scores": scores}


def ingredients(seeds=range(4), rate=0.5):
    """Factors multiply the error; ACC falls by ten without the permutation. Seeds differ in what
    all labels share."""
    records = []
    for maps, cyclic, hiding in product(MAPS, ("cyclic", ""), ("hiding", "")):
        label = " + ".join(filter(None, (maps, cyclic, hiding)))
        factor = MAPS[maps] * {"": 1, "cyclic": 1}[cyclic]
        factor *= 1 if cyclic else NO_PERMUTATION
        factor *= 1 if hiding else NO_HIDING
        factor *= BOTH if not cyclic and not hiding else 1
        for (dataset, level), seed in product(LEVEL.items(), seeds):
            acc = 80 + seed - (0 if cyclic else 10)
            records.append(fake(label, dataset, seed, level * factor * (1 + seed / 10), acc, rate))
    return records


def test_the_effects_of_factors_come_back(paired):
    factors = {
        "maps": ["mlp", "linear", "identity"],
        "permutation": ["cyclic", ""],
        "hiding": ["hiding", ""],
    }
    contrasts, records = paired.effects(factors), ingredients()
    expected = {
        "linear for mlp maps": 1.05,
        "identity for mlp maps": 0.9,
        "no permutation": NO_PERMUTATION * BOTH**0.5,
        "no hiding": NO_HIDING * BOTH**0.5,
        "no permutation, with hiding": NO_PERMUTATION,
        "no permutation, without hiding": NO_PERMUTATION * BOTH,
        "no hiding, with permutation": NO_HIDING,
        "no hiding, without permutation": NO_HIDING * BOTH,
        "permutation × hiding": BOTH,
    }
    assert set(contrasts) == set(expected)
    assert all(abs(sum(weights.values())) < 1e-12 for weights in contrasts.values())
    errors, accuracies = (paired.cells(records, 0.5, score) for score in ("error", "acc"))
    for name, ratio in expected.items():
        found = paired.estimates(errors, contrasts[name], "error")
        assert set(found) == {"handwritten", "cub", "all"}
        for e in found.values():  # what seeds share is no spread
            assert e[:3] == pytest.approx((ratio,) * 3)
        lost = -10.0 if name.startswith("no permutation") else 0.0
        of_acc = paired.estimates(accuracies, contrasts[name], "acc")["all"]
        assert of_acc == pytest.approx((lost, lost, lost, 8), abs=1e-9)


def test_intervals_are_those_of_student_within_and_of_the_bootstrap_across(paired):
    values = [1.0, 2.0, 4.0, 5.0]
    e = paired.within(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert e == pytest.approx((3.0, low, high, 4))
    assert np.isnan(paired.within([1.0]).low)
    apart = paired.across([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])  # 27 draws of three datasets
    assert apart.value == 1.0
    assert (apart.low, apart.high) == (0.0, 2.0)  # each has one chance in 27
    assert apart.runs == 6
    both = [values, [v + 1 for v in values]]
    assert paired.across(both) == paired.across(both)
    one = paired.across([values])  # seeds alone
    assert one.low == pytest.approx(3 - 1.96 * np.std(values) / 2, abs=0.3)


def test_seeds_without_a_partner_are_left_out(paired):
    records = [
        fake(k, "cub", s, v, 50.0) for k, s, v in (("a", 0, 0.2), ("b", 0, 0.1), ("b", 1, 9))
    ]
    records.append(fake("a", "cub", 0, 0.3, 50.0))  # done again: the latest counts
    contrast = paired.against("b", ["a", "b"])["a"]
    found = paired.estimates(paired.cells(records, 0.5, "error"), contrast, "error")
    assert set(found) == {"cub"}
    assert (found["cub"].value, found["cub"].runs) == (pytest.approx(3.0), 1)
    assert paired.estimates(paired.cells(records, 0.1, "error"), {"a": 1.0}, "error") == {}


@pytest.fixture
def written(what_works, tmp_path):
    """The page of one study with fake records."""
    results, docs = tmp_path / "results", tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    (results / "ingredients").mkdir(parents=True)
    records = ingredients() + ingredients(range(2), 0.1)
    records.append({**fake("mlp", "cub", 9, 1, 1), "scores": {}, "failed": "NaN"})
    lines = [json.dumps(r) + "\n" for r in records]
    (results / "ingredients" / "records.jsonl").write_text("".join(lines))
    what_works.write(results, docs)
    return results / "ingredients", docs


def test_the_page_has_figures_words_and_tables_of_what_is_recorded(written):
    folder, docs = written
    page = (docs / "what-makes-mvp-work.md").read_text()
    assert page.count("\n## ") == 1
    assert "144 runs, 4 seeds, on a GPU. 1 more failed." in page
    first = page.index("](images/what-works-ingredients-effects-0.5.png)")
    words = page.index("144 runs")
    other = page.index("](images/what-works-ingredients-effects-rates.png)")
    assert first < words < other < page.index('--8<-- "results/ingredients/effects.md"')
    drawn = {p.name for p in (docs / "images").iterdir()}
    assert {name for name in drawn if name in page} == drawn
    assert len(drawn) == 3  # effects and single runs at .5, effects over the rates
    rows = list(csv.DictReader(StringIO((folder / "effects.csv").read_text())))
    one = next(r for r in rows if (r["contrast"], r["dataset"]) == ("no permutation", "all"))
    assert (one["rate"], one["score"], one["runs"]) == ("0.5", "error", "8")
    assert float(one["value"]) == pytest.approx(exp(log(1.1) + log(1.3) / 2), abs=1e-5)
    assert {(r["rate"], r["dataset"]) for r in rows} >= {("0.1", "cub"), ("0.1", "all")}
    text = (folder / "effects.md").read_text()
    assert "| | handwritten | cub | all |" in text or "| | cub | handwritten | all |" in text
    assert "| permutation × hiding | **1.300 (1.300 to 1.300)** |" in text
    assert "| no permutation | **−10.0 (−10.0 to −10.0)** |" in text
    assert "| mlp + cyclic | **1.020" in text  # against the default
    by_rate = text[text.index("**Over all datasets: error at hidden views, ratio**") :]
    cell = "**1.300 (1.300 to 1.300)**"
    assert "| | at 0.1 | at 0.5 |" in by_rate
    assert f"| permutation × hiding | {cell} | {cell} |" in by_rate
    assert "mlp + cyclic" not in by_rate  # effects only


def test_several_devices_are_named_with_their_seeds(what_works):
    on = {"a CPU": (5, 6, 7), "a GPU": (0, 1), "phones": (2, 4), "cores": (3,)}
    known = [fake("mlp", "cub", s, 1, 1) | {"device": k} for k, seeds in on.items() for s in seeds]
    assert what_works._devices(known) == (
        "a GPU (seeds 0 to 1) and phones (seeds 2, 4) and cores (seed 3) and a CPU (seeds 5 to 7)"
    )
    assert what_works._devices(known[:3]) == "a CPU"


def pictures(label, value, other=None):
    sizes, settings = (1, 2, 3), {"observed": "own"}
    scores = {f"ssim_{k}_{n}": value * n / 10 for k in ("given", "missing") for n in sizes}
    scores |= {f"nmi_{n}": 50.0 + n for n in sizes} | {"nmi_ten_1": 99.0}
    scores |= {f"fused_ssim_given_{n}": other * n / 10 for n in sizes} if other else {}
    return fake(label, "shapes", 42, 1, 1) | {"scores": scores, "settings": settings}


def test_images_have_a_curve_for_every_label_and_rule(what_works, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "paper-kd-shapes").mkdir()
    found = [pictures("25 %", 2, 1), pictures("100 %", 3)]  # the last without the other rule
    text = "".join(json.dumps(r) + "\n" for r in found)
    (tmp_path / "paper-kd-shapes" / "records.jsonl").write_text(text)
    what_works.write(tmp_path, tmp_path)
    page = (tmp_path / "what-makes-mvp-work.md").read_text()
    assert page.count("\n## ") == 1
    assert "](images/what-works-decoding-shapes.png)" in page
    assert (tmp_path / "images" / "what-works-decoding-shapes.png").is_file()
    rows = [line for line in page.splitlines() if line.startswith(("| 25 %", "| 100 %"))]
    assert rows == [
        "| 25 %, own | 0.200 | 0.400 | 0.600 |",
        "| 25 %, fused | 0.100 | 0.200 | 0.300 |",
        "| 100 %, own | 0.300 | 0.600 | 0.900 |",
        "| 25 %, own | 0.200 | 0.400 | 0.600 |",  # missing views: the rule is not of them
        "| 100 %, own | 0.300 | 0.600 | 0.900 |",
        "| 25 %, own | 51.0 | 52.0 | 53.0 |",  # not those of ten starts
        "| 100 %, own | 51.0 | 52.0 | 53.0 |",
    ]
    assert "2 runs, one seed, on a GPU." in page


def test_without_records_the_page_says_so(what_works, tmp_path):
    assert what_works.page(tmp_path).endswith("No study of this page has records yet.\n")


def test_references_are_labels_of_their_studies(what_works, paired):
    from vedute_bench import studies

    known = [s for s in what_works.sections() if s.study in studies.available()]
    assert known
    for section in known:
        labels = {entry.label for entry in studies.load(section.study).entries}
        assert set(section.references) <= labels
        assert all(set(weights) <= labels for weights in paired.effects(section.factors).values())
        alone = section.contrasts()["all"]
        assert set(alone) == labels - set(section.references)


def test_the_committed_page_and_tables_are_those_of_the_records(what_works):
    from vedute_bench.places import DOCS

    page = DOCS / "what-makes-mvp-work.md"
    assert page.read_text(encoding="utf-8") == what_works.page(what_works.RESULTS)
    for section in what_works.sections():
        file = what_works.RESULTS / section.study / "records.jsonl"
        if file.exists():
            found = list(what_works.tables(section, what_works.records.read(file)))
            shown = what_works.shown(found)
            made = what_works.markdown(shown), what_works.comma_separated(found)
            assert made == tuple(
                file.with_name(f"effects.{end}").read_text(encoding="utf-8")
                for end in ("md", "csv")
            )
            pictures = {table.picture(section.study) for table in shown}
            assert all((DOCS / "images" / name).is_file() for name in pictures)
