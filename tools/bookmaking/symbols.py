"""The glossary of symbols: collected from the recaps of the lessons, and linked from the first use of each.

A recap ends with "**New symbols.** d_k: features of a query · …". What else there is to say about a symbol, and the
words by which its first use is found where the symbol alone is too short to be searched for, stands in
``docs/book/symbols.json``.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bookmaking.lessons import ROOT, BookError, Lesson

NOTES = ROOT / "docs" / "book" / "symbols.json"
RECAP = re.compile(r"\*\*New symbols\.\*\*(.*?)(?:\n\n|\Z)", re.DOTALL)
# What a link must not be put into: code, formulas, links, tags, headings, rows of tables, the lines below a title.
CLOSED = re.compile(
    r"```.*?```|`[^`]+`|\$\$.*?\$\$|\$[^$\n]+\$|\[[^\]]*\]\([^)]*\)|<[a-z/][^>]*>"
    r"|^#+ [^\n]*$|^\|[^\n]*$|^\*Paper:\*.*?\n\n",
    re.DOTALL | re.MULTILINE,
)
FRONT = """\
# Symbols

Every symbol of the course, in the order in which the lessons introduce it. Its first use in a lesson leads
here, and each entry leads back. A letter can stand for two things; then it has two entries.

**Shapes** are written with the same letters everywhere: B sentences of a batch, S source words, T target words,
H heads, D = d_model features, V words of the vocabulary.
"""


@dataclass(frozen=True)
class Symbol:
    """One entry: how it is written, what it means, in which lesson it is new, and how it is found there."""

    lesson: str
    name: str
    meaning: str
    more: str = ""
    first: str = ""  # the words around its first use; the part in [ ] becomes the link

    @property
    def anchor(self) -> str:
        words = re.sub(r"[^0-9a-z]+", "-", _spelled(self.name)).strip("-")
        return f"symbol-{self.lesson}-{words}"


def _spelled(name: str) -> str:
    greek = {"σ": "sigma", "∗": "times", "ε": "epsilon", "α": "alpha", "β": "beta", "▁": "space", "₁": "1", "₂": "2"}
    words = "".join(greek.get(letter, letter) for letter in name)
    # Capitals and small letters are different symbols: Q and q, V and v.
    return re.sub(r"(?<![A-Za-z])([A-Z])(?![a-z])", r"big-\1", words).lower()


def read_symbols(lessons: Sequence[Lesson], notes: Path = NOTES) -> list[Symbol]:
    """All symbols, in the order of the lessons."""
    extra = json.loads(notes.read_text(encoding="utf-8"))
    found = []
    for lesson in lessons:
        here = dict(extra.get(lesson.number, {}))
        for name, meaning in new_symbols(lesson):
            note = here.pop(name, {})
            found.append(Symbol(lesson.number, name, meaning, note.get("more", ""), note.get("first", "")))
        if here:
            raise BookError(f"{notes.name} explains {', '.join(here)}, which lesson {lesson.number} does not list: "
                            "write it as its recap does, or take it out")  # fmt: skip
    return found


def new_symbols(lesson: Lesson) -> list[tuple[str, str]]:
    """Names and meanings from the recap of a lesson."""
    block = RECAP.search(lesson.cell("recap").source)
    entries = " ".join(block.group(1).split()).rstrip(".").split(" · ") if block else []
    pairs = [entry.split(": ", 1) if ": " in entry else entry.split(", ", 1) for entry in entries]
    return [(name.strip("*"), meaning) for name, meaning in pairs]


def linked(lesson: Lesson, symbols: Sequence[Symbol]) -> dict[str, str]:
    """The Markdown of each cell, in which the first use of each symbol leads to the glossary."""
    texts = {cell.id: cell.source for cell in lesson.notebook.cells if cell.cell_type == "markdown"}
    for symbol in symbols:
        if symbol.lesson == lesson.number:
            _link_first(texts, symbol)
    return texts


def _link_first(texts: dict[str, str], symbol: Symbol) -> None:
    for name, text in texts.items():
        if (span := first_use(text, symbol)) is not None:
            start, end = span
            texts[name] = f"{text[:start]}[{text[start:end]}](#{symbol.anchor}){text[end:]}"
            return
    raise BookError(f"lesson {symbol.lesson} uses {symbol.name!r} nowhere: mend its entry in {NOTES.name}")


def first_use(text: str, symbol: Symbol) -> tuple[int, int] | None:
    """Where a text uses a symbol, outside of what is closed to links. A whole piece of code or a whole formula may
    become a link, a part of it not."""
    closed = [match.span() for match in CLOSED.finditer(text)]
    for match in re.finditer(pattern_of(symbol), text):
        start, end = match.span("symbol")
        if not any(a < end and start < b and not (start <= a and b <= end) for a, b in closed):
            return start, end
    return None


def pattern_of(symbol: Symbol) -> str:
    """The words of ``first``, of which the part in brackets is linked; or the symbol itself, in any dress."""
    words = symbol.first or f"[{symbol.name.split(', ')[0]}]"
    before, inside, after = re.fullmatch(r"(.*?)\[(.+)\](.*)", words, re.DOTALL).groups()
    before, inside, after = (re.escape(part).replace(r"\ ", r"\s+") for part in (before, inside, after))
    edges = (r"(?<![\w$`*])", r"(?![\w$`*])") if not symbol.first else ("", "")
    dressed = rf"(?P<symbol>`{inside}`|\*{inside}\*|{edges[0]}{inside}{edges[1]})"
    return before + dressed + after


def place_of(lesson: Lesson, symbol: Symbol) -> str:
    """The cell of its first use."""
    texts = {cell.id: cell.source for cell in lesson.notebook.cells if cell.cell_type == "markdown"}
    return next(name for name, text in texts.items() if first_use(text, symbol) is not None)


def page(lessons: Sequence[Lesson], symbols: Sequence[Symbol]) -> str:
    """The glossary: each symbol under its lesson, with a way back to its first use."""
    lines = [FRONT]
    for lesson in lessons:
        here = [symbol for symbol in symbols if symbol.lesson == lesson.number]
        lines += ["", f"## Lesson {lesson.number}: {lesson.title}"] if here else []
        for symbol in here:
            back = lesson.link(place_of(lesson, symbol), "first use")
            meaning = symbol.meaning.rstrip(".")
            lines += ["", f"({symbol.anchor})=", "", f"**{symbol.name}**: {meaning}. {symbol.more} ({back})"]
    return "\n".join(lines) + "\n"
