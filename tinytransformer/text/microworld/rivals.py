"""Rivals: subject and object that share an English pronoun but not a German one, and the adjectives that decide.

Drawn up once, so that every pair of nouns is as likely as any other and rare cases (they – er) are not lost.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

from tinytransformer.text.microworld.entries import Adjective, Noun, Reason
from tinytransformer.text.microworld.morphology import NOMINATIVE, THIRD, column
from tinytransformer.text.microworld.world import World, suits


class Rival(NamedTuple):
    """Two nouns with the numbers in which they share a pronoun, and for each the adjectives that suit only it."""

    reason: Reason
    done: bool
    subject: Noun
    subject_numbers: tuple[int, int]
    object: Noun
    object_numbers: tuple[int, int]
    subject_adjectives: tuple[Adjective, ...]
    object_adjectives: tuple[Adjective, ...]


@cache
def rivals(world: World, plural: int) -> tuple[Rival, ...]:
    """All rivals for *it* (plural 0) or *they* (plural 1)."""
    found = []
    for reason, done in product(world.lexicon.reasons, (True, False)):
        if list(reason.verb.slots) == ["accusative"]:
            for_subject = reason.done_subject if done else reason.undone_subject
            for_object = reason.done_object if done else reason.undone_object
            if plural and "own" in reason.verb.flags:
                continue  # several people, one of the German singulars: who would wear it?
            for (one, numbers), (other, other_numbers) in _pairs(world, reason, plural):
                firsts, seconds = _only(for_subject, one, other), _only(for_object, other, one)
                if firsts and seconds:
                    found.append(Rival(reason, done, one, numbers, other, other_numbers, firsts, seconds))
    return tuple(found)


def _pairs(world: World, reason: Reason, plural: int):
    """Subjects and objects of the reason's verb with the same English and different German pronouns."""
    subjects = _candidates(world.fillers[reason.verb, "subject"], plural)
    objects = _candidates(world.fillers[reason.verb, "accusative"], plural)
    for one, other in product(subjects, objects):
        if one[0] is not other[0] and _pronoun(*one) != _pronoun(*other):
            yield one, other


def _candidates(nouns: tuple[Noun, ...], plural: int) -> list[tuple[Noun, tuple[int, int]]]:
    return [
        (noun, numbers)
        for noun in nouns
        for numbers in noun.numbers
        if numbers[0] == plural and (plural or "person" not in noun.classes) and not (plural and "kin" in noun.classes)
    ]


def _pronoun(noun: Noun, numbers: tuple[int, int]) -> str:
    return THIRD[NOMINATIVE][column(noun, numbers[1])]


def _only(adjectives: tuple[Adjective, ...], noun: Noun, rival: Noun) -> tuple[Adjective, ...]:
    return tuple(a for a in adjectives if suits(a, noun) and not suits(a, rival))
