"""Exercises of lesson 10 about byte-pair encoding: count pairs, merge one, learn a vocabulary."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from tinytransformer.teaching.exercises import Exercise, Mistake

Parts = Sequence[str]
Pair = tuple[str, str]

# --- count the pairs of neighbours


def _count(words: Sequence[tuple[Parts, int]], times: Callable[[int], int] = lambda count: count) -> dict[Pair, int]:
    pairs = Counter()
    for parts, count in words:
        for pair in pairwise(parts):
            pairs[pair] += times(count)
    return dict(pairs)


def _once_a_word(words: Sequence[tuple[Parts, int]]) -> dict[Pair, int]:
    pairs = Counter()
    for parts, count in words:
        for pair in set(pairwise(parts)):
            pairs[pair] += count
    return dict(pairs)


def _any_distance(words: Sequence[tuple[Parts, int]]) -> dict[Pair, int]:
    pairs = Counter()
    for parts, count in words:
        for i, one in enumerate(parts):
            for other in parts[i + 1 :]:
                pairs[one, other] += count
    return dict(pairs)


def _single_parts(words: Sequence[tuple[Parts, int]]) -> dict[str, int]:
    parts = Counter()
    for word, count in words:
        for part in word:
            parts[part] += count
    return dict(parts)


def _without_order(words: Sequence[tuple[Parts, int]]) -> dict[Pair, int]:
    pairs = Counter()
    for pair, count in _count(words).items():
        pairs[tuple(sorted(pair))] += count
    return dict(pairs)


def _word_cases() -> list[tuple]:
    return [
        ([(["▁", "n", "u", "n"], 3), (["▁", "n", "u", "r"], 2)],),
        ([(["▁", "a", "n", "a", "n", "a", "s"], 2), (["▁", "an"], 5)],),
        ([(["▁", "o"], 1), (["o", "▁"], 1)],),
    ]


COUNT_PAIRS = Exercise(
    "count_pairs",
    reference=_count,
    cases=_word_cases,
    mistakes=(
        Mistake("each-word-once", "A word that occurs three times brings each of its pairs three times: the counts of "
                "the words are not used.", lambda words: _count(words, times=lambda count: 1)),
        Mistake("once-per-word", "A pair that stands twice in a word counts twice; here it counts once.", _once_a_word),
        Mistake("across-words", "The last part of one word and the first of the next were counted as a pair. Words are "
                "kept apart.",
                lambda words: _count([([part for parts, count in words for _ in range(count) for part in parts], 1)])),
        Mistake("any-distance", "Parts that stand further apart were counted too. A pair is two neighbours.",
                _any_distance),
        Mistake("without-order", "The two parts of a pair were sorted. (o, ▁) is another pair than (▁, o).",
                _without_order),
        Mistake("single-parts", "These are counts of single parts. Wanted are pairs of neighbours.", _single_parts),
    ),
)  # fmt: skip


# --- merge one pair


def _merge(parts: Parts, pair: Pair, only_first: bool = False, skip: int = 2) -> list[str]:
    merged, i = [], 0
    while i < len(parts):
        found = tuple(parts[i : i + 2]) == tuple(pair)
        merged.append(parts[i] + parts[i + 1] if found else parts[i])
        i += skip if found else 1
        if found and only_first:
            return [*merged, *parts[i:]]
    return merged


def _last_lost(parts: Parts, pair: Pair) -> list[str]:
    merged, i = [], 0
    while i < len(parts) - 1:
        found = tuple(parts[i : i + 2]) == tuple(pair)
        merged.append("".join(pair) if found else parts[i])
        i += 2 if found else 1
    return merged


def _by_text(parts: Parts, pair: Pair) -> list[str]:
    """As if the borders between parts did not matter: neighbours whose texts together read like the pair."""
    merged, i = [], 0
    while i < len(parts):
        found = "".join(parts[i : i + 2]) == "".join(pair)
        merged.append("".join(parts[i : i + 2]) if found else parts[i])
        i += 2 if found else 1
    return merged


MERGE_PAIR = Exercise(
    "merge_pair",
    reference=_merge,
    cases=lambda: [
        (["▁", "b", "a", "n", "a", "n", "a"], ("a", "n")),
        (["o", "o", "o"], ("o", "o")),
        (["▁", "s", "e", "e"], ("s", "h")),
        (["a", "bc", "ab", "c", "x"], ("ab", "c")),
        (["ot", "t", "o"], ("t", "t")),
    ],
    mistakes=(
        Mistake("only-the-first", "Only the first occurrence was merged.",
                lambda parts, pair: _merge(parts, pair, only_first=True)),
        Mistake("overlap", "In o o o with the pair (o, o) the middle o was used twice: after a merge, go on behind it.",
                lambda parts, pair: _merge(parts, pair, skip=1)),
        Mistake("last-part-lost", "The last part is lost when it is not merged.", _last_lost),
        Mistake("texts-not-parts", "a + bc reads like ab + c, but it is another pair: compare the parts themselves, "
                "not their text.", _by_text),
        Mistake("text-replaced", "The parts were joined into one text and replaced there, so the end of a longer part "
                "was taken for a part.",
                lambda parts, pair: " ".join(parts).replace(" ".join(pair), "".join(pair)).split(" ")),
        Mistake("the-other-order", "The pair was looked for in the other order.",
                lambda parts, pair: _merge(parts, pair[::-1])),
    ),
)  # fmt: skip


# --- learn the merges


def _best(pairs: Mapping[Pair, int]) -> Pair:
    return min(pairs, key=lambda pair: (-pairs[pair], len("".join(pair)), "".join(pair)))


def _learn(
    words: Mapping[str, int],
    merges: int,
    best: Callable[[Mapping[Pair, int]], Pair] = _best,
    times: Callable[[int], int] = lambda count: count,
    mark: str = "▁",
) -> list[str]:
    split = [(list(mark + word), times(count)) for word, count in words.items()]
    learned = []
    for _ in range(merges):
        pairs = _count(split)
        if not pairs:
            break
        pair = best(pairs)
        learned.append("".join(pair))
        split = [(_merge(parts, pair), count) for parts, count in split]
    return learned


def _never_counted_again(words: Mapping[str, int], merges: int) -> list[str]:
    pairs = _count([(list("▁" + word), count) for word, count in words.items()])
    order = sorted(pairs, key=lambda pair: (-pairs[pair], len("".join(pair)), "".join(pair)))
    return ["".join(pair) for pair in order[:merges]]


LEARN_BPE = Exercise(
    "learn_bpe",
    reference=_learn,
    cases=lambda: [
        ({"hund": 5, "hunde": 3, "kunde": 2}, 4),
        ({"nun": 2, "nur": 2, "uhr": 3}, 5),
        ({"so": 4, "rot": 1}, 50),
        ({"ab": 2, "cd": 2, "ef": 2}, 3),
    ],
    mistakes=(
        Mistake("never-counted-again", "The pairs are counted once, at the start. Each merge makes new parts, so they "
                "must be counted again after each.", _never_counted_again),
        Mistake("first-of-equals", "Of pairs that are equally frequent you take the first that was met. The rule says: "
                "the shorter piece, then the one that comes first in the alphabet.",
                lambda words, merges: _learn(words, merges, best=lambda pairs: max(pairs, key=pairs.get))),
        Mistake("last-of-the-alphabet", "Of equally frequent pairs you take the last of the alphabet: the rule says "
                "the shorter piece, then the first.",
                lambda words, merges: _learn(
                    words, merges, best=lambda pairs: max(pairs, key=lambda pair: (pairs[pair], "".join(pair))))),
        Mistake("length-forgotten", "Of equally frequent pairs the shorter piece goes first; only then the alphabet.",
                lambda words, merges: _learn(
                    words, merges, best=lambda pairs: min(pairs, key=lambda pair: (-pairs[pair], "".join(pair))))),
        Mistake("each-word-once", "Every word counts as one, however often it occurs.",
                lambda words, merges: _learn(words, merges, times=lambda count: 1)),
        Mistake("no-mark", "The mark ▁ that begins a word is missing.",
                lambda words, merges: _learn(words, merges, mark="")),
        Mistake("one-too-many", "One merge too many.", lambda words, merges: _learn(words, merges + 1)),
        Mistake("rarest-first", "The rarest pair is merged first. Wanted is the most frequent.",
                lambda words, merges: _learn(words, merges, best=lambda pairs: min(
                    pairs, key=lambda pair: (pairs[pair], len("".join(pair)), "".join(pair))))),
    ),
)  # fmt: skip
