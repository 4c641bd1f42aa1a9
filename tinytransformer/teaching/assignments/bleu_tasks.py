"""Tasks of assignment 4 about BLEU: its counts sentence by sentence, and how sure a difference of two systems is."""

import itertools
import math
from collections import Counter

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake
from tinytransformer.teaching.grading.tasks import Case, Task
from tinytransformer.text.corpus import microworld

Texts = list[list[str]]

# --- counts


def _grams(words: list[str], n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _clipped(ours: Counter, theirs: Counter) -> int:
    return (ours & theirs).total()


def _counts(match=_clipped, total=lambda ours, theirs: ours.total(), orders=(1, 2, 3, 4), order=lambda row: row):
    """The right table, or one with other matches, totals, lengths of n-grams, or order of columns."""

    def bleu_counts(hypotheses: Texts, references: Texts) -> Tensor:
        table = []
        for ours, theirs in zip(hypotheses, references, strict=True):
            pairs = [(_grams(ours, n), _grams(theirs, n)) for n in orders]
            row = [*(match(*pair) for pair in pairs), *(total(*pair) for pair in pairs), len(ours), len(theirs)]
            table.append(order(row))
        return torch.tensor(table)

    return bleu_counts


def _below_zero(hypotheses: Texts, references: Texts) -> Tensor:
    table = _counts()(hypotheses, references)
    table[:, 4:8] = table[:, 8:9] - torch.arange(4)
    return table


def _spoiled(words: list[str], dice: torch.Generator) -> list[str]:
    """A translation with mistakes: words left out, doubled or exchanged with their neighbours."""
    found: list[str] = []
    for word in words:
        chance = number(1, 10, dice)
        found += [] if chance == 1 else [word, word] if chance == 2 else [word]
        if chance == 3 and len(found) > 1:
            found[-2:] = found[:-3:-1]
    return found or words[:1]


def _german(count: int, seed: int) -> Texts:
    """Sentences of the microworld as words, the full stop a word of its own."""
    return [[*text[:-1].split(), text[-1]] for text in microworld("test", count, seed=seed).target]


def _counts_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    references = _german(6, seed)
    hypotheses = [_spoiled(words, dice) for words in references]
    again = [words * 2 for words in references[:2]]
    small = [[words[0].lower(), *words[1:]] for words in references[:2]]
    glued = [[words[0] + words[1][:1], words[1][1:]] for words in references[:2]]
    return [
        Case("sentences of the microworld with mistakes", (hypotheses, references)),
        Case("words that are repeated too often", (again, references[:2])),
        Case("sentences of one to three words", ([words[:n] for n, words in zip((1, 2, 3), references, strict=False)],
                                                  references[:3])),
        Case("words that are nearly the same", ([*small, *(words[:2] for words in references[:2])],
                                                 [*references[:2], *glued])),
        Case("references that are shorter than four words", (hypotheses[3:], [words[-2:] for words in references[3:]])),
    ]  # fmt: skip


COUNTS = Task(
    Exercise(
        "bleu_counts",
        reference=_counts(),
        cases=lambda: [
            (["the the the dog sleeps".split(), ["a", "cat"]], ["the dog sleeps on the mat".split(), ["a", "cat"]]),
            (["no no no no no bus".split()], ["no bus no bus today no no".split()]),
            ([["now", "here"], ["the", "end"]], [["no", "where"], ["The", "end"]]),
        ],
        mistakes=(
            Mistake("not-clipped", "Matches are not clipped: a word that is repeated counts each time.",
                    _counts(lambda a, b: sum(count for gram, count in a.items() if gram in b))),
            Mistake("each-counted-once", "Each different n-gram counts once. What stands twice in both counts twice.",
                    _counts(lambda a, b: len(a.keys() & b.keys()))),
            Mistake("totals-of-the-reference", "The totals are those of the reference. Precision asks how much of "
                    "*ours* is right.", _counts(total=lambda a, b: b.total())),
            Mistake("totals-of-different-ones", "The totals count each different n-gram once.",
                    _counts(total=lambda a, b: len(a))),
            Mistake("totals-below-zero", "A sentence that is shorter than n has no n-grams: 0, not less.", _below_zero),
            Mistake("lengths-exchanged", "The lengths are exchanged: ours first, then the reference's.",
                    _counts(order=lambda row: [*row[:8], row[9], row[8]])),
            Mistake("matches-and-totals-exchanged", "Totals stand where matches belong.",
                    _counts(order=lambda row: [*row[4:8], *row[:4], *row[8:]])),
            Mistake("matches-beside-totals", "Matches and totals alternate. First all four matches, then all totals.",
                    _counts(order=lambda row: [*itertools.chain(*zip(row[:4], row[4:8], strict=True)), *row[8:]])),
        ),
    ),
    points=10,
    minutes=18,
    hidden=lambda seed: telling(COUNTS.exercise, _counts_hidden, seed),
)  # fmt: skip


# --- how sure a difference is


def _bleu(sums: Tensor) -> float:
    matches, totals, ours, theirs = sums[:4].tolist(), sums[4:8].tolist(), float(sums[8]), float(sums[9])
    if min(matches) == 0:
        return 0.0
    mean = math.exp(sum(math.log(hit / total) for hit, total in zip(matches, totals, strict=True)) / 4)
    return 100 * min(1.0, math.exp(1 - theirs / ours)) * mean


def _without_brevity(sums: Tensor) -> float:
    return _bleu(torch.cat([sums[:9], sums[8:9]]))


def _arithmetic(sums: Tensor) -> float:
    precisions = sums[:4] / sums[4:8].clamp(min=1)
    return 100 * min(1.0, math.exp(1 - float(sums[9]) / float(sums[8]))) * float(precisions.mean())


def _compare(bleu=_bleu, rows=lambda draw: draw, wins=lambda a, b: a > b, percent=1.0):
    """The right comparison, or one with another BLEU, other rows of a draw, or another idea of winning."""

    def compare_systems(ours: Tensor, theirs: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, float]:
        one, two = (torch.tensor([bleu(t[rows(draw)].sum(0)) for draw in draws]) for t in (ours, theirs))
        return one / percent, two / percent, float(wins(one, two).float().mean())

    return compare_systems


def _sentence_means(ours: Tensor, theirs: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, float]:
    tables = (torch.tensor([_bleu(row) for row in table]) for table in (ours, theirs))
    one, two = (scores[draws].mean(-1) for scores in tables)
    return one, two, float((one > two).float().mean())


def _compare_case(count: int, draws: int, seed: int, dice: torch.Generator) -> tuple:
    """Two systems with mistakes of their own; on every third sentence they say the same."""
    references = _german(count, seed)
    ours, theirs = ([_spoiled(words, dice) for words in references] for _ in range(2))
    theirs = [a if i % 3 == 0 else b for i, (a, b) in enumerate(zip(ours, theirs, strict=True))]
    tables = [_counts()(texts, references) for texts in (ours, theirs)]
    drawn = torch.randint(count, (draws, count), generator=dice)
    drawn[0] = torch.arange(count) // 3 * 3  # only sentences on which they agree
    return *tables, drawn


def _without_match() -> tuple:
    """Ours has no four words in a row at all: no match, and nothing to divide by."""
    unlike, alike = torch.tensor([[2, 0, 0, 0, 3, 2, 1, 0, 3, 4]]), torch.tensor([[5, 4, 3, 2, 5, 4, 3, 2, 5, 7]])
    return unlike, alike, torch.zeros(2, 1, dtype=torch.long)


def _compare_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    return [
        Case("two systems on the microworld", _compare_case(number(10, 14, dice), 12, seed, dice)),
        Case("few sentences, many draws", _compare_case(4, 25, seed + 1, dice)),
        Case("a draw without a single match of four words", _without_match()),
        Case("two draws only", _compare_case(number(6, 9, dice), 2, seed + 2, dice)),
    ]


COMPARE = Task(
    Exercise(
        "compare_systems",
        reference=_compare(),
        cases=lambda: [_compare_case(7, 8, 2, dice_of(2)), _compare_case(5, 6, 3, dice_of(5)), _without_match()],
        mistakes=(
            Mistake("mean-of-sentences", "These are means of sentences' scores. BLEU adds up counts and lengths over "
                    "the sentences of a draw first.", _sentence_means),
            Mistake("no-brevity-penalty", "The brevity penalty is missing.", _compare(_without_brevity)),
            Mistake("arithmetic-mean", "The precisions are averaged by adding. BLEU takes their geometric mean.",
                    _compare(_arithmetic)),
            Mistake("drawn-twice-counted-once", "A sentence that was drawn twice counts twice.",
                    _compare(rows=torch.unique)),
            Mistake("draws-not-used", "All sentences are counted in every draw: the draws make no difference.",
                    _compare(rows=lambda draw: slice(None))),
            Mistake("ties-are-wins", "A draw in which both score the same is counted as a win.",
                    _compare(wins=lambda a, b: a >= b)),
            Mistake("losses-counted", "The share is that of the draws in which *they* are better.",
                    _compare(wins=lambda a, b: b > a)),
            Mistake("between-0-and-1", "Right, but BLEU is written between 0 and 100.", _compare(percent=100.0)),
        ),
    ),
    points=12,
    minutes=20,
    hidden=lambda seed: telling(COMPARE.exercise, _compare_hidden, seed),
)  # fmt: skip
