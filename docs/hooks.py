"""What mkdocs takes from the code while it builds: a page per method, the gallery, and tables in
other pages.

A line `<!-- made here: NAME -->` in a page stands for what the function NAME below returns.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

from vedute import methods
from vedute.estimators import settings
from vedute.estimators.base import Estimator
from vedute.estimators.neural import NeuralEstimator
from vedute.methods import presets

STUDIES = re.compile(r"\[([^]]+)\]\(\.\./bench/docs/([\w-]+)\.md\)")  # a site of their own
MARK = re.compile(r"^<!-- made here: (\w+) -->$", re.MULTILINE)


def sibling(name: str) -> Any:
    """A module beside this one: mkdocs reads hooks as files, outside any package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


stories = sibling("stories")


# What mkdocs calls.


def on_config(config: Any) -> Any:
    pages = [{name: address(name)} for name in in_order()]
    config["nav"].insert(-1, {"Methods": pages})  # before the reference
    tell = [{stories.title(name): f"gallery/{name}.md"} for name in stories.names()]
    config["nav"].insert(1, {"Gallery": tell})  # after the quickstart
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name in methods.of_this_package():
        files.append(File.generated(config, address(name), content=page(name)))
    for name in stories.names():
        for path in sorted(stories.made(name).iterdir()):
            files.append(File.generated(config, f"gallery/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    made = MARK.sub(lambda m: MADE[m[1]](), markdown)
    return STUDIES.sub(r'<a href="../bench/\2.html">\1</a>', made)


def address(name: str) -> str:
    return f"methods/{name}.md"


# Tables of all methods.


def in_order() -> list[str]:
    """Those that train first, the newest of them first."""
    found = {name: methods.find(name) for name in methods.of_this_package()}
    year = {name: int(cls.paper[-4:] or 0) for name, cls in found.items()}
    return sorted(found, key=lambda k: (not issubclass(found[k], NeuralEstimator), -year[k]))


def all_methods() -> str:
    """One line per method."""
    rows = [{"method": f"[`{name}`]({address(name)})"} | known(name) for name in in_order()]
    return table(rows[0], [row.values() for row in rows])


def known(name: str) -> dict[str, str]:
    """What to know of a method before choosing it."""
    facts = {k: v for k, v in methods.facts(name).items() if k != "method"}
    return facts | {"cost": cost(methods.find(name))}


def cost(cls: type[Estimator]) -> str:
    if not issubclass(cls, NeuralEstimator):
        return "seconds"
    default = {f.name: f.default for f in fields(cls)}
    return f"up to {default['steps']} steps of {default['batch_size']} rows; a GPU helps"


def all_classes() -> str:
    """The class of every method, and where its page is."""
    rows = []
    for name in in_order():
        cls = methods.find(name)
        rows.append([f"[`vedute.{cls.__name__}`]({address(name)})", methods.written(name)[0]])
    return table(["class", "what it is"], rows)


def settings_of_mvp() -> str:
    return settings_of(methods.find("mvp"))


def attributes_of_mvp() -> str:
    return attributes_of(methods.find("mvp"))


MADE: Mapping[str, Callable[[], str]] = {
    f.__name__: f for f in (all_methods, all_classes, settings_of_mvp, attributes_of_mvp)
}


# The page of a method.


def page(name: str) -> str:
    """Objective, abilities, settings, what is learned, presets."""
    cls = methods.find(name)
    objective = cleandoc(import_module(cls.__module__).__doc__ or "")
    example = (cls.__doc__ or "").partition("\nExamples\n--------\n")[2]
    sections = {
        "Objective": f"```text\n{objective}\n```",
        "Example": f"```pycon\n{example}\n```",
        "Abilities": table(["", ""], [[k, v] for k, v in known(name).items() if v]),
        "Settings": f"{SETTINGS}\n\n{settings_of(cls)}",
        "Learned attributes": attributes_of(cls),
        "Presets": presets_of(name),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items() if text)
    about = "\n\n".join(methods.written(name))
    return f"# {cls.__name__}\n\n`vedute.{cls.__name__}`: {about}\n\n{body}\n"


SETTINGS = (
    "All are keyword arguments, and may be given on the command line as `--set name=value`. "
    "Time is in steps, or in epochs where `epochs` is given."
)


def settings_of(cls: type[Estimator]) -> str:
    rows = [
        [f"`{f.name}`", f"`{f.type}`", f"`{f.default!r}`", settings.explained(f)]
        for f in fields(cls)
    ]
    return table(["setting", "type", "default", "what it does"], rows)


def attributes_of(cls: type[Estimator]) -> str:
    rows = [[f"`{k}`", meaning] for k, meaning in settings.attributes(cls).items()]
    return table(["attribute", "what it is"], rows)


def presets_of(name: str) -> str:
    """The published settings, by dataset."""
    rows = [
        [f"`{k}`", ", ".join(f"`{setting}={value!r}`" for setting, value in preset.items())]
        for k, preset in presets.load(name).items()
    ]
    call = f'`{methods.find(name).__name__}(**presets.find("{name}", NAME))`'
    how = f"Published settings, with `vedute fit --method {name} --preset NAME` or {call}."
    return f"{how}\n\n{table(['name', 'settings'], rows)}" if rows else ""


def table(heads: Iterable[str], rows: Sequence[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
