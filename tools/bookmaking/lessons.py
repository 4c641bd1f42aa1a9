"""Lessons as the book sees them: a notebook with a number, a title, named cells, and the place of each cell."""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
WORDS = 7  # of a cell that has neither a heading nor a beginning in bold


class BookError(ValueError):
    """Something that the book is made from does not fit; the message says what, and what to do."""


@dataclass(frozen=True)
class Lesson:
    """One notebook, read once. ``notebook`` is never changed: adapting works on a copy."""

    path: Path
    notebook: NotebookNode

    @property
    def stem(self) -> str:
        return self.path.stem

    @property
    def number(self) -> str:
        return self.stem[:2]

    @property
    def title(self) -> str:
        """The heading, without the number: "Masks"."""
        return re.match(r"# \d\d · (.+)", self.cell("title").source).group(1)

    @property
    def promise(self) -> str:
        """What the title cell promises, in one sentence."""
        return " ".join(re.search(r"\*\*(.+?)\*\*", self.cell("title").source, re.DOTALL).group(1).split())

    @property
    def page(self) -> str:
        """The page's place in the book, as other pages write it: "/lessons/03_masks.ipynb"."""
        return f"/lessons/{self.path.name}"

    def cell(self, name: str) -> NotebookNode:
        for cell in self.notebook.cells:
            if cell.id == name:
                return cell
        raise BookError(f"lesson {self.number} has no cell {name!r}: name one of those in {self.path.name}")

    def has(self, name: str) -> bool:
        return any(cell.id == name for cell in self.notebook.cells)

    def anchor(self, name: str) -> str:
        """The label of a cell; ids in HTML should begin with a letter."""
        self.cell(name)
        return anchor_of(self.number, name)

    def heading_above(self, name: str) -> str:
        """The last heading at or above a cell, so that a link to the cell can be named after it."""
        found = self.title
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown":
                headings = re.findall(r"^#{2,4} (.+)$", without_code(cell.source), re.MULTILINE)
                found = headings[0] if headings and cell.id == name else headings[-1] if headings else found
            if cell.id == name:
                return found
        raise BookError(f"lesson {self.number} has no cell {name!r}: name one of those in {self.path.name}")

    def label(self, name: str) -> str:
        """What a cell is about: its own heading, else the words in bold that it begins with, else its first words."""
        source, heading = self.cell(name).source, plain(self.heading_above(name))
        if self.cell(name).cell_type == "code" or re.search(r"^## ", without_code(source), re.MULTILINE):
            return heading
        if bold := re.match(r"\*\*(.+?)\*\*", source, re.DOTALL):
            return plain(bold.group(1)).rstrip(".:")
        words = plain(source.split("\n\n")[0]).split()
        return f"{heading}: {' '.join(words[:WORDS])}{' …' if len(words) > WORDS else ''}"

    def link(self, name: str, text: str = "") -> str:
        """A Markdown link to a cell."""
        return f"[{text or self.label(name)}](#{self.anchor(name)})"


def anchor_of(number: str, name: str) -> str:
    return f"lesson-{number}-{name.replace('_', '-').lower()}"


def read_lessons(folder: Path = NOTEBOOKS) -> list[Lesson]:
    """All lessons that there are, in order."""
    paths = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not paths:
        raise BookError(f"there is no lesson in {folder}: give the folder with 00_start_here.ipynb")
    return [Lesson(path, nbformat.read(path, as_version=4)) for path in paths]


def without_code(markdown: str) -> str:
    """Markdown without its fenced code, where a # begins a comment."""
    return re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)


def plain(markdown: str) -> str:
    """Markdown as a reader would say it: no emphasis, links by their text, formulas without dollars."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    text = re.sub(r"<[a-z/][^>]*>(?!`)", "", text) if "`" not in text else text
    text = re.sub(r"\*\*|`|\$|(?<!\\)\*", "", text)
    return " ".join(text.split())
