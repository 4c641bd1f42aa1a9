"""Tasks and assignments: what a student is asked, what is tried in front of them and what behind their back.

A task is an exercise with points. Its visible cases, those of the exercise, teach; its hidden cases grade. They are
made from a seed, which differs from student to student, and each says in words what it tries.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tinytransformer.teaching.exercises import Exercise, judge
from tinytransformer.teaching.grading.watch import watched
from tinytransformer.teaching.verdicts import CORRECT, WRONG, Verdict, report


@dataclass(frozen=True)
class Made:
    """An argument that cannot travel into the box, such as a model or a function: it is made on both sides by calling
    ``maker``, a function of the task's `given`, with plain values."""

    maker: str
    values: tuple = ()


@dataclass(frozen=True)
class Case:
    """One hidden try. ``about`` is all that a student will read of it: it helps and gives no number away."""

    about: str
    arguments: tuple
    weight: int = 1  # its share of the task's points


@dataclass(frozen=True)
class Task:
    """One graded function.

    ``given`` is source text that runs before the answer: references for earlier tasks, so that a mistake costs one task
    only, and makers of arguments. ``package`` names the modules of this package that exist in the box, such as
    "model.masks"; all others are missing there. ``forbidden`` names functions of PyTorch that the answer must do
    without, such as "softmax".
    """

    exercise: Exercise
    points: int
    minutes: int
    hidden: Callable[[int], Sequence[Case]]
    given: str = ""
    package: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The function that a student writes."""
        return self.exercise.name


@dataclass(frozen=True)
class Assignment:
    """The tasks of one notebook, and the points of its reflection, which a person gives."""

    name: str
    title: str
    setup: str  # the imports that a student's answers may rely on: those of the notebook's first code cell
    tasks: tuple[Task, ...]
    reflection: int

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, name: str) -> Task:
        return next(task for task in self.tasks if task.name == name)

    @property
    def points(self) -> int:
        """The most that can be had."""
        return sum(task.points for task in self.tasks) + self.reflection

    def ready(self, *functions: Callable) -> bool:
        """Whether these answers are right already; if not, say what comes first. For cells that build on answers."""
        missing = [one.__name__ for one in functions if not self._verdict(one).passed]
        if missing:
            print(f"Come back when the check of {' and '.join(missing)} says {CORRECT!r}.")
        return not missing

    def check(self, function: Callable) -> Verdict:
        """What a student calls: try the visible cases of the task that bears the function's name."""
        return report(self._verdict(function))

    def _verdict(self, function: Callable) -> Verdict:
        names = [task.name for task in self.tasks]
        name = getattr(function, "__name__", None)
        if name not in names:
            asked = ", ".join(names)
            raise ValueError(f"{self.name} has no task {name!r}: give one of its functions itself, {asked}")
        task, used = self[name], set()
        verdict = judge(task.exercise, watched(function, task.forbidden, used))
        if used:
            verdict = Verdict(name, WRONG, forbidden_hint(used), "forbidden")
        return verdict


def forbidden_hint(used: Iterable[str]) -> str:
    """What a student is told who used what the task forbids."""
    return f"This task asks to do without {' and '.join(sorted(used))}, and the answer uses it."
