"""The course: one folder with what is handed out, what was graded and what a teacher decided.

``course.json`` holds the decisions: points, deadlines, the private folder, and the secret from which each student's
hidden cases are made. Student names stay in this folder.
"""

import hashlib
import importlib
import importlib.util
import json
import re
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import nbformat

import tinytransformer.teaching.grading.book as book
from tinytransformer.teaching.grading.tasks import Assignment

ASSIGNMENTS = ("assignment1", "assignment2", "assignment3", "assignment4")
SOURCES = Path(__file__).resolve().parents[3] / "notebooks" / "assignments"
FILE_NAME = "course.json"


class CourseError(ValueError):
    """Something about the course folder that a teacher must mend."""


@dataclass(frozen=True)
class Course:
    """A course folder and its decisions."""

    folder: Path
    secret: str
    private: str | None = None
    points: dict[str, dict[str, int]] = field(default_factory=dict)
    deadlines: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> "Course":
        """Read the decisions."""
        path = folder / FILE_NAME
        try:
            return cls(folder, **json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise CourseError(f"{folder} is no course: there is no {FILE_NAME}. Make one with `make class`") from None
        except (TypeError, ValueError) as error:
            raise CourseError(f"{path} cannot be read: {error}") from None

    def save(self) -> None:
        """Write the decisions."""
        values = {name: getattr(self, name) for name in ("secret", "private", "points", "deadlines")}
        write(self.folder / FILE_NAME, json.dumps(values, indent=1) + "\n")

    def assignment(self, name: str) -> Assignment:
        """An assignment with this course's variants and points."""
        found = public(name)
        module = self.variants(name)
        if module is not None and hasattr(module, "change"):
            found = module.change(found)
        points = self.points.get(name, {})
        unknown = set(points) - {task.name for task in found} - {"reflection"}
        if unknown:
            raise CourseError(f"{self.folder / FILE_NAME}: {name} has no task {sorted(unknown)[0]!r}")
        tasks = tuple(replace(task, points=points.get(task.name, task.points)) for task in found)
        return replace(found, tasks=tasks, reflection=points.get("reflection", found.reflection))

    def assignments(self) -> list[Assignment]:
        """All of them."""
        return [self.assignment(name) for name in ASSIGNMENTS]

    def variants(self, name: str) -> ModuleType | None:
        """The teacher's own module about an assignment, if the private folder holds one."""
        if self.private is None:
            return None
        folder = Path(self.private)
        if not folder.is_dir():
            raise CourseError(f"the private folder {folder} is not there: mend its path in {self.folder / FILE_NAME}")
        path = folder / f"{name}.py"
        if not path.is_file():
            return None
        spec = importlib.util.spec_from_file_location(f"private_{name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def fingerprint(self, name: str) -> str:
        """Changes with everything that a grade depends on, but for the submission."""
        here = Path(__file__).resolve().parents[1]
        files = sorted(here.rglob("*.py"))
        if self.private is not None:
            files += sorted(Path(self.private).rglob("*.py"))
        digest = hashlib.sha256(json.dumps([self.secret, name, self.points.get(name)]).encode())
        for path in files:
            digest.update(path.read_bytes())
        return digest.hexdigest()


def public(name: str) -> Assignment:
    """An assignment as the package knows it."""
    if name not in ASSIGNMENTS:
        raise CourseError(f"there is no {name!r}: choose from {', '.join(ASSIGNMENTS)}")
    return importlib.import_module(f"tinytransformer.teaching.assignments.{name}").ASSIGNMENT


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def make(folder: Path, private: Path | None = None) -> list[Path]:
    """Make a course, or make its student versions anew after a change; what was graded stays."""
    if not SOURCES.is_dir():
        raise CourseError(f"there are no assignments at {SOURCES}: make a course from a checkout of the repository")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / FILE_NAME).is_file():
        course = Course.load(folder)
        if private is not None:
            course = replace(course, private=str(private.resolve()))
    else:
        course = Course(folder, secrets.token_hex(16), str(private.resolve()) if private else None)
        course = replace(course, points={name: defaults(course.assignment(name)) for name in ASSIGNMENTS})
    course.save()
    made = []
    for name in ASSIGNMENTS:
        text = nbformat.writes(source_notebook(course, name)) + "\n"
        write(folder / "source" / name / f"{name}.ipynb", text)
        made.append(book.release(folder, name))
    return made


def defaults(assignment: Assignment) -> dict[str, int]:
    """The points of all tasks, for a teacher to change."""
    return {task.name: task.points for task in assignment} | {"reflection": assignment.reflection}


def source_notebook(course: Course, name: str) -> nbformat.NotebookNode:
    """The teacher's version: the public one with private cells, points and the deadline put in."""
    assignment, module = course.assignment(name), course.variants(name)
    notebook = nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)
    private = getattr(module, "CELLS", {})
    ids = {cell.id for cell in notebook.cells}
    if unknown := sorted(set(private) - ids):
        raise CourseError(f"{course.private}: the public {name} has no cell {unknown[0]!r} to be replaced")
    points = {task.name: task.points for task in assignment} | {"reflection": assignment.reflection}
    for cell in notebook.cells:
        cell.source = private.get(cell.id, cell.source)
        task = cell.id.removeprefix("task-").removeprefix("check-")
        if task in points:
            cell.source = re.sub(r"^(##.*\()\d+( points)", rf"\g<1>{points[task]}\g<2>", cell.source, count=1)
            if cell.metadata.get("nbgrader", {}).get("grade"):
                cell.metadata.nbgrader.points = points[task]
    if name in course.deadlines:
        notebook.cells[0].source += f"\n\n**Hand in by {course.deadlines[name]}.**"
    return notebook
