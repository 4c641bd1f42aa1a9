"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: str = "") -> str:
    """A table. ``numbers`` has a letter for each column: r for numbers, which stand at the right, l for text."""
    marks = ["--:" if side == "r" else "---" for side in numbers.ljust(len(head), "l")]
    lines = [head, marks, *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines) + "\n"


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("\n", " ").replace("|", "\\|")


def number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def folded(summary: str, text: str) -> str:
    """Something that a reader opens; Markdown inside works because of the empty lines."""
    return f"<details><summary>{summary}</summary>\n\n{text.strip()}\n\n</details>\n"
