"""Exercises of lesson 10 about text and scores: unknown words, a clean corpus, is the difference chance?"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake

# --- words that training has not shown


def _unknown(train: Sequence[str], test: Sequence[str]) -> float:
    known = {word for text in train for word in text.split()}
    words = [word for text in test for word in text.split()]
    return sum(word not in known for word in words) / len(words)


def _unknown_kinds(train: Sequence[str], test: Sequence[str]) -> float:
    known, words = ({word for text in texts for word in text.split()} for texts in (train, test))
    return len(words - known) / len(words)


UNKNOWN_SHARE = Exercise(
    "unknown_share",
    reference=_unknown,
    cases=lambda: [
        (["a dog runs", "two dogs run fast"], ["a cat runs", "a cat sleeps", "a dog"]),
        (["The sun"], ["the sun the sun", "The moon"]),
        (["train", "snow"], ["rain train rain", "snow bow"]),
    ],
    mistakes=(
        Mistake("kinds", "Each word was counted once, however often the test text uses it. Wanted is the share of all "
                "words as they run.", _unknown_kinds),
        Mistake("known", "This is the share of words that are known.",
                lambda train, test: 1 - _unknown(train, test)),
        Mistake("other-way-round", "These are words of the training text that the test text does not have.",
                lambda train, test: _unknown(test, train)),
        Mistake("case-ignored", "The and the are two words: a model that reads case has learned only one of them.",
                lambda train, test: _unknown([t.lower() for t in train], [t.lower() for t in test])),
        Mistake("part-of-a-text", "A word counts as known because its letters occur inside another word (rain in "
                "train): look it up among whole words.",
                lambda train, test: _share_inside(" ".join(train), " ".join(test).split())),
        Mistake("letters", "These are letters, not words: split the texts first.",
                lambda train, test: _share_inside("".join(train), list("".join(test)))),
    ),
)  # fmt: skip


def _share_inside(text: str, parts: Sequence[str]) -> float:
    return sum(part not in text for part in parts) / len(parts)


# --- a clean parallel corpus

Pairs = Sequence[tuple[str, str]]


def _kept(pair: tuple[str, str], longest: int, ratio: float, one_way: bool = False, strict: bool = False) -> bool:
    source, target = (len(side.split()) for side in pair)
    if not source or not target:
        return False
    most = source / target if one_way else max(source / target, target / source)
    if strict:
        return max(source, target) < longest and most < ratio
    return max(source, target) <= longest and most <= ratio


def _cleaned(
    pairs: Pairs,
    longest: int,
    ratio: float,
    keep: Callable = _kept,
    known_by: Callable = tuple,
    twice: bool = False,
) -> list[tuple[str, str]]:
    found, seen = [], set()
    for pair in pairs:
        if keep(pair, longest, ratio) and (twice or known_by(pair) not in seen):
            seen.add(known_by(pair))
            found.append(tuple(pair))
    return found


def _sides_apart(pairs: Pairs, longest: int, ratio: float) -> list[tuple[str, str]]:
    sides = []
    for side in zip(*pairs, strict=True):
        good = [text for text in side if 0 < len(text.split()) <= longest]
        sides.append(list(dict.fromkeys(good)))
    return list(zip(*sides, strict=False))


def _letters(pair: tuple[str, str], longest: int, ratio: float) -> bool:
    return _kept(tuple(" ".join(side) for side in pair), longest, ratio)


def _kept_unless_empty(pair: tuple[str, str], longest: int, ratio: float) -> bool:
    blank = not all(side.strip() for side in pair)
    return all(pair) and (blank or _kept(pair, longest, ratio))


def _kept_below_ratio(pair: tuple[str, str], longest: int, ratio: float) -> bool:
    lengths = [len(side.split()) for side in pair]
    return _kept(pair, longest, ratio) and max(lengths) < ratio * min(lengths)


CLEAN_PAIRS = Exercise(
    "clean_pairs",
    reference=_cleaned,
    cases=lambda: [
        ([("a dog runs", "ein Hund rennt"), ("", "nichts"), ("no", " "), ("a dog runs", "ein Hund rennt")], 5, 2.0),
        ([("b", "c"), ("a", "eins zwei drei"), ("one two three", "a"), ("one two", "a"), ("a", "b c")], 5, 2.0),
        ([("so it is", "so ist es"), ("so it is", "es ist so"), ("it is so", "so ist es")], 3, 1.5),
        ([("one two three four", "eins zwei drei"), ("we", "wir"), ("one two", "eins zwei drei vier")], 3, 3.0),
    ],
    mistakes=(
        Mistake("sides-apart", "Source and target were cleaned each by itself, so that lines no longer belong to each "
                "other. A pair stays or goes as a whole.", _sides_apart),
        Mistake("ratio-one-way", "A pair whose target is much longer than its source was kept: the ratio counts both "
                "ways.",
                lambda pairs, longest, ratio: _cleaned(
                    pairs, longest, ratio, lambda *a: _kept(*a, one_way=True))),
        Mistake("duplicates-stay", "A pair that comes a second time was kept.",
                lambda pairs, longest, ratio: _cleaned(pairs, longest, ratio, twice=True)),
        Mistake("duplicates-by-source", "The same source with another translation is not a duplicate.",
                lambda pairs, longest, ratio: _cleaned(pairs, longest, ratio, known_by=lambda pair: pair[0])),
        Mistake("duplicates-by-target", "The same translation of another source is not a duplicate.",
                lambda pairs, longest, ratio: _cleaned(pairs, longest, ratio, known_by=lambda pair: pair[1])),
        Mistake("at-most", "A side of exactly `longest` words, or a ratio of exactly `ratio`, is allowed: at most, not "
                "less than.",
                lambda pairs, longest, ratio: _cleaned(pairs, longest, ratio, lambda *a: _kept(*a, strict=True))),
        Mistake("ratio-at-most", "A ratio of exactly `ratio` is allowed: at most, not less than.",
                lambda pairs, longest, ratio: _cleaned(pairs, longest, ratio, _kept_below_ratio)),
        Mistake("order", "The right pairs, in another order. A set forgets the order; training wants it the same each "
                "time.",
                lambda pairs, longest, ratio: sorted(_cleaned(pairs, longest, ratio))),
        Mistake("letters", "Lengths are in words here, not in letters.",
                lambda pairs, longest, ratio: _cleaned(pairs, longest, ratio, _letters)),
        Mistake("blank-sides", "A side that holds only spaces is empty, too.",
                lambda pairs, longest, ratio: _cleaned(
                    pairs, longest, ratio, _kept_unless_empty)),
    ),
)  # fmt: skip


# --- is the difference chance?


def _wins(
    ours: Tensor, theirs: Tensor, draws: Tensor, metric: Callable, counts: Callable = lambda a, b: a > b
) -> float:
    results = [counts(metric(ours[draw].sum(0)), metric(theirs[draw].sum(0))) for draw in draws]
    return sum(map(float, results)) / len(results)


def _sentence_by_sentence(ours: Tensor, theirs: Tensor, draws: Tensor, metric: Callable) -> float:
    one, other = (torch.tensor([float(metric(row)) for row in table]) for table in (ours, theirs))
    return (one[draws].mean(1) > other[draws].mean(1)).float().mean().item()


def _share_right(sums: Tensor) -> float:
    """A metric of sums that is not the mean of its parts, as BLEU is not: right words of all words."""
    return float(sums[0]) / max(float(sums[1]), 1.0)


def _draw_cases() -> list[tuple]:
    def case(seed: int, sentences: int, ahead: int) -> tuple:
        generator = torch.Generator().manual_seed(seed)
        length = torch.randint(3, 30, (sentences,), generator=generator)
        right = [torch.randint(0, 3, (sentences,), generator=generator).clamp(max=length) for _ in range(2)]
        draws = torch.randint(0, sentences, (41, sentences), generator=generator)
        ours = (right[0] + ahead * (length > 20)).clamp(max=length)
        return torch.stack([ours, length], 1), torch.stack([right[1], length], 1), draws, _share_right

    return [case(1, 12, 1), case(2, 30, 0), case(3, 6, 0), case(4, 3, 0)]


BOOTSTRAP_WINS = Exercise(
    "bootstrap_wins",
    reference=_wins,
    cases=_draw_cases,
    mistakes=(
        Mistake("sentence-by-sentence", "The metric was computed for each sentence and averaged. A corpus metric is "
                "computed from the sums: add the rows of a draw first.", _sentence_by_sentence),
        Mistake("ties-count", "A draw in which both are equal was counted as won.",
                lambda a, b, draws, metric: _wins(a, b, draws, metric, lambda x, y: x >= y)),
        Mistake("ties-half", "A tie was counted as half a win. It is not won.",
                lambda a, b, draws, metric: _wins(a, b, draws, metric, lambda x, y: 0.5 * ((x > y) + (x >= y)))),
        Mistake("losses", "These are the draws that were lost.",
                lambda a, b, draws, metric: _wins(b, a, draws, metric)),
        Mistake("draws-of-their-own", "The two systems were not scored on the same sentences: one draw serves both. "
                "That is what makes the test a paired one.",
                lambda a, b, draws, metric: sum(
                    float(metric(a[one].sum(0)) > metric(b[other].sum(0)))
                    for one, other in zip(draws, draws.flip(0), strict=True)) / len(draws)),
        Mistake("no-draws", "Each draw must score the sentences that it names. Here every draw scores the whole text.",
                lambda a, b, draws, metric: float(metric(a.sum(0)) > metric(b.sum(0)))),
        Mistake("number-not-share", "This is the number of draws won. Wanted is their share.",
                lambda a, b, draws, metric: _wins(a, b, draws, metric) * len(draws)),
        Mistake("each-sentence-once", "A sentence that a draw names twice counts twice. Here it counts once.",
                lambda a, b, draws, metric: sum(
                    float(metric(a[one].sum(0)) > metric(b[one].sum(0))) for one in map(torch.unique, draws)
                ) / len(draws)),
    ),
)  # fmt: skip
