"""Exercises of lesson 11 that weigh evidence: labelled F1 of linearised trees, and whether a gap could be chance."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, product
from statistics import median

from tinytransformer.teaching.exercises import Exercise, Mistake

# --- labelled F1 from lines of symbols

Bracket = tuple[str, int, int]


def _brackets(line: str) -> list[Bracket]:
    found, opened, place = [], [], 0
    for symbol in line.split():
        if symbol[0] == "(":
            opened.append((symbol[1:], place))
        elif symbol[0] == ")":
            found.append((*opened.pop(), place))
        else:
            place += 1
    return found


def _with_words(line: str) -> list[Bracket]:
    return [*_brackets(line), *(("XX", place, place + 1) for place in range(line.split().count("XX")))]


def _symbols(line: str) -> list[str]:
    return [symbol for symbol in line.split() if symbol[0] == "("]


def _f1(
    gold: Sequence[str],
    predicted: Sequence[str],
    read: Callable = _brackets,
    collect: Callable = Counter,
    score: Callable = lambda matched, gold, predicted: 2 * matched / (gold + predicted),
) -> float:
    matched = rights = ours = 0
    for one, other in zip(gold, predicted, strict=True):
        sides = [Counter(collect(read(line))) for line in (one, other)]
        matched += (sides[0] & sides[1]).total()
        rights, ours = rights + sides[0].total(), ours + sides[1].total()
    return 100 * score(matched, rights, ours)


def _sets_for_matches_only(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """Doubled brackets are counted twice, but matched once."""
    matched = total = 0
    for one, other in zip(gold, predicted, strict=True):
        right, found = _brackets(one), _brackets(other)
        matched += len(set(right) & set(found))
        total += len(right) + len(found)
    return 100 * 2 * matched / total


def _across_sentences(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """All sentences in one bag: a bracket of one sentence is matched by that of another."""
    right, found = (Counter(bracket for line in lines for bracket in _brackets(line)) for lines in (gold, predicted))
    return 100 * 2 * (right & found).total() / (right.total() + found.total())


def _by_label(line: str) -> list[Bracket]:
    """Where a label was opened last, instead of a stack."""
    found, opened, place = [], {}, 0
    for symbol in line.split():
        if symbol[0] == "(":
            opened[symbol[1:]] = place
        elif symbol[0] == ")":
            found.append((symbol[1:], opened[symbol[1:]], place))
        else:
            place += 1
    return found


def _by_symbols(line: str) -> list[Bracket]:
    """Places counted in symbols, brackets among them."""
    found, opened = [], []
    for place, symbol in enumerate(line.split()):
        if symbol[0] == "(":
            opened.append((symbol[1:], place))
        elif symbol[0] == ")":
            found.append((*opened.pop(), place))
    return found


def _asked_for_each(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """Every predicted bracket is right if the gold tree has it at all, however often it was predicted."""
    matched = rights = ours = 0
    for one, other in zip(gold, predicted, strict=True):
        right, found = _brackets(one), _brackets(other)
        matched += sum(bracket in right for bracket in found)
        rights, ours = rights + len(right), ours + len(found)
    return 100 * 2 * matched / (rights + ours)


def _lines() -> list[tuple]:
    doubled = "(S (NP XX )NP (VP (VP XX )VP )VP )S"
    single = "(S (NP XX )NP (VP XX )VP )S"
    attached = "(S (NP XX )NP (VP XX (NP XX )NP (PP XX (NP XX )NP )PP )VP )S"
    inside = "(S (NP XX )NP (VP XX (NP (NP XX )NP (PP XX (NP XX )NP )PP )NP )VP )S"
    return [
        ([attached], [inside]),
        ([inside, single], [attached, "(S (NP XX XX )NP )S"]),
        ([doubled, attached], [single, attached]),
        ([single, "(S (VP XX )VP )S"], [doubled, "(S (NP XX )NP )S"]),
        ([doubled, single], ["(S (VP (VP (VP XX XX )VP )VP )VP )S", "(S XX XX )S"]),
        ([single], ["(S (VP XX )VP (NP XX )NP )S"]),
        ([doubled], [doubled]),
        (["(S (NP XX )NP (VP XX XX )VP )S", "(S (NP XX XX )NP (VP XX )VP )S"],
         ["(S (NP XX XX )NP (VP XX )VP )S", "(S (NP XX )NP (VP XX XX )VP )S"]),
        ([inside], [inside.replace("(PP XX (NP XX )NP )PP", "(PP XX XX )PP")]),
        (["(TOP (S XX )S )TOP"], ["(TOP (NP XX )NP )TOP"]),
        (["(S XX )S"], ["(NP XX )NP"]),
    ]  # fmt: skip


F1_OF_LINES = Exercise(
    "f1_of_lines",
    reference=_f1,
    cases=_lines,
    mistakes=(
        Mistake("sets", "A constituent that stands twice in a tree (a VP around a VP of the same words) counts twice. "
                "Yours are sets.", lambda gold, predicted: _f1(gold, predicted, collect=set)),
        Mistake("sets-for-matches", "Two equal constituents are counted twice and matched once. Even a perfect line "
                "does not get 100 then.", _sets_for_matches_only),
        Mistake("across-sentences", "Constituents of one sentence are matched with those of another. Match within each "
                "sentence, then add up the counts.", _across_sentences),
        Mistake("no-stack", "A label is opened again inside itself (an NP within an NP), and the outer one loses its "
                "beginning. Brackets close in the reverse order of opening.",
                lambda gold, predicted: _f1(gold, predicted, _by_label)),
        Mistake("symbols-counted", "Brackets are counted as places, too. A constituent is told by the numbers of its "
                "words.", lambda gold, predicted: _f1(gold, predicted, _by_symbols)),
        Mistake("top-left-out", "TOP is left out, as evalb does. Here every label counts.", lambda gold, predicted: _f1(
            gold, predicted, lambda line: [one for one in _brackets(line) if one[0] not in ("TOP", "ROOT")])),
        Mistake("matched-again", "A gold constituent is matched more than once. Each can be taken by one predicted "
                "one only.", _asked_for_each),
        Mistake("mean-of-sentences", "This is the mean of the sentences' F1. Counts are added up over all sentences "
                "first.", lambda gold, predicted: sum(
                    _f1([one], [other]) for one, other in zip(gold, predicted, strict=True)) / len(gold)),
        Mistake("unlabelled", "The labels are not compared: a VP in the place of an NP is wrong.",
                lambda gold, predicted: _f1(gold, predicted, lambda line: [one[1:] for one in _brackets(line)])),
        Mistake("labels-only", "Only labels are compared, not the words that a constituent covers.",
                lambda gold, predicted: _f1(gold, predicted, _symbols)),
        Mistake("starts-only", "A constituent has an end as well: keep the word behind its last one.",
                lambda gold, predicted: _f1(gold, predicted, lambda line: [one[:2] for one in _brackets(line)])),
        Mistake("words-counted", "The words are counted as constituents. They are right by themselves, and lift the "
                "score.", lambda gold, predicted: _f1(gold, predicted, _with_words)),
        Mistake("precision", "This is the precision alone: right ones of those predicted.",
                lambda gold, predicted: _f1(gold, predicted, score=lambda m, g, p: m / p)),
        Mistake("recall", "This is the recall alone: right ones of those in the gold trees.",
                lambda gold, predicted: _f1(gold, predicted, score=lambda m, g, p: m / g)),
        Mistake("arithmetic-mean", "F1 is the harmonic mean of precision and recall, not the middle between them.",
                lambda gold, predicted: _f1(gold, predicted, score=lambda m, g, p: (m / g + m / p) / 2)),
        Mistake("share", "A share between 0 and 1. Asked for are percent.",
                lambda gold, predicted: _f1(gold, predicted) / 100),
    ),
)  # fmt: skip


# --- could the gap be chance?

ROUNDING = 1e-9


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _divisions(ours: Sequence[float], theirs: Sequence[float], middle: Callable = _mean) -> list[float]:
    """The gap in every way to divide all scores into two groups of these sizes; the real way among them."""
    scores = [*ours, *theirs]
    gaps = []
    for chosen in combinations(range(len(scores)), len(ours)):
        rest = [score for place, score in enumerate(scores) if place not in chosen]
        gaps.append(middle([scores[place] for place in chosen]) - middle(rest))
    return gaps


def _chance(
    ours: Sequence[float],
    theirs: Sequence[float],
    middle: Callable = _mean,
    size: Callable = abs,
    slack: float = ROUNDING,
) -> float:
    gap = size(middle(ours) - middle(theirs))
    gaps = _divisions(ours, theirs, middle)
    return sum(size(one) >= gap - slack for one in gaps) / len(gaps)


def _without_the_real_one(ours: Sequence[float], theirs: Sequence[float]) -> float:
    gaps = _divisions(ours, theirs)
    return (_chance(ours, theirs) * len(gaps) - 1) / (len(gaps) - 1)


def _pairs_lost(ours: Sequence[float], theirs: Sequence[float]) -> float:
    sign = 1 if _mean(ours) >= _mean(theirs) else -1
    return _mean([float(sign * (one - other) <= 0) for one, other in product(ours, theirs)])


CHANCE = Exercise(
    "chance_of_gap",
    reference=_chance,
    cases=lambda: [
        ([61.2, 60.1, 62.3], [57.0, 58.2, 59.1]),
        ([57.0, 58.2, 59.1], [61.2, 58.9, 62.3]),
        ([1.0, 2.0, 4.0], [3.0, 2.0, 7.0]),
        ([5.0, 9.0], [1.0, 2.0, 3.0, 4.0]),
        ([0.3, 0.1, 0.2], [0.2, 0.3, 0.1]),
        ([57.0, 58.6, 62.3], [63.4, 64.2, 56.7]),
    ],
    mistakes=(
        Mistake("one-sided", "Only gaps in the direction of the real one are counted, or gaps with their sign. A gap "
                "to the other side would have been as surprising.",
                lambda ours, theirs: _chance(ours, theirs, size=lambda gap: gap)),
        Mistake("larger-only", "A division with exactly the real gap is not counted. At least as large: the real one "
                "counts, too.", lambda ours, theirs: _chance(ours, theirs, slack=-ROUNDING)),
        Mistake("no-tolerance", "Gaps that are equal on paper differ in their last binary digit. Count a gap that is "
                "smaller by a rounding error (1e-9), too.", lambda ours, theirs: _chance(ours, theirs, slack=0.0)),
        Mistake("without-the-real-one", "The real division is one of the ways, and belongs into both counts.",
                _without_the_real_one),
        Mistake("pairs", "Each score of the one was compared with each of the other. Asked is in how many ways the "
                "scores could have been divided into two groups.", _pairs_lost),
        Mistake("the-rest", "This is the share of divisions with a smaller gap.",
                lambda ours, theirs: 1 - _chance(ours, theirs)),
        Mistake("medians", "The gap is one of means. Yours is one of medians.",
                lambda ours, theirs: _chance(ours, theirs, middle=median)),
        Mistake("sums", "The gap is one of sums. Groups of different sizes need means.",
                lambda ours, theirs: _chance(ours, theirs, middle=sum)),
        Mistake("number-not-share", "This is the number of divisions. Asked for is their share.",
                lambda ours, theirs: _chance(ours, theirs) * len(_divisions(ours, theirs))),
    ),
)  # fmt: skip
