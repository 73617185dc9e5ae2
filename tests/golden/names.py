"""List the public names that a change removes or adds, compared with another commit.

    python tests/golden/names.py COMMIT

Public names are those of `import vedute`, the settings, verbs and learned attributes of each
estimator, and the commands and options of the command line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def public_names() -> list[str]:
    """The public names of the package that is on the path."""
    import inspect

    import typer

    import vedute
    from vedute import methods
    from vedute.cli import app
    from vedute.estimators import settings
    from vedute.methods import find

    names = [f"vedute.{name}" for name in dir(vedute) if not name.startswith("_")]
    own = getattr(methods, "of_this_package", methods.available)()
    for cls in {find(name) for name in own}:
        verbs = [k for k, f in inspect.getmembers(cls, callable) if not k.startswith("_")]
        names += [f"{cls.__name__}.{verb}()" for verb in verbs]
        names += [f"{cls.__name__}({setting}=)" for setting in settings.declared(cls)]
        names += [f"{cls.__name__}.{attribute}" for attribute in settings.attributes(cls)]
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        options = {option for parameter in command.params for option in parameter.opts}
        names += [f"vedute {name} {option}" for option in options if option.startswith("--")]
        names.append(f"vedute {name}")
    return sorted(set(names))


def listed(tree: Path) -> set[str]:
    """The public names of the package in a tree, listed in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    run = subprocess.run(
        [sys.executable, __file__], env=env, check=True, capture_output=True, text=True
    )
    return set(run.stdout.splitlines())


def main() -> None:
    if len(sys.argv) < 2:
        print(*public_names(), sep="\n")
        return
    from golden import worktree

    before, now = listed(worktree(sys.argv[1])), listed(ROOT)
    print(*(f"- {name}" for name in sorted(before - now)), sep="\n")
    print(*(f"+ {name}" for name in sorted(now - before)), sep="\n")


if __name__ == "__main__":
    main()
