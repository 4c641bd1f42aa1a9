"""English order: subject, verbs, objects, manner, place, time; *do* where a question or *not* needs it."""

from tinytransformer.text.microworld.clauses import QUESTION, Clause, Parts
from tinytransformer.text.microworld.morphology import WANT, WANTED, third_person
from tinytransformer.text.microworld.phrases import Phrase, Token

Side = tuple[list[Token], str]  # tokens and their trees, side by side


def english_clause(clause: Clause, parts: Parts, form: str, lead) -> Side:
    """The English tokens and tree of a clause; a clause with a moved pronoun or question word has that in front."""
    subject = parts.subject
    inverted = form == QUESTION and not clause.subject.moves
    chain = _chain(clause, inverted)
    moved = moved_object(clause, parts)
    words, tree = _verb_phrase(chain, clause, parts, inverted, lead)
    if inverted:
        word, tag = chain[0]
        words = [(word, parts.auxiliary), *subject.english, *words]
        tree = f"(SQ ({tag} {word}) {subject.tree} {tree})"
        question_word = moved or lead
        return (
            (question_word.english + words, f"(SBARQ {question_word.tree} {tree})") if question_word else (words, tree)
        )
    if clause.subject.moves:
        tree = f"(SBARQ {subject.tree} (SQ {tree}))" if form == QUESTION else f"{subject.tree} (S {tree})"
        return subject.english + words, tree
    words, tree = subject.english + words, f"{subject.tree} {tree}"
    if moved:
        return moved.english + words, f"{moved.tree} (S {tree})"
    if lead:
        return [*lead.english, (",", lead.comma), *words], f"(S {lead.tree} (, ,) {tree})"
    return words, f"(S {tree})"


def moved_object(clause: Clause, parts: Parts) -> Phrase | None:
    """The object that is a relative or question pronoun, if there is one."""
    if clause.accusative and clause.accusative.moves:
        return parts.accusative
    return parts.dative if clause.dative and clause.dative.moves else None


def _chain(clause: Clause, inverted: bool) -> list[tuple[str, str]]:
    """The verbs from the finite one to the main verb, each with its tag."""
    verb, modal = clause.verb, clause.modal
    bare = bool(clause.subject.plural or clause.subject.person == 1)  # without -s
    past = clause.tense == "past" or modal is WANTED
    if verb is None:
        return [_be(clause, past)]
    support = []
    if clause.negated or inverted:
        support = [("did", "VBD") if past else ("do", "VBP") if bare else ("does", "VBZ")]
    if modal is WANT or modal is WANTED:
        want = ("want", "VB") if support else (modal.english[bare], "VBD" if past else "VBP" if bare else "VBZ")
        return [*support, want, ("to", "TO"), (verb.base, "VB")]
    if modal:
        return [(modal.english[bare], "MD"), (verb.base, "VB")]
    if clause.tense == "perfect":
        return [("have", "VBP") if bare else ("has", "VBZ"), (verb.participle, "VBN")]
    if support:
        return [*support, (verb.base, "VB")]
    return [(verb.past, "VBD") if past else (verb.base, "VBP") if bare else (third_person(verb.base), "VBZ")]


def _be(clause: Clause, past: bool) -> tuple[str, str]:
    if clause.subject.plural:
        return ("were", "VBD") if past else ("are", "VBP")
    if past:
        return ("was", "VBD")
    return ("am", "VBP") if clause.subject.person == 1 else ("is", "VBZ")


def _verb_phrase(chain: list[tuple[str, str]], clause: Clause, parts: Parts, inverted: bool, lead) -> Side:
    """Everything from the finite verb on; in an inverted question everything but it."""
    words, trees = _complements(clause, parts, lead)
    middle, middle_trees = _after_finite(parts, frequency=len(chain) > 1)
    last = len(chain) - 1
    for position in range(last, -1, -1):
        word, tag = chain[position]
        between, between_trees = (middle, middle_trees) if position == 0 else ([], [])
        if position == 0 and inverted:
            return between + words, " ".join(between_trees + trees)
        words = [(word, parts.verb if position == last else parts.auxiliary), *between, *words]
        tree = f"(VP {' '.join([f'({tag} {word})', *between_trees, *trees])})"
        trees = [f"(S {tree})" if tag == "TO" else tree]
    if last == 0 and parts.frequency:
        return parts.frequency.english + words, f"{parts.frequency.tree} {trees[0]}"
    return words, trees[0]


def _after_finite(parts: Parts, frequency: bool) -> tuple[list[Token], list[str]]:
    words: list[Token] = []
    trees = []
    if parts.negation:
        words.append(("not", parts.negation))
        trees.append("(RB not)")
    if frequency and parts.frequency:
        words += parts.frequency.english
        trees.append(parts.frequency.tree)
    return words, trees


def _complements(clause: Clause, parts: Parts, lead) -> tuple[list[Token], list[str]]:
    words: list[Token] = []
    trees: list[str] = []
    for english, tree in _objects(clause, parts):
        words += english
        trees.append(tree)
    # What German says with a preposition may be a plain object in English (climb the hill carefully).
    rest = (parts.manner, parts.prepositional)
    if clause.verb and not clause.verb.preposition:
        rest = (parts.prepositional, parts.manner)
    for phrase in (parts.predicate, *rest, parts.place, parts.time, parts.that):
        if phrase and phrase is not lead:
            words += phrase.english
            trees.append(phrase.tree)
    return words, trees


def _objects(clause: Clause, parts: Parts) -> list[Side]:
    """Particle, dative and accusative object; a moved one leaves only its preposition behind."""
    verb = clause.verb
    if verb is None:
        return []
    direct, indirect = _object(clause.accusative, parts.accusative), _object(clause.dative, parts.dative)
    if verb.particle:
        particle = [([(verb.particle, parts.verb)], f"(PRT (RP {verb.particle}))")]
        shift = clause.accusative is not None and clause.accusative.is_pronoun
        return direct + particle if shift else particle + direct
    if verb.preposition and not parts.prepositional:
        preposition = (verb.preposition, parts.verb)
        behind = indirect if clause.dative else direct
        words = [preposition, *(behind[0][0] if behind else [])]
        tree = f"(PP (IN {verb.preposition}){' ' + behind[0][1] if behind else ''})"
        return [*(direct if clause.dative else []), (words, tree)]
    return indirect + direct


def _object(nominal, phrase: Phrase | None) -> list[Side]:
    return [(phrase.english, phrase.tree)] if phrase and not nominal.moves else []
