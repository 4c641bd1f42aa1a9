"""The reference: a page for each room of the package, from the docstrings of its modules."""

import importlib
import pkgutil
from collections.abc import Iterator

import tinytransformer

ROOMS = ("text", "model", "training", "translation", "experiments", "inspection", "teaching")
# Data rather than an interface: what an exercise knows stands in the index of misconceptions.
LEFT_OUT = ("_exercises", "_tasks", ".assignments", "__main__", ".teaching.grading.inside", ".commands")
FRONT = """\
# Reference

The package, room by room, in the order in which a sentence walks through it. The texts are the docstrings of
the code.
"""


def modules_of(package: str) -> Iterator[str]:
    """A package and its modules, in alphabetical order, without those that are only data."""
    yield package
    module = importlib.import_module(package)
    for found in sorted(pkgutil.iter_modules(getattr(module, "__path__", [])), key=lambda one: one.name):
        name = f"{package}.{found.name}"
        if found.name.startswith("_") or any(part in name for part in LEFT_OUT):
            continue
        yield from modules_of(name) if found.ispkg else [name]


def summary(name: str) -> str:
    return (importlib.import_module(name).__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")


def room_page(room: str) -> str:
    """The page of one room, in reStructuredText, which is what autodoc writes."""
    package = f"tinytransformer.{room}"
    lines = [room, "=" * len(room), ""]
    lines += [f".. automodule:: {package}", "   :no-members:", ""]  # what it offers is told where it is defined
    for name in [name for name in modules_of(package) if name != package]:
        title = f"``{name.removeprefix('tinytransformer.')}``"
        lines += [title, "-" * len(title), "", f".. automodule:: {name}"]
        lines += ["   :no-members:", ""] if hasattr(importlib.import_module(name), "__path__") else [""]
    return "\n".join(lines)


def front_page() -> str:
    lines = [FRONT, "| room | what it is |", "|---|---|"]
    lines += [f"| [{room}]({room}.rst) | {summary(f'tinytransformer.{room}').replace('|', '')} |" for room in ROOMS]
    names = ", ".join(f"`{name}`" for name in tinytransformer.__all__)
    lines += ["", f"What people use most can be imported from `tinytransformer` itself: {names}.", ""]
    lines += ["```{toctree}", ":hidden:", ":titlesonly:", *ROOMS, "```"]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    return {"reference/index.md": front_page(), **{f"reference/{room}.rst": room_page(room) for room in ROOMS}}
