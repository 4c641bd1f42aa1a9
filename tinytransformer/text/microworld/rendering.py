"""Rendering: a clause in both languages at once, alone or inside another sentence."""

from tinytransformer.text.microworld.clauses import MAIN, QUESTION, SUBORDINATE, Clause, Parts
from tinytransformer.text.microworld.english import english_clause
from tinytransformer.text.microworld.german import COMMA, german_clause
from tinytransformer.text.microworld.phrases import Draft, NounPhrase, Phrase
from tinytransformer.text.microworld.pronouns import relative_pronoun


def render_clause(clause: Clause, draft: Draft, form: str = MAIN, lead: str | Phrase | None = None) -> Phrase:
    """A clause without final punctuation. `lead` is what stands first in its place: "time", "place", or a rendered
    question word."""
    clause.inverted = form == QUESTION and not clause.subject.moves
    parts = Parts(clause, draft)
    if clause.that:
        parts.that = subordinate(("that", "dass"), clause.that, draft)
    if lead == "time" or lead == "place":
        lead = parts.time if lead == "time" else parts.place
        draft.constructions.add("verb_second")
    english, tree = english_clause(clause, parts, form, lead)
    return Phrase(english, tree, german_clause(clause, parts, form, lead))


def subordinate(conjunction: tuple[str, str], clause: Clause, draft: Draft) -> Phrase:
    """*because …* – *, weil …*; the German side begins and ends with a comma."""
    unit = draft.unit()
    english, german = conjunction
    draft.constructions.add("clause_" + german)
    inner = render_clause(clause, draft, SUBORDINATE)
    tag = "WRB" if english == "when" else "IN"
    opening = f"(WHADVP (WRB {english}))" if tag == "WRB" else f"(IN {english})"
    return Phrase(
        [(english, unit), *inner.english],
        f"(SBAR {opening} {inner.tree})",
        [COMMA, (german, unit), *inner.german, COMMA],
    )


def attach_relative(head: NounPhrase, clause: Clause, role: str) -> None:
    """Give a noun phrase a relative clause in which it plays the role subject, accusative or dative."""
    setattr(clause, role, relative_pronoun(head, role == "subject"))

    def render(draft: Draft) -> Phrase:
        draft.constructions.add("clause_relative")
        inner = render_clause(clause, draft, SUBORDINATE)
        return Phrase(inner.english, f"(SBAR {inner.tree})", [COMMA, *inner.german, COMMA])

    head.relative = render
