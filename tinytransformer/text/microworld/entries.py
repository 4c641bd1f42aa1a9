"""What the lexicon is made of: nouns, verbs, adjectives, adverbials, names and reasons."""

from dataclasses import dataclass
from functools import cached_property

DATIVE_PREPOSITIONS = ("mit", "von", "zu", "bei", "aus", "nach")
TWO_WAY_PREPOSITIONS = ("in", "an", "auf", "über", "neben")
ACCUSATIVE_PREPOSITIONS = ("durch", "für", "um")
PREPOSITIONS = DATIVE_PREPOSITIONS + TWO_WAY_PREPOSITIONS + ACCUSATIVE_PREPOSITIONS


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun in both languages. A form that a language lacks is None: English has no singular of *pants*."""

    english: tuple[str | None, str | None]  # singular, plural
    german: tuple[str | None, str | None]
    gender: str  # m, f or n; p if German has only the plural
    oblique: str | None  # accusative and dative singular, where they differ
    classes: frozenset[str]  # with all wider classes
    location: tuple[str, str] | None  # English and German preposition of "where"
    direction: tuple[str, str] | None  # … and of "where to"

    @cached_property
    def key(self) -> str:
        return self.english[0] or self.english[1]

    @cached_property
    def mass(self) -> bool:
        """Uncountable in both languages (milk): no plural, no indefinite article."""
        return self.english[1] is None and self.german[1] is None

    @cached_property
    def numbers(self) -> tuple[tuple[int, int], ...]:
        """Possible (English number, German number), 0 for singular, 1 for plural; *pants* is (1, 0) only."""
        both = tuple((n, n) for n in (0, 1) if self.english[n] and self.german[n])
        if both:
            return both
        return ((0, 1),) if self.english[0] else ((1, 0),)


@dataclass(frozen=True, eq=False)
class Slot:
    """What a verb asks for: the role, the classes that fill it, and the German preposition with its case, if any."""

    role: str  # accusative, dative, prepositional, direction, location or that
    classes: tuple[str, ...] = ()
    preposition: str = ""
    case: str = ""


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb in both languages with what it may be combined with."""

    base: str
    past: str
    participle: str
    particle: str  # English: pick *up*
    preposition: str  # English: look *for*
    infinitive: str  # German, without the separable prefix and without sich
    er: str
    preterite: str
    partizip: str
    prefix: str
    reflexive: bool
    auxiliary: str
    subject: tuple[str, ...]
    slots: dict[str, Slot]
    where: tuple[str, ...]
    manner: tuple[str, ...]
    flags: frozenset[str]
    line: int  # in verbs.csv

    @cached_property
    def key(self) -> str:
        return " ".join(filter(None, (self.base, self.particle or self.preposition)))


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    german: str
    stem: str
    classes: frozenset[str]
    excluded: frozenset[str]
    gradable: bool  # can be *very* or *too* …
    attributive: bool  # can stand before its noun


@dataclass(frozen=True, eq=False)
class Adverb:
    """A fixed adverbial; `links` are pairs (English word, German word), counted from 0."""

    english: tuple[str, ...]
    german: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    kind: str
    tense: str


@dataclass(frozen=True, eq=False)
class PersonName:
    name: str
    gender: str


@dataclass(frozen=True, eq=False)
class Reason:
    """Adjectives that explain why something was done or, with *too*, not done; by the subject or by the object."""

    verb: Verb
    done_subject: tuple[Adjective, ...]
    done_object: tuple[Adjective, ...]
    undone_subject: tuple[Adjective, ...]
    undone_object: tuple[Adjective, ...]


@dataclass(frozen=True)
class Lexicon:
    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    adverbs: tuple[Adverb, ...]
    names: tuple[PersonName, ...]
    reasons: tuple[Reason, ...]
