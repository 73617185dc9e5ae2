"""The docs do what they say: every block of code in README.md and docs/*.md runs, here with small
data and a few steps; what they print stands on the page; tables are as the code is."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import fields
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import vedute
from vedute import methods
from vedute.cli import app
from vedute.datasets import _files, handwritten
from vedute.estimators import clustering
from vedute.estimators.base import Estimator
from vedute.estimators.settings import attributes
from vedute.methods import presets
from vedute.methods.mvp import MVP

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
# README's code runs with `make test`, that of these pages with `make test-all`, the rest is slow.
LONG = ("choosing", "images", "coming-from", "scale", "report")
TRIED = [pytest.param(PAGES[0])] + [
    pytest.param(p, marks=pytest.mark.all if p.stem in LONG else pytest.mark.slow)
    for p in PAGES[1:]
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TINY = {
    "steps": 20,
    "warmup": 5,
    "cooldown": 5,
    "hidden": (16,),
    "map_hidden": (8,),
    "batch_size": 64,
    "device": "cpu",
}
BLOCK = re.compile(
    r"^(?:<!-- needs (?P<needs>\w+) -->\n)?```(?P<kind>\w*) ?(?P<rest>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NEEDED = ("dask", "mudata", "openpyxl", "network", "gpu", "matplotlib", "mofapy2", "multivae", "R")
SET_UP = ("make", "pip")  # what has been done where tests run


class Block(NamedTuple):
    """A fenced block: its language, what follows on that line, its text, what it needs, and
    whether it stands right below another one."""

    kind: str
    rest: str
    text: str
    needs: str | None
    below: bool


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    parts = BLOCK.finditer(text)
    found = [
        Block(m["kind"], m["rest"], m["text"], m["needs"], text[: m.start()].endswith("```\n"))
        for m in parts
    ]
    assert text.count("```") == 2 * len(found), f"{page.name} has a block that is not read"
    return found


@pytest.fixture
def tiny(monkeypatch):
    """Defaults that take no time, and a hundred digits."""
    for name, value in TINY.items():
        monkeypatch.setitem(MVP.__init__.__kwdefaults__, name, value)
    monkeypatch.setattr(clustering, "MAX_CLUSTERS", 5)
    whole = handwritten.load
    monkeypatch.setattr(handwritten, "load", lambda: whole()[::20])


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 120
    z = rng.standard_normal((n, 3)) + 4 * np.eye(3)[rng.integers(3, size=n)]
    ids = pd.Index([f"p{i:03d}" for i in range(n)], name="patient")
    whole = {}
    for seed, (name, width) in enumerate({"blood": 6, "scan": 5, "survey": 4}.items(), start=1):
        r = np.random.default_rng(seed)
        x = z @ r.standard_normal((3, width)) + 0.3 * r.standard_normal((n, width))
        columns = [f"{name}{j}" for j in range(width)]
        whole[name] = pd.DataFrame(x.round(2), ids, columns)
    Path("cohort").mkdir()
    Path("newcomers").mkdir()
    for seed, (name, table) in enumerate(whole.items(), start=1):
        some = table.sample(frac=0.75, random_state=seed)
        some.to_csv(f"cohort/{name}.csv")
        some.to_csv(f"{name}.csv")
    whole["blood"].tail(5).rename(lambda i: f"new-{i}").to_csv("newcomers/blood.csv")
    wide = pd.concat(whole.values(), axis=1)
    wide.loc[wide.index[:30], whole["scan"].columns] = np.nan
    wide.assign(diagnosis=np.where(z[:, 0] > 1, "yes", "no")).to_csv("wide.csv")
    for name, rows in {"data": slice(None), "new": slice(5)}.items():
        np.savez(f"{name}.npz", **{k: t.to_numpy()[rows] for k, t in whole.items()})
    if importlib.util.find_spec("mudata"):
        write_mudata(whole)


def write_mudata(whole):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of its own future
        from anndata import AnnData
        from mudata import MuData

        mods = {k: AnnData(t.sample(frac=0.75, random_state=len(k))) for k, t in whole.items()}
        MuData(mods).write_h5mu("cells.h5mu")


@pytest.fixture
def trackers(monkeypatch):
    """TensorBoard, MLflow and Weights & Biases as modules that only note what they are given: name
    of a tracker -> (step, numbers) of each call."""
    noted = {"tensorboard": [], "mlflow": [], "wandb": []}

    class Open:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    class SummaryWriter(Open):
        def add_scalar(self, tag, scalar_value, global_step):
            noted["tensorboard"].append((global_step, {tag: scalar_value}))

    class Run(Open):
        def log(self, data, step):
            noted["wandb"].append((step, data))

    def log_metrics(metrics, step):
        noted["mlflow"].append((step, metrics))

    fakes = {
        "torch.utils.tensorboard": SimpleNamespace(SummaryWriter=SummaryWriter),
        "mlflow": SimpleNamespace(
            start_run=Open, log_params=lambda params: dict(params), log_metrics=log_metrics
        ),
        "wandb": SimpleNamespace(init=lambda project, config: Run()),
    }
    for name, fake in fakes.items():
        monkeypatch.setitem(sys.modules, name, fake)
    return noted


@pytest.mark.slow
@pytest.mark.usefixtures("tiny", "world")
def test_recipes_track_every_record(trackers):
    names = {}
    for block in blocks(DOCS / "own-methods.md"):
        if block.kind == "python":
            execute(block.text, DOCS / "own-methods.md", names)
    wanted = [(r["step"], names["numbers"](r)) for r in names["records"]]
    assert trackers["mlflow"] == trackers["wandb"] == wanted
    assert trackers["tensorboard"] == [(n, {k: v}) for n, all in wanted for k, v in all.items()]
    assert any("hidden_error" in numbers for _, numbers in wanted)


@pytest.mark.parametrize("page", TRIED, ids=lambda p: p.stem)
@pytest.mark.usefixtures("tiny", "world", "trackers")
def test_code_runs(page):
    names, printed = {}, ""
    for block in blocks(page):
        if block.needs and not importlib.util.find_spec(block.needs):
            assert block.needs in NEEDED, block.needs
        elif block.kind == "python":
            printed = execute(block.text, page, names)
        elif block.kind in ("console", ""):  # the latter in README
            converse(block.text if block.kind else re.sub("^", "$ ", block.text, flags=re.M))
        elif 'title="' in block.rest:
            Path(block.rest.split('"')[1]).write_text(block.text, encoding="utf-8")
        else:
            assert block.kind == "text", f"nobody knows how to run {block.kind!r}"
            assert page.stem == "README" or not block.below or block.text == printed


@pytest.mark.slow
def test_readme_prints_what_its_first_example_prints():
    """Words are the same, numbers within a few percent: processors round differently."""
    code, expected = blocks(PAGES[0])[1:3]
    printed = execute(code.text, PAGES[0], {})
    number = re.compile(r"\d+")
    assert number.sub("#", printed) == number.sub("#", expected.text)
    pairs = zip(number.findall(printed), number.findall(expected.text), strict=True)
    assert all(abs(int(a) - int(b)) <= 4 for a, b in pairs)


def execute(code, page, names):
    """What the code prints; a table must stand on the page as it is printed."""
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, page.name, "exec", dont_inherit=True), names)
    printed = out.getvalue()
    if printed.startswith("|"):
        assert printed in page.read_text(encoding="utf-8")
        return ""
    return printed


def converse(text):
    """Lines after `$ ` are commands; the others what they say, `...` for anything."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, expected = part.partition("\n")
        said = command(shlex.split(line, comments=True))
        if expected.strip():
            wanted = "".join(
                r"(?:.*\n)*?" if line == "..." else re.escape(line) + "\n"
                for line in flat(expected)
            )
            told = "".join(f"{line}\n" for line in flat(said))
            assert re.fullmatch(wanted, told), told


def flat(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def command(words):
    """Run `vedute ...` here; what it says."""
    if not words or words[0] in SET_UP:
        return ""
    assert words[0] == "vedute", f"nobody knows how to run {words[0]}"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{shlex.join(words)}\n{result.output}{result.stderr}"
    return result.stdout


# What the code writes: docs/hooks.py.


@pytest.fixture(scope="module")
def hooks():
    return runpy.run_path(str(DOCS / "hooks.py"))


@pytest.fixture(scope="module")
def site(hooks):
    """All pages as they are built, by name."""
    found = {p.name: p.read_text(encoding="utf-8") for p in PAGES[1:]}
    found = {k: hooks["on_page_markdown"](text) for k, text in found.items()}
    return found | hooks["generated"]()


def test_every_table_that_a_page_asks_for_is_made(hooks, site):
    asked = {name for p in PAGES for name in hooks["MARK"].findall(p.read_text(encoding="utf-8"))}
    assert asked == set(hooks["MADE"])
    assert not any("made here" in text for text in site.values())


def test_readme_lists_the_methods_by_family(hooks):
    text = PAGES[0].read_text(encoding="utf-8")
    made = text.partition("<!-- made here: families -->\n")[2].partition("\n<!-- end -->")[0]
    assert made == hooks["families"]()


def test_every_public_name_is_in_the_docs(site):
    lost = [name for name in vedute.__all__ if f"{name}`" not in site["api.md"]]
    lost += [name for name in Estimator.verbs if not re.search(rf"\b{name}\b", site["api.md"])]
    assert not [name for name in lost if name != "__version__"]


@pytest.mark.parametrize("name", methods.of_this_package())
def test_every_method_has_a_page_with_all_its_settings(name, site):
    cls, page = methods.find(name), site[f"methods/{name}.md"]
    for f in fields(cls):
        assert f"| `{f.name}` | `{f.type}` | `{f.default!r}` |" in page
    for attribute in attributes(cls):
        assert f"| `{attribute}` |" in page
    assert f"[`{name}`](methods/{name}.md)" in site["methods.md"]
    assert f"[`vedute.{cls.__name__}`](methods/{name}.md)" in site["api.md"]
    for preset in presets.load(name):
        assert f"| `{preset}` |" in page


def test_links_lead_somewhere(hooks, stories):
    lost = []
    made = {*hooks["generated"](), *(f"gallery/{name}.md" for name in stories["names"]())}
    for page in PAGES[1:]:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, _ = target.partition("#")
            there = path in made or (page.parent / path).exists()
            if not target.startswith("http") and not there:
                lost.append(f"{page.name}: {target}")
    assert not lost


# How much there is to read: bars of restraint.
WORDS = re.compile(r"[A-Za-z][\w'’-]*")


def prose(page):
    """The text of a page without code, comments, tables, headings and targets of links."""
    text = re.sub(r"```.*?```|<!--.*?-->", " ", page.read_text(encoding="utf-8"), flags=re.S)
    lines = [x for x in text.splitlines() if not re.match(r"\s*(\||#|!\[)", x)]
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", "\n".join(lines))


def test_readme_is_read_in_three_minutes():
    text = PAGES[0].read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    assert text.partition("## Install")[0].count("\n") < 35


def test_pages_are_few_and_short():
    pages = [p for p in PAGES[1:] if p.stem != "index"]
    assert len(pages) <= 15  # and two that are made from the code: 17
    assert sum(len(p.read_text(encoding="utf-8").split()) for p in pages) <= 22_000


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_sentences_are_short(page):
    parts = re.split(r"\n\s*\n|\n\s*(?:[-*+]|\d+\.)\s+", prose(page))
    flat = [re.sub(r"`[^`]*`", "x", " ".join(part.split())) for part in parts]
    sentences = [s for part in flat for s in re.split(r"(?<=[.!?;:])\s+(?=[A-Z*(])", part)]
    long = [s for s in sentences if len(WORDS.findall(s)) > 35]
    assert not long, long


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda p: p.stem)
def test_pages_begin_with_what_a_reader_can_do_after_them(page):
    head = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert head.startswith("After this page you ")


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_examples(script, monkeypatch, capsys):
    if script.stem == "birds" and _files.find_npz("cub") is None:
        pytest.skip("cub is not in VEDUTE_DATA")
    monkeypatch.setattr(sys, "argv", [script.name, "--quick"])
    runpy.run_path(str(script), run_name="__main__")
    assert 3 <= len(capsys.readouterr().out.splitlines()) < 20
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 80


def test_example_without_its_data(monkeypatch, tmp_path):
    def no_network(*_, **__):
        raise OSError("no network")

    monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
    monkeypatch.setattr(_files, "urlopen", no_network)
    monkeypatch.setattr(sys, "argv", ["birds.py", "--quick"])
    with pytest.raises(SystemExit, match=r"needs the dataset cub: .*VEDUTE_DATA"):
        runpy.run_path(str(ROOT / "examples" / "birds.py"), run_name="__main__")


# Stories of the gallery: docs/stories.py.

STORIES = sorted((DOCS / "gallery").glob("*.py"))
FEW = ("cohort",)  # the others run when the site is built
SOME = [pytest.param(p, marks=() if p.stem in FEW else pytest.mark.all) for p in STORIES]


@pytest.fixture(scope="module")
def stories():
    return runpy.run_path(str(DOCS / "stories.py"))


@pytest.mark.slow
@pytest.mark.parametrize("data", ["there", pytest.param("not there", marks=pytest.mark.all)])
@pytest.mark.parametrize("story", SOME, ids=lambda p: p.stem)
def test_stories_run(story, data, stories, tmp_path, monkeypatch):
    monkeypatch.setenv("VEDUTE_STORIES", "tiny")
    if data == "not there":
        monkeypatch.setenv("VEDUTE_DATA", str(tmp_path))
        stories["run"](story.stem, tmp_path)
        folder = tmp_path
    else:
        folder = stories["made"](story.stem)
    page = (folder / f"{story.stem}.md").read_text(encoding="utf-8")
    assert "**The question.**" in page
    assert "**What was learned.**" in page
    figures = re.findall(r"!\[\]\((.+)\)", page)
    assert figures
    assert all((folder / name).stat().st_size > 5000 for name in figures)


@pytest.mark.parametrize("story", STORIES, ids=lambda p: p.stem)
def test_notebooks_hold_the_story(story, stories):
    book = json.loads(stories["notebook"](story.stem))
    assert book["nbformat"] == 4
    source = "\n".join("".join(cell["source"]) for cell in book["cells"])
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    assert all(part in story.read_text(encoding="utf-8") for part in code)
    assert source.startswith("# ")
    assert {c["cell_type"] for c in book["cells"]} == {"code", "markdown"}


@pytest.mark.long
def test_site_builds(tmp_path):
    for package in ("material", "mkdocstrings_handlers"):
        pytest.importorskip(package, reason="the extra docs is not installed")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "VEDUTE_STORIES": "tiny"}
    built = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr


def test_names_in_the_text_import_as_they_are_written():
    """`vedute.analysis.informs.informs`, after nothing but `import vedute`."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = {*re.findall(r"(?:`|::: )(vedute(?:\.[a-zA-Z_]\w*)+)(?=[`(\s])", text)}
    assert {"vedute.analysis.profiles.profiles", "vedute.analysis.pooling.Pooled"} <= names
    code = f"import vedute; {'; '.join(sorted(names))}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not result.stderr, result.stderr.splitlines()[-1]
