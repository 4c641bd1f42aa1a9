"""Explorers that work without a kernel: saved pages, one for each cell of a lesson that shows an explorer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookmaking.lessons import Lesson

PUPPY = "The puppy did not cross the bridge because it was too dangerous."
CAPTION = "A brown dog runs through the snow with a stick in its mouth."


@dataclass(frozen=True)
class Saved:
    """One page: the cell that it belongs to, what it is called, and how its explorer is made."""

    lesson: str
    cell: str
    title: str
    make: Callable[[], Any]

    @property
    def name(self) -> str:
        return f"lesson-{self.lesson}-{self.cell}"


def _sentence(model: str, **what: Any) -> Any:
    from tinytransformer import explore

    return explore(model=model, **what)


def _pronoun() -> Any:
    from tinytransformer.text.microworld import generate

    return _sentence("microworld-en-de", example=list(generate("test_pronoun", 2, seed=1))[1])


SAVED = (
    Saved("00", "explorer", "the puppy, the bridge and it", lambda: _sentence("microworld-en-de", text=PUPPY)),
    Saved("09", "look-explorer", "a pronoun with its gold antecedent", _pronoun),
    Saved("09", "look-captions", "a caption", lambda: _sentence("multi30k-en-de", text=CAPTION, layers=[2])),
)


def in_lesson(lesson: Lesson) -> dict[str, str]:
    """The cells of a lesson whose explorer is saved, with their titles. A cell that is gone has no page."""
    return {one.cell: one.title for one in SAVED if one.lesson == lesson.number and lesson.has(one.cell)}


def save_all(lessons: Sequence[Lesson], folder: Path) -> list[Path]:
    """Write all pages into a folder, each head of each model tried off once."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # small products; two busy threads beside another process are many times slower
    wanted = {(lesson.number, cell) for lesson in lessons for cell in in_lesson(lesson)}
    return [one.make().save_html(folder / f"{one.name}.html") for one in SAVED if (one.lesson, one.cell) in wanted]
