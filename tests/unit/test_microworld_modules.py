"""The microworld's files need only the standard library, are short, and find their data."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tinytransformer.text.microworld as microworld
from tinytransformer.resources import data_folder

FOLDER = Path(microworld.__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_only_the_standard_library_is_needed(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name.split(".")[0] in {"tinytransformer", *sys.stdlib_module_names}, f"{path.name} imports {name}"


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
