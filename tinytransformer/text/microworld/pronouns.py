"""Names and pronouns: they stand where a noun phrase could stand, and offer the same attributes."""

from tinytransformer.text.microworld.entries import Noun, PersonName
from tinytransformer.text.microworld.morphology import ACCUSATIVE, DATIVE, FIRST, NOMINATIVE, RELATIVE, THIRD
from tinytransformer.text.microworld.phrases import Draft, NounPhrase, Phrase


class Name:
    """A person's first name."""

    __slots__ = ("column", "name", "unit")
    person = 3
    plural = german_plural = 0
    definite = True
    is_pronoun = moves = False
    noun = relative = None

    def __init__(self, entry: PersonName):
        self.name = entry.name
        self.column = 0 if entry.gender == "m" else 1
        self.unit = 0

    def render(self, case: int, draft: Draft, negation: int = 0) -> Phrase:
        self.unit = draft.unit()
        return Phrase([(self.name, self.unit)], f"(NP (NNP {self.name}))", [(self.name, self.unit)])


class FirstPerson:
    """*I* or *we*, as a subject."""

    __slots__ = ("german_plural", "plural")
    person = 1
    definite = is_pronoun = True
    moves = False
    noun = relative = None

    def __init__(self, plural: int):
        self.plural = self.german_plural = plural

    def render(self, case: int, draft: Draft, negation: int = 0) -> Phrase:
        unit = draft.unit()
        word = "we" if self.plural else "I"
        return Phrase([(word, unit)], f"(NP (PRP {word}))", [(FIRST[case][self.plural], unit)])


_SUBJECT_PRONOUNS = ("he", "she", "it", "they")
_OBJECT_PRONOUNS = ("him", "her", "it", "them")


def english_kind(nominal: "NounPhrase | Name") -> int:
    """Which English pronoun stands for a phrase: 0 he, 1 she, 2 it, 3 they."""
    if nominal.plural:
        return 3
    return nominal.column if nominal.noun is None or "person" in nominal.noun.classes else 2


class Pronoun:
    """A third-person pronoun that stands for an earlier phrase, and takes its German gender and number."""

    __slots__ = ("antecedent",)
    person = 3
    definite = is_pronoun = True
    moves = False
    relative = None

    def __init__(self, antecedent: "NounPhrase | Name"):
        self.antecedent = antecedent

    @property
    def noun(self) -> Noun | None:
        return self.antecedent.noun

    @property
    def plural(self) -> int:
        return self.antecedent.plural

    @property
    def german_plural(self) -> int:
        return self.antecedent.german_plural

    def render(self, case: int, draft: Draft, negation: int = 0) -> Phrase:
        unit = draft.unit()
        words = _SUBJECT_PRONOUNS if case == NOMINATIVE else _OBJECT_PRONOUNS
        word, german = words[english_kind(self.antecedent)], THIRD[case][self.antecedent.column]
        draft.pronouns.append((unit, self.antecedent.unit, german))
        draft.constructions.add("pronoun")
        return Phrase([(word, unit)], f"(NP (PRP {word}))", [(german, unit)])


class Moved:
    """A relative or question pronoun: whatever its role, it stands first in its clause in both languages."""

    __slots__ = ("forms", "german_plural", "noun", "plural", "tag", "unit", "word")
    person = 3
    definite = is_pronoun = moves = True
    relative = None

    def __init__(self, word: str, tag: str, forms: tuple[str, ...], antecedent: NounPhrase | None = None):
        self.word, self.tag, self.forms = word, tag, forms
        self.noun = antecedent.noun if antecedent else None
        self.plural = antecedent.plural if antecedent else 0
        self.german_plural = antecedent.german_plural if antecedent else 0

    def render(self, case: int, draft: Draft, negation: int = 0) -> Phrase:
        unit = draft.unit()
        return Phrase([(self.word, unit)], f"(WHNP ({self.tag} {self.word}))", [(self.forms[case], unit)])


def relative_pronoun(antecedent: NounPhrase, subject: bool) -> Moved:
    """*who* or *that* for a noun phrase, with the German forms by case."""
    forms = tuple(RELATIVE[case][antecedent.column] for case in (NOMINATIVE, ACCUSATIVE, DATIVE))
    if subject and "person" in antecedent.noun.classes:
        return Moved("who", "WP", forms, antecedent)
    return Moved("that", "WDT", forms, antecedent)


def who() -> Moved:
    return Moved("who", "WP", ("wer", "wen", "wem"))


def what() -> Moved:
    return Moved("what", "WP", ("was", "was", "was"))
