"""What mkdocs takes from the code while it builds: pages of all methods, of each method and of the
commands, the gallery, and tables in other pages.

A line `<!-- made here: NAME -->` in a page stands for what the function NAME below returns; README,
which is not built, has the text itself between that line and `<!-- end -->`.
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

from vedute import commands, methods
from vedute.estimators import settings
from vedute.estimators.base import Estimator
from vedute.estimators.neural import NeuralEstimator
from vedute.methods import presets

STUDIES = re.compile(r"\[([^]]+)\]\(((?:\.\./)+bench)/docs/([\w-]+)\.md\)")  # a site of their own
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
    sections = {title: pages for section in config["nav"] for title, pages in section.items()}
    sections["Methods"] += [{name: address(name)} for name in in_order()]
    sections["Gallery"] += [{stories.title(name): f"gallery/{name}.md"} for name in stories.names()]
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    for name in stories.names():
        for path in sorted(stories.made(name).iterdir()):
            files.append(File.generated(config, f"gallery/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    made = MARK.sub(lambda m: MADE[m[1]](), markdown)
    return STUDIES.sub(r'<a href="\2/\3.html">\1</a>', made)


def address(name: str) -> str:
    return f"methods/{name}.md"


def generated() -> dict[str, str]:
    """Pages that are made from the code as a whole, by path."""
    pages = {address(name): page(name) for name in methods.of_this_package()}
    return pages | {"methods.md": all_methods(), "commands.md": command_line()}


# Tables of all methods.


def in_order() -> list[str]:
    """Those that train first, the newest of them first."""
    found = {name: methods.find(name) for name in methods.of_this_package()}
    year = {name: int(cls.paper[-4:] or 0) for name, cls in found.items()}
    return sorted(found, key=lambda k: (not issubclass(found[k], NeuralEstimator), -year[k]))


METHODS = """# All methods

After this page you know what each method does with missing views, and where its settings are.

Every method takes any pattern of missing views, in training and after, also on new rows. *Imputes*
means that it fills missing views with intervals; *generates*, that it also makes new samples. A
method without clusters of its own leaves them to k-means. `vedute list methods` prints this table.
"""


def all_methods() -> str:
    """A page with one line per method, by family."""
    sections = [METHODS]
    for family, names in by_family().items():
        rows = [{"method": f"[`{name}`]({address(name)})"} | known(name) for name in names]
        sections.append(f"## {family}\n\n{table(rows[0], [row.values() for row in rows])}\n")
    return "\n".join(sections)


def by_family() -> dict[str, list[str]]:
    """Names of methods by family, those that train first, the newest of them first."""
    families: dict[str, list[str]] = {
        "Default and paper": [],
        "Fills": [],
        "Multimodal VAEs": [],
        "Clustering incomplete views": [],
    }
    for name in in_order():
        kind = methods.find(name).__module__.split(".")[2]
        vae = "VAE" in methods.written(name)[0]
        deep = "Multimodal VAEs" if vae else "Clustering incomplete views"
        families[{"fills": "Fills", "deep": deep}.get(kind, "Default and paper")].append(name)
    return families


ABOUT = {
    "Default and paper": "MVP, and Blend, which averages it with three fills",
    "Fills": "seconds, no training",
    "Multimodal VAEs": "one latent space; they impute, generate, take images",
    "Clustering incomplete views": "eight methods of the literature; four take two views at a time",
}


def families() -> str:
    """One line per family, for README."""
    lines = []
    for family, names in by_family().items():
        listed = ", ".join(f"`{name}`" for name in names)
        lines.append(f"- **{family}** ({ABOUT[family]}): {listed}")
    return "\n".join(lines)


COMMANDS = """# Command line

After this page you know every command and its options.

Exit codes: 0 done, 1 understood and the answer is no, 2 the input or the command is wrong, 3 disk
or memory. `--json` prints [one object](promises.md#what-json-prints). `vedute --install-completion`
lets the shell complete commands and options.
"""


def command_line() -> str:
    """A page with every command of this package: what it does, an example, its options."""
    from typer.main import get_command

    from vedute.cli import app

    known: Any = get_command(app)
    sections = [COMMANDS]
    for name in commands.of_this_package():
        command, example = known.get_command(None, name), commands.find(name).EXAMPLE
        rows = [option(p) for p in command.params if p.name != "help" and not p.hidden]
        text = " ".join(cleandoc(command.help or "").split("\b")[0].split())
        options = table(["option", "meaning"], rows)
        parts = f"## {name}", text, f"```text\n{example}\n```", f"{options}\n"
        sections.append("\n\n".join(parts))
    return "\n".join(sections)


def option(parameter: Any) -> list[str]:
    """The names of an option or argument, and what it means."""
    names = parameter.opts if parameter.param_type_name == "option" else [parameter.name.upper()]
    meaning = " ".join((parameter.help or "").split()).replace("|", "\\|")
    return [", ".join(f"`{k}`" for k in names), meaning]


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
    f.__name__: f for f in (families, all_classes, settings_of_mvp, attributes_of_mvp)
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
    rows = []
    for f, declaration in zip(fields(cls), settings.declared(cls).values(), strict=True):
        limits = declaration.limits()
        meaning = declaration.meaning + (f" {limits[0].upper()}{limits[1:]}." if limits else "")
        rows.append([f"`{f.name}`", f"`{f.type}`", f"`{f.default!r}`", meaning])
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
