"""Clauses: who does what to whom, when and where. First the content, then its parts rendered in both languages.

Tenses, so that every English sentence has one translation:

    English simple present                      Präsens
    English simple past and present perfect     Perfekt; Präteritum after *als* ("when"), of *be* and of modal verbs
    English will, can, must, should, want to    werden, können, müssen, sollen, wollen with the infinitive
"""

from tinytransformer.text.microworld.entries import Adjective, Adverb, Verb
from tinytransformer.text.microworld.morphology import ACCUSATIVE, DATIVE, NOMINATIVE, Modal
from tinytransformer.text.microworld.phrases import Draft, NounPhrase, Phrase, adverbial, prepositional

MAIN, QUESTION, SUBORDINATE = "main", "question", "subordinate"
LOCATION, DIRECTION, BESIDE = "location", "direction", "beside"


class Clause:
    """The content of a clause. `verb` None means *be* with `adjective`; `place_role` says how `place` is meant."""

    def __init__(self, subject, verb: Verb | None, tense: str = "present", modal: Modal | None = None):
        self.subject = subject
        self.verb = verb
        self.tense = tense  # present, past or perfect
        self.modal = modal
        self.preterite = False  # German simple past instead of the perfect
        self.negated = False
        self.accusative = self.dative = self.prepositional = self.place = None
        self.place_role = ""
        self.time: Adverb | None = None
        self.frequency: Adverb | None = None
        self.manner: Adverb | None = None
        self.adjective: Adjective | None = None
        self.degree: tuple[str, str] | None = None  # too, zu
        self.that: Clause | None = None
        self.inverted = False  # a question in which English needs do or another auxiliary first

    @property
    def arguments(self) -> list:
        """The noun phrases that the verb is combined with."""
        return [a for a in (self.subject, self.accusative, self.dative, self.prepositional, self.place) if a]

    @property
    def german_auxiliary(self) -> bool:
        """Whether the German finite verb is an auxiliary or a modal."""
        return bool(self.modal or (self.verb and self.tense != "present" and not self.preterite))


class Parts:
    """The parts of a clause, each rendered once; the two languages then put them in order.

    `verb`, `auxiliary`, `negation` are units; `nicht` is 0 where an article carries the negation (kein).
    """

    def __init__(self, clause: Clause, draft: Draft):
        self.verb = draft.unit()
        self.auxiliary = self.verb
        if clause.german_auxiliary and (clause.modal or clause.negated or clause.tense == "perfect" or clause.inverted):
            self.auxiliary = draft.unit()
        self.negation = draft.unit() if clause.negated else 0
        kein = self.negation if self.negation and _takes_kein(clause.accusative) else 0
        self.nicht = 0 if kein else self.negation
        self.subject = clause.subject.render(NOMINATIVE, draft)
        self.dative = clause.dative.render(DATIVE, draft) if clause.dative else None
        self.accusative = clause.accusative.render(ACCUSATIVE, draft, kein) if clause.accusative else None
        self.time = adverbial(clause.time, draft) if clause.time else None
        self.frequency = adverbial(clause.frequency, draft) if clause.frequency else None
        self.manner = adverbial(clause.manner, draft) if clause.manner else None
        self.prepositional = _prepositional(clause, draft, self.verb) if clause.prepositional else None
        self.place = _place(clause, draft) if clause.place else None
        self.predicate = _predicate(clause, draft) if clause.adjective else None
        self.that: Phrase | None = None
        _note(clause, draft, bool(kein))


def _takes_kein(nominal) -> bool:
    return isinstance(nominal, NounPhrase) and nominal.negate()


def _prepositional(clause: Clause, draft: Draft, verb_unit: int) -> Phrase:
    slot = clause.verb.slots["prepositional"]
    case = ACCUSATIVE if slot.case == "acc" else DATIVE
    return prepositional(clause.verb.preposition, slot.preposition, clause.prepositional, case, draft, verb_unit)


def _place(clause: Clause, draft: Draft) -> Phrase:
    role, noun = clause.place_role, clause.place.noun
    if role == BESIDE:
        english, german = "beside", "neben"
    else:
        english, german = noun.direction if role == DIRECTION else noun.location
    case = ACCUSATIVE if role == DIRECTION and german != "zu" else DATIVE
    return prepositional(english, german, clause.place, case, draft, 0)


def _predicate(clause: Clause, draft: Draft) -> Phrase:
    adjective, unit = clause.adjective, draft.unit()
    english, tree, german = [(adjective.english, unit)], f"(JJ {adjective.english})", [(adjective.german, unit)]
    if clause.degree:
        degree, grad = clause.degree
        unit = draft.unit()
        english.insert(0, (degree, unit))
        german.insert(0, (grad, unit))
        tree = f"(RB {degree}) {tree}"
    return Phrase(english, f"(ADJP {tree})", german)


def _note(clause: Clause, draft: Draft, kein: bool) -> None:
    verb, notes = clause.verb, draft.constructions
    key = verb.key if verb else clause.adjective.english
    for argument in clause.arguments:
        if argument.noun:
            draft.combinations.append((key, argument.noun.key))
    if clause.negated:
        notes.add("negation_kein" if kein else "negation_nicht")
    if clause.modal:
        notes.add("modal")
    elif clause.german_auxiliary:
        notes.add("perfect_" + verb.auxiliary)
    if verb and verb.prefix:
        notes.add("separable")
    if clause.dative:
        notes.add("dative_object")
    if clause.time and clause.place:
        notes.add("time_place")
