"""A class of sixty: how long grading takes, and whether each grade is what it must be.

For each assignment fifteen submissions: correct ones in three styles, eight with one known mistake each, two blank ones
and two attacks (a loop without an end in one task; sleep in all of them). They are put into nbgrader's student versions
and graded by one command, as a teacher would.

Run: make test-quick once (it installs nbgrader), then
     PYTHONPATH=.venv/class python benchmarks/classroom.py [--folder runs/class]
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from classroom.support_classroom import ANSWERS, PUBLIC, filled, right, store, text_of  # noqa: E402

LOOP = "def {name}(*arguments):\n    while True:\n        pass\n"
SLEEP = "def {name}(*arguments):\n    import time\n    time.sleep(600)\n"


def submissions(name: str) -> dict[str, tuple[dict[str, str], float]]:
    """Student to answers and the points that they must get."""
    tasks = PUBLIC[name].tasks
    found = {f"right-{style}": (right(name, style), 90.0) for style in range(3)}
    for number in range(8):
        task = tasks[number % len(tasks)]
        mistake, function = list(ANSWERS[name].PLANTED[task.name].items())[number // len(tasks)]
        answers = right(name) | {task.name: text_of(task.name, function)}
        found[f"mistake-{number}-{mistake}"] = (answers, 90.0 - task.points)
    found["blank-0"] = found["blank-1"] = ({}, 0.0)
    found["loop"] = (right(name) | {tasks[2].name: LOOP.format(name=tasks[2].name)}, 90.0 - tasks[2].points)
    found["sleep"] = ({task.name: SLEEP.format(name=task.name) for task in tasks}, 0.0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "class")
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    course, handed = folder / "course", folder / "submissions"
    program = [sys.executable, "-m", "tinytransformer"]
    subprocess.run([*program, "classroom", "--course", str(course)], check=True)
    expected = {}
    for name in PUBLIC:
        notebook = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
        for student, (answers, points) in submissions(name).items():
            student = f"{name}-{student}"
            store(filled(notebook, answers), handed / f"{student}.ipynb")
            expected[student] = points
    begun = time.monotonic()
    subprocess.run([*program, "grade", str(handed), "--course", str(course)], check=True)
    seconds = time.monotonic() - begun
    with (course / "grades.csv").open(encoding="utf-8") as file:
        got = {row["student"]: float(row["total"]) for row in csv.DictReader(file)}
    wrong = {student: (points, got.get(student)) for student, points in expected.items() if got.get(student) != points}
    longest = max(json.loads(path.read_text(encoding="utf-8"))["seconds"] for path in course.glob("graded/*/*.json"))
    print(f"{len(expected)} submissions in {seconds / 60:.1f} minutes, the longest in {longest:.0f} s")
    print(
        f"{len(expected) - len(wrong)} of {len(expected)} grades are what they must be"
        + (f": {wrong}" if wrong else "")
    )


if __name__ == "__main__":
    main()
