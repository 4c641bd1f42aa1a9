"""What all formats share: an error, packages that may be missing, and which models the others can run at all."""

import importlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tinytransformer.model.baselines import Config, architecture_of


class ExchangeError(ValueError):
    """A model cannot be exported or imported; the message says why and what to do."""


def package(name: str) -> ModuleType:
    """An optional package, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ExchangeError(
            f"this needs the package {name.split('.')[0]} ({error}): pip install -r requirements-exchange.txt, or "
            "pip install 'tinytransformer[exchange]'"
        ) from None


def require(config: Config, wanted: Mapping[str, Any], whom: str) -> None:
    """Refuse a model that ``whom`` cannot run, and say what it would need."""
    if architecture_of(config) != "transformer":
        raise ExchangeError(f"{whom} cannot run this model: it is a {config.architecture}, not a Transformer")
    for name, value in wanted.items():
        if getattr(config, name) != value:
            found = getattr(config, name)
            raise ExchangeError(f"{whom} cannot run this model: {name}={found!r}, and only {value!r} is possible there")


@contextmanager
def new_folder(goal: Path) -> Iterator[Path]:
    """A folder to write into under another name; it becomes ``goal`` when all is written, or vanishes."""
    unused(goal)
    part = goal.with_name(goal.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        if goal.is_dir():
            goal.rmdir()  # it is empty
        part.rename(goal)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def unused(goal: Path) -> Path:
    """The folder, if nothing would be lost by writing it."""
    if goal.exists() and not (goal.is_dir() and not any(goal.iterdir())):
        raise ExchangeError(f"{goal} exists and is not empty: name a new folder, or delete that one first")
    return goal
