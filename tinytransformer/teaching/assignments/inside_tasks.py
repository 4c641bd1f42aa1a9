"""Tasks of assignment 4 about the inside of the shipped model: links by every head, and their error.

Hidden cases are recorded by `recorded.py`, in sentences that the seed chooses; visible ones are made up.
"""

from inspect import getsource

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.recorded import Recorded, sentences
from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake
from tinytransformer.teaching.grading.tasks import Case, Task

# --- a source word for each target word, by every head


def aligned_words(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    sources, targets = max(source_words) + 1, max(target_words) + 1
    rows, columns = torch.zeros(targets, weights.size(2)), torch.zeros(weights.size(3), sources + 1)
    rows[target_words, range(len(target_words))] = 1.0  # the last row writes the end: of no word
    columns[range(len(source_words) + 1), [*source_words, sources]] = 1.0  # the last column is the end token
    best = (rows @ weights @ columns).argmax(-1)  # (L, H, words)
    return best.masked_fill(best == sources, -1)


def _aligned(weights, source_words, target_words, late=0, first=False, piece=False, mean=False, end=True, none=-1):
    """Wrong in one way: a row late, first pieces only, the best piece, mean weights, no end, or the end as a word."""
    found = torch.empty(*weights.shape[:2], max(target_words) + 1, dtype=torch.long)
    owners = [*source_words, -1] if end else source_words
    words = sorted(set(owners), key=lambda word: (word < 0, word))
    for word in range(found.size(2)):
        rows = [row + late for row, owner in enumerate(target_words) if owner == word][: 1 if first else None]
        total = weights[:, :, rows].sum(2)  # (L, H, S + 1)
        columns = [[i for i, owner in enumerate(owners) if owner == one] for one in words]
        mass = torch.stack([total[..., c].mean(-1) if mean else total[..., c].sum(-1) for c in columns], dim=-1)
        best = (
            torch.tensor(owners)[total[..., : len(owners)].argmax(-1)]
            if piece
            else torch.tensor(words)[mass.argmax(-1)]
        )
        found[:, :, word] = best.masked_fill(best < 0, none if none < 0 else max(source_words) + 1)
    return found


def _average_head(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    return aligned_words(weights.mean(1, keepdim=True).expand_as(weights), source_words, target_words)


def _made_up(source: list[int], target: list[int], seed: int) -> tuple:
    scores = 1.5 * torch.randn(2, 3, len(target) + 1, len(source) + 1, generator=dice_of(seed))
    return scores.softmax(-1), source, target


def _chosen(pool: list[Recorded], count: int, dice: torch.Generator) -> list[Recorded]:
    return [pool[i] for i in torch.randperm(len(pool), generator=dice)[:count].tolist()]


def _aligned_draw(pool: list[Recorded], seed: int) -> list[Case]:
    dice = dice_of(seed)
    whole, cut = ([one for one in pool if one.in_pieces == kind] for kind in (False, True))
    drawn = [*_chosen(whole, 1, dice), *_chosen(cut, 3, dice)]
    about = (
        "a sentence of whole words",
        "words in several pieces",
        "words in pieces, once more",
        "another such sentence",
    )
    return [Case(text, (one.cross, one.source_words, one.target_words)) for text, one in zip(about, drawn, strict=True)]


ALIGNED = Task(
    Exercise(
        "aligned_words",
        reference=aligned_words,
        cases=lambda: [
            _made_up([0, 1, 2], [0, 1, 2, 3], 1),
            _made_up([0, 0, 1, 2, 2, 2], [0, 1, 1, 2, 2], 2),
            _made_up([0, 1, 1, 1], [0, 0, 1], 3),
        ],
        mistakes=(
            Mistake("one-row-late", "You take the row that is named after a piece. While a piece is being written, the "
                    "newest token read is the one before it.", lambda *i: _aligned(*i, late=1)),
            Mistake("first-piece-only", "Only the first piece of a target word is looked at. All of its pieces count.",
                    lambda *i: _aligned(*i, first=True)),
            Mistake("best-piece", "The link goes to the word of the single best piece. A word has the weight of all "
                    "its pieces.", lambda *i: _aligned(*i, piece=True)),
            Mistake("mean-of-pieces", "A source word's weight is the mean of its pieces. It is their sum.",
                    lambda *i: _aligned(*i, mean=True)),
            Mistake("end-passed-over", "A word that looks mostly at the end token gets a source word all the same.",
                    lambda *i: _aligned(*i, end=False)),
            Mistake("end-as-a-word", "The end token is given a word number. Asked for is −1.",
                    lambda *i: _aligned(*i, none=0)),
            Mistake("average-head", "The heads were averaged: each head answers for itself.", _average_head),
        ),
    ),
    points=10,
    minutes=20,
    hidden=lambda seed: telling(ALIGNED.exercise, lambda draw: _aligned_draw(sentences(seed), draw), seed),
)  # fmt: skip


# --- the alignment error of every head

Aligned = tuple[Tensor, list[int], list[int], list[tuple[int, int]]]  # cross-attention, owners of pieces, gold links


def _errors(rate=lambda common, ours, theirs: 1 - 2 * common / (ours + theirs), nothing=False, turned=False):
    """The right errors, or some with another rate, with −1 as a link, or with pairs the wrong way round."""

    def head_errors(sentences: list[Aligned]) -> Tensor:
        counts = torch.zeros(3, *sentences[0][0].shape[:2])
        for weights, source_words, target_words, gold in sentences:
            table = aligned_words(weights, source_words, target_words)
            known = {(j, i) for i, j in gold} if turned else {(i, j) for i, j in gold}
            for place in torch.cartesian_prod(*(torch.arange(size) for size in table.shape[:2])).tolist():
                links = {(one, word) for word, one in enumerate(table[tuple(place)].tolist()) if one >= 0 or nothing}
                counts[:, *place] += torch.tensor([len(links & known), len(links), len(known)])
        return rate(*counts)

    return head_errors


def _sentence_mean(sentences: list[Aligned]) -> Tensor:
    return torch.stack([_errors()([one]) for one in sentences]).mean(0)


def _errors_draw(pool: list[Recorded], seed: int) -> list[Case]:
    dice = dice_of(seed)
    cut = [one for one in pool if one.in_pieces]

    def case(chosen: list[Recorded]) -> tuple:
        return ([(one.cross, one.source_words, one.target_words, one.gold) for one in chosen],)

    return [
        Case("several sentences of different lengths", case(_chosen(pool, number(4, 6, dice), dice))),
        Case("one sentence", case(_chosen(pool, 1, dice))),
        Case("words in several pieces", case(_chosen(cut, 3, dice))),
        Case("two sentences", case(_chosen(pool, 2, dice))),
    ]


ERRORS = Task(
    Exercise(
        "head_errors",
        reference=_errors(),
        cases=lambda: [
            ([(*_made_up([0, 1, 2], [0, 1, 2, 3], 1), [(0, 0), (1, 1), (2, 3)]),
              (*_made_up([0, 0, 1], [0, 1, 1], 5), [(0, 0), (1, 1), (0, 1)])],),
            ([(*_made_up([0, 1, 2, 3], [0, 1, 2], 4), [(0, 0), (1, 2), (2, 1), (3, 1), (3, 2)])],),
        ],
        mistakes=(
            Mistake("mean-of-sentences", "This is the mean of the sentences' errors. Add up counts first.",
                    _sentence_mean),
            Mistake("no-link-counted", "Words without a link (−1) are counted among the links that were found.",
                    _errors(nothing=True)),
            Mistake("turned", "Gold links are (source, target); yours are compared as (target, source).",
                    _errors(turned=True)),
            Mistake("precision-only", "Only the links that were found are counted below the line.",
                    _errors(lambda common, ours, theirs: 1 - common / ours)),
            Mistake("recall-only", "Only the gold links are counted below the line.",
                    _errors(lambda common, ours, theirs: 1 - common / theirs)),
            Mistake("union", "You divide by the size of the union. AER divides by the sum of the two sizes.",
                    _errors(lambda common, ours, theirs: 1 - common / (ours + theirs - common))),
            Mistake("score-not-error", "This is how much is right. The error is 1 minus that.",
                    _errors(lambda common, ours, theirs: 2 * common / (ours + theirs))),
        ),
    ),
    points=11,
    minutes=20,
    hidden=lambda seed: telling(ERRORS.exercise, lambda draw: _errors_draw(sentences(seed), draw), seed),
    given="import torch\nfrom torch import Tensor\n\n\n" + getsource(aligned_words),
)  # fmt: skip
