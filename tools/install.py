"""Make .venv and install into it: `python tools/install.py requirements.txt`. The Makefile calls this.

Needs nothing but Python itself, and runs on old Pythons far enough to say that they are too old.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
GIGABYTE = 1024**3
DISK_NEEDED = 3 * GIGABYTE
DISK_WITH_GPU_LIBRARIES = 8 * GIGABYTE
PLACE = ".place"  # a file in the environment that says where it was made

# What pip's log says, and what a person can do about it.
REMEDIES = [
    (
        ("No space left on device", "Not enough space", "Disk quota exceeded"),
        "The disk is full. Free at least 3 GB (8 GB where PyTorch comes with GPU libraries), then run the same "
        "command again. If only the temporary folder is small, set TMPDIR to a folder with room.",
    ),
    (
        ("Temporary failure in name resolution", "Failed to establish a new connection", "Network is unreachable",
         "getaddrinfo failed", "Could not fetch URL", "ProxyError", "ReadTimeoutError"),
        "The package index cannot be reached. Check the network (behind a proxy, set HTTPS_PROXY), then run the same "
        "command again: it goes on where it stopped.",
    ),
    (
        ("No matching distribution found", "Could not find a version that satisfies"),
        "A package has no build for this Python or this machine. Python 3.11 to 3.13, 64 bit, is what is tested: name "
        "one with `make lab PYTHON=python3.12`.",
    ),
    (("Permission denied",), "A folder cannot be written. Work in a clone that belongs to you, without sudo."),
]  # fmt: skip


def python_problem(version):
    """Why this Python will not do, or None."""
    if tuple(version[:2]) >= OLDEST:
        return None
    have = ".".join(str(part) for part in version[:3])
    return (
        f"Python {have} is too old: TinyTransformer needs 3.11 or newer. Install one and name it, "
        "for example `make lab PYTHON=python3.12`."
    )


def venv_problem(find=importlib.util.find_spec):
    """Why no virtual environment can be made, or None. Debian ships venv and ensurepip apart from Python."""
    missing = [name for name in ("venv", "ensurepip") if find(name) is None]
    if not missing:
        return None
    return (
        f"This Python has no {' and no '.join(missing)} module. On Debian and Ubuntu: `sudo apt install python3-venv`; "
        "elsewhere install Python from python.org. Then run the same command again."
    )


def disk_problem(free):
    """Why the disk will not do, or None."""
    if free >= DISK_NEEDED:
        return None
    return (
        f"Only {free / GIGABYTE:.1f} GB are free here, and the installation needs {DISK_NEEDED / GIGABYTE:.0f} GB "
        "(8 GB where PyTorch comes with GPU libraries). Free some space, then run the same command again."
    )


def remedy(log):
    """What to do about a failed pip run, from its log."""
    for signs, advice in REMEDIES:
        if any(sign in log for sign in signs):
            return advice
    return "pip failed; its last lines above say why. Running the same command again goes on where it stopped."


def stop(message):
    """Say it and leave, without a traceback."""
    print(f"\nCould not install. {message}", file=sys.stderr)
    raise SystemExit(1)


def venv_python(venv):
    """The interpreter inside a virtual environment, on any system."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_usable(venv):
    """Whether the environment was made at this place (a moved one points elsewhere), runs, is new enough, has pip."""
    place = venv / PLACE
    if not place.exists() or place.read_text(encoding="utf-8").strip() != str(venv.resolve()):
        return False
    test = f"import sys, pip; sys.exit(sys.version_info < {OLDEST!r})"
    try:
        return subprocess.run([str(venv_python(venv)), "-c", test], capture_output=True).returncode == 0
    except OSError:
        return False


def run_pip(venv, *arguments):
    """Run pip with its progress in view; on failure say what to do."""
    log = venv / "pip.log"
    log.unlink(missing_ok=True)
    command = [str(venv_python(venv)), "-m", "pip", "--disable-pip-version-check", "--log", str(log), "install"]
    if subprocess.run([*command, *arguments], cwd=str(ROOT)).returncode:
        stop(remedy(log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""))


def make_venv(venv):
    """A new environment at this place, if Python and disk allow it; an unusable one is replaced."""
    free = shutil.disk_usage(str(venv.parent)).free
    problem = python_problem(sys.version_info) or venv_problem() or disk_problem(free)
    if problem:
        stop(problem)
    print(f"Making {venv} and installing into it; the first time takes some minutes.", flush=True)
    if sys.platform.startswith("linux") and free < DISK_WITH_GPU_LIBRARIES:
        print(f"{free / GIGABYTE:.1f} GB are free: enough for PyTorch's CPU build, not for the one with GPU libraries.")
    if subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)]).returncode:
        stop("The virtual environment could not be made; the lines above say why.")
    (venv / PLACE).write_text(str(venv.resolve()), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requirements", help="a file of exact pins, or with --newest the name of an extra")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--newest", action="store_true", help="the newest versions that pyproject.toml admits")
    options = parser.parse_args()

    if not is_usable(options.venv):
        make_venv(options.venv)
    if options.newest:
        run_pip(options.venv, "--upgrade", "--upgrade-strategy", "eager", "-e", f".[{options.requirements}]")
    else:
        run_pip(options.venv, "-r", options.requirements)
        # --no-deps: the pins above have decided; torch must not be resolved a second time.
        run_pip(options.venv, "--no-deps", "-e", ".")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("It was interrupted. Running the same command again goes on where it stopped.")
