"""A method, a dataset and a command are one file each, here or in a distribution of others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plugging import install
from shell import done

from vedute import commands, datasets, methods

ROOT = Path(__file__).parents[1]
DATASET = """
import numpy as np
from vedute import Views


def load():
    return Views.of({"a": np.ones((8, 2)), "b": np.zeros((8, 3))})
"""
COMMAND = """
from typing import Annotated

import typer

EXAMPLE = "vedute greet Ann"


def run(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    \"\"\"Say hello.\"\"\"
    print(f"hello {name}")
"""
BROKEN = "import no_such_module\n"


def method():
    page = (ROOT / "docs" / "own-methods.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.S)[0]


def drop_in(monkeypatch, package, folder, name, code):
    """A file in a folder that is a registry."""
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, f"{package.__name__}.{name}", raising=False)


def check_method(name):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(30, 3)), rng.normal(size=(30, 4))]
    model = methods.find(name)(steps=2, hidden=(4,), device="cpu", random_state=0).fit(views)
    assert model.embedding_.shape[0] == 30


def check_dataset(name):
    assert datasets.has(name)
    assert datasets.load(name).names == ("a", "b")
    assert name in done("list", "datasets")
    assert "8 samples" in done("inspect", name)


def test_a_file_is_a_method(tmp_path, monkeypatch):
    drop_in(monkeypatch, methods, tmp_path, "average", method())
    assert "average" in methods.available()
    check_method("average")


def test_a_file_is_a_dataset(tmp_path, monkeypatch):
    drop_in(monkeypatch, datasets, tmp_path, "ones", DATASET)
    assert "ones" in datasets.available()
    check_dataset("ones")


def test_a_file_is_a_command(tmp_path, monkeypatch):
    drop_in(monkeypatch, commands, tmp_path, "greet", COMMAND)
    assert commands.available()[commands.of_this_package().index("greet")] == "greet"
    assert commands.find("greet").EXAMPLE == "vedute greet Ann"


def test_an_entry_point_is_a_method(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, methods.GROUP, average=("own_average:Average", method()))
    check_method("average")


def test_an_entry_point_is_a_dataset(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, datasets.GROUP, ones=("own_ones", DATASET))
    check_dataset("ones")


@pytest.fixture
def vedute_(tmp_path, monkeypatch):
    """The command line in a process of its own, with commands of another distribution."""
    points = {"greet": ("own_greet", COMMAND), "broken": ("own_broken", BROKEN)}
    install(tmp_path, monkeypatch, commands.GROUP, **points)
    path = f"{ROOT / 'src'}:{tmp_path / 'site'}"

    def run(*words):
        env = {"PYTHONPATH": path, "PATH": "", "HOME": str(tmp_path)}
        call = [sys.executable, "-m", "vedute", *words]
        return subprocess.run(call, env=env, capture_output=True, text=True)

    return run


def test_an_entry_point_is_a_command(vedute_):
    told = vedute_("--help").stdout
    assert "greet" in told
    assert "Say hello." in told
    assert vedute_("greet", "Ann").stdout == "hello Ann\n"


def test_a_command_that_cannot_be_imported_spoils_no_other(vedute_):
    assert vedute_("--help").returncode == 0
    result = vedute_("broken")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("vedute: own_broken of the distribution vedute-own cannot be imported")
