"""Submissions for tests: answers put into the notebooks that students get."""

import copy
import inspect
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import nbformat

from tinytransformer.teaching.grading.course import ASSIGNMENTS, SOURCES, public

ANSWERS = {name: import_module(f"classroom.answers.{name}") for name in ASSIGNMENTS}
PUBLIC = {name: public(name) for name in ASSIGNMENTS}


def text_of(task: str, function: Callable) -> str:
    """A function's source, as a student would have written it under the task's name."""
    return f"{inspect.getsource(function)}\n\n{task} = {function.__name__}\n"


def right(assignment: str, style: int = 0) -> dict[str, str]:
    """Correct answers to all tasks of an assignment, in one of the three styles."""
    found = ANSWERS[assignment].RIGHT
    return {task.name: text_of(task.name, found[task.name][style]) for task in PUBLIC[assignment]}


def stubs(source: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A student version without nbgrader: the solutions cut out. Tests of the whole path use nbgrader's own."""
    notebook = copy.deepcopy(source)
    for cell in notebook.cells:
        hole = "    # YOUR CODE HERE\n    raise NotImplementedError"
        cell.source = re.sub(r"[ ]*### BEGIN SOLUTION.*?### END SOLUTION", hole, cell.source, flags=re.DOTALL)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def blank(assignment: str) -> nbformat.NotebookNode:
    return stubs(nbformat.read(SOURCES / f"{assignment}.ipynb", as_version=4))


def filled(notebook: nbformat.NotebookNode, answers: dict[str, str], reflection: str = "") -> nbformat.NotebookNode:
    """A notebook with answers written into it."""
    done = copy.deepcopy(notebook)
    for cell in done.cells:
        if cell.id in answers:
            cell.source = answers[cell.id]
        if cell.id == "reflection" and reflection:
            cell.source = reflection
    return done


def store(notebook: nbformat.NotebookNode, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path
