"""How long each lesson and its solutions run, on one thread, and how much memory they take at most; stores nothing.

Run: python benchmarks/lessons.py [02_attention.ipynb …]    (about ten minutes for all)
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from notebooks import NOTEBOOKS, execute, stored  # noqa: E402


def measure(name: str) -> None:
    """Run one notebook here and print what it took; its kernel is a child of this process."""
    path = NOTEBOOKS / name
    notebook = nbformat.read(path, as_version=4)
    began = time.monotonic()
    execute(notebook, path.parent)
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1e6 if sys.platform == "linux" else 1e9)
    print(f"{name:36} {seconds:6.0f} s {peak:6.2f} GB", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2])
        return
    began = time.monotonic()
    for name in sys.argv[1:] or stored():  # each in a process of its own, so that the memory is its own, too
        subprocess.run(
            [sys.executable, __file__, "--one", name], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    print(f"{'together':36} {time.monotonic() - began:6.0f} s")


if __name__ == "__main__":
    main()
