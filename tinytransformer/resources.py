"""Where the files live that travel with the package: the folder ``data/``."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def data_folder(name: str) -> Traversable:
    """The folder ``data/<name>``: inside an installed package, or at the root of a source checkout."""
    installed = files("tinytransformer") / "data" / name
    if installed.is_dir():
        return installed
    checkout = Path(__file__).resolve().parent.parent / "data" / name
    if checkout.is_dir():
        return checkout
    raise FileNotFoundError(
        f"no folder data/{name}: looked in {installed} and {checkout}. Install the package again, or clone it whole."
    )
