"""Pages about what a reader does: the exercises with folded hints, and the assignments."""

import re
from collections.abc import Sequence

import nbformat

from bookmaking.lessons import NOTEBOOKS, Lesson
from bookmaking.mistakes import ASSIGNMENTS, Entry, entries, homes_of
from bookmaking.tables import folded, table

TASK = re.compile(r"\*\*Exercise (\d+)\*\* · (★+) · (\d+) minutes · \*(.+?)\*(?!\*)", re.DOTALL)
HINT = re.compile(r"<details><summary>.*?</summary>(.*?)</details>", re.DOTALL)
EXERCISES_FRONT = """\
# Exercises

{count} exercises stand in the lessons. Each has a typed stub, a check that names the mistake, and a hint to
unfold. To work on them, open the lesson with `make lab`; here you can plan, and read hints. Difficulty: ★ easy,
★★ takes thought, ★★★ hard.
"""
ASSIGNMENTS_FRONT = """\
# Assignments

Four assignments of about three hours each. `make class` writes the student versions, with visible checks and
without solutions; `make grade` grades what comes back, each answer in a box of its own. How that works is told
in the [teaching guide](teaching.md), what earns the points of the reflections in [rubrics](rubrics.md), and
which mistakes cost a task in the [list of mistakes](mistakes/assignments.md).
"""


def exercise_cells(lesson: Lesson) -> list[nbformat.NotebookNode]:
    return [cell for cell in lesson.notebook.cells if re.fullmatch(r"exercise-\d+", cell.id)]


def exercises_page(lessons: Sequence[Lesson]) -> str:
    """All exercises: difficulty, minutes, hints to unfold, what the check knows."""
    found = entries(lessons)
    known = {entry.exercise: entry.lesson for entry in found}
    lines = [EXERCISES_FRONT.format(count=sum(len(exercise_cells(lesson)) for lesson in lessons))]
    for lesson in lessons:
        cells = exercise_cells(lesson)
        lines += ["", f"## Lesson {lesson.number}: {lesson.title}", ""] if cells else []
        for cell in cells:
            lines += [exercise(lesson, cell, known, found), ""]
        solution = lesson.path.parent / "solutions" / lesson.path.name
        if cells and solution.exists():
            lines += [f"[Solutions](/lessons/solutions/{lesson.path.name}), after you tried.", ""]
    return "\n".join(lines) + "\n"


def exercise(lesson: Lesson, cell: nbformat.NotebookNode, known: dict[str, str], found: Sequence[Entry]) -> str:
    """One exercise in a few lines."""
    number, stars, minutes, title = TASK.search(cell.source).groups()
    stub = f"stub-{number}"
    names = [name for name, (_, home) in homes_of([lesson]).items() if home == stub]
    link, title = lesson.link(cell.id, f"Exercise {number}"), " ".join(title.split())
    lines = [f"**{link}** · {stars} · {minutes} minutes · *{title}*"]
    if names and names[0] in known:
        mine = [entry for entry in found if entry.exercise == names[0]]
        lines[0] += f" Its check knows [{len(mine)} mistakes](#{mine[0].anchor})."
    lines += [folded(f"Hint to exercise {number}", hint) for hint in HINT.findall(cell.source)]
    return "\n\n".join(lines)


def assignments_page() -> str:
    """What is asked, for how many points, and how long it takes. A teacher hands out the notebooks themselves."""
    lines = [ASSIGNMENTS_FRONT]
    for number, assignment in enumerate(ASSIGNMENTS, 1):
        cells = nbformat.read(NOTEBOOKS / "assignments" / f"{assignment.name}.ipynb", as_version=4).cells
        title = next(cell for cell in cells if cell.id == "title").source
        promise = " ".join(re.search(r"\*\*(.+?)\*\*", title, re.DOTALL).group(1).split())
        after = " ".join(re.search(r"\*Lessons:\*(.+?)·", title, re.DOTALL).group(1).split())
        asked = {cell.id: heading_of(cell.source) for cell in cells}
        rows = [
            (place, asked[f"task-{task.name}"], f"`{task.name}`", task.points, task.minutes)
            for place, task in enumerate(assignment, 1)
        ]
        rows.append(("", "Reflection, read by a person", "", assignment.reflection, ""))
        lines += ["", f"## Assignment {number}: {assignment.title}", "", promise, "", f"*After lessons:* {after}", ""]
        lines.append(table(["task", "question", "function", "points", "minutes"], rows, "lllrr"))
    return "\n".join(lines) + "\n"


def heading_of(source: str) -> str:
    """A task's heading without its number and points."""
    return re.sub(r"^#+ Task \d+: | \(\d+ points.*\)$", "", source.split("\n", 1)[0])
