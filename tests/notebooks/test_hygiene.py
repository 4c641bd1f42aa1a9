"""How notebooks are stored: run from top to bottom, canonical, without traces of a machine."""

import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
PATHS = sorted(path for path in NOTEBOOKS.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
LINES_AT_MOST = 25
every_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(NOTEBOOKS).as_posix())


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def problems(notebook) -> list[str]:
    """Everything that is wrong with how a notebook is stored."""
    found = []
    cells = code_cells(notebook)
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        found.append("not run from top to bottom: run `make notebooks`")
    if set(notebook.metadata) != {"kernelspec", "language_info"} or set(notebook.metadata.language_info) != {"name"}:
        found.append("metadata of a front end: run `make notebooks`")
    ignored = sum("nbval-ignore-output" in cell.metadata.get("tags", []) for cell in cells)
    if ignored > len(cells) / 4:
        found.append(f"{ignored} of {len(cells)} cells ignore their output; at most a quarter may")
    for cell in notebook.cells:
        if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f-]+)?", cell.id):
            found.append(f"{cell.id}: a cell's id is a word, so that tests and people can name it")
        if cell.cell_type == "markdown" and re.search(r"!\[.*\]\(http", cell.source):
            found.append(f"{cell.id}: shows a picture from the network")
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        if "nbval-skip" in tags or "NBVAL_SKIP" in cell.source:
            found.append(f"{cell.id}: is skipped")
        if len(cell.source.splitlines()) > LINES_AT_MOST and "# Long because" not in cell.source:
            found.append(f"{cell.id}: has more than {LINES_AT_MOST} lines")
        for output in cell.outputs:
            text = str({key: value for key, value in output.items() if key != "data"})
            text += str({kind: value for kind, value in output.get("data", {}).items() if kind != "image/png"})
            if "application/vnd.jupyter.widget-view+json" in output.get("data", {}):
                found.append(f"{cell.id}: holds a control's random id: run `make notebooks`")
            if {"text/html", "image/svg+xml"} & set(output.get("data", {})):
                found.append(f"{cell.id}: shows HTML or SVG, which differs between runs: figures are PNG")
            if output.output_type == "error" and "raises-exception" not in tags:
                found.append(f"{cell.id}: ends in an error")
            if output.get("name") == "stderr" or re.search(r"\w+Warning\b", text):
                found.append(f"{cell.id}: has a warning")
            if "<Figure" in text and "image/png" not in output.get("data", {}):
                found.append(f"{cell.id}: names a figure but does not show it")
            if re.search(r"(?<![\w./])/(?:[\w.-]+/){2,}|[A-Z]:[\\]{2}|0x[0-9a-f]{6,}", text):
                found.append(f"{cell.id}: shows a path or an address of the machine")
    return found


def link_problems(notebook, folder: Path) -> list[str]:
    """Links to files that are not there, and lessons named in the title or the recap without a link."""
    found = []
    lessons = {path.name[:2] for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")}
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", cell.source):
            if not target.startswith("http") and not (folder / target).exists():
                found.append(f"{cell.id}: links to {target}, which is not there")
        if cell.id in ("title", "recap"):
            text = re.sub(r"\[[^\]]*\]\([^)]*\)", "LINK", cell.source)
            bare = set(re.findall(r"\b(?:lessons? |LINK,? (?:and |to )?)(\d\d)\b", text)) & lessons
            found += [f"{cell.id}: names lesson {number} without a link" for number in sorted(bare)]
    return found


@every_notebook
def test_links_lead_somewhere(path):
    if path.parent == NOTEBOOKS:
        assert link_problems(read(path), path.parent) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("see [02](02_nowhere.ipynb)", "title: links to 02_nowhere.ipynb, which is not there"),
        ("*You need first:* lessons [02](02_attention.ipynb) and 03", "title: names lesson 03 without a link"),
        ("**Next:** lesson 04. One more", "title: names lesson 04 without a link"),
        ("lessons [02](02_attention.ipynb) to 05", "title: names lesson 05 without a link"),
    ],
)
def test_bad_links_are_noticed(text, message):
    cell = nbformat.v4.new_markdown_cell(text, id="title")
    assert message in link_problems(nbformat.v4.new_notebook(cells=[cell]), NOTEBOOKS)


@every_notebook
def test_notebooks_are_stored_cleanly(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert problems(notebook) == []


@every_notebook
def test_every_figure_has_a_caption_below_it(path):
    cells = read(path).cells
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if cell.cell_type == "code" and any("image/png" in output.get("data", {}) for output in cell.outputs):
            assert following is not None, cell.id
            assert following.source.startswith("*"), f"{cell.id}: the next cell must begin with a caption in italics"


def test_there_are_notebooks():
    assert PATHS


def shown(kind: str, value) -> nbformat.NotebookNode:
    return nbformat.v4.new_output("display_data", data={kind: value})


def broken(change) -> list[str]:
    notebook = read(PATHS[0])
    change(notebook, code_cells(notebook)[0])
    return problems(notebook)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda notebook, cell: cell.update(execution_count=None), "not run from top to bottom"),
        (lambda notebook, cell: notebook.metadata.update(widgets={}), "metadata of a front end"),
        (lambda notebook, cell: cell.update(source="\n" * 30), "more than 25 lines"),
        (lambda notebook, cell: cell.metadata.update(tags=["nbval-skip"]), "is skipped"),
        (lambda notebook, cell: cell.update(outputs=[nbformat.v4.new_output("error")]), "ends in an error"),
        (
            lambda notebook, cell: cell.update(outputs=[nbformat.v4.new_output("stream", name="stderr", text="x")]),
            "has a warning",
        ),
        (
            lambda notebook, cell: cell.update(
                outputs=[nbformat.v4.new_output("stream", text="<X at 0x7ff02818bf50>")]
            ),
            "path or an address",
        ),
        (
            lambda notebook, cell: cell.update(outputs=[nbformat.v4.new_output("stream", text="<Figure size 5x4>")]),
            "names a figure but does not show it",
        ),
        (lambda notebook, cell: [c.metadata.update(tags=["nbval-ignore-output"]) for c in notebook.cells], "a quarter"),
        (lambda notebook, cell: cell.update(id="3f9ab01c"), "id is a word"),
        (lambda notebook, cell: cell.update(outputs=[shown("text/html", "<b>1</b>")]), "shows HTML"),
        (
            lambda notebook, cell: cell.update(outputs=[shown("application/vnd.jupyter.widget-view+json", {})]),
            "random id",
        ),
        (lambda notebook, cell: notebook.cells[0].update(source="![x](https://x.org/x.png)"), "from the network"),
        (
            lambda notebook, cell: cell.update(outputs=[nbformat.v4.new_output("stream", text="in /home/me/file.py")]),
            "shows a path",
        ),
    ],
)
def test_the_hygiene_test_can_fail(change, message):
    assert any(message in problem for problem in broken(change))
