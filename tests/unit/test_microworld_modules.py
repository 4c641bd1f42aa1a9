"""The microworld's files import downhill, need only the standard library, and find their data."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tinytransformer.text.microworld as microworld
from tinytransformer.resources import data_folder

FOLDER = Path(microworld.__file__).parent
ORDER = re.search(r"before it: ([\w,\s]+)\.", microworld.__doc__).group(1).replace("\n", " ").split(", ")


def imported(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return names + [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]


def test_the_order_names_every_file():
    assert sorted(ORDER) == sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", ORDER)
def test_imports_run_downhill(name):
    prefix = "tinytransformer.text.microworld."
    before = ORDER[: ORDER.index(name)]
    for module in imported(FOLDER / f"{name}.py"):
        if module.startswith(prefix):
            assert module.removeprefix(prefix) in before, f"{name} imports {module}"
        else:
            assert module == "tinytransformer.resources" or module.split(".")[0] in sys.stdlib_module_names


def test_randomness_comes_only_from_random_random():
    """``choice``, ``shuffle`` and ``hash`` may differ between Python versions and processes; ``random()`` does not."""
    banned = {"choice", "choices", "shuffle", "sample", "randrange", "randint", "uniform", "getrandbits"}
    for path in FOLDER.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & banned, path.name
        assert not {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & {"hash", "id"}, path.name


def test_files_are_short():
    for path in FOLDER.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 250, path.name


def test_torch_is_not_loaded():
    code = "import sys, tinytransformer.text.microworld, tinytransformer.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_data_folder_names_the_remedy():
    with pytest.raises(FileNotFoundError, match=r"no folder data/nowhere: .* Install the package again"):
        data_folder("nowhere")
