"""Questions: patterns like those of `sentences`, but they end in a question mark and are not joined with others."""

from tinytransformer.text.microworld.choices import Chooser
from tinytransformer.text.microworld.clauses import LOCATION, QUESTION
from tinytransformer.text.microworld.morphology import COULD
from tinytransformer.text.microworld.phrases import Draft, Phrase
from tinytransformer.text.microworld.pronouns import what, who
from tinytransformer.text.microworld.rendering import render_clause

QUESTION_WORDS = {"where": "wo", "where to": "wohin", "when": "wann", "why": "warum"}


def yes_no(chooser: Chooser, draft: Draft) -> Phrase | None:
    clause = chooser.decorate(chooser.clause(chooser.world.actions))
    clause.frequency = None
    if clause.subject.person == 1 or clause.modal is COULD:  # "could he …?" may be a request: könnte, not konnte
        return None
    draft.constructions.add("question")
    return render_clause(clause, draft, QUESTION)


def who_what(chooser: Chooser, draft: Draft) -> Phrase | None:
    """Who does it, what is done, to whom."""
    clause = chooser.clause(chooser.world.actions)
    if clause.tense == "perfect":
        clause.tense = "past"  # questions with do are never ambiguous, and "what has she worn?" sounds odd
    things = clause.accusative and not clause.accusative.noun.classes.isdisjoint(("item", "food", "drink"))
    if chooser.chance(0.4) and "person" in clause.verb.subject:
        clause.subject = who()
        if clause.verb.past == clause.verb.base:
            return None
    elif things and "unasked" not in clause.verb.flags:
        clause.accusative = what()
    elif clause.dative and not clause.accusative and not clause.verb.preposition:
        clause.dative = who()
    else:
        return None
    if clause.subject.person == 1 or clause.modal is COULD:
        return None
    draft.constructions.add("question")
    return render_clause(clause, draft, QUESTION)


def where_when_why(chooser: Chooser, draft: Draft) -> Phrase | None:
    clause = chooser.decorate(chooser.clause(chooser.world.actions, tense=chooser.pick(("present", "past"))), time=0.0)
    if clause.subject.person == 1:
        return None
    clause.frequency = None
    key = chooser.pick(("where", "when", "why"))
    if key == "where":
        if not clause.place:
            return None
        key = "where" if clause.place_role == LOCATION else "where to"
        clause.place = None
    draft.constructions.add("question")
    unit, word = draft.unit(), key.split()[0]
    lead = Phrase([(word, unit)], f"(WHADVP (WRB {word}))", [(QUESTION_WORDS[key], unit)])
    return render_clause(clause, draft, QUESTION, lead)


# Each pattern with its share in percent.
QUESTIONS = ((yes_no, 4), (who_what, 2), (where_when_why, 2))
