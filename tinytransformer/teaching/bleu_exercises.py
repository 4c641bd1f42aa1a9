"""Exercises of lesson 08 about scores and weights: BLEU with several references, and the mean of checkpoints."""

import math
from collections import Counter

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random, untouched

# --- BLEU

TEXTS = (
    ("the small dog sleeps on the old sofa", "the little dog sleeps on the old sofa|a dog is sleeping on the sofa"),
    ("the the the dog sees the cat in the garden", "the dog sees the cat in the garden today|in the garden the dog "
     "sees the cat of the old man"),
    ("two men carry a ladder", "two men carry a long ladder across the street|two men carry a ladder now"),
    ("a girl with a red hat waits for the bus and reads", "a girl with a red hat waits for the bus"),
    ("no no no no no no bus today", "no bus today|no no bus here"),
    ("two men wait for a bus", "two old men wait for a bus|men wait for a bus"),
)  # fmt: skip


def _bleu_cases() -> list[tuple]:
    pairs = [(text.split(), [one.split() for one in references.split("|")]) for text, references in TEXTS]

    def case(*rows: int) -> tuple:
        return [pairs[row][0] for row in rows], [pairs[row][1] for row in rows]

    unlike = [["a", "bus", "reads"]], [[["the", "men", "sleep", "here"]]]
    return [case(0, 1, 2, 3), case(2, 0), case(3, 0), case(2, 2, 1), case(0, 1, 4), case(5), unlike]


def _grams(words: list[str], n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _closest(length: int, references: list[list[str]]) -> int:
    return min(map(len, references), key=lambda other: (abs(other - length), other))


def _most(counts: list[Counter]) -> Counter:
    most: Counter = Counter()
    for one in counts:
        most |= one
    return most


def _brevity(ours: int, theirs: int) -> float:
    return 1.0 if ours >= theirs else math.exp(1 - theirs / max(ours, 1))


def _geometric(precisions: list[float]) -> float:
    return math.exp(sum(map(math.log, precisions)) / len(precisions)) if min(precisions) > 0 else 0.0


def _bleu(
    hypotheses, references, brevity=_brevity, clip=_most, length=_closest, mean=_geometric, orders=4, percent=100.0
):
    right, total = [0] * orders, [0] * orders
    ours = theirs = 0
    for words, others in zip(hypotheses, references, strict=True):
        ours, theirs = ours + len(words), theirs + length(len(words), others)
        for n in range(orders):
            found, allowed = _grams(words, n + 1), clip([_grams(other, n + 1) for other in others])
            right[n] += sum(min(count, allowed[gram]) for gram, count in found.items())
            total[n] += sum(found.values())
    precisions = [hits / max(all_, 1) for hits, all_ in zip(right, total, strict=True)]
    return percent * brevity(ours, theirs) * mean(precisions)


def _unclipped(counts: list[Counter]) -> Counter:
    return Counter({gram: 10**6 for one in counts for gram in one})


def _sentence_mean(hypotheses, references) -> float:
    pairs = list(zip(hypotheses, references, strict=True))
    return sum(_bleu([words], [others]) for words, others in pairs) / len(pairs)


def _all_words(length: int, references: list[list[str]]) -> int:
    return sum(map(len, references))


BLEU = Exercise(
    "bleu_of",
    reference=_bleu,
    cases=_bleu_cases,
    mistakes=(
        Mistake("no-brevity-penalty", "Right, but for the brevity penalty, which is missing: leaving words out costs "
                "nothing.", lambda *i: _bleu(*i, brevity=lambda ours, theirs: 1.0)),
        Mistake("brevity-upside-down", "The brevity penalty is upside down: what is too long is punished.",
                lambda *i: _bleu(*i, brevity=lambda ours, theirs: _brevity(theirs, ours))),
        Mistake("brevity-without-exponential", "The brevity penalty is the plain ratio of the lengths. The paper of "
                "BLEU takes exp(1 − r/c).", lambda *i: _bleu(*i, brevity=lambda c, r: min(1.0, c / r))),
        Mistake("longer-rewarded", "The brevity penalty goes above 1: long translations are rewarded. It is 1 for "
                "them.", lambda *i: _bleu(*i, brevity=lambda c, r: math.exp(1 - r / c))),
        Mistake("not-clipped", "N-grams are not clipped: a word that is repeated counts each time.",
                lambda *i: _bleu(*i, clip=_unclipped)),
        Mistake("clipped-by-the-sum", "The counts of the references are added up. An n-gram counts at most as often "
                "as in the one reference that has most of it.", lambda *i: _bleu(*i, clip=lambda c: sum(c, Counter()))),
        Mistake("first-reference-only", "Only the first reference is used.",
                lambda h, r: _bleu(h, [others[:1] for others in r])),
        Mistake("mean-of-sentences", "This is the mean of the sentences' scores. BLEU adds up counts and lengths over "
                "all sentences first.", _sentence_mean),
        Mistake("arithmetic-mean", "The precisions are averaged by adding. BLEU takes their geometric mean.",
                lambda *i: _bleu(*i, mean=lambda p: sum(p) / len(p))),
        Mistake("product", "The precisions are multiplied, but the fourth root is missing.",
                lambda *i: _bleu(*i, mean=math.prod)),
        Mistake("words-only", "Only single words are compared: any order of the words scores the same.",
                lambda *i: _bleu(*i, orders=1)),
        Mistake("shortest-reference", "The length is compared with the shortest reference. It should be the closest.",
                lambda *i: _bleu(*i, length=lambda n, others: min(map(len, others)))),
        Mistake("longest-reference", "The length is compared with the longest reference. It should be the closest.",
                lambda *i: _bleu(*i, length=lambda n, others: max(map(len, others)))),
        Mistake("first-of-equally-close", "Of two references that are equally close in length you take the first. The "
                "rule is: the shorter.",
                lambda *i: _bleu(*i, length=lambda n, others: min(map(len, others), key=lambda m: abs(m - n)))),
        Mistake("references-added-up", "The lengths of all references of a sentence are added up. One counts, the "
                "closest.", lambda *i: _bleu(*i, length=_all_words)),
        Mistake("between-0-and-1", "Right, but BLEU is written between 0 and 100.",
                lambda *i: _bleu(*i, percent=1.0)),
    ),
)  # fmt: skip


# --- the mean of checkpoints


def _average_cases() -> list[tuple]:
    def checkpoint(seed: int, kind: torch.dtype) -> dict[str, Tensor]:
        large = 25_000 + 100 * random(2, seed=seed + 1)  # three of them together are beyond half precision
        return {"weight": random(3, 2, seed=seed).to(kind), "bias": large.to(kind)}

    def case(seeds: range, kind: torch.dtype = torch.float) -> tuple:
        return ([checkpoint(10 * seed, kind) for seed in seeds],)

    return [case(range(1, 4)), case(range(4, 9)), case(range(2, 6), torch.half), case(range(1, 2))]


def _by_name(arguments: tuple, answer: dict[str, Tensor]):
    return answer if untouched(answer) else tuple(answer[name] for name in arguments[0][0])


def _combined(combine):
    def average(checkpoints: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {name: combine([one[name] for one in checkpoints]) for name in checkpoints[0]}

    return average


def _pairwise(tensors: list[Tensor]) -> Tensor:
    so_far = tensors[0].float()
    for tensor in tensors[1:]:
        so_far = (so_far + tensor) / 2
    return so_far


AVERAGE = Exercise(
    "average",
    reference=_combined(lambda tensors: torch.stack([one.float() for one in tensors]).mean(0)),
    cases=_average_cases,
    normal=_by_name,
    mistakes=(
        Mistake("sum", "The weights are added up, but not divided by their number.",
                _combined(lambda tensors: sum(one.float() for one in tensors))),
        Mistake("pairwise", "Each new checkpoint counts one half, so the last one counts most. All count the same.",
                _combined(_pairwise)),
        Mistake("last-only", "This is the last checkpoint.", _combined(lambda tensors: tensors[-1])),
        Mistake("first-only", "This is the first checkpoint.", _combined(lambda tensors: tensors[0])),
        Mistake("half-precision-sum", "Checkpoints in half precision are added up in half precision, which ends at "
                "65504. Make them float32 first.", _combined(lambda tensors: sum(tensors) / len(tensors))),
        Mistake("half-precision-mean", "Checkpoints in half precision are averaged in half precision, which rounds to "
                "three digits. Make them float32 first.",
                _combined(lambda tensors: torch.stack(tensors).mean(0).float())),
        Mistake("one-number", "Each tensor becomes a single number. Average over checkpoints, place by place.",
                _combined(lambda tensors: torch.stack([one.float() for one in tensors]).mean())),
    ),
)  # fmt: skip
