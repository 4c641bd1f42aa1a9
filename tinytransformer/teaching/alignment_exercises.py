"""Exercises of lesson 09 about alignment: links between words from cross-attention, and their error."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random, untouched

Links = set[tuple[int, int]]

# --- from weights to links


def _links_cases() -> list[tuple]:
    def case(source: list[int], target: list[int], seed: int) -> tuple:
        weights = random(len(target) + 1, len(source) + 1, seed=seed, spread=2.0).softmax(-1)
        return weights, source, target

    in_pieces = torch.tensor([[0.3, 0.3, 0.4, 0.0], [0.1, 0.1, 0.7, 0.1], [0.2, 0.1, 0.2, 0.5]]), [0, 0, 1], [0, 1]
    words = [0, 0, 1, 2, 2, 3]
    return [
        in_pieces,
        case([0, 1, 2, 3], [0, 1, 2], 1),
        case(words, [0, 1, 1, 2, 3, 3], 2),
        case(words, [0, 0, 1, 2, 2], 5),
        case([0, 1], [0, 1, 2, 3, 4, 5], 9),
    ]


def _links(weights, source, target, first=0, joined=True, end=True, by_word=True, turned=False) -> Links:
    found = set()
    columns = [*source, -1]
    for word in sorted(set(target)):
        rows = [weights[row + first] for row, owner in enumerate(target) if owner == word]
        total = torch.stack(rows).sum(0) if joined else rows[0]
        names = sorted(set(columns))
        mass = torch.stack([sum(total[i] for i, name in enumerate(columns) if name == one) for one in names])
        best = names[int(mass.argmax())] if by_word else columns[int(total.argmax())]
        if best < 0 and not end:
            best = names[1 + int(mass[1:].argmax())]
        if best >= 0:
            found.add((word, best) if turned else (best, word))
    return found


def _sorted(arguments: tuple, answer) -> Tensor | None:
    if untouched(answer):
        return answer
    pairs = sorted((int(one), int(other)) for one, other in answer)
    return torch.tensor(pairs).reshape(-1, 2)


LINKS = Exercise(
    "word_links",
    reference=_links,
    cases=_links_cases,
    normal=_sorted,
    mistakes=(
        Mistake("one-row-late", "You take the row that is named after a piece. While a piece is being written, the "
                "newest token read is the one before it.", lambda *i: _links(*i, first=1)),
        Mistake("first-piece-only", "Only the first piece of a target word is looked at. All of its pieces count.",
                lambda *i: _links(*i, joined=False)),
        Mistake("best-piece", "The link goes to the word of the single best piece. A word's weight is that of all its "
                "pieces together.", lambda *i: _links(*i, by_word=False)),
        Mistake("end-passed-over", "A word that looks mostly at the end token gets a link all the same. It shall get "
                "none.", lambda *i: _links(*i, end=False)),
        Mistake("swapped", "The pairs are (target, source). Asked for is (source, target).",
                lambda *i: _links(*i, turned=True)),
    ),
)  # fmt: skip


# --- how wrong the links are


def _error_cases() -> list[tuple]:
    gold = [{(0, 0), (1, 2), (2, 1)}, {(0, 0), (0, 1), (1, 2), (3, 3), (4, 4)}]
    close = [{(0, 0), (1, 2)}, {(0, 0), (1, 1), (1, 2), (3, 3), (4, 4), (2, 2)}]
    return [(close, gold), (gold, gold), ([{(5, 5)}, set()], gold), ([gold[0]], [gold[0] | {(3, 3)}])]


def _counts(found: list[Links], gold: list[Links]) -> tuple[int, int, int]:
    pairs = list(zip(found, gold, strict=True))
    return sum(len(a & g) for a, g in pairs), sum(len(a) for a, _ in pairs), sum(len(g) for _, g in pairs)


def _error(found: list[Links], gold: list[Links]) -> float:
    common, ours, theirs = _counts(found, gold)
    return 1 - 2 * common / (ours + theirs)


def _mean_error(found: list[Links], gold: list[Links]) -> float:
    return sum(_error([a], [g]) for a, g in zip(found, gold, strict=True)) / len(gold)


def _ratio(rule):
    return lambda found, gold: rule(*_counts(found, gold))


ERROR = Exercise(
    "alignment_error",
    reference=_error,
    cases=_error_cases,
    mistakes=(
        Mistake("score-not-error", "This is how much is right. The error is 1 minus that.",
                lambda found, gold: 1 - _error(found, gold)),
        Mistake("precision-only", "Only our links are counted: whoever draws one sure link and no other gets 0.",
                _ratio(lambda common, ours, theirs: 1 - common / ours)),
        Mistake("recall-only", "Only the gold links are counted: whoever links every word with every word gets 0.",
                _ratio(lambda common, ours, theirs: 1 - common / theirs)),
        Mistake("not-doubled", "Links in both sets stand in both sizes, so they count twice above the line.",
                _ratio(lambda common, ours, theirs: 1 - common / (ours + theirs))),
        Mistake("union", "You divide by the size of the union. AER divides by the sum of the two sizes.",
                _ratio(lambda common, ours, theirs: 1 - common / (ours + theirs - common))),
        Mistake("mean-of-sentences", "This is the mean of the sentences' errors. Add up counts over all sentences "
                "first, as BLEU does.", _mean_error),
        Mistake("percent", "Right, but asked for is a number between 0 and 1.",
                lambda found, gold: 100 * _error(found, gold)),
    ),
)  # fmt: skip
