"""Choices: sensible noun phrases and clauses, picked at random.

Randomness comes only from ``random()`` of the generator that is passed in: its values are the same on every machine and
in every Python version, which Python does not promise for ``choice`` or ``shuffle``.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from tinytransformer.text.microworld.clauses import Clause
from tinytransformer.text.microworld.entries import Noun, Verb
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
    THE,
    THIS,
    THREE,
    TWO,
    WANT,
    WANTED,
    WILL,
    A,
)
from tinytransformer.text.microworld.phrases import NounPhrase
from tinytransformer.text.microworld.pronouns import FirstPerson, Name
from tinytransformer.text.microworld.sense import can_want, goes_with, is_habitual, repeats, takes_manner
from tinytransformer.text.microworld.world import World

Item = TypeVar("Item")

# A determiner is as likely as it is often in its list.
SUBJECT_ONE = (THE,) * 12 + (A,) * 2 + (MY,) * 3 + (THIS,) * 2
SUBJECT_MANY = (THE,) * 10 + (TWO,) * 2 + (THREE, SOME) + (MANY,) * 2 + (MY,) * 2 + (THIS,) * 2
OBJECT_ONE = (THE,) * 9 + (A,) * 8 + (MY,) * 2 + (THIS,) * 2
OBJECT_MANY = (THE,) * 7 + (BARE,) * 7 + (TWO,) * 2 + (THREE, SOME, MANY, THIS, MY, OUR)
OBJECT_MASS = (THE, BARE)
GIVEN_MANY = (THE,) * 5 + (TWO, THREE, SOME, MANY, MY)  # no bare plural: not *showed the boss birds*
NEW_MANY = (BARE, BARE, TWO, THREE, MANY, SOME)
PLACE = (THE,) * 8 + (A, THIS)
DENIED_ONE = (THE, A)
DENIED_MANY = (THE, BARE)
DEFINITE = (THE,) * 6 + (MY, THIS)
TENSES = ("present", "past", "past", "perfect")
MODALS = (CAN, MUST, SHOULD, COULD, WANT, WANTED, WILL, WILL)


class Chooser:
    """Picks words for one stream of sentences."""

    def __init__(self, world: World, random: Callable[[], float]):
        self.world = world
        self.random = random

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self.random() * len(items))]

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def noun_phrase(self, noun: Noun, one=OBJECT_ONE, many=OBJECT_MANY, plural: float = 0.3) -> NounPhrase:
        """A phrase around the noun, perhaps plural, perhaps with an adjective."""
        single = len(noun.numbers) == 1 or "kin" in noun.classes
        plural = 1.0 if "paired" in noun.classes else plural
        numbers = noun.numbers[0] if single or not self.chance(plural) else noun.numbers[1]
        return self.phrase(noun, numbers, one, many)

    def phrase(self, noun: Noun, numbers: tuple[int, int], one=OBJECT_ONE, many=OBJECT_MANY) -> NounPhrase:
        """A phrase around the noun in the given English and German number."""
        if noun.mass:
            determiners = DEFINITE if many is DEFINITE else OBJECT_MASS
        elif numbers[0] != numbers[1]:
            determiners = DEFINITE
        else:
            determiners = many if numbers[0] else one
        adjectives = self.world.attributes_of[noun]
        adjective = self.pick(adjectives) if adjectives and self.chance(0.28) else None
        determiner = self.pick(determiners)
        family = not noun.classes.isdisjoint(("kin", "sibling"))
        if determiner in self.world.unsuited[noun] or (family and determiner is THE):
            determiner = MY if family else THE  # whose mother? mine
        return NounPhrase(noun, numbers, determiner, adjective)

    def subject(self, verb: Verb, definite: bool = False):
        """Someone who may do it: mostly a noun phrase, sometimes a name, *I* or *we*."""
        if "person" in verb.subject:
            draw = self.random()
            if draw < 0.1:
                return FirstPerson(int(draw < 0.04))
            if draw < 0.22:
                return Name(self.pick(self.world.lexicon.names))
        noun = self.pick(self.world.fillers[verb, "subject"])
        return self.noun_phrase(noun, *((DEFINITE, DEFINITE) if definite else (SUBJECT_ONE, SUBJECT_MANY)), plural=0.25)

    def _other(self, verb: Verb, role: str, taken: list[Noun]) -> Noun:
        """A noun for the role that is not in the clause yet."""
        nouns = self.world.fillers[verb, role]
        noun = self.pick(nouns)
        while noun in taken:
            noun = self.pick(nouns)
        taken.append(noun)
        return noun

    def fill(self, clause: Clause) -> Clause:
        """Give the clause the objects and the place that its verb asks for."""
        verb = clause.verb
        taken = [clause.subject.noun] if clause.subject.noun else []
        one, many, plural = OBJECT_ONE, OBJECT_MANY, 0.3
        if "definite" in verb.flags:
            one, many = DEFINITE, DEFINITE
        elif "indefinite" in verb.flags:
            one, many = (A,), (BARE,) if clause.negated else NEW_MANY
        elif clause.negated:
            one, many = DENIED_ONE, DENIED_MANY
        elif "dative" in verb.slots:
            many = GIVEN_MANY
        if "many" in verb.flags:
            many = (BARE,) if clause.negated else (BARE, BARE, MANY)
        if "many" in verb.flags or ("own" in verb.flags and clause.subject.plural):
            plural = 1.0
        elif "one" in verb.flags or "own" in verb.flags:
            plural = 0.0
        for role in verb.slots:
            if role == "accusative":
                noun = self._other(verb, role, taken)
                while "own" in verb.flags and clause.subject.plural and len(noun.numbers) == 1:
                    noun = self._other(verb, role, taken)
                clause.accusative = self.noun_phrase(noun, one, many, plural)
            elif role == "dative":
                people = (DEFINITE, DEFINITE) if clause.negated else (SUBJECT_ONE, SUBJECT_MANY)
                clause.dative = self.noun_phrase(self._other(verb, role, taken), *people)
            elif role == "prepositional":
                clause.prepositional = self.noun_phrase(self._other(verb, role, taken), one, many)
            elif role != "that":
                self._place(clause, role, self._other(verb, role, taken))
        self._adapt(clause)
        return clause

    def _adapt(self, clause: Clause) -> None:
        """What the noun phrases of a clause owe to each other and to the verb."""
        flags, given, to = clause.verb.flags, clause.accusative, clause.dative
        for phrase in (given, clause.prepositional):
            if phrase and not flags.isdisjoint(("plain", "made")):
                phrase.adjective = None
        if to and to.plural and "each" in flags and not given.plural and not given.noun.mass:
            clause.dative = self.phrase(to.noun, to.noun.numbers[0], SUBJECT_ONE, SUBJECT_MANY)
        if clause.subject.person == 1 and clause.subject.plural:
            for phrase in (given, clause.dative, clause.prepositional):
                if phrase and phrase.determiner is MY:
                    phrase.determiner = OUR

    def _place(self, clause: Clause, role: str, noun: Noun) -> None:
        determiners = DEFINITE if role == "direction" or clause.negated else PLACE
        clause.place = self.noun_phrase(noun, determiners, DEFINITE, plural=0.0)
        clause.place_role = role

    def clause(self, verbs: Sequence[Verb], tense: str | None = None, negation: float = 0.0) -> Clause:
        """A whole clause around one of the verbs; without a tense, any that the verb allows, or a modal verb."""
        verb = self.pick(verbs)
        flags = verb.flags
        negated = self.chance(negation) and "known" not in flags
        modal = None
        if "state" in verb.flags:
            tense = "present"
        elif tense is None:
            if "wish" not in verb.flags and self.chance(0.22):
                modal = self.pick(MODALS)
            tense = "present" if modal else self.pick(TENSES)
        if tense == "present" and not modal and flags >= {"event", "wish"}:
            tense = "past"  # what happens to somebody is told afterwards
        if negated and (tense == "perfect" or (modal and not modal.negatable)):
            tense, modal = "past", None
        subject = self.subject(verb, definite=negated)
        if "known" in verb.flags and subject.determiner is not THIS:
            subject.determiner = THE
        if modal is COULD and not negated:
            modal = CAN  # "he could do it" may be about what might be: könnte, not konnte
        if modal and not can_want(subject):
            tense, modal = "past", None
        if tense == "present" and not modal and not negated and "accusative" not in verb.slots and self.chance(0.1):
            self._generalise(subject)
        clause = Clause(subject, verb, tense, modal)
        clause.negated = negated
        self.settle_tense(clause)
        return self.fill(clause)

    def _generalise(self, subject) -> None:
        """*The farmer* becomes *every farmer*."""
        single = isinstance(subject, NounPhrase) and subject.determiner is THE and not subject.plural
        if single and "person" in subject.noun.classes and EVERY not in self.world.unsuited[subject.noun]:
            subject.determiner = EVERY

    def settle_tense(self, clause: Clause) -> None:
        """*They read* could be present or past: such a verb takes *have*."""
        verb, subject = clause.verb, clause.subject
        if (
            verb.past == verb.base
            and not clause.negated
            and not clause.modal
            and (subject.plural or subject.person == 1)
        ):
            clause.tense = "perfect"

    def decorate(self, clause: Clause, time: float = 0.3, place: float = 0.35, manner: float = 0.2) -> Clause:
        """Add adverbials: a place only where the verb has none, manner and frequency only to positive sentences."""
        verb, world = clause.verb, self.world
        times = world.times.get(clause.modal or clause.tense)
        if "state" in verb.flags:
            return clause
        if times and self.chance(time):
            clause.time = self.pick(times)
            if not goes_with(clause, clause.time.english):
                clause.time = None
        elif clause.tense == "present" and is_habitual(clause) and self.chance(0.4):
            clause.frequency = self.pick(world.frequencies)
        if clause.negated:
            return clause
        places = world.fillers[verb, "where"]
        if places and not clause.place and self.chance(place):
            self._place(clause, "location", self.pick(places))
        elif verb.manner and not clause.frequency and takes_manner(clause) and self.chance(manner):
            clause.manner = world.manners[self.pick(verb.manner)]
            if repeats(clause, clause.manner):
                clause.manner = None
        return clause
