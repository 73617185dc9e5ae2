"""The stories of the gallery: docs/gallery/NAME.py, cells between lines `# %%`, text in comments.

    python docs/stories.py NAME FOLDER     run a story: NAME.md, NAME.ipynb and figures in FOLDER

`made` keeps what was run in build/gallery, under a digest of the story and of the package, so that
a story runs again only where its page could change. With VEDUTE_STORIES=tiny the numbers STEPS and
ROWS of a story are small: that tests it, and its results mean nothing.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from vedute.cli import SLEEPING

ROOT = Path(__file__).parents[1]
STORIES, CACHE = ROOT / "docs" / "gallery", ROOT / "build" / "gallery"
TINY = {"STEPS": 20, "ROWS": 80}
CELL = re.compile(r"^# %%(?P<kind>.*)\n", re.MULTILINE)


class Cell(NamedTuple):
    text: str
    code: bool


def names() -> list[str]:
    return sorted(path.stem for path in STORIES.glob("*.py"))


def title(name: str) -> str:
    return cells(name)[0].text.partition("\n")[0].removeprefix("# ")


def cells(name: str) -> list[Cell]:
    """Text without its comment marks, and code as it is."""
    _, *parts = CELL.split((STORIES / f"{name}.py").read_text(encoding="utf-8"))
    found = []
    for kind, text in zip(parts[::2], parts[1::2], strict=True):
        code = "markdown" not in kind
        text = text if code else re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        found.append(Cell(text.strip(), code))
    return found


def notebook(name: str) -> str:
    """The story as a notebook (nbformat 4), not run."""
    made = [_notebook_cell(k, cell) for k, cell in enumerate(cells(name))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _notebook_cell(k: int, cell: Cell) -> dict[str, Any]:
    common = {"id": f"cell{k}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
    if not cell.code:
        return {"cell_type": "markdown", **common}
    return {"cell_type": "code", "execution_count": None, "outputs": [], **common}


def run(name: str, folder: Path) -> None:
    """Run a story and write its page, figures and notebook."""
    parts = [_told(cell) for cell in cells(name)]
    space: dict[str, Any] = {"__name__": "__main__"}
    for k, cell in enumerate(cells(name)):
        if cell.code:
            parts[k] += "".join(_results(_smaller(cell.text), space, folder, f"{name}-{k}"))
    head, rest = parts[0].partition("\n")[::2]
    offer = f"[Download this page as a notebook]({name}.ipynb){{ download }}"
    text = "\n\n".join([head, offer, rest.strip(), *parts[1:]])
    (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    (folder / f"{name}.ipynb").write_text(notebook(name), encoding="utf-8")


def _told(cell: Cell) -> str:
    return f"```python\n{cell.text}\n```\n" if cell.code else cell.text


def _smaller(code: str) -> str:
    for word, number in TINY.items() if is_tiny() else ():
        code = re.sub(rf"^{word} = \d+", f"{word} = {number}", code, flags=re.MULTILINE)
    return code


def _results(code: str, space: dict[str, Any], folder: Path, stem: str) -> Iterator[str]:
    """What a cell prints, and its figures; as in a notebook, an expression at its end is shown."""
    from matplotlib import pyplot as plt

    tree, out = ast.parse(code), StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(out):
        exec(compile(tree, stem, "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), stem, "eval"), space)
            if value is not None and not type(value).__module__.startswith("matplotlib"):
                print(value)
    if out.getvalue():
        yield f"\n```text\n{out.getvalue().rstrip()}\n```\n"
    for number in plt.get_fignums():
        plt.figure(number).savefig(folder / f"{stem}-{number}.png", dpi=110, bbox_inches="tight")
        yield f"\n![]({stem}-{number}.png)\n"
    plt.close("all")


def made(name: str) -> Path:
    """The folder of a story that was run, now or before."""
    place = CACHE / "tiny" if is_tiny() else CACHE
    folder = place / f"{name}-{_digest(name)}"
    if not folder.is_dir():
        for old in place.glob(f"{name}-*"):
            shutil.rmtree(old, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(prefix=f".{name}-", dir=place))
        env = SLEEPING | os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT / "src")}
        words = [sys.executable, __file__, name, str(part)]
        done = subprocess.run(words, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the story {name} does not run\n{done.stderr}")
        with suppress(OSError):  # another process was faster
            part.rename(folder)
        shutil.rmtree(part, ignore_errors=True)
    return folder


def is_tiny() -> bool:
    return os.environ.get("VEDUTE_STORIES") == "tiny"


def _digest(name: str) -> str:
    """Of all that a page depends on: story, package, data, size."""
    found = hashlib.sha256()
    for path in (Path(__file__), STORIES / f"{name}.py", *sorted((ROOT / "src").rglob("*.py"))):
        found.update(path.read_bytes())
    for word in ("VEDUTE_DATA", "VEDUTE_STORIES"):
        found.update(f"{word}={os.environ.get(word, '')}\n".encode())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]))
