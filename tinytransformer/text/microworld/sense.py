"""Sense: what may be said of a clause without sounding odd."""

from tinytransformer.text.microworld.clauses import Clause
from tinytransformer.text.microworld.entries import Adverb
from tinytransformer.text.microworld.morphology import BARE, THREE, TWO
from tinytransformer.text.microworld.phrases import NounPhrase

_AGAIN = ("person", "animal", "room", "house", "way")  # what one can meet, clean or cross again and again


def takes_manner(clause: Clause) -> bool:
    """Not before *müde Enten*, where it would seem to belong to the adjective, nor behind two objects."""
    thing = clause.accusative
    return not (thing and (clause.dative or (thing.determiner is BARE and thing.adjective)))


def goes_with(clause: Clause, time: tuple[str, ...]) -> bool:
    """Whether the time suits what happens: *every day* a habit, *two days ago* no stay."""
    if time[0] == "every":
        return is_habitual(clause)
    if clause.negated and time[-1] in ("ago", "week"):
        return False  # what does not happen takes no long time
    return time[-1] != "ago" or "lasting" not in clause.verb.flags


def is_habitual(clause: Clause) -> bool:
    """Whether it can be said to happen often or never: not what nobody plans, and not with things that are counted."""
    counted = any(getattr(argument, "determiner", None) in (TWO, THREE) for argument in clause.arguments)
    thing = clause.accusative
    single = thing is not None and not thing.plural and not thing.noun.mass and thing.noun.classes.isdisjoint(_AGAIN)
    return not (clause.modal or clause.negated or counted or single or clause.verb.flags & {"wish", "event", "made"})


def could_be_turned_round(head: NounPhrase, subject) -> bool:
    """*die Frau, die David begrüßt hat*: who greeted whom? Only masculine singulars show it, or different numbers."""
    living = not head.noun.classes.isdisjoint(("person", "animal"))
    shown = subject.person == 1 or head.german_plural != subject.german_plural
    return living and not shown and head.column != 0 and (subject.noun is None or subject.column != 0)


def repeats(clause: Clause, manner: Adverb) -> bool:
    """*der höflichen Frau höflich danken*: an adjective and an adverb that are the same word in German."""
    words = {argument.adjective.german for argument in clause.arguments if getattr(argument, "adjective", None)}
    return manner.german[0] in words


def can_want(subject) -> bool:
    """Things do not want, must or can."""
    return subject.noun is None or not subject.noun.classes.isdisjoint(("person", "animal"))
