"""Reading the lexicon's tables: rows of named cells, each of which knows its file and line."""

import csv
from collections.abc import Iterator
from importlib.resources.abc import Traversable


class LexiconError(ValueError):
    """A line of the lexicon is wrong; the message names the file, the line and the remedy."""


class Row:
    """One line of a table: ``row["gender"]`` is a cell, an empty string where the line stops early."""

    def __init__(self, file: str, line: int, cells: dict[str, str]):
        self.file = file
        self.line = line
        self.cells = cells

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    def words(self, column: str) -> list[str]:
        """The cell's words; an empty cell has none."""
        return self.cells[column].split()

    def error(self, problem: str, remedy: str) -> LexiconError:
        return LexiconError(f"{self.file}, line {self.line}: {problem}. {remedy}.")

    def required(self, column: str) -> str:
        """The cell, which must not be empty."""
        if not self.cells[column]:
            raise self.error(f"the column {column!r} is empty", f"Fill it in (columns: {', '.join(self.cells)})")
        return self.cells[column]

    def one_of(self, column: str, allowed: tuple[str, ...]) -> str:
        """The cell, which must be one of the allowed words."""
        value = self.cells[column]
        if value not in allowed:
            raise self.error(f"unknown {column} {value!r}", f"Use one of: {', '.join(allowed)}")
        return value

    def each_of(self, column: str, known, where: str) -> tuple[str, ...]:
        """The cell's words, each of which must be known; `where` says in which table they are listed."""
        for word in self.words(column):
            self.check_known(word, column, known, where)
        return tuple(self.words(column))

    def check_known(self, word: str, column: str, known, where: str) -> None:
        if word not in known:
            raise self.error(f"{word!r} in the column {column!r} is unknown", f"Correct it, or add it to {where}")


def read_table(folder: Traversable, file: str) -> Iterator[Row]:
    """The rows of a table. Lines that begin with # are comments; the first other line names the columns."""
    columns: list[str] = []
    text = (folder / file).read_text(encoding="utf-8")
    for line, content in enumerate(text.splitlines(), start=1):
        if not content.strip() or content.startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader([content]))]
        if not columns:
            columns = cells
            continue
        if len(cells) > len(columns):
            raise LexiconError(
                f"{file}, line {line}: {len(cells)} cells but only {len(columns)} columns. "
                f"Remove the commas too many (columns: {', '.join(columns)})."
            )
        cells += [""] * (len(columns) - len(cells))
        yield Row(file, line, dict(zip(columns, cells, strict=True)))


class Unique:
    """Refuses the second line that says the same thing as an earlier one."""

    def __init__(self):
        self.lines: dict[object, int] = {}

    def check(self, row: Row, key: object, name: str) -> None:
        if key in self.lines:
            raise row.error(f"{name} is already in line {self.lines[key]}", "Remove one of the two lines")
        self.lines[key] = row.line
