"""An answer's text, looked at without running it: what it defines, and what a student should know before handing in."""

import ast
import builtins
from dataclasses import dataclass

from tinytransformer.teaching.grading.tasks import Task
from tinytransformer.teaching.verdicts import NOT_ATTEMPTED

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Finding:
    """Something to know about a submission. A ``serious`` one keeps a task from being graded as it stands."""

    about: str  # a task, or "notebook"
    message: str
    serious: bool = False

    def __str__(self) -> str:
        return f"{'PROBLEM' if self.serious else 'note'}, {self.about}: {self.message}"


def defined(text: str) -> set[str]:
    """The names that a cell defines at its top level; of a cell that is no Python, the functions it seems to define."""
    try:
        body = ast.parse(text).body
    except NO_PYTHON:
        starts = [line[4:].partition("(")[0].strip() for line in text.splitlines() if line.startswith("def ")]
        return set(starts)
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found.add(part.id)
            if isinstance(part, ast.alias):
                found.add((part.asname or part.name).partition(".")[0])
    return found


def stub(text: str, name: str) -> bool:
    """Whether a function is still as it was handed out: nothing but its docstring and `raise NotImplementedError`."""
    try:
        body = [node.body for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name]
    except NO_PYTHON:
        return False
    if len(body) != 1:
        return False
    statements = [node for node in body[0] if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    return len(statements) == 1 and ast.unparse(statements[0]).removesuffix("()") == "raise NotImplementedError"


def about_answer(task: Task, setup: str, text: str) -> list[Finding]:
    """What a student would like to know before handing in; all of it is decided anew in the box."""
    try:
        tree = ast.parse(text)
    except NO_PYTHON as error:
        line = getattr(error, "lineno", None)
        return [Finding(task.name, "this cell is not valid Python" + (f": look at line {line}" if line else ""))]
    if stub(text, task.name):
        return [Finding(task.name, NOT_ATTEMPTED)]
    found = []
    if absent := sorted(_imports(tree) - set(task.package)):
        what = f"tinytransformer.{absent[0]}".rstrip(".")
        found.append(f"it imports {what}, which does not exist where this task is graded")
    known = set(dir(builtins)) | {"__name__"} | defined(setup) | defined(task.given) | defined(text)
    if missing := sorted(_used(tree) - known - _local(tree)):
        named = ", ".join(f"`{name}`" for name in missing[:5])
        found.append(
            f"it uses {named}, which this cell does not define: an answer must stand alone, put helpers into its cell"
        )
    return [Finding(task.name, message) for message in found]


def _used(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _local(tree: ast.Module) -> set[str]:
    """Names of parameters, of functions within functions, and of errors that were caught."""
    nodes = list(ast.walk(tree))
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    named = (ast.ExceptHandler, ast.FunctionDef, ast.ClassDef)
    return parameters | {node.name for node in nodes if isinstance(node, named) and node.name}


def _imports(tree: ast.Module) -> set[str]:
    """The modules of our package that an answer imports, without the package's name."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    ours = [name.split(".") for name in names]
    return {".".join(parts[1:]) for parts in ours if parts[0] == "tinytransformer"}
