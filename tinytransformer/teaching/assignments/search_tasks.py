"""Tasks of assignment 4 about searching: the best that has ended, one step of a beam, and a whole search."""

from inspect import getsource

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake
from tinytransformer.teaching.grading.tasks import Case, Task
from tinytransformer.teaching.search_exercises import found

IMPORTS = "import torch\nfrom torch import Tensor\n\n\n"

# --- the best that has ended


def _penalised(log_probability: float, length: int, alpha: float) -> float:
    return log_probability / ((5 + length) / 6) ** alpha


def _best(score=_penalised, extra: int = 0, ended_only: bool = True, shown=None, inner=lambda ids: ids[1:-1]):
    """The right answer, or one that scores, counts, chooses from or shows something else."""

    def best_finished(candidates, log_probabilities, alpha, start, end) -> tuple[list[int], float]:
        rows = range(len(candidates))
        ended = [row for row in rows if candidates[row][-1] == end]
        pool = ended if ended and ended_only else rows
        scores = {row: score(log_probabilities[row], len(candidates[row]) - 1 + extra, alpha) for row in pool}
        best = max(pool, key=scores.__getitem__)
        ids = candidates[best]
        return inner(ids) if ids[-1] == end else ids[1:], shown(log_probabilities[best]) if shown else scores[best]

    return best_finished


def _end_not_counted(candidates, log_probabilities, alpha, start, end) -> tuple[list[int], float]:
    pool = [row for row, ids in enumerate(candidates) if ids[-1] == end] or range(len(candidates))
    words = {row: [token for token in candidates[row] if token not in (start, end)] for row in pool}
    scores = {row: _penalised(log_probabilities[row], len(words[row]), alpha) for row in pool}
    best = max(pool, key=scores.__getitem__)
    return words[best], scores[best]


def _hypotheses(lengths: list[int], ended: list[bool], dice: torch.Generator) -> tuple[list[list[int]], list[float]]:
    """Longer ones are less likely, by about as much as the penalty gives back."""
    draws = torch.rand(len(lengths), generator=dice).tolist()
    words = [torch.randint(2, 30, (length,), generator=dice).tolist() for length in lengths]
    candidates = [[0, *ids, 1] if end else [0, *ids] for ids, end in zip(words, ended, strict=True)]
    return candidates, [-2.0 - 0.35 * length - 1.5 * draw for length, draw in zip(lengths, draws, strict=True)]


def _best_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    lengths = [number(1, 4, dice), number(4, 8, dice), number(8, 14, dice), number(2, 9, dice), number(10, 16, dice)]
    mixed, all_ended = [True, True, True, False, False], [True] * 5
    alpha = number(5, 12, dice) / 10
    running, likely = _hypotheses(lengths, mixed, dice)
    likely = [one + 3.0 * (not ended) for one, ended in zip(likely, mixed, strict=True)]  # the tempting ones
    empty, hope = _hypotheses([0, *lengths[1:3]], [True] * 3, dice)
    return [
        Case("sentences of several lengths", (*_hypotheses(lengths, all_ended, dice), alpha, 0, 1)),
        Case("some have not ended, and look good", (running, likely, 0.6, 0, 1)),
        Case("none has ended", (*_hypotheses(lengths[:3], [False] * 3, dice), alpha, 0, 1)),
        Case("no penalty", (*_hypotheses(lengths, all_ended, dice), 0.0, 0, 1)),
        Case("the empty sentence among others", (*_hypotheses([0, 6, 9], [True] * 3, dice), 2.0, 0, 1)),
        Case("the empty sentence is the best", (empty, [hope[0] + 1.8, *hope[1:]], 0.6, 0, 1)),
    ]


BEST = Task(
    Exercise(
        "best_finished",
        reference=_best(),
        cases=lambda: [
            ([[0, 4, 5, 1], [0, 6, 7, 8, 9, 6, 1], [0, 5]], [-3.0, -3.4, -1.0], 1.0, 0, 1),
            ([[0, 4, 1], [0, 6, 7, 8, 1]], [-2.0, -2.9], 0.0, 0, 1),
            ([[0, 4, 5], [0, 6, 7, 8, 7, 9, 4]], [-3.0, -3.3], 0.6, 0, 1),
            ([[0, 4, 1], [0, 6, 7, 8, 7, 5, 4, 6, 7, 1]], [-2.0, -3.5], 0.8, 0, 1),
            ([[0, 4, 6, 1], [0, 1], [0, 7]], [-3.0, -1.2, -0.4], 0.7, 0, 1),
        ],
        normal=found,
        mistakes=(
            Mistake("start-counted", "The start token is counted in the length. It is given, not written.",
                    _best(extra=1)),
            Mistake("end-not-counted", "The end token is not counted in the length. To stop was a step, too.",
                    _end_not_counted),
            Mistake("upside-down", "The penalty is upside down: dividing a negative number by more brings it nearer to "
                    "0.", _best(lambda one, length, alpha: one * ((5 + length) / 6) ** alpha)),
            Mistake("plain-length", "You divide by the length to the power α. The paper's penalty adds 5 and divides "
                    "by 6 first.", _best(lambda one, length, alpha: one / length**alpha)),
            Mistake("no-penalty", "The lengths change nothing: this is the likeliest.",
                    _best(lambda one, length, alpha: one)),
            Mistake("not-yet-ended", "A sentence that has not ended wins over one that has.", _best(ended_only=False)),
            Mistake("log-probability-returned", "The right sentence, but its log-probability instead of its score.",
                    _best(shown=lambda one: one)),
            Mistake("end-returned", "The end token is among the ids.", _best(inner=lambda ids: ids[1:])),
        ),
    ),
    points=8,
    minutes=12,
    hidden=lambda seed: telling(BEST.exercise, _best_hidden, seed),
)  # fmt: skip


# --- one step of a beam

Step = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def beam_step(scores: Tensor, steps: Tensor, end: int, beam: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    totals = (scores[:, None] + steps).flatten()
    order = totals.argsort(descending=True)
    order = order[totals[order] > float("-inf")]
    is_end = order % steps.size(1) == end
    going_on, ended = order[~is_end][:beam], order[:beam][is_end[:beam]]
    kept = totals[going_on], going_on // steps.size(1), going_on % steps.size(1)
    return *kept, totals[ended], ended // steps.size(1)


def _step(
    scores, steps, end, beam, add=True, only_best=False, all_ends=False, ends_stay=False, impossible=False
) -> Step:
    """A wrong step: scores not added, ends in the places of others, too many ends, or impossible candidates kept."""
    size = steps.size(1)
    totals = ((scores[:, None] if add else 0 * scores[:, None].nan_to_num(neginf=0.0)) + steps).flatten()
    order = totals.argsort(descending=True, stable=True)
    order = order if impossible else order[totals[order] > float("-inf")]
    is_end = order % size == end
    going_on = order[:beam] if ends_stay else order[:beam][~is_end[:beam]] if only_best else order[~is_end][:beam]
    ended = order[is_end] if all_ends else order[:beam][is_end[:beam]]
    return totals[going_on], going_on // size, going_on % size, totals[ended], ended // size


def _one_of_each(scores: Tensor, steps: Tensor, end: int, beam: int) -> Step:
    totals = scores[:, None] + steps
    best = torch.full_like(totals, float("-inf"))
    for row in range(len(scores)):
        words = totals[row].clone()
        words[end] = float("-inf")
        places = words.argsort(descending=True)[: beam if len(scores) == 1 else 1]
        best[row, places] = totals[row, places]
    kept = beam_step(torch.zeros_like(scores), best, end, beam)[:3]
    return *kept, *beam_step(scores, steps, end, beam)[3:]


def _swapped(scores: Tensor, steps: Tensor, end: int, beam: int) -> Step:
    totals, origins, tokens, ends, ended = beam_step(scores, steps, end, beam)
    places, end_places = origins * steps.size(1) + tokens, ended * steps.size(1) + end
    return totals, places % len(scores), places // len(scores), ends, end_places % len(scores)


def _step_case(rows: int, size: int, beam: int, dice: torch.Generator, ending: float, holes: int = 0) -> tuple:
    scores = -3 * torch.rand(rows, generator=dice)
    steps = 1.5 * torch.randn(rows, size, generator=dice)
    steps[:, 1] += ending
    steps[:, 0] = float("-inf")  # nobody writes the start
    steps[:, size - holes :] = float("-inf")
    return scores.sort(descending=True).values, steps.log_softmax(-1), 1, beam


def _step_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    beam, size = number(3, 4, dice), number(7, 9, dice)
    empty = _step_case(beam, size, beam, dice, 1.0)
    empty[0][-1] = float("-inf")
    return [
        Case("several beginnings, some of which end", _step_case(beam, size, beam, dice, 2.0)),
        Case("ends that are not among the best", _step_case(beam, size, beam, dice, -0.5)),
        Case("the first step: one beginning", _step_case(1, size, beam, dice, 0.5)),
        Case("fewer candidates than places", _step_case(2, 6, 8, dice, 1.0, holes=2)),
        Case("an empty place, of score −∞", empty),
    ]


BEAM_STEP = Task(
    Exercise(
        "beam_step",
        reference=beam_step,
        cases=lambda: [
            (torch.tensor([-1.0, -2.0]), torch.tensor([[0.4, 0.35, 0.15, 0.1], [0.1, 0.5, 0.25, 0.15]]).log(), 1, 2),
            (torch.tensor([-0.5, -0.6, -3.0]), torch.tensor([[1, 3, 6], [2, 7, 1], [3, 3, 4]]).div(10).log(), 0, 3),
            (torch.tensor([0.0]), torch.tensor([[0.5, 0.3, 0.0, 0.2]]).log(), 1, 4),
        ],
        mistakes=(
            Mistake("scores-not-added", "Each step is judged alone: the score of a beginning is not added.",
                    lambda *i: _step(*i, add=False)),
            Mistake("ends-take-places", "Ends take places away from those that go on. `beam` beginnings go on, if "
                    "there are so many.", lambda *i: _step(*i, only_best=True)),
            Mistake("all-ends", "Every end is put aside. Only those among the best `beam` candidates have ended.",
                    lambda *i: _step(*i, all_ends=True)),
            Mistake("ends-go-on", "A sentence that has ended goes on.", lambda *i: _step(*i, ends_stay=True)),
            Mistake("one-of-each", "Each beginning goes on in one way only. The best ways may come from one beginning.",
                    _one_of_each),
            Mistake("rows-and-columns", "A place in the flattened table was turned into row and column by the number "
                    "of rows. A row is as long as the vocabulary.", _swapped),
            Mistake("impossible-kept", "A candidate of log-probability −∞ is kept. It is impossible.",
                    lambda *i: _step(*i, impossible=True)),
        ),
    ),
    points=12,
    minutes=20,
    hidden=lambda seed: telling(BEAM_STEP.exercise, _step_hidden, seed),
)  # fmt: skip
STEP_GIVEN = IMPORTS + getsource(beam_step)
