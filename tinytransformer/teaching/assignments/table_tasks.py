"""A task of assignment 4: a whole beam search over a language that is a table."""

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.search_tasks import STEP_GIVEN, beam_step
from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake, untouched
from tinytransformer.teaching.grading.tasks import Case, Task

START, END = 0, 1
Found = list[tuple[list[int], float]]


def _search(more=0, forced=True, follow=True, enough=None, length=1, penalty=True, ranked=True, words=2, cut=False):
    """The right search, or one with another limit, end, past, stop, length, score, order, memory or number."""

    def search_table(table: Tensor, start: int, end: int, beam: int, alpha: float, limit: int) -> Found:
        running, scores, ended = [[start, start]], torch.zeros(1), []
        while running and len(ended) < (enough or beam):
            steps = torch.stack([table[ids[-2] if words == 2 else start, ids[-1]] for ids in running])
            if len(running[0]) - 2 >= limit + more:
                if not forced:
                    break
                steps = steps.where(torch.arange(steps.size(1)) == end, float("-inf"))
            scores, origins, tokens, totals, rows = beam_step(scores, steps, end, beam)
            for total, row in zip(totals.tolist(), rows.tolist(), strict=True):
                ids = running[row][2:]
                ended.append((ids, total / ((5 + len(ids) + length) / 6) ** (alpha if penalty else 0.0)))
            rows = origins.tolist() if follow else [min(i, len(running) - 1) for i in range(len(origins))]
            running = [[*running[row], token] for row, token in zip(rows, tokens.tolist(), strict=True)]
        ended = sorted(ended, key=lambda one: -one[1]) if ranked else ended
        return ended[:beam] if cut else ended

    return search_table


def _all_found(arguments: tuple, answer):
    """Scores as one tensor, then the ids of each sentence: lists of different lengths cannot be one tensor."""
    if untouched(answer):
        return answer
    scores = torch.tensor([float(score) for _, score in answer])
    return (scores, *(torch.tensor([int(token) for token in ids]) for ids, _ in answer))


def _language(size: int, ending: float, dice: torch.Generator) -> Tensor:
    """Log-probabilities of the third token after any two; the start never comes again."""
    scores = 1.6 * torch.randn(size, size, size, generator=dice)
    scores[..., END] += ending
    scores[..., START] = float("-inf")
    return scores.log_softmax(-1)


def _table_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    beam, size, limit = number(3, 4, dice), number(6, 8, dice), number(7, 9, dice)
    return [
        Case("a beam of several", (_language(size, -0.5, dice), START, END, beam, 0.6, limit)),
        Case("a language that is slow to end, and a short limit", (_language(size, -4.0, dice), START, END, 3, 1.0, 4)),
        Case("a beam of one", (_language(size, 0.0, dice), START, END, 1, 0.6, limit)),
        Case("a strong penalty", (_language(size, 0.5, dice), START, END, beam, 2.0, limit)),
        Case("a limit of one word", (_language(size, -1.0, dice), START, END, 2, 0.6, 1)),
    ]


def _visible(seed: int = 8) -> list[tuple]:
    dice = dice_of(seed)
    settings = [(-0.5, 3, 0.6, 8), (-4.0, 3, 1.0, 4), (0.0, 1, 0.6, 6)]  # ending, beam, α, limit
    return [(_language(6, ending, dice), START, END, beam, alpha, limit) for ending, beam, alpha, limit in settings]


TABLE = Task(
    Exercise(
        "search_table",
        reference=_search(),
        cases=_visible,
        normal=_all_found,
        mistakes=(
            Mistake("stops-at-the-first-end", "The search stops when the first sentence ends. It goes on until `beam` "
                    "of them have ended.", _search(enough=1)),
            Mistake("wrong-past", "A token is put behind another beginning than the one that it grew from: what are "
                    "the origins for? With a cache it is the same mistake.", _search(follow=False)),
            Mistake("reads-one-word", "The table is asked about the last token alone. It knows the last two.",
                    _search(words=1)),
            Mistake("limit-one-too-many", "A sentence may become one token longer than the limit.", _search(more=1)),
            Mistake("limit-one-too-few", "A sentence must end one token before the limit. Start and end do not count.",
                    _search(more=-1)),
            Mistake("cut-off-at-the-limit", "What reaches the limit is lost. It must end there, with the log-"
                    "probability of the end.", _search(forced=False)),
            Mistake("end-not-in-the-length", "The length of the penalty leaves the end token out.", _search(length=0)),
            Mistake("no-penalty", "The scores are log-probabilities: the length penalty is missing.",
                    _search(penalty=False)),
            Mistake("in-order-of-ending", "The sentences stand in the order in which they ended: the best comes first.",
                    _search(ranked=False)),
            Mistake("some-thrown-away", "More than `beam` sentences may have ended when the search stops: all of them "
                    "are asked for.", _search(cut=True)),
        ),
    ),
    points=15,
    minutes=30,
    hidden=lambda seed: telling(TABLE.exercise, _table_hidden, seed),
    given=STEP_GIVEN,
)  # fmt: skip
