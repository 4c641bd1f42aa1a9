"""Exercises of lesson 07 about what goes into a step: shifted targets, batches by tokens, the learning rate."""

from collections.abc import Callable

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake

# --- teacher forcing


def _rows(rows: list[list[int]], pad_id: int, front: bool = False) -> Tensor:
    fillers = [[pad_id] * (max(map(len, rows)) - len(row)) for row in rows]
    return torch.tensor([[*fill, *row] if front else [*row, *fill] for row, fill in zip(rows, fillers, strict=True)])


def _pairs(
    read=lambda row, start, end: [start, *row], write=lambda row, start, end: [*row, end], pad=None, front=False
):
    """The right answer, or one that reads, writes or pads something else."""

    def teacher_pairs(sentences: list[list[int]], start: int, end: int, pad_id: int) -> tuple[Tensor, Tensor]:
        filler = pad_id if pad is None else pad
        sides = ([make(row, start, end) for row in sentences] for make in (read, write))
        return tuple(_rows(rows, filler, front) for rows in sides)

    return teacher_pairs


def _whole(row: list[int], start: int, end: int) -> list[int]:
    return [start, *row, end]


TEACHER = Exercise(
    "teacher_pairs",
    reference=_pairs(),
    cases=lambda: [([[5, 6, 7], [8]], 1, 2, 0), ([[4, 0], [9, 9, 6, 5], [7, 3, 8]], 10, 11, 12)],
    mistakes=(
        Mistake("not-shifted", "Both sides are the same: each position reads the very token that it shall predict.",
                _pairs(_whole, _whole)),
        Mistake("not-shifted-without-specials", "Both sides are the same, and start and end are missing: each position "
                "reads the very token that it shall predict.",
                _pairs(lambda row, start, end: row, lambda row, start, end: row)),
        Mistake("same-length-not-shifted", "What is read is what is to be predicted. It must stand one place behind.",
                _pairs(lambda row, start, end: [*row, end])),
        Mistake("exchanged", "The two are exchanged: first what the decoder reads, then what it predicts.",
                _pairs(lambda row, start, end: [*row, end], lambda row, start, end: [start, *row])),
        Mistake("no-end", "Nothing tells the model to stop: the end is never to be predicted.",
                _pairs(lambda row, start, end: [start, *row[:-1]], lambda row, start, end: row)),
        Mistake("no-start", "The first token is never predicted: what is read must begin with the start.",
                _pairs(lambda row, start, end: row, lambda row, start, end: [*row[1:], end])),
        Mistake("reads-the-end", "The decoder reads the end, too, and has nothing to predict there.",
                _pairs(_whole, lambda row, start, end: [*row, end])),
        Mistake("predicts-the-start", "The start is to be predicted. It is given: the first prediction is the first "
                "word.", _pairs(lambda row, start, end: [start, *row], _whole)),
        Mistake("padding-is-always-zero", "Right when the padding's id is 0. The id is an argument: use it.",
                _pairs(pad=0)),
        Mistake("padding-in-front", "The padding stands in front. Here it stands behind.", _pairs(front=True)),
        Mistake("cut-behind-the-padding", "The last column was cut off after padding: short sentences still read their "
                "end. Make both sides from the bare sentence.",
                lambda rows, start, end, pad: (
                    (whole := _rows([_whole(row, start, end) for row in rows], pad))[:, :-1], whole[:, 1:])),
    ),
)  # fmt: skip


# --- batches by tokens


def _cut(too_many: Callable[[int, int, int], bool], size=max, keep_last: bool = True):
    """Rows in order, a new batch whenever ``too_many(count, size so far with the new row, budget)`` says so."""

    def cut_batches(lengths: list[int], budget: int) -> list[list[int]]:
        batches, batch = [], []
        for row in range(len(lengths)):
            places = size(lengths[other] for other in [*batch, row])
            if batch and too_many(len(batch) + 1, places, budget):
                batches.append(batch)
                batch = []
            batch.append(row)
        return [*batches, batch] if keep_last else batches

    return cut_batches


def _as_tensors(arguments: tuple, answer: object) -> object:
    """Batches have different lengths: each becomes a tensor of its own, so that they are compared one by one."""
    if not isinstance(answer, tuple | list) or not all(isinstance(batch, tuple | list) for batch in answer):
        return answer
    return tuple(torch.tensor(list(batch)) for batch in answer)


def _checked_too_late(lengths: list[int], budget: int) -> list[list[int]]:
    batches, batch = [], []
    for row, length in enumerate(lengths):
        batch.append(row)
        if length * len(batch) > budget:
            batches.append(batch)
            batch = []
    return [*batches, batch] if batch else batches


def _never_forgets(lengths: list[int], budget: int) -> list[list[int]]:
    batches, batch = [], []
    for row in range(len(lengths)):
        if batch and (len(batch) + 1) * max(lengths[: row + 1]) > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


CUT = Exercise(
    "cut_batches",
    reference=_cut(lambda count, longest, budget: count * longest > budget),
    cases=lambda: [
        ([2, 2, 3, 4, 4, 5, 9], 12),
        ([3, 3, 3, 3, 7], 9),
        ([1, 2, 6], 6),
        ([5, 2, 5, 1, 1], 10),
        ([6, 1, 1, 1, 1, 1], 6),
    ],
    normal=_as_tensors,
    mistakes=(
        Mistake("padding-not-counted", "The tokens are added up. Padding takes a place, too: the longest sentence "
                "counts for each.", _cut(lambda count, total, budget: total > budget, size=sum)),
        Mistake("last-batch-lost", "The last batch is missing: what is left when the rows are over is a batch, too.",
                _cut(lambda count, longest, budget: count * longest > budget, keep_last=False)),
        Mistake("never-full", "A batch may use the whole budget; yours stops one short of it.",
                _cut(lambda count, longest, budget: count * longest >= budget)),
        Mistake("checked-too-late", "The row that breaks the budget is still put in: look before you add it.",
                _checked_too_late),
        Mistake("longest-not-forgotten", "A new batch still counts the longest sentence of those before it.",
                _never_forgets),
        Mistake("number-of-sentences", "The budget counts tokens, not sentences.",
                _cut(lambda count, longest, budget: count > budget)),
        Mistake("shortest-counts", "The places of a batch follow from its longest sentence, not from its shortest.",
                _cut(lambda count, shortest, budget: count * shortest > budget, size=min)),
        Mistake("newest-counts", "Each sentence is padded to the longest of the batch, which need not be the newest.",
                _cut(lambda count, newest, budget: count * newest > budget, size=lambda lengths: list(lengths)[-1])),
    ),
)  # fmt: skip


# --- the learning rate


def _rates(
    first=1, size=lambda d: d**-0.5, rise=lambda step, warm: step * warm**-1.5, fall=lambda step: step**-0.5, choose=min
):
    """The right rates, or some with another first step, size, rise, fall, or choice between the two."""

    def learning_rates(steps: int, d_model: int, warmup: int) -> list[float]:
        places = range(first, first + steps)
        return [size(d_model) * choose(rise(step, warmup), fall(step)) if step else 0.0 for step in places]

    return learning_rates


def _flat(steps: int, d_model: int, warmup: int) -> list[float]:
    return [d_model**-0.5 * min(step * warmup**-1.5, warmup**-0.5) for step in range(1, steps + 1)]


RATES = Exercise(
    "learning_rates",
    reference=_rates(),
    cases=lambda: [(12, 64, 4), (30, 512, 10), (5, 128, 8)],
    mistakes=(
        Mistake("counted-from-zero", "Steps are counted from 0: the first step is made with a rate of 0 and changes "
                "nothing. The paper counts from 1.", _rates(first=0)),
        Mistake("one-step-ahead", "Each rate comes one step early: the first is that of step 2.", _rates(first=2)),
        Mistake("maximum", "The larger of the two is taken: the rate begins huge, and grows again at the end.",
                _rates(choose=max)),
        Mistake("divided-by-d-model", "It is divided by d_model, not by its root.", _rates(size=lambda d: 1 / d)),
        Mistake("times-root-of-d-model", "It is multiplied by the root of d_model: a larger model takes smaller steps.",
                _rates(size=lambda d: d**0.5)),
        Mistake("without-d-model", "d_model is not used.", _rates(size=lambda d: 1.0)),
        Mistake("warm-up-too-steep", "The two branches do not meet at the end of the warm-up: look at the exponent of "
                "`warmup`.", _rates(rise=lambda step, warm: step * warm**-0.5)),
        Mistake("rises-by-share", "The rising branch is step / warmup of 1, not of the highest rate: the two branches "
                "do not meet at the end of the warm-up.", _rates(rise=lambda step, warm: step / warm)),
        Mistake("no-fall", "The rate stays where it is after the warm-up. It falls with the root of the step.", _flat),
        Mistake("no-warm-up", "The rising branch is missing: the first step has the highest rate of all.",
                _rates(rise=lambda step, warm: float("inf"))),
        Mistake("falls-too-fast", "It falls like 1 / step. The paper's falls like 1 / √step.",
                _rates(fall=lambda step: 1 / step)),
    ),
)  # fmt: skip
