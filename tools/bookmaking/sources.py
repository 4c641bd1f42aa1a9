"""All sources of the book in one folder, ready for Sphinx: notebooks adapted, pages copied, pages written from data."""

import importlib.metadata
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat

from bookmaking import explorers, mistakes, paper_map, practice, reference, results, slides, symbols
from bookmaking.adapting import adapted
from bookmaking.lessons import NOTEBOOKS, ROOT, BookError, Lesson, read_lessons

PAGES = ROOT / "docs" / "book"
MATHJAX = "tex-svg-full.js"  # one file with all of TeX, drawn as SVG: no fonts to load


def prepare(folder: Path, notebooks: Path = NOTEBOOKS) -> list[Lesson]:
    """Fill an empty folder; returns the lessons that are in the book."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PAGES, folder, ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    lessons = read_lessons(notebooks)
    write_lessons(lessons, folder / "lessons", notebooks)
    write_pages(lessons, folder)
    shutil.copytree(ROOT / "docs" / "figures", folder / "figures")
    explorers.save_all(lessons, folder / "extra" / "explorer")
    copy_mathjax(folder / "static" / "mathjax")
    return lessons


def write_lessons(lessons: Sequence[Lesson], folder: Path, notebooks: Path) -> None:
    """The lessons and their solutions, adapted."""
    known = symbols.read_symbols(lessons)
    for lesson in lessons:
        write_notebook(adapted(lesson, known, explorers.in_lesson(lesson)), folder / lesson.path.name)
        solution = notebooks / "solutions" / lesson.path.name
        if solution.exists():
            write_notebook(nbformat.read(solution, as_version=4), folder / "solutions" / lesson.path.name)


def write_pages(lessons: Sequence[Lesson], folder: Path) -> None:
    """Pages that are made from data, and the guides that stand beside the book; links to lessons in all of them."""
    written = {
        "symbols.md": symbols.page(lessons, symbols.read_symbols(lessons)),
        "paper.md": paper_map.page(lessons),
        "results.md": results.page(),
        "exercises.md": practice.exercises_page(lessons),
        "assignments.md": practice.assignments_page(),
        "figures.md": slides.page(),
        **mistakes.pages(lessons),
        **reference.pages(),
    }
    for path in (*folder.glob("*.md"), ROOT / "docs" / "teaching.md", ROOT / "docs" / "rubrics.md"):
        written[path.name] = path.read_text(encoding="utf-8")
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(with_lessons(text, lessons), encoding="utf-8")


def with_lessons(text: str, lessons: Sequence[Lesson]) -> str:
    """Pages write {lesson 03} for a link to the lesson and {lessons} for the table of all of them. A lesson that is not
    there yet keeps its number."""
    by_number = {lesson.number: lesson for lesson in lessons}

    def link(match: re.Match) -> str:
        lesson = by_number.get(match.group(1))
        return f"[{lesson.number} {lesson.title}]({lesson.page})" if lesson else match.group(1)

    rows = [f"| {one.number} | [{one.title}]({one.page}) | {one.promise} |" for one in lessons]
    text = text.replace("{lessons}", "\n".join(["| | lesson | |", "|---|---|---|", *rows]))
    return re.sub(r"\{lesson (\d\d)\}", link, text)


def write_notebook(notebook: nbformat.NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def copy_mathjax(folder: Path) -> None:
    """MathJax comes inside a Python package, so that it is installed by name and never fetched by a reader."""
    files = importlib.metadata.files("sphinx-mathjax-offline") or []
    found = [file for file in files if file.name == MATHJAX]
    if not found:
        raise BookError(f"sphinx-mathjax-offline has no {MATHJAX}: install what requirements-book.txt names")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(found[0].locate(), folder / MATHJAX)
