"""A lesson's notebook as a page: cells that can be linked to, figures with a text for those who do not see them, and
controls that need no kernel or say that they would."""

import re
from collections.abc import Mapping, Sequence

import nbformat
from nbformat import NotebookNode

from bookmaking.lessons import Lesson, anchor_of, plain
from bookmaking.symbols import Symbol, linked

STILL = "A control: run this notebook to move it."
ALT_LETTERS = 300  # a screen reader cannot skim
FRAME = """\
```{{raw}} html
<iframe class="explorer" src="../explorer/{name}.html" title="Attention explorer: {title}" loading="lazy"></iframe>
<p class="explorer-link"><a href="../explorer/{name}.html">Open the explorer on a page of its own</a></p>
```
"""


def adapted(lesson: Lesson, symbols: Sequence[Symbol] = (), explorers: Mapping[str, str] | None = None) -> NotebookNode:
    """The notebook of the page. ``explorers`` maps names of cells to titles of saved explorers; ``symbols`` are those
    that first occur in this lesson."""
    cells = []
    source = linked(lesson, symbols)
    for place, cell in enumerate(lesson.notebook.cells):
        target = f"({lesson.anchor(cell.id)})=\n"
        if cell.cell_type == "markdown":
            text = with_local_links(source[cell.id], lesson)
            cells.append(markdown(f"{target}\n{text}"))
            continue
        cells.append(markdown(target))
        cell = NotebookNode({**cell, "outputs": [output for output in cell.outputs if not is_control(output)]})
        if shows_picture(cell):
            cell.metadata = with_alt(cell.metadata, caption_below(lesson, place))
        if cell.id in (explorers or {}):
            frame = FRAME.format(name=f"lesson-{lesson.number}-{cell.id}", title=explorers[cell.id])
            cells += [without_outputs(cell), markdown(frame), only_outputs(cell)]
            continue
        cells.append(cell)
        if is_slider(cell):
            cells.append(markdown(slider_note(lesson, place)))
    return nbformat.v4.new_notebook(cells=cells, metadata=lesson.notebook.metadata)


def markdown(text: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(text)


def without_outputs(cell: NotebookNode) -> NotebookNode:
    return NotebookNode({**cell, "outputs": []})


def only_outputs(cell: NotebookNode) -> NotebookNode:
    """What a cell showed, apart from its code. The page has shown the code already."""
    metadata = NotebookNode({**cell.metadata, "tags": [*cell.metadata.get("tags", []), "remove-input"]})
    return NotebookNode({**cell, "id": f"{cell.id}-still", "metadata": metadata})


def with_local_links(text: str, lesson: Lesson) -> str:
    """Links to headings, as JupyterLab writes them (#A-heading), become links to the cell that has it. A link to a
    lesson that is not there yet becomes words."""

    def cell_of(match: re.Match) -> str:
        wanted = match.group(1)
        for cell in lesson.notebook.cells:
            headings = re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else []
            if any(heading.replace(" ", "-") == wanted for heading in headings):
                return f"](#{lesson.anchor(cell.id)})"
        return match.group(0)

    def if_there(match: re.Match) -> str:
        return match.group(0) if (lesson.path.parent / match.group(2)).exists() else match.group(1)

    text = re.sub(r"\[([^\]]*)\]\(([\w/]+\.ipynb)\)", if_there, text)
    return re.sub(r"\]\(#([^)]+)\)", cell_of, text)


# --- figures


def shows_picture(cell: NotebookNode) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.outputs)


def caption_below(lesson: Lesson, place: int) -> str:
    """The caption in italics that stands below each figure, as plain text; without one, the heading above."""
    following = lesson.notebook.cells[place + 1 : place + 2]
    if following and (found := re.match(r"\*(?!\*)(.+?)(?<!\*)\*(?!\*)", following[0].source, re.DOTALL)):
        return shortened(plain(found.group(1)))
    return f"Figure: {plain(lesson.heading_above(lesson.notebook.cells[place].id))}"


def shortened(text: str, most: int = ALT_LETTERS) -> str:
    """Whole sentences as far as they fit, at least one."""
    sentences = re.split(r"(?<=[.:;!?]) ", text)
    kept = sentences[0]
    for sentence in sentences[1:]:
        if len(kept) + len(sentence) >= most:
            break
        kept += f" {sentence}"
    return kept


def with_alt(metadata: NotebookNode, text: str) -> NotebookNode:
    return NotebookNode({**metadata, "mystnb": {"image": {"alt": text}}})


# --- controls


def is_control(output: NotebookNode) -> bool:
    """Whether an output stands for a control that was there when the notebook ran."""
    data = output.get("data", {})
    return data.get("text/plain") == STILL or "application/vnd.jupyter.widget-view+json" in data


def is_slider(cell: NotebookNode) -> bool:
    return bool(re.search(r"\bwidgets\.interact\(|\binteract\(", cell.source))


def slider_note(lesson: Lesson, place: int) -> str:
    """What a reader is told instead of the control: where the still figure stands, if there is one."""
    following = lesson.notebook.cells[place + 1 : place + 4]
    figures = [cell.id for cell in following if cell.cell_type == "code" and shows_picture(cell)]
    note = "This control moves in the notebook, where a kernel computes what it shows."
    if figures:
        note += f" The [still figure](#{anchor_of(lesson.number, figures[0])}) below shows some of its settings."
    return f":::{{note}}\n{note}\n:::"
