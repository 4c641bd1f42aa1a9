"""The map of the paper: each section and table, and the cells of the lessons that take it up."""

import json
import re
from collections.abc import Mapping, Sequence

from bookmaking.lessons import ROOT, BookError, Lesson

PLACES = ROOT / "docs" / "book" / "paper_map.json"
NAMED = re.compile(r"\b[Ss]ections? (\d(?:\.\d)*(?:(?:, | and )\d(?:\.\d)*)*)")

FRONT = """\
# The paper, section by section

Where the course takes up what stands in A. Vaswani et al., *Attention Is All You Need* (NeurIPS 2017,
arXiv:1706.03762). Each line leads to cells, with the number of the lesson before it. Read the paper beside it:
nothing of its text is copied here.
"""


def mentions(lesson: Lesson) -> list[tuple[str, str]]:
    """Sections that a lesson names, each with the cell that does; the title cell names what the lesson is about."""
    found = []
    for cell in lesson.notebook.cells:
        if cell.cell_type == "markdown":
            for group in NAMED.findall(" ".join(cell.source.split())):
                found += [(section, cell.id) for section in re.split(r", | and ", group)]
    return list(dict.fromkeys(found))


def departures(lesson: Lesson) -> list[str]:
    """The cells in which a lesson says that it leaves the paper."""
    return [cell.id for cell in lesson.notebook.cells if cell.cell_type == "markdown" and "**Departure" in cell.source]


def cells_of(section: str, chosen: Sequence[Sequence[str]], lessons: Mapping[str, Lesson]) -> list[str]:
    """Links for one section: the cells that were chosen first, then those that name it."""
    places = [(number, name) for number, name in chosen if number in lessons]
    for number, lesson in lessons.items():
        places += [(number, name) for named, name in mentions(lesson) if named == section]
    found = []
    for number, name in dict.fromkeys(places):
        where = f"{lessons[number].title}, the whole lesson" if name == "title" else ""
        found.append(f"{number}&nbsp;{lessons[number].link(name, where)}")
    return found


def page(lessons: Sequence[Lesson]) -> str:
    by_number = {lesson.number: lesson for lesson in lessons}
    lines = [FRONT]
    for entry in json.loads(PLACES.read_text(encoding="utf-8")):
        links = cells_of(entry["section"], entry["cells"], by_number)
        if not links:
            raise BookError(f"no cell takes up section {entry['section']}: name one in {PLACES.name}")
        lines += [f"**{entry['section']}** {entry['about']}", "", *(f"- {link}" for link in links), ""]
    lines += ["## Where the course leaves the paper", "", "Every departure is marked where it stands:", ""]
    lines += [f"- {lesson.number}&nbsp;{lesson.link(name)}" for lesson in lessons for name in departures(lesson)]
    return "\n".join(lines) + "\n"
