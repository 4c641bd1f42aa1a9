"""Phrases: noun phrases, names, pronouns and adverbials, rendered in both languages at once.

A rendered `Phrase` holds English tokens with their tree and German tokens. A token is a pair (word, unit): words of the
two languages that share a unit are linked in the word alignment.
"""

from typing import NamedTuple

from tinytransformer.text.microworld.entries import Adjective, Adverb, Noun
from tinytransformer.text.microworld.morphology import (
    ACCUSATIVE,
    CONTRACTIONS,
    NEGATIVE,
    THE,
    Determiner,
    adjective_form,
    column,
    german_noun,
    indefinite_article,
)

Token = tuple[str, int]


class Draft:
    """What is noted while one sentence is rendered."""

    __slots__ = ("combinations", "constructions", "nouns", "pronouns", "units")

    def __init__(self):
        self.units = 0
        self.constructions: set[str] = set()
        self.pronouns: list[tuple[int, int, str]] = []  # unit of the pronoun, unit of the antecedent, German form
        self.combinations: list[tuple[str, str]] = []  # (adjective, noun) and (verb, noun)
        self.nouns: list[Noun] = []

    def unit(self) -> int:
        """A new meaning unit."""
        self.units += 1
        return self.units


class Phrase(NamedTuple):
    english: list[Token]
    tree: str
    german: list[Token]
    trailing: tuple[Token, ...] = ()  # a German relative clause, which may move to the end of the sentence
    comma: int = 0  # unit of the English comma behind the phrase, where German has one too


class NounPhrase:
    """A noun with determiner, perhaps an adjective and a relative clause."""

    __slots__ = ("adjective", "determiner", "german_plural", "noun", "plural", "relative", "unit")
    person = 3
    is_pronoun = False
    moves = False

    def __init__(
        self, noun: Noun, numbers: tuple[int, int], determiner: Determiner, adjective: Adjective | None = None
    ):
        self.noun = noun
        self.plural, self.german_plural = numbers
        self.determiner = determiner
        self.adjective = adjective
        self.relative = None  # renders the clause when called with a draft
        self.unit = 0

    @property
    def definite(self) -> bool:
        return self.determiner.definite

    @property
    def column(self) -> int:
        return column(self.noun, self.german_plural)

    def negate(self) -> bool:
        """Turn *a* into *not a* if this phrase can carry the negation of its sentence (kein)."""
        self.determiner = NEGATIVE.get(self.determiner, self.determiner)
        return self.determiner in NEGATIVE.values()

    def render(self, case: int, draft: Draft, negation: int = 0) -> Phrase:
        """The phrase in a case; `negation` is the unit of *not* where German says kein."""
        first = draft.unit()
        draft.units += 2
        self.unit = first + 2
        english, tree = self._english(first, negation)
        german = self._german(case, first, negation)
        self._note(draft)
        if self.relative is None:
            return Phrase(english, tree, german)
        clause = self.relative(draft)
        return Phrase(english + clause.english, f"(NP {tree} {clause.tree})", german, tuple(clause.german))

    def _english(self, first: int, negation: int) -> tuple[list[Token], str]:
        noun = self.noun.english[self.plural]
        english: list[Token] = []
        tree = "(NP "
        word = self.determiner.english[self.plural]
        if word:
            if word == "a":
                word = indefinite_article(self.adjective.english if self.adjective else noun)
            english.append((word, negation or first))
            tree += f"({self.determiner.tag} {word}) "
        if self.adjective:
            english.append((self.adjective.english, first + 1))
            tree += f"(JJ {self.adjective.english}) "
        english.append((noun, first + 2))
        return english, f"{tree}({'NNS' if self.plural else 'NN'} {noun}))"

    def _german(self, case: int, first: int, negation: int) -> list[Token]:
        col = self.column
        german: list[Token] = []
        if self.determiner.forms:
            german.append((self.determiner.forms[case][col], negation or first))
        if self.adjective:
            german.append((adjective_form(self.adjective, self.determiner, case, col), first + 1))
        german.append((german_noun(self.noun, self.german_plural, case), first + 2))
        return german

    def _note(self, draft: Draft) -> None:
        draft.nouns.append(self.noun)
        if self.determiner.forms:
            draft.constructions.add("article")
        if self.german_plural:
            draft.constructions.add("plural")
        if self.adjective:
            draft.constructions.add("adjective")
            draft.combinations.append((self.adjective.english, self.noun.key))


class Pair:
    """Two phrases joined: *the boy and the girl*, *an apple or a pear*."""

    __slots__ = ("conjunction", "first", "second")
    person = 3
    is_pronoun = moves = False
    noun = relative = None

    def __init__(self, first, second, conjunction: tuple[str, str] = ("and", "und")):
        self.first, self.second, self.conjunction = first, second, conjunction

    plural = german_plural = 1

    @property
    def definite(self) -> bool:
        return self.first.definite and self.second.definite

    @property
    def determiner(self) -> Determiner:
        return self.first.determiner

    def render(self, case: int, draft: Draft, negation: int = 0) -> Phrase:
        left, right = self.first.render(case, draft), self.second.render(case, draft)
        unit = draft.unit()
        english, german = self.conjunction
        draft.constructions.add("compound")
        return Phrase(
            [*left.english, (english, unit), *right.english],
            f"(NP {left.tree} (CC {english}) {right.tree})",
            [*left.german, (german, unit), *right.german],
        )


def prepositional(english: str, german: str, nominal, case: int, draft: Draft, verb_unit: int) -> Phrase:
    """A noun phrase behind a preposition; *in dem* becomes *im* where a speaker would say so. Where English has no
    preposition (remember), the German one belongs to the verb."""
    inner = nominal.render(case, draft)
    draft.constructions.add("preposition_accusative" if case == ACCUSATIVE else "preposition_dative")
    (article, article_unit), rest = inner.german[0], inner.german[1:]
    contracted = None
    if english and not inner.trailing and getattr(nominal, "determiner", None) is THE:
        contracted = CONTRACTIONS.get((german, article))
    if contracted:
        unit, words = article_unit, [(contracted, article_unit), *rest]
    else:
        unit = draft.unit() if english else verb_unit
        words = [(german, unit), *inner.german]
    if not english:
        return Phrase(inner.english, inner.tree, words, inner.trailing)
    return Phrase([(english, unit), *inner.english], f"(PP (IN {english}) {inner.tree})", words, inner.trailing)


def adverbial(adverb: Adverb, draft: Draft) -> Phrase:
    """A fixed adverbial with its own word links."""
    units = {}
    for i, j in adverb.links:
        unit = units.get(("en", i)) or units.get(("de", j)) or draft.unit()
        units["en", i] = units["de", j] = unit
    english = [(word, units["en", i]) for i, word in enumerate(adverb.english)]
    german = [(word, units["de", j]) for j, word in enumerate(adverb.german)]
    return Phrase(english, _adverb_tree(adverb), german)


def _adverb_tree(adverb: Adverb) -> str:
    leaves = [f"({tag} {word})" for tag, word in zip(adverb.tags, adverb.english, strict=True)]
    if adverb.tags[0] == "IN":
        return f"(PP {leaves[0]} (NP {' '.join(leaves[1:])}))"
    if adverb.tags[-1] == "RB":
        return f"(ADVP {leaves[0]})" if len(leaves) == 1 else f"(ADVP (NP {' '.join(leaves[:-1])}) {leaves[-1]})"
    return f"(NP {' '.join(leaves)})"
