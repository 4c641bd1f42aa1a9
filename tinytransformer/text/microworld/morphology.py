"""Morphology: the forms of articles, adjectives, nouns, verbs and pronouns in both languages.

Cases are 0 nominative, 1 accusative, 2 dative; numbers are 0 singular, 1 plural. The genitive is not used.
"""

from dataclasses import dataclass

from tinytransformer.text.microworld.entries import Adjective, Noun, Verb

NOMINATIVE, ACCUSATIVE, DATIVE = 0, 1, 2

# One row a case; the columns are masculine, feminine, neuter, plural.
_COLUMN = {"m": 0, "f": 1, "n": 2, "p": 3}
_ARTICLE = (("der", "die", "das", "die"), ("den", "die", "das", "die"), ("dem", "der", "dem", "den"))
_STRONG = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"))
_WEAK = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"))
_MIXED = (("er", "e", "es", "en"), ("en", "e", "es", "en"), ("en", "en", "en", "en"))
_EIN = (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en"))

CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}


@dataclass(frozen=True, eq=False)
class Determiner:
    """An article or a word in its place. `forms` holds the German forms by case and column, or None for no article."""

    english: tuple[str | None, str | None]  # singular, plural; None where it cannot be used
    tag: str
    forms: tuple[tuple[str, ...], ...] | None
    endings: tuple[tuple[str, ...], ...]  # of the adjective that follows
    definite: bool


def _stem_forms(stem: str, endings) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(stem + ending for ending in row) for row in endings)


def _fixed(word: str) -> tuple[tuple[str, ...], ...]:
    return ((word,) * 4,) * 3


THE = Determiner(("the", "the"), "DT", _ARTICLE, _WEAK, True)
THIS = Determiner(("this", "these"), "DT", _stem_forms("dies", _STRONG), _WEAK, True)
EVERY = Determiner(("every", None), "DT", _stem_forms("jed", _STRONG), _WEAK, True)
A = Determiner(("a", None), "DT", _stem_forms("ein", _EIN), _MIXED, False)
MY = Determiner(("my", "my"), "PRP$", _stem_forms("mein", _EIN), _MIXED, True)
OUR = Determiner(("our", "our"), "PRP$", _stem_forms("unser", _EIN), _MIXED, True)
BARE = Determiner(("", ""), "", None, _STRONG, False)
TWO = Determiner((None, "two"), "CD", _fixed("zwei"), _STRONG, False)
THREE = Determiner((None, "three"), "CD", _fixed("drei"), _STRONG, False)
MANY = Determiner((None, "many"), "JJ", _stem_forms("viel", _STRONG), _STRONG, False)
SOME = Determiner((None, "some"), "DT", _stem_forms("einig", _STRONG), _STRONG, False)
# What "a" and no article turn into when the sentence is negated: "not … a" is one German word.
NOT_A = Determiner(("a", None), "DT", _stem_forms("kein", _EIN), _MIXED, False)
NOT_ANY = Determiner(("any", "any"), "DT", _stem_forms("kein", _EIN), _MIXED, False)
NEGATIVE = {A: NOT_A, BARE: NOT_ANY}

_VOWEL_LETTERS = ("a", "e", "i", "o", "u")
_SOUND_LIKE_Y = ("uni", "use")


def indefinite_article(next_word: str) -> str:
    """*a* or *an*, by the sound that follows."""
    return "an" if next_word.startswith(_VOWEL_LETTERS) and not next_word.startswith(_SOUND_LIKE_Y) else "a"


def column(noun: Noun, number: int) -> int:
    """Which column of the tables a German noun uses."""
    return 3 if number else _COLUMN[noun.gender]


def adjective_form(adjective: Adjective, determiner: Determiner, case: int, col: int) -> str:
    return adjective.stem + determiner.endings[case][col]


def german_noun(noun: Noun, number: int, case: int) -> str:
    form = noun.german[number]
    if number:
        return form + "n" if case == DATIVE and form[-1] not in "ns" else form
    return noun.oblique if case != NOMINATIVE and noun.oblique else form


def third_person(base: str) -> str:
    """The English -s form."""
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def present(verb: Verb, person: int, number: int) -> str:
    """The German present: ich, er, wir, sie."""
    if number:
        return verb.infinitive
    if person == 3:
        return verb.er
    if verb.infinitive in _IRREGULAR_ICH:
        return _IRREGULAR_ICH[verb.infinitive]
    if verb.infinitive.endswith("eln"):
        return verb.infinitive[:-3] + "le"
    return verb.infinitive[:-1] if verb.infinitive.endswith("en") else verb.infinitive[:-1] + "e"


_IRREGULAR_ICH = {"mögen": "mag", "wissen": "weiß"}


def preterite(verb: Verb, number: int) -> str:
    """The German simple past: er form, or wir and sie form."""
    if not number:
        return verb.preterite
    return verb.preterite + ("n" if verb.preterite.endswith("e") else "en")


@dataclass(frozen=True, eq=False)
class Modal:
    """A verb that takes an infinitive. German forms: ich and er, wir and sie."""

    english: tuple[str, str]  # with he, with they
    german: tuple[str, str]
    negatable: bool  # "must not" and "cannot" are left out: they need another German verb or one English word


CAN = Modal(("can", "can"), ("kann", "können"), False)
MUST = Modal(("must", "must"), ("muss", "müssen"), False)
SHOULD = Modal(("should", "should"), ("sollte", "sollten"), True)
COULD = Modal(("could", "could"), ("konnte", "konnten"), True)
WANT = Modal(("wants", "want"), ("will", "wollen"), True)
WANTED = Modal(("wanted", "wanted"), ("wollte", "wollten"), True)
WILL = Modal(("will", "will"), ("wird", "werden"), True)

# German forms by person and number: (ich, er), (wir, sie)
HABEN = {(1, 0): "habe", (3, 0): "hat", (1, 1): "haben", (3, 1): "haben"}
SEIN = {(1, 0): "bin", (3, 0): "ist", (1, 1): "sind", (3, 1): "sind"}
WAR = {(1, 0): "war", (3, 0): "war", (1, 1): "waren", (3, 1): "waren"}
AUXILIARIES = {"haben": HABEN, "sein": SEIN}
REFLEXIVE = {(1, 0): "mich", (1, 1): "uns", (3, 0): "sich", (3, 1): "sich"}

# Third person by column: er, sie, es, sie (plural).
THIRD = (("er", "sie", "es", "sie"), ("ihn", "sie", "es", "sie"), ("ihm", "ihr", "ihm", "ihnen"))
FIRST = (("ich", "wir"), ("mich", "uns"), ("mir", "uns"))
RELATIVE = (("der", "die", "das", "die"), ("den", "die", "das", "die"), ("dem", "der", "dem", "denen"))
