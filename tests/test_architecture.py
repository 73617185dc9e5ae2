"""The house keeps its shape: imports point one way, files stay small, torch loads at first use."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
ORDER = """
frames slicing door streams studies records workers rendering critical colors
views gaussian laplace cycles likelihoods metrics calibration clusters convolutions neighbours ssim
missing scaling networks losses opinions io layout saving holdout telling checkpoints presets kmeans
model
step training sentences
learner estimator trained
methods datasets pairs
report summary tables curves ranking evidence page gallery generation_report side_by_side
classifiers generation exhibits measuring benchmark comparison inspection tuning demo picture_demo
commands cli
__main__
"""
RANK = {name: r for r, line in enumerate(ORDER.strip().splitlines()) for name in line.split()}
ORDINARY = {"shapes", "captions"}  # datasets whose names are words like others, unless quoted
FRONT = "vedute"  # the front page names everything, lazily; nobody imports from it but its version


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


FILES = {dotted(path): path for path in sorted((SRC / FRONT).rglob("*.py"))}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
TREES = {name: ast.parse(text) for name, text in TEXTS.items()}
ROOMS = [name for name in TREES if name != FRONT]


def room(module: str) -> str:
    """vedute.methods.mvp -> methods"""
    return module.removeprefix(f"{FRONT}.").split(".")[0]


def public(package: str) -> list[str]:
    """The modules of a folder that is a registry: vedute.methods.mvp, but not vedute.methods._x"""
    return [m for m in ROOMS if re.fullmatch(rf"{FRONT}\.{package}\.[^_.]\w*", m)]


def imports(module: str) -> Iterator[str]:
    """The vedute modules that `module` imports, wherever in the file it does."""
    package = module if FILES[module].stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            inner = [f"{base}.{alias.name}" for alias in node.names]
            found = [name if name in TREES or base == FRONT else base for name in inner]
        else:
            continue
        yield from (f for f in found if f.split(".")[0] == FRONT and f != f"{FRONT}.__version__")


def test_every_module_has_a_rank():
    unknown = sorted({room(m) for m in ROOMS} - RANK.keys())
    assert not unknown, f"no rank for {', '.join(unknown)}: add it to ORDER in {__file__}"


def test_imports_point_one_way():
    wrong, loners = [], public("methods") + public("datasets")
    for source in ROOMS:
        for target in imports(source):
            if room(target) not in RANK:
                wrong.append(f"{source} imports {target}: name the module that defines it")
            elif RANK[room(target)] > RANK.get(room(source), 0):
                wrong.append(f"{source} imports {target}, which stands above it")
            elif source.count(".") > 1 and target in loners and room(target) == room(source):
                wrong.append(f"{source} imports {target}: share through a private module")
    assert not wrong, "\n".join(wrong)


def test_no_import_cycles():
    graph = {source: set(imports(source)) - {source} for source in ROOMS}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("imports go round: " + " <- ".join(error.args[1]))


def test_modules_are_short():
    long = [name for name, text in TEXTS.items() if len(text.splitlines()) > 300]
    assert not long, f"over 300 lines: {', '.join(long)}"


def test_models_know_no_dataset():
    names = [m.rpartition(".")[2] for m in public("datasets")]
    names = "|".join(f"""["']{name}["']""" if name in ORDINARY else name for name in names)
    models = [m for m in ROOMS if room(m) in ("model", "networks", "training", "methods")]
    told = [m for m in models if names and re.search(rf"(?<!\w)({names})(?!\w)", TEXTS[m], re.I)]
    assert not told, f"a dataset is named in {', '.join(told)}: settings belong in presets"


def test_methods_have_docstrings():
    bare = [m for m in public("methods") if not ast.get_docstring(TREES[m])]
    assert not bare, f"{', '.join(bare)}: open with the paper and its objective"


@pytest.mark.parametrize("start", ["import vedute", "from vedute.cli import main; main()"])
def test_torch_loads_at_first_use(start):
    code = f"import sys; sys.argv = ['vedute', '--help']\ntry: {start}\nexcept SystemExit as end:"
    code += " assert not end.code\nassert 'torch' not in sys.modules, 'torch was imported'"
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
