"""Submissions: what a student handed in, read with suspicion, and what is wrong with it said aloud.

A notebook is only read here, never run. Answers are found by the marks that nbgrader gave their cells; where a mark is
lost, by the function that the cell defines. What cannot be decided is left to a person: there is no silent zero.
"""

import json
import os
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tinytransformer.teaching.grading.answers import Finding, about_answer, defined
from tinytransformer.teaching.grading.tasks import Assignment, Task
from tinytransformer.teaching.verdicts import NOT_ATTEMPTED

MEBI = 1 << 20
FILE_BYTES = 20 * MEBI
CELLS = 2000
ANSWER_BYTES = 100_000
OUTPUT_BYTES = MEBI
REFLECTION_STUB = "Write here."


class SubmissionError(ValueError):
    """A file that cannot be graded at all."""


@dataclass(frozen=True)
class Submission:
    """The answers of one notebook by task, its reflection, and what was found on the way."""

    assignment: Assignment
    answers: dict[str, str]
    reflection: str
    findings: tuple[Finding, ...]

    def problems(self, about: str) -> list[str]:
        """The serious findings about one task."""
        return [finding.message for finding in self.findings if finding.serious and finding.about == about]


@dataclass
class _Cells:
    """The cells of a notebook, by the marks of nbgrader and by what they define."""

    marked: dict[str, list[dict]] = field(default_factory=dict)
    defining: dict[str, list[dict]] = field(default_factory=dict)


def read_notebook(path: Path) -> dict:
    """The notebook as plain JSON. Links, other kinds of files and oversized ones are refused."""
    try:
        # No links are followed, and a pipe that nobody writes to is not waited for.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SubmissionError(f"{path.name} is not an ordinary file: hand in the notebook itself")
            if status.st_size > FILE_BYTES:
                raise SubmissionError(
                    f"{path.name} has {status.st_size / MEBI:.0f} MB, at most {FILE_BYTES // MEBI} are read: clear all "
                    "outputs (in JupyterLab: Edit, Clear Outputs of All Cells) and hand it in again"
                )
            raw = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise SubmissionError(
            f"{path.name} cannot be opened ({error.strerror}): hand in the notebook itself, no link"
        ) from None
    try:
        notebook = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SubmissionError(
            f"{path.name} is not a notebook: it is no JSON text ({str(error)[:80]}). Download it again from Jupyter"
        ) from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise SubmissionError(f"{path.name} is not a notebook of format 4: open it in Jupyter and save it again")
    if len(cells) > CELLS:
        raise SubmissionError(
            f"{path.name} has {len(cells)} cells, at most {CELLS} are read: hand in the assignment only"
        )
    return notebook


def source(cell: dict) -> str:
    """A cell's text, whichever way it is stored."""
    text = cell.get("source", "")
    if isinstance(text, list):
        text = "".join(part for part in text if isinstance(part, str))
    return text if isinstance(text, str) else ""


def mark(cell: dict) -> str | None:
    """The name that nbgrader gave a cell."""
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = marks.get("grade_id") if isinstance(marks, dict) else None
    return name if isinstance(name, str) else None


def recognise(notebook: dict, assignments: Sequence[Assignment]) -> Assignment:
    """The assignment to which most cells belong."""
    marks = {mark(cell) for cell in notebook["cells"]}
    functions = set().union(*(defined(source(cell)) for cell in notebook["cells"] if cell.get("cell_type") == "code"))
    shares = [sum(task.name in marks or task.name in functions for task in one) for one in assignments]
    if not shares or max(shares) == 0:
        names = ", ".join(one.name for one in assignments)
        raise SubmissionError(f"this notebook holds no task of {names}: is it the right file?")
    return assignments[shares.index(max(shares))]


def read(path: Path, assignments: Sequence[Assignment]) -> Submission:
    """Read a notebook and find its answers. Raises `SubmissionError` if it cannot be graded at all."""
    notebook = read_notebook(path)
    assignment = recognise(notebook, assignments)
    cells, findings = _Cells(), []
    for cell in notebook["cells"]:
        if (name := mark(cell)) is not None:
            cells.marked.setdefault(name, []).append(cell)
        if cell.get("cell_type") == "code":
            for function in defined(source(cell)) & {task.name for task in assignment}:
                cells.defining.setdefault(function, []).append(cell)
    findings += _about_notebook(notebook)
    answers = {}
    for task in assignment:
        text, found = _answer(task, cells)
        findings += found
        if text is not None:
            answers[task.name] = text
            findings += about_answer(task, assignment.setup, text)
    reflection = "\n\n".join(source(cell) for cell in cells.marked.get("reflection", []))
    if "reflection" not in cells.marked:
        findings.append(Finding("reflection", "its cell is missing: copy it from a fresh copy of the assignment", True))
    elif reflection.strip() in ("", REFLECTION_STUB):
        findings.append(Finding("reflection", NOT_ATTEMPTED))
    return Submission(assignment, answers, reflection, tuple(findings))


def _about_notebook(notebook: dict) -> list[Finding]:
    found = []
    ids = Counter(cell["id"] for cell in notebook["cells"] if isinstance(cell.get("id"), str))
    if twice := [name for name, times in ids.items() if times > 1]:
        found.append(Finding("notebook", f"cell ids that occur twice: {', '.join(sorted(twice)[:5])[:200]}"))
    size = sum(len(json.dumps(cell.get("outputs", []))) for cell in notebook["cells"])
    if size > OUTPUT_BYTES:
        found.append(Finding("notebook", f"its outputs have {size / MEBI:.1f} MB and are not read: clear them"))
    return found


def _answer(task: Task, cells: _Cells) -> tuple[str | None, list[Finding]]:
    """The text of the answer, or why there is none."""
    marked = [source(cell) for cell in cells.marked.get(task.name, [])]
    defining = [source(cell) for cell in cells.defining.get(task.name, [])]
    found = []
    if len(marked) > 1:
        different = [text for text in dict.fromkeys(marked) if task.name in defined(text)]
        found.append(
            Finding(
                task.name, f"{len(marked)} cells bear the mark of this answer: a cell was copied", len(different) > 1
            )
        )
        if len(different) > 1:
            return None, [*found, Finding(task.name, "and they differ: keep one of them, delete the others", True)]
        marked = different or marked[:1]
    if marked and task.name in defined(marked[0]):
        return _short_enough(task, marked[0], found)
    if len(set(defining)) == 1:
        lost = "the answer's cell lost its mark" if not marked else "the answer's own cell does not define the function"
        return _short_enough(
            task, defining[0], [*found, Finding(task.name, f"{lost}; another cell that defines it is taken")]
        )
    if len(set(defining)) > 1:
        message = f"{len(defining)} cells define `{task.name}` and none of them is the answer's own: keep one of them"
        return None, [*found, Finding(task.name, message, True)]
    if marked:
        message = f"its cell does not define `{task.name}`: was the function renamed? Give it its name back"
    else:
        message = "its cell is missing: it was deleted, or is of another assignment. Copy it from a fresh copy"
    return None, [*found, Finding(task.name, message, True)]


def _short_enough(task: Task, text: str, found: list[Finding]) -> tuple[str | None, list[Finding]]:
    if len(text) <= ANSWER_BYTES:
        return text, found
    message = f"its cell has {len(text):,} characters, at most {ANSWER_BYTES:,} are read: shorten it"
    return None, [*found, Finding(task.name, message, True)]
