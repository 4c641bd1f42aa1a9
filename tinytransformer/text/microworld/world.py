"""The world: what goes with what. All lists are drawn up once, so that choosing is only picking from a list."""

from functools import cache

from tinytransformer.text.microworld.entries import Adjective, Lexicon, Noun, Verb
from tinytransformer.text.microworld.lexicon import embedded_lexicon
from tinytransformer.text.microworld.morphology import (
    BARE,
    CAN,
    COULD,
    EVERY,
    MANY,
    MUST,
    MY,
    OUR,
    SHOULD,
    SOME,
    THIS,
    THREE,
    TWO,
    WANT,
    WANTED,
    WILL,
    A,
    Determiner,
)
from tinytransformer.text.microworld.tables import LexiconError

# Which tense words of adverbs.csv go with which tense or modal.
_TIMES = {
    "present": ("present",),  # what is done every day; for one day English would say *is doing*
    "past": ("past", "any"),
    CAN: ("future", "any"),
    MUST: ("future", "any"),
    SHOULD: ("future", "any"),
    WANT: ("future", "any"),
    WILL: ("future", "any"),
    COULD: ("past", "any"),
    WANTED: ("past", "any"),
}


# What one may call "my": family, friends and belongings.
_OWNED = (
    "kin", "sibling", "ally", "pet", "farm", "item", "food", "vehicle", "bike", "cart", "furniture", "house", "room",
    "garden", "plant", "opening", "idea", "story", "task", "part",
)  # fmt: skip


class World:
    """A lexicon, sorted by use."""

    def __init__(self, lexicon: Lexicon):
        self.lexicon = lexicon
        nouns = lexicon.nouns
        self.adjectives_of: dict[Noun, tuple[Adjective, ...]] = {
            noun: tuple(a for a in lexicon.adjectives if suits(a, noun)) for noun in nouns
        }
        self.attributes_of = {
            noun: tuple(a for a in adjectives if a.attributive) for noun, adjectives in self.adjectives_of.items()
        }
        self.unsuited = {noun: _unsuited(noun) for noun in nouns}
        self.describable = tuple(noun for noun in nouns if self.adjectives_of[noun])
        self.fillers: dict[tuple[Verb, str], tuple[Noun, ...]] = {}
        for verb in lexicon.verbs:
            self.fillers[verb, "subject"] = _belonging(nouns, verb.subject)
            for role, slot in verb.slots.items():
                self.fillers[verb, role] = _belonging(nouns, slot.classes, role)
            self.fillers[verb, "where"] = _belonging(nouns, verb.where, "location")
            self._check(verb)
        clauses = tuple(verb for verb in lexicon.verbs if "that" in verb.slots)
        states = tuple(verb for verb in lexicon.verbs if "state" in verb.flags)
        self.that_verbs = clauses
        self.states = tuple(verb for verb in states if verb not in clauses)
        self.actions = tuple(verb for verb in lexicon.verbs if verb not in clauses and verb not in states)
        self.events = tuple(verb for verb in self.actions if "event" in verb.flags and verb.past != verb.base)
        self.wishes = tuple(verb for verb in self.actions if "wish" not in verb.flags)
        self.deniable = tuple(v for v in lexicon.verbs if "accusative" in v.slots and "definite" not in v.flags)
        self.handy = tuple(verb for verb in lexicon.verbs if "handy" in verb.flags)
        self.handy_pairs = tuple((verb, noun) for verb in self.handy for noun in self.fillers[verb, "accusative"])
        self.handy_plurals = tuple((verb, noun) for verb, noun in self.handy_pairs if noun.numbers == ((1, 0),))
        self.find = next(verb for verb in lexicon.verbs if verb.key == "find")
        self.relations = {noun: self._relations(noun) for noun in nouns}
        times = [adverb for adverb in lexicon.adverbs if adverb.kind == "time"]
        self.times = {key: tuple(a for a in times if a.tense in words) for key, words in _TIMES.items()}
        self.frequencies = tuple(adverb for adverb in lexicon.adverbs if adverb.kind in ("frequency", "never"))
        self.manners = {adverb.english[0]: adverb for adverb in lexicon.adverbs if adverb.kind == "manner"}

    def _check(self, verb: Verb) -> None:
        """Each role must find a noun, even if the other roles of the clause have taken some of its nouns."""
        roles = ["subject", *(role for role in verb.slots if role != "that")]
        for role in roles:
            nouns = self.fillers[verb, role]
            others = [self.fillers[verb, other] for other in roles if other != role]
            needed = 1 + sum(any(noun in other for noun in nouns) for other in others)
            if len(nouns) < needed:
                raise LexiconError(
                    f"verbs.csv, line {verb.line}: {len(nouns)} nouns can be the {role} of {verb.key!r}, but it takes "
                    f"{needed}. Name a wider class, or add nouns to nouns.csv (places with their prepositions)."
                )

    def _relations(self, noun: Noun) -> tuple[tuple[Verb, str], ...]:
        """The verbs of relative clauses about the noun, each with the noun's role."""
        states = [verb for verb in self.states if "location" not in verb.slots or "person" in verb.subject]
        verbs = (*self.actions, *states * 3)  # a state is what relative clauses are for; but not where a thing lies
        verbs = [verb for verb in verbs if "aside" not in verb.flags]
        found = [(verb, "subject") for verb in verbs if noun in self.fillers[verb, "subject"]]
        for role in ("accusative", "dative"):
            plain = [
                verb
                for verb in self.actions
                if list(verb.slots) == [role] and not verb.preposition and "aside" not in verb.flags
            ]
            found += [(verb, role) for verb in plain if noun in self.fillers[verb, role]]
        return tuple(found)


def _unsuited(noun: Noun) -> frozenset[Determiner]:
    """The determiners that sound odd with the noun: *this father*, *many brothers*, *my street*."""
    if "kin" in noun.classes:
        return frozenset((A, THIS, EVERY, BARE, TWO, THREE, MANY, SOME))
    if "sibling" in noun.classes:
        return frozenset((A, THIS, EVERY, BARE, MANY, SOME))
    bare = (BARE,) if "person" in noun.classes else (TWO, THREE) if "paired" in noun.classes else ()
    return frozenset(bare if not noun.classes.isdisjoint(_OWNED) else (MY, OUR, *bare))


def suits(adjective: Adjective, noun: Noun) -> bool:
    """Whether the adjective can describe the noun."""
    return not adjective.classes.isdisjoint(noun.classes) and adjective.excluded.isdisjoint(noun.classes)


def _belonging(nouns: tuple[Noun, ...], classes: tuple[str, ...], role: str = "") -> tuple[Noun, ...]:
    found = tuple(noun for noun in nouns if not noun.classes.isdisjoint(classes))
    if role in ("location", "direction"):
        return tuple(noun for noun in found if getattr(noun, role))
    return found


@cache
def embedded_world() -> World:
    """The world of the embedded lexicon; built once."""
    return World(embedded_lexicon())
