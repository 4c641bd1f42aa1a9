"""What makes a notebook a lesson: the ten parts in order, parts built without the package, exercises with solutions."""

import ast
import copy
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from tinytransformer.teaching.checks import EXERCISES

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
# Lesson 00 is a first look: it builds nothing and has no exercises.
LESSONS = sorted(path for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb") if not path.name.startswith("00"))
PARTS = ["title", "setup", "question", "by-hand", "build", "same", "look", "break-it", "exercises", "recap"]
every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def tree(cell) -> ast.Module:
    return ast.parse("" if cell.cell_type != "code" else cell.source.removesuffix(";"))


def printed(cell) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def from_package(cells) -> set[str]:
    """The names that these cells import from the package."""
    nodes = [node for cell in cells for node in ast.walk(tree(cell))]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module.startswith("tinytransformer")]
    plain = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names = {alias.asname or alias.name for node in froms for alias in node.names}
    return names | {alias.asname or alias.name for alias in plain if alias.name.startswith("tinytransformer")}


def functions(cell) -> list[ast.FunctionDef]:
    return [node for node in tree(cell).body if isinstance(node, ast.FunctionDef)]


def template_problems(notebook) -> list[str]:
    found = []
    ids = [cell.id for cell in notebook.cells]
    if [part for part in ids if part in PARTS] != PARTS:
        found.append(f"its parts are {[part for part in ids if part in PARTS]}, not {PARTS}")
        return found
    by_id = {cell.id: cell for cell in notebook.cells}
    for words in ("*Paper:* section", "*Minutes:*", "*You need first:*", "\n1. ", "\n2. ", "\n3. "):
        if words not in by_id["title"].source:
            found.append(f"the title cell lacks {words.strip()!r}")
    if len([line for line in by_id["setup"].source.splitlines() if line]) > 10:
        found.append("the set-up cell has more than ten lines")
    # Layers and `torch.randn` draw from PyTorch's own generator, which starts anywhere: one run in many would print
    # another digit than the page.
    if not re.search(r"^(generator = )?torch\.manual_seed\(", by_id["setup"].source, re.MULTILINE):
        found.append("the set-up cell does not seed PyTorch's own generator")
    for words in ("**New symbols.**", "**Next:**"):
        if words not in by_id["recap"].source:
            found.append(f"the recap lacks {words!r}")
    if not any(": the same to" in printed(cell) for cell in notebook.cells):
        found.append("nothing is shown to be the same as the package")
    if not any("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])):
        found.append("there is no figure")
    return found


def build_problems(notebook) -> list[str]:
    found = []
    cells = notebook.cells
    built = [number for number, cell in enumerate(cells) if "build" in cell.metadata.get("tags", [])]
    if not built:
        found.append("no cell is tagged build")
    for number in built:
        used = {node.id for node in ast.walk(tree(cells[number])) if isinstance(node, ast.Name)}
        taken = (from_package(cells) & used) | from_package([cells[number]])
        if taken:
            found.append(f"{cells[number].id}: a part is built without the package, but it uses {sorted(taken)}")
        following = cells[number + 1]
        if following.cell_type != "code" or not following.outputs:
            found.append(f"{cells[number].id}: the next cell must show a shape or a value")
    return found


def control_problems(notebook) -> list[str]:
    moved = [n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code" and "widgets." in cell.source]
    found = [] if moved else ["there is no control"]
    for number in moved:
        near = notebook.cells[number + 1 : number + 4]
        if not any("image/png" in output.get("data", {}) for cell in near for output in cell.get("outputs", [])):
            found.append(f"{notebook.cells[number].id}: no still figure stands beside the control")
    return found


def exercise_problems(notebook, solutions) -> list[str]:
    found = []
    solved = {function.name: (function, cell) for cell in solutions.cells for function in functions(cell)}
    stubs = [(n, cell) for n, cell in enumerate(notebook.cells) if cell.id.startswith("stub-")]
    if len(stubs) < 3:
        found.append("a lesson has three exercises or more")
    lines = []
    for number, cell in stubs:
        (stub,) = functions(cell)
        text = notebook.cells[number - 1].source
        if not re.search(r"· ★{1,3} · \d+ minutes ·", text) or "<summary>Hint</summary>" not in text:
            found.append(f"{cell.id}: the text above needs difficulty, minutes and a hint")
        if not stub.returns or not all(argument.annotation for argument in stub.args.args):
            found.append(f"{cell.id}: the stub is not typed")
        if len(stub.body) != 2 or "NotImplementedError" not in ast.unparse(stub.body[1]):
            found.append(f"{cell.id}: a stub holds a docstring and raises NotImplementedError, no solution")
        if stub.name not in EXERCISES or f"checks.check_{stub.name}({stub.name})" not in cell.source:
            found.append(f"{cell.id}: the check of {stub.name} is not called")
        if printed(cell) != f"{stub.name}: not attempted yet\n":
            found.append(f"{cell.id}: an unfilled stub must print that it is not attempted yet")
        solution, solved_in = solved.get(stub.name, (None, None))
        if solution is None or ast.unparse(solution.args) != ast.unparse(stub.args):
            found.append(f"{cell.id}: {stub.name} has no solution with the same parameters")
            continue
        if f"{stub.name}: correct\n" not in printed(solved_in):
            found.append(f"{stub.name}: its solution is not found correct")
        lines.append(solution.end_lineno - solution.body[1].lineno + 1)
    if sum(count >= 5 for count in lines) < len(lines) / 2:
        found.append(f"half of the exercises need five lines or more; the solutions have {lines}")
    return found


def problems(notebook, solutions) -> list[str]:
    parts = [*template_problems(notebook), *build_problems(notebook), *control_problems(notebook)]
    return parts + exercise_problems(notebook, solutions)


def classes_defined_twice(notebooks) -> list[str]:
    times = Counter()
    for notebook in notebooks:
        nodes = [node for cell in notebook.cells for node in tree(cell).body]
        times.update({node.name for node in nodes if isinstance(node, ast.ClassDef)})
    return [name for name, count in times.items() if count > 1]


@every_lesson
def test_lessons_follow_the_template(path):
    assert problems(read(path), read(path.parent / "solutions" / path.name)) == []


def test_no_class_is_defined_in_two_notebooks():
    assert classes_defined_twice(map(read, NOTEBOOKS.rglob("[0-9]*.ipynb"))) == []
    cell = nbformat.v4.new_code_cell("class Attention:\n    pass")
    twice = [nbformat.v4.new_notebook(cells=[cell]), nbformat.v4.new_notebook(cells=[cell])]
    assert classes_defined_twice(twice) == ["Attention"]


def test_every_check_belongs_to_one_exercise():
    stubs = [function.name for path in LESSONS for cell in read(path).cells if cell.id.startswith("stub-")
             for function in functions(cell)]  # fmt: skip
    assert sorted(stubs) == sorted(EXERCISES)


def first(notebook, start: str):
    return next(cell for cell in notebook.cells if cell.id.startswith(start))


def replace(start: str, old: str, new: str):
    def change(notebook, solutions):
        cell = first(notebook, start)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return change


def remove(*starts: str):
    def change(notebook, solutions):
        notebook.cells = [cell for cell in notebook.cells if not cell.id.startswith(starts)]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("look"), "its parts are"),
        (lambda notebook, solutions: notebook.cells.insert(0, notebook.cells.pop()), "its parts are"),
        (replace("title", "*Minutes:*", "minutes"), "lacks '*Minutes:*'"),
        (replace("setup", "import torch\n", "import torch\n" + "import copy\n" * 8), "more than ten lines"),
        (replace("setup", "\ntorch.manual_seed(2)", ""), "does not seed"),
        (replace("recap", "**New symbols.**", "Symbols."), "the recap lacks"),
        (remove("same-", "show-", "look-r"), "nothing is shown to be the same"),
        (replace("build-", "def ", "from tinytransformer import attention\n\n\ndef "), "without the package"),
        (replace("build-s", "return ", "return attention(query, key, key) + "), "it uses ['attention']"),
        (remove("show-scores"), "must show a shape or a value"),
        (remove("control-move"), "there is no control"),
        (remove("control-static", "control-figure"), "no still figure"),
        (remove("stub-1", "stub-2", "stub-3", "stub-4"), "three exercises or more"),
        (replace("exercise-1", "★", "easy"), "needs difficulty, minutes and a hint"),
        (replace("stub-2", "scores: Tensor", "scores"), "not typed"),
        (replace("stub-2", "raise NotImplementedError", "return scores.softmax(-1)"), "no solution"),
        (replace("stub-2", "checks.check_my_softmax", "print"), "is not called"),
        (lambda notebook, solutions: first(notebook, "stub-1").update(outputs=[]), "not attempted yet"),
        (lambda notebook, solutions: first(solutions, "my-softmax").update(source=""), "has no solution"),
        (lambda notebook, solutions: first(solutions, "entropy").update(outputs=[]), "not found correct"),
        (remove("stub-1", "stub-3", "stub-5"), "half of the exercises"),
    ],
)
def test_the_test_of_lessons_can_fail(change, message):
    path = NOTEBOOKS / "02_attention.ipynb"
    notebook, solutions = copy.deepcopy(read(path)), copy.deepcopy(read(path.parent / "solutions" / path.name))
    change(notebook, solutions)
    assert any(message in problem for problem in problems(notebook, solutions))
