"""A task of assignment 4: choose the head that looks from a pronoun at what it means, and score it elsewhere."""

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.recorded import Recorded, sentences
from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake
from tinytransformer.teaching.grading.tasks import Case, Task

Sentence = tuple[Tensor, list[int], list[tuple[int, int]]]  # encoder (L, H, S + 1, S + 1), owners, pronouns
Answer = tuple[Tensor, int, int, float, float]


def _rows(sentence: Sentence, turned: bool = False, first: bool = False) -> tuple[Tensor, list[float]]:
    """For each piece of a pronoun the weight (L, H) on its antecedent, and what an even head would give."""
    weights, owners, pronouns = sentence
    found, chances = [weights.new_zeros(0, *weights.shape[:2])], []
    for position, antecedent in pronouns:
        columns = [i for i, owner in enumerate(owners) if owner == antecedent][: 1 if first else None]
        for row in (i for i, owner in enumerate(owners) if owner == position):
            part = weights[:, :, columns, row] if turned else weights[:, :, row, columns]
            found.append(part.sum(-1)[None])
            chances.append(len(columns) / weights.size(-1))
    return torch.cat(found), chances


def _pooled(sentences: list[Sentence], **ways: bool) -> tuple[Tensor, float]:
    parts = [_rows(sentence, **ways) for sentence in sentences]
    chances = [chance for _, some in parts for chance in some]
    return torch.cat([found for found, _ in parts]).mean(0), sum(chances) / len(chances)


def _by_sentence(sentences: list[Sentence]) -> tuple[Tensor, float]:
    parts = [(found.mean(0), sum(chances) / len(chances)) for found, chances in map(_rows, sentences) if chances]
    return torch.stack([table for table, _ in parts]).mean(0), sum(chance for _, chance in parts) / len(parts)


def _one_key(sentences: list[Sentence]) -> tuple[Tensor, float]:
    rows = [(1 / one[0].size(-1), len(_rows(one)[1])) for one in sentences]
    return _pooled(sentences)[0], sum(share * count for share, count in rows) / sum(count for _, count in rows)


def _choose(
    measure=_pooled, on=lambda valid, test: valid, score=lambda valid, test: test, by=lambda table: table.size(1)
):
    """The right choice, or one that measures, chooses, scores or finds layer and head in another way."""

    def antecedent_head(valid: list[Sentence], test: list[Sentence]) -> Answer:
        place = int(measure(on(valid, test))[0].argmax())
        table, chance = measure(score(valid, test))
        return table, *divmod(place, by(table)), float(table.flatten()[place]), chance

    return antecedent_head


def _draw(pool: list[Recorded], seed: int) -> list[Case]:
    dice = dice_of(seed)
    order = [pool[i] for i in torch.randperm(len(pool), generator=dice).tolist()]
    silent = [one for one in order if not one.pronouns]
    several = [one for one in order if len(one.pronouns) > 1]
    cut = [one for one in order if one.pronouns and one.in_pieces]
    any_ = [one for one in order if one.pronouns]

    def case(valid: list[Recorded], test: list[Recorded]) -> tuple:
        return tuple([(one.encoder, one.source_words, one.pronouns) for one in part] for part in (valid, test))

    size = number(3, 5, dice)
    return [
        Case("sentences with one pronoun or two", case(any_[:size], [*several[:1], *any_[size : size + 3]])),
        Case("words in several pieces", case(cut[:3], cut[3:6])),
        Case(
            "sentences without a pronoun among them",
            case([silent[0], *any_[-4:-1]], [*any_[:2], silent[1], *several[-1:]]),
        ),
        Case("one sentence to choose on, one to score on", case(any_[-1:], cut[-1:])),
    ]


def _made_up(owners: list[int], pronouns: list[tuple[int, int]], seed: int) -> Sentence:
    size = len(owners) + 1
    return (1.5 * torch.randn(2, 3, size, size, generator=dice_of(seed))).softmax(-1), owners, pronouns


def _visible() -> list[tuple]:
    first = [_made_up([0, 0, 1, 2, 3, 3], [(2, 0)], 5), _made_up([0, 1, 1, 2, 3], [(2, 1), (3, 0)], 6)]
    silent, two = _made_up([0, 1, 2, 3, 4], [], 8), _made_up([0, 0, 1, 2, 2, 3], [(2, 0), (3, 1)], 9)
    second = [_made_up([0, 1, 1, 2], [(2, 1)], 7), silent, two]
    return [(first, second), (second, first)]


ANTECEDENT = Task(
    Exercise(
        "antecedent_head",
        reference=_choose(),
        cases=_visible,
        mistakes=(
            Mistake("chosen-on-test", "The head is chosen on the test sentences. Of many heads one always looks good "
                    "there by chance.", _choose(on=lambda valid, test: test)),
            Mistake("scored-on-valid", "The scores are those on the validation sentences, which made the head win.",
                    _choose(score=lambda valid, test: valid)),
            Mistake("chosen-on-both", "The head is chosen on all sentences, the test sentences among them.",
                    _choose(on=lambda valid, test: [*valid, *test])),
            Mistake("mean-of-sentences", "Each sentence is averaged by itself, then the sentences. Asked for is the "
                    "mean over all rows.", _choose(_by_sentence)),
            Mistake("first-piece-only", "Only the first piece of the antecedent counts. A word has the weight of all "
                    "its pieces.", _choose(lambda part: _pooled(part, first=True))),
            Mistake("transposed", "This is the weight from the antecedent to the pronoun. Rows look, columns are "
                    "looked at.", _choose(lambda part: _pooled(part, turned=True))),
            Mistake("one-key-by-chance", "A head that looks everywhere alike gives an antecedent of two pieces "
                    "twice the weight: count its pieces.", _choose(_one_key)),
            Mistake("divided-by-layers", "The number of the head was divided by the number of layers. Each layer has "
                    "`heads` of them.", _choose(by=lambda table: table.size(0))),
        ),
    ),
    points=12,
    minutes=25,
    hidden=lambda seed: telling(ANTECEDENT.exercise, lambda draw: _draw(sentences(seed), draw), seed),
)  # fmt: skip
