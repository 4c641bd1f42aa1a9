"""Bracketing: a translator as a parser, and labelled precision, recall and F1 of its trees as evalb computes them.

The rules are those of evalb (Sekine and Collins 1997) with its usual parameters, COLLINS.prm:
  - a constituent is its label and the first and last of its words; tags of single words are not counted;
  - punctuation (by its tag: , : `` '' .) is taken out before words are numbered, and so is what then holds no word;
  - TOP, which stands around every sentence, is not counted; PRT counts as ADVP;
  - constituents of two trees are matched one to one, and the sums over all sentences make precision and recall;
  - a sentence whose words differ in the two trees is an error and counts in no sum.
**Departure**: ROOT, another name for TOP, is not counted either; and the gold tree alone says which words are
punctuation, because our parser writes no tags. evalb asks each tree, and refuses a sentence where they disagree.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tinytransformer.text.trees import Parse, Tree, delinearise
from tinytransformer.translation.translator import Decoding, Translator

# As in the paper (section 6.3): beam 21, α = 0.3, and an output may have 300 tokens more than its input.
PARSING = Decoding(beam=21, alpha=0.3, extra=300)
PUNCTUATION = frozenset([",", ":", "``", "''", "."])
NOT_COUNTED = frozenset(["TOP", "ROOT"])
COUNTED_AS = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]  # label, first word, word behind the last


@dataclass(frozen=True)
class Bracketing:
    """Scores of a set of parses: sums over its sentences, and what follows from them, in percent."""

    sentences: int
    matched: int
    gold: int  # constituents
    predicted: int
    complete: int  # sentences with all constituents right and no other
    errors: int  # sentences whose words differ: in no other number
    malformed: int  # outputs that had to be repaired

    @property
    def precision(self) -> float:
        return _percent(self.matched, self.predicted)

    @property
    def recall(self) -> float:
        return _percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _percent(2 * self.matched, self.predicted + self.gold)

    @property
    def exact(self) -> float:
        """The share of sentences without a mistake, of those whose words agree."""
        return _percent(self.complete, self.sentences - self.errors)


def parse(translator: Translator, sentences: Sequence[Sequence[str]], decoding: Decoding = PARSING) -> list[Parse]:
    """The trees of sentences, each given as its words."""
    written = translator([" ".join(words) for words in sentences], split=False, decoding=decoding)
    return [delinearise(one.text, words) for one, words in zip(written, sentences, strict=True)]


def bracketing(gold: Sequence[Tree], parses: Sequence[Parse]) -> Bracketing:
    """Score parses against gold trees, sentence by sentence."""
    if len(gold) != len(parses):
        raise ValueError(f"{len(parses)} parses but {len(gold)} gold trees: give one for each")
    if not gold:
        raise ValueError("there is nothing to score: give at least one tree")
    sums: Counter[str] = Counter()
    for right, found in zip(gold, parses, strict=True):
        sums["malformed"] += found.malformed
        if right.words() != found.tree.words():
            sums["errors"] += 1
            continue
        missed, wrong = mismatches(right, found.tree)
        counts = [len(_counted(tree, right)) for tree in (right, found.tree)]
        sums.update(gold=counts[0], predicted=counts[1], matched=counts[0] - len(missed))
        sums["complete"] += not missed and not wrong
    names = ("matched", "gold", "predicted", "complete", "errors", "malformed")
    return Bracketing(len(gold), **{name: sums[name] for name in names})


def mismatches(gold: Tree, predicted: Tree) -> tuple[set[int], set[int]]:
    """Which constituents of the gold tree are missed, and which of the other tree are wrong.

    Numbers count a tree's constituents, tags left out, in the order in which they open: the root is 0.
    """
    sides = [_counted(tree, gold) for tree in (gold, predicted)]
    common = Counter(sides[0].values()) & Counter(sides[1].values())
    return _beyond(sides[0], common), _beyond(sides[1], common)


def _beyond(brackets: dict[int, Bracket], common: Counter[Bracket]) -> set[int]:
    """The brackets that are left when each of the common ones has been taken once."""
    left = Counter(common)
    found = set()
    for number, bracket in brackets.items():
        if left[bracket]:
            left[bracket] -= 1
        else:
            found.add(number)
    return found


def _counted(tree: Tree, tagged: Tree) -> dict[int, Bracket]:
    """The constituents that count, by their number; the tags of ``tagged`` tell words from punctuation."""
    is_word = iter([leaf.label not in PUNCTUATION for leaf in tagged.leaves()])
    found: dict[int, Bracket] = {}
    opened: list[tuple[int, int]] = []  # number and first word of what is open
    place = number = 0
    for node, opens in tree.walk():
        if node.word is not None:
            place += next(is_word)
        elif opens:
            opened.append((number, place))
            number += 1
        else:
            own, first = opened.pop()
            if first < place and node.label not in NOT_COUNTED:
                found[own] = (COUNTED_AS.get(node.label, node.label), first, place)
    return found


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
