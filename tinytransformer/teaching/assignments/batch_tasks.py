"""Tasks of assignment 3 about what goes into a step: padded rows shifted by one, and batches that lose no pair; and the
batches of the microworld on which the last task trains."""

from collections.abc import Callable
from inspect import getsource

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake, untouched
from tinytransformer.teaching.grading.tasks import Case, Made, Task
from tinytransformer.text.batching import pad
from tinytransformer.text.corpus import microworld

# --- rows that are padded already


def shifted_rows(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    read = target[:, :-1]
    return read.masked_fill(read == end_id, pad_id), target[:, 1:]


def _without(row: Tensor, token: int, pad_id: int) -> Tensor:
    return row.masked_fill(row == token, pad_id)


def _rolled(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    return _without(target, end_id, pad_id), target.roll(-1, dims=1)


def _shift_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)

    def rows(lengths: list[int], start: int, end: int, pad_id: int) -> tuple:
        filled = torch.full((len(lengths), max(lengths) + 2), pad_id)
        for row, length in zip(filled, lengths, strict=True):
            words = torch.randint(20, 90, (length,), generator=dice)
            row[: length + 2] = torch.cat([torch.tensor([start]), words, torch.tensor([end])])
        return filled, end, pad_id

    long = number(5, 8, dice)
    return [
        Case("sentences of different lengths", rows([long, number(1, 4, dice), long - 1], 1, 2, 0)),
        Case("other special ids", rows([number(2, 4, dice), long], 7, 0, 9)),
        Case("sentences of one length", rows([long, long], 1, 2, 0)),
        Case("an empty sentence", rows([0, number(2, 5, dice)], 1, 2, 0)),
    ]


SHIFT = Task(
    Exercise(
        "shifted_rows",
        reference=shifted_rows,
        cases=lambda: [
            (torch.tensor([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]]), 2, 0),
            (torch.tensor([[7, 30, 0, 9], [7, 31, 32, 0]]), 0, 9),
        ],
        mistakes=(
            Mistake("end-is-read", "The decoder reads the end token of the shorter sentences. Only the longest row "
                    "loses its end when the last column is cut off.",
                    lambda target, end, pad_id: (target[:, :-1], target[:, 1:])),
            Mistake("exchanged", "Exchanged: what it reads begins with the start token, what it writes ends with the "
                    "end token.", lambda target, end, pad_id: (target[:, 1:], _without(target[:, :-1], end, pad_id))),
            Mistake("not-shifted", "It shall write what it has just read: the two are not shifted.",
                    lambda target, end, pad_id: (_without(target[:, :-1], end, pad_id),) * 2),
            Mistake("end-not-written", "The end token is missing from what it shall write: it would never learn to "
                    "stop.", lambda target, end, pad_id: tuple(
                        _without(part, end, pad_id) for part in (target[:, :-1], target[:, 1:]))),
            Mistake("start-comes-again", "The rows were rolled: the start token stands behind the last one, and there "
                    "is one column too many.", _rolled),
        ),
    ),
    points=8,
    minutes=10,
    hidden=_shift_hidden,
)  # fmt: skip
SHIFT_GIVEN = getsource(shifted_rows)


# --- batches that lose no pair

Lengths = list[tuple[int, int]]


def _both_sides(batch: Lengths) -> int:
    """Places of both rectangles, with one special token for each sentence."""
    return len(batch) * (max(source for source, _ in batch) + max(target for _, target in batch) + 2)


def _batches(places: Callable[[Lengths], int] = _both_sides, full=lambda used, budget: used > budget, ordered=True):
    """The right batches, or some with other places, another limit, or in the order in which the pairs came."""

    def token_batches(lengths: Lengths, budget: int) -> list[list[int]]:
        rows = sorted(range(len(lengths)), key=lambda row: lengths[row][::-1]) if ordered else range(len(lengths))
        batches: list[list[int]] = [[]]
        for row in rows:
            if batches[-1] and full(places([lengths[one] for one in [*batches[-1], row]]), budget):
                batches.append([])
            batches[-1].append(row)
        return batches

    return token_batches


def _too_long_lost(lengths: Lengths, budget: int) -> list[list[int]]:
    fits = [row for row, pair in enumerate(lengths) if _both_sides([pair]) <= budget]
    return [[fits[row] for row in batch] for batch in _batches()([lengths[row] for row in fits], budget)]


def _never_forgets(lengths: Lengths, budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: lengths[row][::-1])
    batches: list[list[int]] = [[]]
    for place, row in enumerate(order):
        seen = [lengths[one] for one in order[: place + 1]]
        if batches[-1] and (len(batches[-1]) + 1) * _both_sides(seen) // len(seen) > budget:
            batches.append([])
        batches[-1].append(row)
    return batches


def _checked_too_late(lengths: Lengths, budget: int) -> list[list[int]]:
    batches: list[list[int]] = [[]]
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row][::-1]):
        batches[-1].append(row)
        if _both_sides([lengths[one] for one in batches[-1]]) > budget:
            batches.append([])
    return [batch for batch in batches if batch]


def _as_tensors(arguments: tuple, answer):
    """Batches have different sizes: each becomes a tensor of its own, so that they are compared one by one."""
    return answer if untouched(answer) else tuple(torch.tensor([int(row) for row in batch]) for batch in answer)


def _batches_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)

    def drawn(count: int, longest: int) -> Lengths:
        return [(number(1, longest, dice), number(1, longest, dice)) for _ in range(count)]

    side, many = number(3, 6, dice), number(2, 4, dice)
    mixed = drawn(number(9, 13, dice), 9)
    mixed.insert(4, (70, number(1, 3, dice)))
    return [
        Case("sentences of all lengths", (drawn(number(10, 14, dice), 8), number(40, 60, dice))),
        Case("a pair that is longer than the budget", (mixed, number(40, 55, dice))),
        Case("sentences of one length, which fill the budget exactly", ([(side, side)] * 7, many * (2 * side + 2))),
        Case("sentences of one length, with one place too few", ([(side, side)] * 7, many * (2 * side + 2) - 1)),
        Case("long sources with short targets", ([(9 + t % 3, t // 2) for t in range(2, 12)], number(50, 70, dice))),
        Case(
            "short pairs behind a long source",
            ([(number(1, 2, dice), 3), (side + 20, 1), (number(1, 3, dice), 1), (1, 4)], side + 28),
        ),
        Case("one pair only", (drawn(1, 9), 30)),
    ]


BATCHES = Task(
    Exercise(
        "token_batches",
        reference=_batches(),
        cases=lambda: [
            ([(3, 4), (9, 8), (3, 3), (4, 4), (8, 9), (2, 3)], 36),
            ([(4, 2), (20, 1), (2, 2), (1, 1), (2, 3), (5, 1)], 20),
            ([(2, 2)] * 4, 12),
            ([(1, 1), (9, 1), (1, 2)], 20),
        ],
        normal=_as_tensors,
        mistakes=(
            Mistake("larger-side-only", "The two sides are counted apart. Here the places of both rectangles together "
                    "must fit.", _batches(lambda batch: len(batch) * (max(map(max, batch)) + 1))),
            Mistake("special-tokens-forgotten", "Each sentence has one more token than its length: an end, or a start.",
                    _batches(lambda batch: _both_sides(batch) - 2 * len(batch))),
            Mistake("padding-not-counted", "The tokens are added up. Padding takes places, too.",
                    _batches(lambda batch: sum(map(sum, batch)) + 2 * len(batch))),
            Mistake("never-full", "A batch may use the whole budget; yours stops before it.",
                    _batches(full=lambda used, budget: used >= budget)),
            Mistake("checked-too-late", "The pair that breaks the budget is still put in: look before you add it.",
                    _checked_too_late),
            Mistake("last-batch-lost", "The last batch is missing: what is left when the pairs are over is a batch, "
                    "too.", lambda lengths, budget: _batches()(lengths, budget)[:-1]),
            Mistake("too-long-lost", "A pair that is longer than the budget is missing. It stands alone.",
                    _too_long_lost),
            Mistake("longest-not-forgotten", "A new batch still counts the longest sentences of those before it.",
                    _never_forgets),
            Mistake("as-they-come", "The pairs are taken as they come. Similar lengths belong together, by target "
                    "first.", _batches(ordered=False)),
            Mistake("sorted-by-source-first", "The pairs are sorted by source first. The target counts first.",
                    lambda lengths, budget: _batches()([pair[::-1] for pair in lengths], budget)),
        ),
    ),
    points=14,
    minutes=25,
    hidden=lambda seed: telling(BATCHES.exercise, _batches_hidden, seed),
)  # fmt: skip


# --- batches of the microworld

Sentences = tuple[Tensor, Tensor]  # source (B, S) and target (B, L), padded; the target with start and end


def _sentences(split: str, count: int, seed: int) -> tuple[list[tuple[list[int], list[int]]], int]:
    """Pairs of the microworld as ids, one for each word, and how many ids there are."""
    corpus = microworld(split, count, seed=seed)
    texts = [(one.split(), two.split()) for one, two in zip(corpus.source, corpus.target, strict=True)]
    ids = {word: 4 + i for i, word in enumerate(sorted({word for pair in texts for side in pair for word in side}))}
    return [tuple([ids[word] for word in side] for side in pair) for pair in texts], 4 + len(ids)


def run_arguments(shape: list[list[int]], seed: int, warmup: int, peak: float, eps: float) -> tuple:
    """Arguments of a run: ``shape`` says how many pairs each batch of each group has; two batches are held out."""
    sizes = [size for group in shape for size in group]
    pairs, vocab_size = _sentences("train", sum(sizes) + 7, seed)
    taken = iter(pairs)

    def batch(size: int) -> Sentences:
        rows = [next(taken) for _ in range(size)]
        return pad([[*source, 2] for source, _ in rows]), pad([[1, *target, 2] for _, target in rows])

    groups = [[batch(size) for size in group] for group in shape]
    return Made("tiny_model", (vocab_size, seed)), groups, [batch(5), batch(2)], warmup, peak, eps
