"""German order: Vorfeld, left bracket, Mittelfeld, right bracket, Nachfeld.

A main clause puts the finite verb second, a question first, a subordinate clause last; the rest keeps its order.
"""

from tinytransformer.text.microworld.clauses import LOCATION, SUBORDINATE, Clause, Parts
from tinytransformer.text.microworld.english import moved_object
from tinytransformer.text.microworld.morphology import AUXILIARIES, BARE, REFLEXIVE, SEIN, WAR, A, present, preterite
from tinytransformer.text.microworld.phrases import Token

COMMA = (",", 0)


def german_clause(clause: Clause, parts: Parts, form: str, lead) -> list[Token]:
    """The German tokens of a clause; commas between clauses may come doubled, the sentence drops those too many."""
    finite, right = _brackets(clause, parts)
    sich = _reflexive(clause, parts)
    first = lead or moved_object(clause, parts)
    subject = [*parts.subject.german, *parts.subject.trailing]
    middle = _middle_field(clause, parts, lead)
    after = _final_field(parts)
    if form == SUBORDINATE:
        return [*(first.german if first else []), *subject, *sich, *middle, *_verb_last(clause, finite, right), *after]
    if first or clause.inverted:
        # sich comes before a subject that is not a pronoun: "Gestern hat sich der Mann …", "… hat er sich …".
        behind = [*subject, *sich] if clause.subject.is_pronoun else [*sich, *subject]
        return [*(first.german if first else []), finite, *behind, *middle, *right, *after]
    return [*subject, finite, *sich, *middle, *right, *after]


def _reflexive(clause: Clause, parts: Parts) -> list[Token]:
    if not (clause.verb and clause.verb.reflexive):
        return []
    return [(REFLEXIVE[clause.subject.person, clause.subject.german_plural], parts.verb)]


def _brackets(clause: Clause, parts: Parts) -> tuple[Token, list[Token]]:
    """The finite verb, and what stands at the end of a main clause."""
    verb, subject = clause.verb, clause.subject
    agreement = (subject.person, subject.german_plural)
    if verb is None:
        return ((WAR if clause.tense == "past" else SEIN)[agreement], parts.verb), []
    if clause.modal:
        finite = _modal(clause, agreement)
        return (finite, parts.auxiliary), [(verb.prefix + verb.infinitive, parts.verb)]
    if clause.german_auxiliary:
        return (AUXILIARIES[verb.auxiliary][agreement], parts.auxiliary), [(verb.partizip, parts.verb)]
    finite = preterite(verb, subject.german_plural) if clause.tense != "present" else present(verb, *agreement)
    return (finite, parts.verb), [(verb.prefix, parts.verb)] if verb.prefix else []


def _modal(clause: Clause, agreement: tuple[int, int]) -> str:
    form = clause.modal.german[agreement[1]]
    return "werde" if form == "wird" and agreement[0] == 1 else form


def _verb_last(clause: Clause, finite: Token, right: list[Token]) -> list[Token]:
    """The end of a subordinate clause: a separable prefix joins its verb again."""
    if right and not clause.german_auxiliary:
        return [(right[0][0] + finite[0], finite[1])]
    return [*right, finite]


def _middle_field(clause: Clause, parts: Parts, lead) -> list[Token]:
    """Pronouns, definite dative, time, indefinite dative, accusative, nicht, manner, place, prepositional object,
    the place that the verb asks for, predicate.

    A definite object comes before the word that negates, and before the time if it is the only one. The place comes
    before an indefinite accusative, manner before one that begins with *ein* or without an article.
    """
    words: list[Token] = []
    dative, accusative = clause.dative, clause.accusative
    if accusative and (accusative.moves or accusative.is_pronoun):
        words += [] if accusative.moves else parts.accusative.german
        accusative = None
    if dative and dative.definite:
        words += [] if dative.moves else parts.dative.german
        dative = None
    never = clause.frequency is not None and clause.frequency.kind == "never"
    if accusative and accusative.definite and not clause.dative and (parts.nicht or never):
        words += parts.accusative.german
        accusative = None
    words += _adverbials(parts, lead)
    if dative:
        words += parts.dative.german
    free, asked = (parts.place, None) if _is_free(clause) else (None, parts.place)
    manner = parts.manner
    if accusative and not accusative.definite:
        if accusative.determiner in (A, BARE):
            words, manner = words + _in_order((manner,), lead), None
        words, free = words + _in_order((free,), lead), None
    if accusative:
        words += parts.accusative.german
    if parts.nicht:
        words.append(("nicht", parts.nicht))
    return words + _in_order((manner, free, parts.prepositional, asked, parts.predicate), lead)


def _is_free(clause: Clause) -> bool:
    """Whether the place is where it happens, not something that the verb asks for."""
    return clause.place_role == LOCATION and LOCATION not in clause.verb.slots


def _adverbials(parts: Parts, lead) -> list[Token]:
    words: list[Token] = []
    if parts.time and parts.time is not lead:
        words += parts.time.german
    if parts.frequency:
        words += parts.frequency.german
    return words


def _in_order(phrases, lead) -> list[Token]:
    return [token for phrase in phrases if phrase and phrase is not lead for token in phrase.german]


def _final_field(parts: Parts) -> list[Token]:
    """Relative clauses of objects and places, and clauses with dass."""
    words: list[Token] = []
    for phrase in (parts.dative, parts.accusative, parts.prepositional, parts.place):
        if phrase:
            words += phrase.trailing
    return words + parts.that.german if parts.that else words
