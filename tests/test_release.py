"""What is released: the wheel and the sdist, the version and its tag, the workflows, the recipe for
conda, the Docker image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from zipfile import ZipFile

import pytest

import vedute

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "vedute"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CLONED = [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"]
YAML = [*CLONED, ROOT / "CITATION.cff", ROOT / "recipe" / "recipe.yaml"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
CONDA = {"torch": "pytorch"}  # what has another name there


def parsed(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# The wheel and the sdist, built without network.


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    folder = tmp_path_factory.mktemp("release") / "dist"
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    with ZipFile(dist / f"vedute-{vedute.__version__}-py3-none-any.whl") as file:
        yield file


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    about = f"vedute-{vedute.__version__}.dist-info"
    held = {name for name in wheel.namelist() if not name.startswith(about)}
    here = [p for p in PACKAGE.rglob("*") if p.is_file() and p.suffix != ".pyc"]
    assert held == {p.relative_to(PACKAGE.parent).as_posix() for p in here}
    for name in (
        "py.typed",
        "datasets/_data/handwritten.npz",
        "methods/presets/mvp.toml",
        "report/template.html",
    ):
        assert f"vedute/{name}" in held
    assert f"{about}/licenses/LICENSE" in wheel.namelist()
    assert "vedute = vedute.cli:main" in wheel.read(f"{about}/entry_points.txt").decode()


def test_the_wheel_works_without_the_checkout(wheel, tmp_path):
    wheel.extractall(tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "VEDUTE_DATA": str(tmp_path)}

    def said(*words):
        command = [sys.executable, *words]
        run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    where = said("-c", "import vedute; print(vedute.__file__)")
    assert Path(where).is_relative_to(tmp_path)
    assert said("-m", "vedute", "--version") == f"vedute {vedute.__version__}"
    assert "2000" in said("-m", "vedute", "inspect", "handwritten")


def test_the_sdist_holds_what_the_wheel_is_built_from(dist):
    with tarfile.open(dist / f"vedute-{vedute.__version__}.tar.gz") as file:
        held = {name.partition("/")[2] for name in file.getnames()}
    assert held >= {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"}
    assert held >= {"src/vedute/py.typed", "src/vedute/methods/presets/mvp.toml"}
    assert {name.split("/")[0] for name in held if "/" in name} == {"src", "tests"}


# The version stands in src/vedute/__init__.py; the tag of a release must name it.


def test_the_version_is_in_the_changelog():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{vedute.__version__}]" in text


def test_the_tag_of_this_commit_names_the_version():
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    words = ["git", "tag", "--points-at", "HEAD", "v[0-9]*"]
    tags = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not tags:
        pytest.skip("this commit has no version tag")
    assert tags == [f"v{vedute.__version__}"]


@pytest.mark.parametrize(("tag", "published"), [(f"v{vedute.__version__}", True), ("v9", False)])
def test_nothing_is_published_under_another_tag(tag, published, dist):
    if sys.platform == "win32":
        pytest.skip("the workflow publishes from Linux")
    steps = parsed(ROOT / ".github/workflows/release.yml")["jobs"]["publish"]["steps"]
    (check,) = [step["run"] for step in steps if "run" in step]
    assert "run" not in steps[-1]  # it stands before publishing
    env = {**os.environ, "GITHUB_REF_NAME": tag}
    code = subprocess.run(["bash", "-c", check], cwd=dist.parent, env=env).returncode
    assert (code == 0) == published


# The workflows.


@pytest.mark.parametrize("path", YAML, ids=lambda p: p.name)
def test_yaml_is_read(path):
    assert isinstance(parsed(path), dict)


def jobs() -> Iterator[tuple[str, dict]]:
    for path in WORKFLOWS:
        yield from parsed(path)["jobs"].items()


def steps(key: str) -> Iterator[str]:
    """What steps run or use, once for every value of the matrix."""
    for _, job in jobs():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step, values in product(job.get("steps", []), product(*matrix.values())):
            text = step.get(key, "")
            for name, value in zip(matrix, values, strict=True):
                text = text.replace(f"${{{{ matrix.{name} }}}}", value)
            yield text


def test_make_targets_and_files_of_workflows_exist():
    commands = {text.replace("$PWD/", "") for text in steps("run")}
    targets = {t for text in commands for t in re.findall(r"\bmake ([\w-]+)", text)}
    assert {"lint", "test-oldest", "docs", "smoke", "image"} <= targets <= set(TARGETS)
    files = {f for text in commands for f in re.findall(r"[\w./-]+\.(?:txt|toml|py)\b", text)}
    assert "constraints.txt" in files
    assert not [f for f in files if not (ROOT / f).is_file()]
    assert all((ROOT / job["uses"]).is_file() for _, job in jobs() if "uses" in job)


def test_actions_are_pinned_by_commit():
    used = {text for text in steps("uses") if text}
    assert used
    assert not [text for text in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", text)]


def test_only_the_job_that_publishes_may_ask_for_an_identity():
    for path in WORKFLOWS:
        assert parsed(path)["permissions"] in ({}, {"contents": "read"})
    found = {name: job.get("permissions") for name, job in jobs()}
    assert found.pop("publish") == {"id-token": "write"}
    assert all(rights in (None, {"contents": "read"}) for rights in found.values())
    (publish,) = [job for name, job in jobs() if name == "publish"]
    assert publish["needs"] == "tests"
    assert publish["environment"] == "pypi"


def test_python_versions_agree():
    matrix = parsed(ROOT / ".github/workflows/tests.yml")["jobs"]["test"]["strategy"]["matrix"]
    start = "Programming Language :: Python :: 3."
    assert matrix["python"] == [c[-4:] for c in PROJECT["classifiers"] if c.startswith(start)]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_torch_comes_from_the_index_for_the_cpu():
    env = parsed(ROOT / ".github/workflows/tests.yml")["env"]
    assert env["PIP_EXTRA_INDEX_URL"] in (ROOT / "Dockerfile").read_text(encoding="utf-8")


# conda and Docker.


def test_the_recipe_agrees_with_pyproject():
    recipe = parsed(ROOT / "recipe" / "recipe.yaml")
    assert recipe["context"]["version"] == vedute.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    needs = [re.split("(?=>=)", need) for need in PROJECT["dependencies"]]
    wanted = [f"{CONDA.get(name, name)} {bound}" for name, bound in needs]
    assert recipe["requirements"]["run"] == ["python >=${{ python_min }}", *wanted]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


def test_the_image_gets_all_that_it_copies():
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [w for line in re.findall("^COPY (.+)", text, re.M) for w in line.split()[:-1]]
    assert {line[1:] for line in kept if line.startswith("!")} == set(copied)
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.all
def test_the_image_is_built_and_works():
    if shutil.which("docker") is None or subprocess.run(["docker", "info"]).returncode:
        pytest.skip("there is no Docker here")
    built = subprocess.run(["make", "image"], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
