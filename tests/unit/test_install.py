"""A failed installation says what to do; a second start installs nothing."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
spec = spec_from_file_location("install", ROOT / "tools" / "install.py")
install = module_from_spec(spec)
spec.loader.exec_module(install)


@pytest.mark.parametrize("version", [(3, 6, 9), (3, 10, 14)])
def test_python_too_old(version):
    message = install.python_problem(version)
    assert f"Python {'.'.join(map(str, version))} is too old: TinyTransformer needs 3.11 or newer" in message
    assert "make lab PYTHON=python3.12" in message


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 13, 1), (4, 0, 0)])
def test_python_new_enough(version):
    assert install.python_problem(version) is None


def test_no_venv_module():
    assert install.venv_problem() is None
    message = install.venv_problem(find=lambda name: None if name == "ensurepip" else object())
    assert "no ensurepip module" in message
    assert "apt install python3-venv" in message


def test_no_disk():
    assert install.disk_problem(4 * 1024**3) is None
    assert "Only 0.5 GB are free here, and the installation needs 3 GB" in install.disk_problem(512 * 1024**2)


@pytest.mark.parametrize(
    ("log", "advice"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "The disk is full"),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "cannot be reached"),
        ("ERROR: No matching distribution found for torch==2.13.0", "no build for this Python"),
        ("PermissionError: [Errno 13] Permission denied: '.venv/lib'", "without sudo"),
        ("something new", "its last lines above say why"),
    ],
)
def test_a_failed_pip_run_gets_a_remedy(log, advice):
    assert advice in install.remedy(log)


def run_install(tmp_path, *before: str, requirements: str) -> subprocess.CompletedProcess:
    """Run the real script in a process of its own, after some lines that break its surroundings."""
    file = tmp_path / "requirements.txt"
    file.write_text(requirements)
    script = str(ROOT / "tools" / "install.py")
    lines = ["import runpy, sys, shutil, collections", *before]
    lines.append(f"sys.argv = ['install.py', {str(file)!r}, '--venv', {str(tmp_path / 'venv')!r}]")
    lines.append(f"runpy.run_path({script!r}, run_name='__main__')")
    return subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("sys.version_info = (3, 9, 2)", "Python 3.9.2 is too old"),
        ("import importlib.util; importlib.util.find_spec = lambda name: None", "no venv and no ensurepip module"),
        ("shutil.disk_usage = lambda path: collections.namedtuple('Usage', 'free')(10**8)", "Only 0.1 GB are free"),
    ],
)
def test_problems_are_found_before_anything_is_made(tmp_path, broken, message):
    result = run_install(tmp_path, broken, requirements="")
    assert result.returncode == 1
    assert "Could not install." in result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "venv").exists()


def test_a_package_that_does_not_exist(tmp_path):
    """A real pip run that fails, without a network thanks to --no-index; then again by a Python that is too old."""
    result = run_install(tmp_path, requirements="--no-index\nno-such-package==1.0\n")
    assert result.returncode == 1
    assert "A package has no build for this Python or this machine" in result.stderr
    result = run_install(tmp_path, "sys.version_info = (3, 9, 2)", requirements="--no-index\nno-such-package==1.0\n")
    assert "too old" not in result.stderr, "the environment stands already: it is its Python that counts"
    assert "A package has no build" in result.stderr


def make(folder: Path, *arguments: str) -> str:
    result = subprocess.run(["make", "-n", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return result.stdout


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def fresh_clone(tmp_path):
    files = ("Makefile", "constraints.txt", "pyproject.toml", *(path.name for path in ROOT.glob("requirements*.txt")))
    for name in files:
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    return tmp_path


@needs_make
def test_the_first_start_installs_and_the_second_does_not(fresh_clone):
    first = make(fresh_clone, "lab", "ARGS=--no-browser --port 8890")
    assert re.search(r'"python3" tools/install.py requirements.txt\n', first)
    assert re.search(r"cd notebooks && .*-m jupyterlab .*--no-browser --port 8890", first)
    assert "tools/install.py requirements-test.txt" in make(fresh_clone, "test")

    (fresh_clone / ".venv").mkdir()
    (fresh_clone / ".venv" / ".place").write_text(str((fresh_clone / ".venv").resolve()))
    (fresh_clone / ".venv" / ".lab").touch()
    assert "install.py" not in make(fresh_clone, "lab")
    assert "install.py requirements.txt" not in make(fresh_clone, "test")
    (fresh_clone / ".venv" / ".test").touch()
    assert "install.py" not in make(fresh_clone, "test")

    assert "install.py requirements.txt" in make(fresh_clone, "lab", "-W", "requirements.txt")

    moved = fresh_clone.with_name("another place")
    fresh_clone.rename(moved)
    assert "install.py requirements.txt" in make(moved, "lab")


@needs_make
def test_a_python_that_is_not_there(fresh_clone):
    result = subprocess.run(["make", "lab", "PYTHON=python9"], cwd=fresh_clone, capture_output=True, text=True)
    assert result.returncode != 0
    assert "There is no python9 here. Install Python 3.11 or newer" in result.stdout


def test_a_moved_environment_is_not_usable(tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    assert not install.is_usable(venv), "made by somebody else"
    (venv / install.PLACE).write_text(str(venv.resolve()))
    assert install.is_usable(venv)
    venv.rename(tmp_path / "moved")
    assert not install.is_usable(tmp_path / "moved")
    assert not install.is_usable(venv)


@needs_make
def test_the_newest_versions_can_be_asked_for(fresh_clone):
    assert "tools/install.py --newest test" in make(fresh_clone, "test", "NEWEST=1")


def pins() -> dict[str, str]:
    found = {}
    for file in ROOT.glob("requirements*.txt"):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-")):
                assert re.fullmatch(r"[\w.-]+==[\w.]+", line), f"{file.name}: {line!r} is not an exact pin"
                name, version = line.split("==")
                assert name not in found, f"{name} is pinned twice"
                found[name] = version
    return found


def test_pins_lie_within_the_ranges_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    ranges = {r.name: r.specifier for r in map(Requirement, texts) if r.name != "tinytransformer"}
    assert set(ranges) == set(pins())
    for name, version in pins().items():
        assert version in SpecifierSet(str(ranges[name])), name


def test_constraints_pin_each_package_once():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) > 50
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    names = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    assert len(names) == len(lines)
    assert not names & set(pins())


def test_the_wheel_works_alone(tmp_path):
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = (
        "import torch, tinytransformer as tt; from tinytransformer.inspection import plots; "
        "config = tt.TransformerConfig(vocab_size=50, **tt.PRESETS['tiny']); ids = torch.ones(1, 4).long(); "
        "print(tt.__file__); print(tuple(tt.Transformer(config)(ids, ids).shape)); "
        "print(tt.Translator.load('microworld-en-de')('My dog crossed the bridge because it was hungry.').text); "
        "print(tt.explore(weights=[[1.0, 0.0], [0.5, 0.5]], query_tokens='ab').save_html('page.html'))"
    )
    # -P keeps the current folder off the path; PYTHONPATH comes before the editable installation.
    result = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed"), "PATH": "", "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    location, shape, translation, page = result.stdout.splitlines()
    assert Path(location).is_relative_to(tmp_path)
    assert shape == "(1, 4, 50)"
    assert translation == "Mein Hund hat die Brücke überquert, weil er hungrig war."
    assert "export function mount" in (tmp_path / page).read_text(encoding="utf-8"), "script and style sheet came along"
