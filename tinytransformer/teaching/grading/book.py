"""The book: nbgrader makes the student versions and keeps the points. Only this file knows nbgrader.

nbgrader never runs a submission here; what it would grade is graded by `scoring`, and its book gets the points.
"""

import os
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tinytransformer.teaching.grading.tasks import Assignment

CONFIG = '''"""nbgrader's settings for this course; `python -m tinytransformer classroom` wrote them."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "tinytransformer"
c.CourseDirectory.root = {root!r}
c.CourseDirectory.db_assignments = []
c.ClearSolutions.code_stub = {{"python": "# YOUR CODE HERE\\nraise NotImplementedError"}}
c.ClearSolutions.text_stub = "Write here."
'''


class BookError(RuntimeError):
    """nbgrader is missing or refused something."""


def needed() -> None:
    """Say how to get nbgrader where it is missing."""
    if find_spec("nbgrader") is None:
        raise BookError(
            "nbgrader is not installed: use `make class` and `make grade`, or pip install -r requirements-class.txt"
        )


@contextmanager
def _programs():
    """nbgrader calls others by their names (alembic), wherever it is installed."""
    needed()
    place = Path(find_spec("nbgrader").origin).parents[1]
    folders = [str(place / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    changed = {"PATH": os.pathsep.join(folders), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def release(course: Path, name: str) -> Path:
    """Make the student version of an assignment whose source lies in the course folder."""
    config = course / "nbgrader_config.py"
    config.write_text(CONFIG.format(root=str(course.resolve())), encoding="utf-8")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", name, "--force"]
    with _programs():  # JUPYTER_NO_CONFIG: other settings of this user play no part
        settings = os.environ | {"JUPYTER_NO_CONFIG": "1"}
        command += ["--config", str(config.resolve())]
        done = subprocess.run(command, cwd=course, env=settings, capture_output=True, text=True)
    made = course / "release" / name / f"{name}.ipynb"
    if done.returncode or not made.is_file():
        raise BookError(f"nbgrader could not make {name}:\n{done.stderr[-2000:]}")
    return made


@contextmanager
def opened(course: Path):
    """The gradebook."""
    with _programs():
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{(course / 'gradebook.db').resolve()}", "tinytransformer") as book:
            yield book


def record(book, assignment: Assignment, result: dict) -> None:
    """Write the points of one submission into the book, and our hints beside them."""
    name, student = assignment.name, result["student"]
    book.update_or_create_student(student)
    with book.db.no_autoflush:  # nbgrader asks the book while it makes a new entry, of which SQLAlchemy warns
        book.update_or_create_submission(name, student)
    for one in result["tasks"]:
        grade = book.find_grade(f"check-{one['task']}", name, name, student)
        grade.auto_score, grade.needs_manual_grade = one["points"], one["status"] == "needs a person"
        comment = book.find_comment(one["task"], name, name, student)
        comment.auto_comment = " ".join(filter(None, (one["status"] + ".", one["hint"], *one["messages"])))
    points = result["reflection"]["points"]
    grade = book.find_grade("reflection", name, name, student)
    grade.manual_score, grade.needs_manual_grade = points, points is None
    book.db.commit()
