"""Hidden cases on which every known mistake shows, whatever the seed."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from tinytransformer.teaching.exercises import Exercise, agree, run_cases
from tinytransformer.teaching.grading.tasks import Case

STRIDE = 7919  # draws of one seed lie so far apart that neighbouring seeds do not share them


def dice_of(seed: int) -> torch.Generator:
    """Random numbers that depend on the seed alone."""
    return torch.Generator().manual_seed(seed)


def number(low: int, high: int, dice: torch.Generator) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    return int(torch.randint(low, high + 1, (), generator=dice))


def telling(exercise: Exercise, draw: Callable[[int], Sequence[Case]], seed: int) -> list[Case]:
    """The first draw of a seed on which the right answer and all known mistakes differ from each other.

    Without this a mistake might pass for a few students whose numbers happen to hide it.
    """
    for attempt in range(200):
        cases = list(draw(seed + STRIDE * attempt))
        if _tells_all_apart(exercise, cases):
            return cases
    raise RuntimeError(f"no draw of seed {seed} shows all mistakes of {exercise.name}: change how its cases are drawn")


def _tells_all_apart(exercise: Exercise, cases: Sequence[Case]) -> bool:
    tried = replace(exercise, cases=lambda: [case.arguments for case in cases])
    answers = [exercise.reference, *(mistake.wrong for mistake in exercise.mistakes)]
    outcomes = [[run.got for run in run_cases(tried, answer)[0]] for answer in answers]
    return not any(all(map(agree, one, other)) for one, other in itertools.combinations(outcomes, 2))
