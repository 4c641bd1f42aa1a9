"""Reasons: sentences with a pronoun that the rest of the sentence resolves, alone and as contrastive pairs.

"The animal did not cross the street because it was too tired" – *es*, the animal; "… too wide" – *sie*, the street.
"The man found the book beside the cake, and he wanted to read it" – *es*, the book; "… eat it" – *ihn*, the cake.

They and them are *sie* for every German plural. They are worth resolving all the same, for some English plurals are
German singulars: "The children did not eat the vegetables because they were too tired / too salty" – *sie* / *es*.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tinytransformer.text.microworld.choices import DEFINITE, OBJECT_ONE, Chooser
from tinytransformer.text.microworld.clauses import BESIDE, Clause
from tinytransformer.text.microworld.entries import Adjective, Noun, Reason
from tinytransformer.text.microworld.morphology import ACCUSATIVE, THIRD, WANTED
from tinytransformer.text.microworld.phrases import NounPhrase
from tinytransformer.text.microworld.pronouns import Name, Pronoun, english_kind
from tinytransformer.text.microworld.rivals import Rival
from tinytransformer.text.microworld.world import suits


class Explained(NamedTuple):
    """An action and the clause about one of its nouns that explains it."""

    action: Clause
    because: Clause

    @property
    def antecedent(self) -> Noun | None:
        """What the pronoun means."""
        return self.because.subject.noun


class Choice(NamedTuple):
    """Two antecedents for one English pronoun, each with the words that select it."""

    first: NounPhrase
    second: NounPhrase


def explained(chooser: Chooser, wanted: bool = False) -> Explained | None:
    """An action with its reason, or None if the words at hand do not decide. With `wanted`: what one wanted to do."""
    reason = chooser.pick(chooser.world.lexicon.reasons)
    done = not wanted and chooser.chance(0.5)
    action = _action(chooser, reason, done, wanted)
    target = chooser.pick(("subject", "object")) if action.accusative else "subject"
    nominal = action.subject if target == "subject" else action.accusative
    adjective = _adjective(chooser, reason, done, target, nominal, action)
    return Explained(action, _because(nominal, adjective, done)) if adjective else None


def _action(chooser: Chooser, reason: Reason, done: bool, wanted: bool) -> Clause:
    verb = reason.verb
    subject = _somebody(chooser, verb)
    if isinstance(subject, NounPhrase):
        subject.adjective = None  # the nervous man because he was happy?
    action = Clause(subject, verb, "present" if wanted else "past", WANTED if wanted else None)
    action.negated = not done and not wanted
    chooser.settle_tense(action)
    chooser.fill(action)
    if action.accusative:
        one = OBJECT_ONE if done else DEFINITE
        numbers = (action.accusative.plural, action.accusative.german_plural)
        action.accusative = chooser.phrase(action.accusative.noun, numbers, one, DEFINITE)
        action.accusative.adjective = None  # it could contradict the reason: the dry cake because it was fresh
    return action


def _somebody(chooser: Chooser, verb) -> NounPhrase | Name:
    if "person" in verb.subject and chooser.chance(0.1):
        return Name(chooser.pick(chooser.world.lexicon.names))
    noun = chooser.pick(chooser.world.fillers[verb, "subject"])
    return chooser.noun_phrase(noun, DEFINITE, DEFINITE)


def _adjective(chooser: Chooser, reason: Reason, done: bool, target: str, nominal, action: Clause) -> Adjective | None:
    """An adjective that suits the target and nothing else in the sentence that the pronoun could mean."""
    if not has_pronoun(nominal):
        return None
    rivals = [a for a in action.arguments if a is not nominal and english_kind(a) == english_kind(nominal)]
    adjectives = getattr(reason, f"{'done' if done else 'undone'}_{target}")
    fitting = [a for a in adjectives if _decides(a, nominal, rivals)]
    return chooser.pick(fitting) if fitting else None


def has_pronoun(nominal) -> bool:
    """*The girl … she* would be *es* or *sie* in German, as one likes: a singular neuter person gets no pronoun."""
    return nominal.noun is None or not ("person" in nominal.noun.classes and nominal.column == 2)


def _decides(adjective: Adjective, nominal, rivals: list) -> bool:
    suited = nominal.noun is None or suits(adjective, nominal.noun)
    repeated = getattr(nominal, "adjective", None) is adjective
    return suited and not repeated and not any(rival.noun and suits(adjective, rival.noun) for rival in rivals)


def _because(nominal, adjective: Adjective, done: bool) -> Clause:
    clause = Clause(Pronoun(nominal), None, "past")
    clause.adjective = adjective
    clause.degree = None if done else ("too", "zu")
    return clause


def contrast_of_reasons(chooser: Chooser, choices: Sequence[Rival]) -> tuple[Explained, Explained]:
    """The same action explained by its subject and by its object: one English word and the German pronoun differ."""
    rival = chooser.pick(choices)
    subject = chooser.phrase(rival.subject, rival.subject_numbers, DEFINITE, DEFINITE)
    object_ = chooser.phrase(rival.object, rival.object_numbers, DEFINITE, DEFINITE)
    object_.adjective = None
    action = Clause(subject, rival.reason.verb, "past")
    action.accusative = object_
    action.negated = not rival.done
    chooser.settle_tense(action)
    first, second = chooser.pick(rival.subject_adjectives), chooser.pick(rival.object_adjectives)
    if subject.adjective is first:
        subject.adjective = None
    return Explained(action, _because(subject, first, rival.done)), Explained(
        action, _because(object_, second, rival.done)
    )


def _same_but_german(one, other, case: int) -> bool:
    """Whether two phrases share the English pronoun but not the German one."""
    return (
        one.noun is not None
        and english_kind(one) == english_kind(other)
        and has_pronoun(one)
        and THIRD[case][one.column] != THIRD[case][other.column]
    )


class Found(NamedTuple):
    """Somebody found one thing beside another and wanted to do something with it."""

    finding: Clause
    wish: Clause

    @property
    def antecedent(self) -> Noun | None:
        return self.wish.accusative.noun


Contrasted = Explained | Found


def found_beside(chooser: Chooser) -> tuple[Found, Found] | None:
    """Two sentences that differ in the verb of the wish, which decides what *it* or *them* means."""
    world = chooser.world
    # *Them* is worth resolving only where an English plural is a German singular, so those are not left to chance.
    one, first = chooser.pick(world.handy_plurals if chooser.chance(0.3) else world.handy_pairs)
    two, second = chooser.pick(world.handy_pairs)
    if not (_portable(first) and _portable(second)) or second in world.fillers[one, "accusative"]:
        return None
    if first in world.fillers[two, "accusative"]:
        return None
    plural = 0.5
    things = Choice(
        chooser.noun_phrase(first, OBJECT_ONE, DEFINITE, plural),
        chooser.noun_phrase(second, DEFINITE, DEFINITE, plural),
    )
    if not _same_but_german(*things, ACCUSATIVE):
        return None
    finder = _finder(chooser)
    return _found(chooser, finder, things, one, things.first), _found(chooser, finder, things, two, things.second)


def _portable(noun: Noun) -> bool:
    return not noun.classes.isdisjoint(("item", "food"))


def _finder(chooser: Chooser) -> NounPhrase | Name:
    while True:
        finder = _somebody(chooser, chooser.world.find)
        if has_pronoun(finder) and not finder.plural:
            return finder


def _found(chooser: Chooser, finder, things: Choice, verb, wanted: NounPhrase) -> Found:
    finding = Clause(finder, chooser.world.find, "past")
    finding.accusative, finding.place = things
    finding.place_role = BESIDE
    wish = Clause(Pronoun(finder), verb, "present", WANTED)
    wish.accusative = Pronoun(wanted)
    return Found(finding, wish)
