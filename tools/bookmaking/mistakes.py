"""The index of misconceptions: every mistake that the checks know, what it looks like, why it is wrong, which lesson.

All of it comes from the registry of exercises. What a mistake looks like is found by making it: its wrong function runs
on the cases of the exercise, and the first difference is told.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bookmaking.lessons import BookError, Lesson
from tinytransformer.teaching.assignments import assignment1, assignment2, assignment3, assignment4
from tinytransformer.teaching.checks import EXERCISES
from tinytransformer.teaching.exercises import (
    GENERAL,
    Exercise,
    Mistake,
    Run,
    agree,
    difference,
    first_line,
    run_cases,
    shape,
    shapes,
)

ASSIGNMENTS = (assignment1.ASSIGNMENT, assignment2.ASSIGNMENT, assignment3.ASSIGNMENT, assignment4.ASSIGNMENT)
LESSON_FRONT = """\
# Mistakes of lesson {number}: {title}

What the checks of this lesson can tell apart. *Looks like* is what happens when the mistake is made: the first
case that differs, wrong value first. The list says more than a hint: try the exercises before.
"""
INDEX_FRONT = """\
# Misconceptions

{mistakes} mistakes that the checks of {exercises} exercises know by name. Each entry says what the mistake
looks like and why it is wrong. Whoever makes one is told so by the check; whoever teaches can read here what to
expect.

```{{toctree}}
:titlesonly:
{pages}
assignments
```

## By name
"""
ASSIGNMENTS_FRONT = """\
# Mistakes of the assignments

The visible checks of the assignments name these. An answer that makes one of them gets no points for its task,
see the [teaching guide](/teaching.md).
"""
GENERAL_SIGNS = {
    "error": "the function stops with an error for one of the cases",
    "wrong-shape": "the result has another shape than was asked for",
    "not-boolean": "a mask holds numbers instead of True and False",
    "nan": "the result holds NaN",
    "changes-its-input": "the result is right, but the function has changed the tensors that it was given",
}


@dataclass(frozen=True)
class Entry:
    """One mistake in its exercise, and where it stands in the book."""

    lesson: str
    exercise: str
    mistake: Mistake

    @property
    def anchor(self) -> str:
        return f"mistake-{self.exercise}-{self.mistake.name}".replace("_", "-").lower()


def homes_of(lessons: Sequence[Lesson]) -> dict[str, tuple[Lesson, str]]:
    """For each exercise the lesson and the cell that asks for it, found by the check that the cell calls."""
    homes = {}
    for lesson in lessons:
        for cell in lesson.notebook.cells:
            if cell.cell_type == "code":
                for name in re.findall(r"checks\.check_(\w+)\(", cell.source):
                    homes.setdefault(name, (lesson, cell.id))
    return homes


def entries(lessons: Sequence[Lesson], registry: Mapping[str, Exercise] = EXERCISES) -> list[Entry]:
    """All mistakes of all exercises that a lesson of the book asks for."""
    homes = homes_of(lessons)
    unknown = sorted(set(homes) - set(registry))
    if unknown:
        raise BookError(f"a lesson calls check_{unknown[0]}, which the registry does not have: add it to checks.py")
    known = [exercise for name, exercise in registry.items() if name in homes]
    return [Entry(homes[one.name][0].number, one.name, mistake) for one in known for mistake in one.mistakes]


def looks_like(exercise: Exercise, mistake: Mistake) -> str:
    """The first case in which the wrong function differs, in words."""
    runs, changed = run_cases(exercise, mistake.wrong)
    for run in runs:
        if not agree(run.got, run.wanted):
            return f"For {shapes(run.arguments)} {_difference(run)}."
    return "The numbers are right, but what was given has been changed." if changed else "Every case passes."


def _difference(run: Run) -> str:
    if isinstance(run.got, Exception):
        return f"it raises {type(run.got).__name__}: {first_line(run.got)}"
    if isinstance(run.wanted, Exception):
        return f"it returns something where a {type(run.wanted).__name__} was asked for"
    try:
        return difference(run)
    except (TypeError, ValueError, RuntimeError, StopIteration):
        return f"it returns {shape(run.got)}, wanted is {shape(run.wanted)}"


def lesson_page(lesson: Lesson, found: Sequence[Entry], registry: Mapping[str, Exercise] = EXERCISES) -> str:
    """The mistakes of one lesson, exercise by exercise."""
    lines = [LESSON_FRONT.format(number=lesson.number, title=lesson.title)]
    homes, last = homes_of([lesson]), ""
    for entry in found:
        exercise = registry[entry.exercise]
        if entry.exercise != last:
            last = entry.exercise
            lines += ["", f"## {entry.exercise}", "", f"Asked in {lesson.link(homes[last][1], 'the lesson')}."]
        lines += ["", f"({entry.anchor})=", "", f"### {entry.mistake.name}", ""]
        lines += [f"**Looks like.** {as_text(looks_like(exercise, entry.mistake))}", ""]
        lines += [f"**Why it is wrong.** {as_text(entry.mistake.hint, code=True)}"]
    return "\n".join(lines) + "\n"


def as_text(words: str, code: bool = False) -> str:
    """Words that Markdown must not read; with ``code``, backticks mean code."""
    parts = re.split(r"(`[^`]+`)", words) if code else [words]
    special = re.compile(r"([\\`*_\[\]<>$|{}#~])")
    return "".join(part if code and part.startswith("`") else special.sub(r"\\\1", part) for part in parts)


def index_page(lessons: Sequence[Lesson], found: Sequence[Entry]) -> str:
    """All names of mistakes in alphabetical order, each with the exercises that know it."""
    names: dict[str, list[Entry]] = {}
    for entry in found:
        names.setdefault(entry.mistake.name, []).append(entry)
    exercises = len({entry.exercise for entry in found})
    here = [lesson for lesson in lessons if any(entry.lesson == lesson.number for entry in found)]
    pages = "\n".join(f"lesson-{lesson.number}" for lesson in here)
    lines = [INDEX_FRONT.format(mistakes=len(found), exercises=exercises, pages=pages)]
    for name in sorted(names):
        places = ", ".join(f"[{one.exercise}](#{one.anchor})&nbsp;({one.lesson})" for one in names[name])
        lines.append(f"- **{name}**: {places}")
    lines += ["", "## Signs that every check looks for", ""]
    lines += [f"- **{name}**: {text}" for name, text in GENERAL_SIGNS.items()]
    assert {symptom.name for symptom in GENERAL} <= set(GENERAL_SIGNS)
    return "\n".join(lines) + "\n"


def assignments_page() -> str:
    """What the checks of the assignments know: the names and the reasons, without a case, since points depend on it."""
    lines = [ASSIGNMENTS_FRONT]
    for number, assignment in enumerate(ASSIGNMENTS, 1):
        lines += ["", f"## Assignment {number}: {assignment.title}"]
        for task in assignment:
            lines += ["", f"### {task.name}", ""]
            lines += [f"- **{one.name}**: {as_text(one.hint, code=True)}" for one in task.exercise.mistakes]
    return "\n".join(lines) + "\n"


def pages(lessons: Sequence[Lesson]) -> dict[str, str]:
    """All pages about mistakes, by their place in the book."""
    found = entries(lessons)
    written = {"mistakes/index.md": index_page(lessons, found), "mistakes/assignments.md": assignments_page()}
    for lesson in lessons:
        here = [entry for entry in found if entry.lesson == lesson.number]
        if here:
            written[f"mistakes/lesson-{lesson.number}.md"] = lesson_page(lesson, here)
    return written
