"""German and English grammar on sentences whose translation is known."""

from random import Random

import pytest

from tinytransformer.text.microworld.choices import Chooser
from tinytransformer.text.microworld.clauses import DIRECTION, LOCATION, QUESTION, Clause
from tinytransformer.text.microworld.examples import Example, finish, source_words_of
from tinytransformer.text.microworld.lexicon import embedded_lexicon
from tinytransformer.text.microworld.morphology import BARE, MY, THE, THIS, WANT, WANTED, WILL, A
from tinytransformer.text.microworld.phrases import Draft, NounPhrase, Pair, Phrase
from tinytransformer.text.microworld.pronouns import FirstPerson, Pronoun, what, who
from tinytransformer.text.microworld.reasons import Explained
from tinytransformer.text.microworld.rendering import attach_relative, render_clause, subordinate
from tinytransformer.text.microworld.sentences import coordinate, join_because
from tinytransformer.text.microworld.world import embedded_world

LEXICON = embedded_lexicon()
NOUNS = {noun.key: noun for noun in LEXICON.nouns}
VERBS = {f"{verb.prefix}{verb.infinitive}": verb for verb in LEXICON.verbs}
ADJECTIVES = {adjective.english: adjective for adjective in LEXICON.adjectives}
ADVERBS = {" ".join(adverb.english): adverb for adverb in LEXICON.adverbs}


def np(noun, determiner=THE, adjective=None, plural=False):
    noun = NOUNS[noun]
    return NounPhrase(noun, noun.numbers[-1 if plural else 0], determiner, ADJECTIVES.get(adjective))


def clause(subject, verb, tense="present", modal=None, **parts):
    made = Clause(subject, VERBS.get(verb), tense, modal)
    for name, value in parts.items():
        setattr(made, name, value)
    return made


def end(phrase: Phrase, draft: Draft, mark: str = ".") -> Example:
    return finish(phrase, draft, source_words_of(phrase, mark))


def sentence(made, form="main", lead=None, mark=".") -> tuple[str, str]:
    draft = Draft()
    example = end(render_clause(made, draft, form, lead), draft, mark)
    return example.source, example.target


@pytest.mark.parametrize(
    ("made", "english", "german"),
    [
        (clause(np("dog"), "sehen", accusative=np("cat", A)), "The dog sees a cat.", "Der Hund sieht eine Katze."),
        (
            clause(np("boy"), "geben", "past", dative=np("student"), accusative=np("apple", A, "sour")),
            "The boy gave the student a sour apple.",
            "Der Junge hat dem Studenten einen sauren Apfel gegeben.",
        ),
        (
            clause(np("teacher"), "erklären", dative=np("child", plural=True), accusative=np("rule")),
            "The teacher explains the rule to the children.",
            "Der Lehrer erklärt den Kindern die Regel.",
        ),
        (clause(np("woman"), "aufstehen"), "The woman gets up.", "Die Frau steht auf."),
        (clause(FirstPerson(0), "aufstehen", "past"), "I got up.", "Ich bin aufgestanden."),
        (
            clause(np("man"), "anrufen", modal=WANT, accusative=np("neighbor", MY)),
            "The man wants to call my neighbor.",
            "Der Mann will meinen Nachbarn anrufen.",
        ),
        (
            clause(np("child"), "kaufen", "past", negated=True, accusative=np("book", A)),
            "The child did not buy a book.",
            "Das Kind hat kein Buch gekauft.",
        ),
        (
            clause(np("child"), "trinken", negated=True, accusative=np("milk", BARE)),
            "The child does not drink any milk.",
            "Das Kind trinkt keine Milch.",
        ),
        (
            clause(np("man"), "lesen", "past", negated=True, accusative=np("book"), time=ADVERBS["yesterday"]),
            "The man did not read the book yesterday.",
            "Der Mann hat das Buch gestern nicht gelesen.",
        ),
        (
            clause(np("man"), "gehen", "past", place=np("park"), place_role=DIRECTION, time=ADVERBS["yesterday"]),
            "The man went to the park yesterday.",
            "Der Mann ist gestern in den Park gegangen.",
        ),
        (
            clause(np("man"), "gehen", "past", negated=True, place=np("bakery"), place_role=DIRECTION),
            "The man did not go to the bakery.",
            "Der Mann ist nicht zur Bäckerei gegangen.",
        ),
        (
            clause(np("girl"), "wohnen", place=np("house", THE, "old"), place_role=LOCATION),
            "The girl lives in the old house.",
            "Das Mädchen wohnt im alten Haus.",
        ),
        (
            clause(np("man"), "bauen", accusative=np("table", A), place=np("village"), place_role=LOCATION),
            "The man builds a table in the village.",
            "Der Mann baut im Dorf einen Tisch.",
        ),
        (
            clause(np("man"), "waschen", accusative=np("car"), place=np("yard"), place_role=LOCATION),
            "The man washes the car in the yard.",
            "Der Mann wäscht das Auto im Hof.",
        ),
        (
            clause(np("man"), "tragen", accusative=np("bag", A), place=np("house"), place_role=DIRECTION),
            "The man carries a bag into the house.",
            "Der Mann trägt eine Tasche ins Haus.",
        ),
        (
            clause(np("people"), "warten", prepositional=np("bus")),
            "The people wait for the bus.",
            "Die Leute warten auf den Bus.",
        ),
        (
            clause(FirstPerson(1), "erinnern", "past", prepositional=np("song")),
            "We remembered the song.",
            "Wir haben uns an das Lied erinnert.",
        ),
        (
            clause(np("vegetables", THIS), None, "past", adjective=ADJECTIVES["hot"], degree=("too", "zu")),
            "These vegetables were too hot.",
            "Dieses Gemüse war zu heiß.",
        ),
        (
            clause(Pair(np("boy"), np("girl")), "tanzen", place=np("park"), place_role=LOCATION, modal=WILL),
            "The boy and the girl will dance in the park.",
            "Der Junge und das Mädchen werden im Park tanzen.",
        ),
    ],
)
def test_statements(made, english, german):
    assert sentence(made) == (english, german)


def test_time_in_front_puts_the_verb_second():
    made = clause(
        np("man"), "einkaufen", "past", place=np("market"), place_role=LOCATION, time=ADVERBS["in the morning"]
    )
    assert sentence(made, lead="time") == (
        "In the morning, the man shopped at the market.",
        "Am Morgen hat der Mann auf dem Markt eingekauft.",
    )


def test_questions():
    made = clause(np("man"), "suchen", accusative=np("key"))
    assert sentence(made, QUESTION, mark="?") == ("Does the man look for the key?", "Sucht der Mann den Schlüssel?")
    made = clause(np("man"), "suchen", "past", accusative=what())
    assert sentence(made, QUESTION, mark="?") == ("What did the man look for?", "Was hat der Mann gesucht?")
    made = clause(who(), "helfen", dative=np("farmer"))
    assert sentence(made, QUESTION, mark="?") == ("Who helps the farmer?", "Wer hilft dem Bauern?")
    made = clause(np("farmer"), "helfen", dative=who())
    assert sentence(made, QUESTION, mark="?") == ("Who does the farmer help?", "Wem hilft der Bauer?")


def test_subordinate_clauses_end_with_the_verb():
    draft = Draft()
    event = clause(np("train"), "ankommen", "past", place=np("station"), place_role=LOCATION, preterite=True)
    phrase = subordinate(("when", "als"), event, draft)
    assert [word for word, _ in phrase.german] == [",", "als", "der", "Zug", "am", "Bahnhof", "ankam", ","]


def test_relative_clauses_of_subject_and_object():
    head = np("man")
    attach_relative(head, clause(None, "helfen", dative=np("child", plural=True)), "subject")
    thing = np("book", A)
    attach_relative(thing, clause(np("woman"), "schreiben", "past"), "accusative")
    made = clause(head, "kaufen", "past", accusative=thing)
    assert sentence(made) == (
        "The man who helps the children bought a book that the woman wrote.",
        "Der Mann, der den Kindern hilft, hat ein Buch gekauft, das die Frau geschrieben hat.",
    )


@pytest.mark.parametrize(
    ("target", "adjective", "german"),
    [
        ("subject", "tired", "Das Tier hat die Straße nicht überquert, weil es zu müde war."),
        ("object", "wide", "Das Tier hat die Straße nicht überquert, weil sie zu breit war."),
    ],
)
def test_the_famous_animal(target, adjective, german):
    action = clause(np("animal"), "überqueren", "past", negated=True, accusative=np("street"))
    meant = action.subject if target == "subject" else action.accusative
    reason = clause(Pronoun(meant), None, "past", adjective=ADJECTIVES[adjective], degree=("too", "zu"))
    draft = Draft()
    example = end(join_because(Explained(action, reason), draft), draft)
    assert example.source == f"The animal did not cross the street because it was too {adjective}."
    assert example.target == german
    antecedent = 1 if target == "subject" else 6
    assert example.pronouns == [{"position": 8, "antecedent": antecedent, "target": "es" if antecedent == 1 else "sie"}]
    assert example.tree == (
        "(S (NP (DT The) (NN animal)) (VP (VBD did) (RB not) (VP (VB cross) (NP (DT the) (NN street))) "
        f"(SBAR (IN because) (S (NP (PRP it)) (VP (VBD was) (ADJP (RB too) (JJ {adjective})))))) (. .))"
    )
    assert [4, 6] in example.alignment, "cross – überquert"
    assert [2, 2] in example.alignment, "did – hat"


def test_a_comma_before_und_keeps_two_main_clauses_apart():
    draft = Draft()
    left = render_clause(clause(np("man"), "tanzen", place=np("park"), place_role=LOCATION), draft)
    right = render_clause(clause(np("woman"), "helfen", dative=np("child")), draft)
    example = end(coordinate(left, ("and", "und"), right, draft), draft)
    assert example.target == "Der Mann tanzt im Park, und die Frau hilft dem Kind."
    assert [6, 5] in example.alignment, "comma – comma"


@pytest.mark.parametrize(
    ("made", "tense"),
    [
        (clause(np("man", plural=True), "lesen"), "perfect"),
        (clause(FirstPerson(0), "lesen", "past"), "perfect"),
        (clause(np("man"), "lesen", "past"), "past"),
        (clause(np("man", plural=True), "lesen", "past", negated=True), "past"),
        (clause(np("man", plural=True), "lesen", modal=WILL), "present"),
        (clause(np("man", plural=True), "sehen"), "present"),
    ],
)
def test_they_read_is_never_said(made, tense):
    Chooser(embedded_world(), Random(0).random).settle_tense(made)
    assert made.tense == tense


def test_wanted_is_past_and_links_with_to():
    draft = Draft()
    made = clause(np("boy"), "abholen", modal=WANTED, accusative=np("package"))
    example = end(render_clause(made, draft), draft)
    assert example.source_words == ["The", "boy", "wanted", "to", "pick", "up", "the", "package", "."]
    assert example.target_words == ["Der", "Junge", "wollte", "das", "Paket", "abholen", "."]
    assert example.alignment == [[0, 0], [1, 1], [2, 2], [3, 2], [4, 5], [5, 5], [6, 3], [7, 4], [8, 6]]
