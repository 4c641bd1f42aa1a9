"""Sentences: the patterns from which the corpus is drawn, each a function of the random choices and a draft.

A pattern returns a phrase without final punctuation, or None if the words at hand did not fit together; the caller then
tries again.
"""

from collections.abc import Callable

from tinytransformer.text.microworld.choices import (
    DEFINITE,
    OBJECT_MANY,
    OBJECT_ONE,
    SUBJECT_MANY,
    SUBJECT_ONE,
    TENSES,
    Chooser,
)
from tinytransformer.text.microworld.clauses import LOCATION, Clause
from tinytransformer.text.microworld.morphology import EVERY, THE, THIS, WILL
from tinytransformer.text.microworld.phrases import Draft, NounPhrase, Pair, Phrase
from tinytransformer.text.microworld.pronouns import Pronoun
from tinytransformer.text.microworld.reasons import (
    Explained,
    Found,
    contrast_of_reasons,
    explained,
    found_beside,
    has_pronoun,
)
from tinytransformer.text.microworld.rendering import attach_relative, render_clause, subordinate
from tinytransformer.text.microworld.rivals import rivals
from tinytransformer.text.microworld.sense import could_be_turned_round

Pattern = Callable[[Chooser, Draft], Phrase | None]

AND, BUT, FOR = ("and", "und"), ("but", "aber"), ("for", "denn")
DEGREES = (None, None, ("very", "sehr"))


def statement(chooser: Chooser, draft: Draft) -> Phrase:
    """One clause with adverbials, perhaps one of them in front."""
    clause = chooser.decorate(chooser.clause(chooser.world.actions, negation=0.12), time=0.55, place=0.6)
    return render_clause(clause, draft, lead=_lead(chooser, clause))


def _lead(chooser: Chooser, clause: Clause) -> str | None:
    if clause.time and chooser.chance(0.55):
        return "time"
    free = clause.place and clause.place_role == LOCATION and LOCATION not in clause.verb.slots
    if free and not clause.time and chooser.chance(0.25):
        return "place"
    return None


def denial(chooser: Chooser, draft: Draft) -> Phrase:
    """A negated sentence, mostly with an indefinite object: kein."""
    verbs = chooser.world.states if chooser.chance(0.2) else chooser.world.deniable
    clause = chooser.clause(verbs, negation=1.0)
    if chooser.chance(0.3):
        chooser.decorate(clause)
    return render_clause(clause, draft, lead=_lead(chooser, clause))


def state(chooser: Chooser, draft: Draft) -> Phrase:
    """What somebody likes, needs or has."""
    return render_clause(chooser.clause(chooser.world.states), draft)


def description(chooser: Chooser, draft: Draft) -> Phrase:
    """*The house was very old.*"""
    noun = chooser.pick(chooser.world.describable)
    adjectives = chooser.world.adjectives_of[noun]
    subject = chooser.noun_phrase(noun, DEFINITE, DEFINITE)
    clause = Clause(subject, None, chooser.pick(("present", "past")))
    clause.adjective = chooser.pick(adjectives)
    if subject.adjective is clause.adjective:
        subject.adjective = None
    clause.degree = chooser.pick(DEGREES) if clause.adjective.gradable else None
    clause.negated = clause.degree is None and chooser.chance(0.2)
    return render_clause(clause, draft)


def because(chooser: Chooser, draft: Draft) -> Phrase | None:
    """An action and its reason, with because or for."""
    if chooser.chance(0.45):
        found = chooser.pick(contrast_of_reasons(chooser, rivals(chooser.world, int(chooser.chance(0.4)))))
    else:
        found = explained(chooser)
    if not found:
        return None
    return join_for(found, draft) if chooser.chance(0.3) else join_because(found, draft)


def join_because(found: Explained, draft: Draft) -> Phrase:
    action = render_clause(found.action, draft)
    reason = subordinate(("because", "weil"), found.because, draft)
    return Phrase(action.english + reason.english, f"{action.tree[:-2]} {reason.tree}))", action.german + reason.german)


def join_for(found: Explained, draft: Draft) -> Phrase:
    return coordinate(render_clause(found.action, draft), FOR, render_clause(found.because, draft), draft)


def but_too(chooser: Chooser, draft: Draft) -> Phrase | None:
    """*The boy wanted to buy the coat, but it was too expensive.*"""
    found = explained(chooser, wanted=True)
    if not found:
        return None
    return coordinate(render_clause(found.action, draft), BUT, render_clause(found.because, draft), draft)


def beside(chooser: Chooser, draft: Draft) -> Phrase | None:
    """*The man found the book beside the cake, and he wanted to eat it.*"""
    pair = found_beside(chooser)
    return join_found(chooser.pick(pair), draft) if pair else None


def join_found(found: Found, draft: Draft) -> Phrase:
    return coordinate(render_clause(found.finding, draft), AND, render_clause(found.wish, draft), draft)


def coordinate(left: Phrase, conjunction: tuple[str, str], right: Phrase, draft: Draft) -> Phrase:
    """Two main clauses. German must set a comma before aber and denn and may before und: it does, for clarity."""
    english, german = conjunction
    unit, comma = draft.unit(), draft.unit()
    draft.constructions.add("compound")
    return Phrase(
        [*left.english, (",", comma), (english, unit), *right.english],
        f"(S {left.tree} (, ,) (CC {english}) {right.tree})",
        [*left.german, (",", comma), (german, unit), *right.german],
    )


def that(chooser: Chooser, draft: Draft) -> Phrase:
    """*The woman knows that …*"""
    clause = chooser.clause(chooser.world.that_verbs, chooser.pick(TENSES))
    if clause.tense == "present" and "event" in clause.verb.flags:
        clause.tense = "past"  # one notices what has happened
    tense = None if clause.tense == "present" else "past"
    inner = chooser.clause(chooser.world.actions, tense, negation=0.15)
    while "ahead" in clause.verb.flags and inner.modal is not WILL:
        inner = chooser.clause(chooser.world.actions, negation=0.15)
    clause.that = chooser.decorate(inner, time=0.25, place=0.3)
    return render_clause(clause, draft)


def when(chooser: Chooser, draft: Draft) -> Phrase:
    """*When the boy opened the door, the dog ran away.*"""
    before = chooser.clause(chooser.world.events, tense="past")
    before.preterite = True
    clause = chooser.clause(chooser.world.events, tense="past")
    while clause.verb is before.verb:
        clause = chooser.clause(chooser.world.events, tense="past")
    if clause.tense == "perfect":
        clause.tense = "past"
    opening = subordinate(("when", "als"), before, draft)
    comma = draft.unit()
    lead = Phrase(opening.english, opening.tree, [*opening.german[1:-1], (",", comma)], comma=comma)
    draft.constructions.add("verb_second")
    return render_clause(clause, draft, lead=lead)


def relative(chooser: Chooser, draft: Draft) -> Phrase | None:
    """A relative clause on the subject or on the last object."""
    clause = chooser.clause(chooser.world.actions)
    if chooser.chance(0.5):
        chooser.decorate(clause)
        clause.frequency = None  # behind a relative clause it could belong to either verb
        head = clause.subject
    else:
        others = clause.place or clause.prepositional or clause.dative or "made" in clause.verb.flags
        head = None if others else clause.accusative
    if not isinstance(head, NounPhrase) or head.determiner.tag == "PRP$":
        return None
    relations = chooser.world.relations[head.noun]
    if not relations:
        return None
    verb, role = chooser.pick(relations)
    if verb is clause.verb:
        return None
    inner = Clause(None, verb, "present" if "state" in verb.flags else "past")
    inner.subject = head if role == "subject" else chooser.subject(verb)
    if role == "accusative" and could_be_turned_round(head, inner.subject):
        return None
    chooser.settle_tense(inner)
    chooser.fill(inner)
    if (
        any(argument.noun is head.noun for argument in inner.arguments if argument is not inner.subject)
        and role == "subject"
    ):
        return None
    if head.determiner in (THIS, EVERY):
        head.determiner = THE
    attach_relative(head, inner, role)
    return render_clause(clause, draft)


def both(chooser: Chooser, draft: Draft) -> Phrase | None:
    """Two things that happen, or two things that somebody does: *…, and she …*"""
    verbs = chooser.world.wishes
    first, second = chooser.clause(verbs, tense="past"), chooser.clause(verbs, tense="past")
    if not all("person" in clause.verb.subject for clause in (first, second)) or not has_pronoun(first.subject):
        return None
    if chooser.chance(0.6) and first.subject.person == 3:
        second.subject = Pronoun(first.subject)
        chooser.settle_tense(second)
    return coordinate(render_clause(first, draft), AND, render_clause(second, draft), draft)


def pair(chooser: Chooser, draft: Draft) -> Phrase | None:
    """*The boy and the girl …*, *… an apple and a pear*, *… or …*"""
    clause = chooser.clause(chooser.world.actions)
    verb = clause.verb
    if chooser.chance(0.5) and verb.past != verb.base:
        noun = chooser.pick(chooser.world.fillers[verb, "subject"])
        other = chooser.noun_phrase(noun, SUBJECT_ONE, SUBJECT_MANY)
        if clause.subject.person == 1 or clause.subject.noun is noun:
            return None
        clause.subject = Pair(clause.subject, other)
    elif clause.accusative:
        noun = chooser.pick(chooser.world.fillers[verb, "accusative"])
        if clause.accusative.noun is noun or clause.accusative.noun.classes.isdisjoint(noun.classes):
            return None
        determiners = (DEFINITE, DEFINITE) if clause.accusative.definite else (OBJECT_ONE, OBJECT_MANY)
        conjunction = ("or", "oder") if clause.modal and chooser.chance(0.6) else AND
        clause.accusative = Pair(clause.accusative, chooser.noun_phrase(noun, *determiners), conjunction)
    else:
        return None
    return render_clause(clause, draft)


# Each pattern with its share in percent; what is left are questions.
STATEMENTS = (
    (statement, 27),
    (denial, 10),
    (state, 2),
    (description, 2),
    (because, 13),
    (but_too, 3),
    (beside, 3),
    (that, 9),
    (when, 8),
    (relative, 8),
    (both, 3),
    (pair, 4),
)
