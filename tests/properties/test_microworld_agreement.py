"""Agreement, derived a second time: the case from the English tree and the verb's line in the lexicon, the forms from
tables as in a school grammar, written down here. Nothing of the grammar is imported, only its output read."""

import csv
import re
from pathlib import Path

import pytest

from tinytransformer.text.microworld import generate

DATA = Path(__file__).resolve().parents[2] / "data" / "microworld"

# The rows are nominative, accusative, dative; the columns masculine, feminine, neuter, plural.
DEFINITE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
LIKE_DIESER = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}
LIKE_EIN = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en"}
AFTER_DER = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"}
AFTER_EIN = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"}
WITHOUT_ARTICLE = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}
EIN_WORDS = {"a": "ein", "an": "ein", "my": "mein", "our": "unser"}
DIESER_WORDS = {"this": "dies", "these": "dies", "every": "jed", "many": "viel", "some": "einig"}
NUMBERS = {"two": "zwei", "three": "drei"}
CONTRACTED = {
    "im": "in dem",
    "ins": "in das",
    "am": "an dem",
    "ans": "an das",
    "zum": "zu dem",
    "zur": "zu der",
    "vom": "von dem",
    "beim": "bei dem",
}
ALWAYS_ACCUSATIVE = {"durch", "für", "um"}
ALWAYS_DATIVE = {"mit", "von", "zu", "bei", "aus", "nach"}


def cell(table, case, column):
    ending = table[case].split()["mfnp".index(column)]
    return "" if ending == "-" else ending


def rows(name):
    lines = [
        line for line in (DATA / name).read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    cells = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    return [dict(zip(cells[0], row + [""] * len(cells[0]), strict=False)) for row in cells[1:]]


NOUNS = {}
for row in rows("nouns.csv"):
    NOUNS[row["english"]] = (row, "singular")
    NOUNS[row["plural"]] = (row, "plural")
ADJECTIVES = {row["english"]: row for row in rows("adjectives.csv")}
# English base form, past or participle -> object part of its line; the particle or preposition tells verbs apart.
GOVERNMENT = {}
for row in rows("verbs.csv"):
    base, past, participle, *extra = row["english"].split()
    third = re.sub("([^aeiou])y$", r"\1ie", re.sub("(s|sh|ch|x|z|o)$", r"\1e", base)) + "s"
    third = "has" if base == "have" else third
    for form in {base, past, participle, third}:
        GOVERNMENT.setdefault(form, []).append(("".join(extra).lstrip("+"), row["objects"], row["german"]))


class Node:
    def __init__(self, label, parent):
        self.label, self.parent, self.children, self.word, self.position = label, parent, [], None, None


def parse(tree):
    """The tree as nodes, and its leaves in order."""
    root = node = Node("", None)
    leaves = []
    for token in re.findall(r"\(\S+|\)|[^\s()]+", tree):
        if token == ")":
            node = node.parent
        elif token[0] == "(":
            child = Node(token[1:], node)
            node.children.append(child)
            node = child
        else:
            node.word, node.position = token, len(leaves)
            leaves.append(node)
    return root.children[0], leaves


def noun_phrases(leaves):
    """(NP node, its leaves) for each simple noun phrase of the sentence that has a noun of the lexicon."""
    for leaf in leaves:
        if leaf.label in ("NN", "NNS") and leaf.word.lower() in NOUNS and leaf.parent.label == "NP":
            yield leaf.parent, leaf


def outermost(node):
    """The largest noun phrase around this one: with its relative clause, with the other half of a pair."""
    while node.parent.label == "NP":
        node = node.parent
    return node


def verb_of(node):
    """The main verb of a verb phrase with what tells its entry from others: particle, preposition, dative object."""
    word = next(child.word for child in node.children if child.label.startswith("VB"))
    rest = {c.children[0].word for c in node.children if c.label in ("PRT", "PP") and c.children[0].word}
    return word.lower(), rest


def candidates(node):
    word, extras = verb_of(node)
    lines = GOVERNMENT[word]
    exact = [line for line in lines if line[0] and line[0] in extras]
    return exact or [line for line in lines if not line[0]] or lines


def case_of(node, example, german_preposition):
    """The case that German demands, or a set of cases if English leaves two verbs open."""
    top = outermost(node)
    parent = top.parent
    if german_preposition in ALWAYS_ACCUSATIVE:
        return {"acc"}
    if german_preposition in ALWAYS_DATIVE:
        return {"dat"}
    if parent.label in ("S", "SQ"):
        return {"nom"}
    if german_preposition:
        return {two_way_case(parent, german_preposition, line) for line in candidates_above(parent)}
    phrase = parent.parent if parent.label == "PP" else parent
    nouns = [child for child in phrase.children if child.label == "NP" and not is_time(child)]
    cases = set()
    for extra, objects, _ in candidates(phrase):
        roles = [part.split()[0] for part in objects.split(";") if part.strip()]
        roles = [role for role in roles if role in ("acc", "dat")]
        if parent.label == "PP":
            cases.add("dat" if "dat" in roles else "acc")
        elif roles == ["dat", "acc"] and not extra:
            cases.add("dat" if nouns[0] is top and (len(nouns) == 2 or asks_what(top)) else "acc")
        elif "acc" in roles or "dat" in roles:
            cases.add("acc" if "acc" in roles else "dat")
    return cases


def candidates_above(node):
    """The entries of the verb that a prepositional phrase belongs to; it may stand in front of its sentence."""
    while node.label not in ("VP", "S"):
        node = node.parent
    while inner := [child for child in node.children if child.label == "VP" or is_infinitive(child)]:
        node = inner[0]
    return candidates(node)


def is_infinitive(node):
    return node.label == "S" and [child.label for child in node.children] == ["VP"]


def asks_what(node):
    """Whether the object that is missing here is the *what* of a question."""
    while node.parent and node.label != "SBARQ":
        node = node.parent
    return node.label == "SBARQ" and node.children[0].label == "WHNP" and node.children[0].children[0].word == "What"


def two_way_case(prepositional_phrase, preposition, line):
    """in, an, auf, über, neben: accusative for a direction (English to, into) or where the verb's line says so."""
    _, objects, _ = line
    english = prepositional_phrase.children[0].word.lower() if prepositional_phrase.label == "PP" else ""
    for part in objects.split(";"):
        words = part.split()
        if words[:1] == [preposition] and words[1:2] in (["acc"], ["dat"]):
            return words[1]
    return "acc" if english in ("to", "into") else "dat"


def is_time(node):
    return not any(leaf.word.lower() in NOUNS for leaf in node_leaves(node) if leaf.label in ("NN", "NNS"))


def node_leaves(node):
    return [node] if node.word else [leaf for child in node.children for leaf in node_leaves(child)]


def expected_forms(determiner, adjective, entry, number, case, negated):
    """Article, adjective and noun as the rules of German want them."""
    row, english_number = entry
    german_number = number_in_german(row, english_number)
    column = "p" if german_number == "plural" else row["gender"]
    kein = negated and determiner in ("a", "an", "any")
    if determiner == "the":
        article, table = cell(DEFINITE, case, column), AFTER_DER
    elif kein or determiner in EIN_WORDS:
        article, table = ("kein" if kein else EIN_WORDS[determiner]) + cell(LIKE_EIN, case, column), AFTER_EIN
    elif determiner in DIESER_WORDS:
        article = DIESER_WORDS[determiner] + cell(LIKE_DIESER, case, column)
        table = WITHOUT_ARTICLE if determiner in ("many", "some") else AFTER_DER
    else:
        article, table = NUMBERS.get(determiner, ""), WITHOUT_ARTICLE
    words = [article] if article else []
    if adjective:
        line = ADJECTIVES[adjective]
        stem = line["stem"] or re.sub("e$", "", line["german"])
        words.append(stem + cell(table, case, column))
    return [*words, noun_form(row, german_number, case)]


def number_in_german(row, english_number):
    if row["german"] == "-":
        return "plural"
    return "singular" if row["mehrzahl"] == "-" else english_number


def noun_form(row, number, case):
    if number == "plural":
        form = row["mehrzahl"]
        return form + "n" if case == "dat" and form[-1] not in "ns" else form
    return row["oblique"] if case != "nom" and row["oblique"] else row["german"]


def german_phrase(example, leaves):
    """The German words linked with the noun phrase's words, contractions undone; and the German preposition."""
    positions = {leaf.position for leaf in leaves if leaf.label != "RB"}
    linked = sorted({j for i, j in example.alignment if i in positions})
    words = [example.target_words[j] for j in linked]
    words[0] = words[0] if linked[0] else words[0][0].lower() + words[0][1:] if len(words) > 1 else words[0]
    if words[0] in CONTRACTED:
        preposition, article = CONTRACTED[words[0]].split()
        return [article, *words[1:]], preposition
    before = example.target_words[linked[0] - 1].lower() if linked[0] else ""
    known = ALWAYS_ACCUSATIVE | ALWAYS_DATIVE | {"in", "an", "auf", "über", "neben"}
    # A separable prefix also looks like a preposition, but then it ends its clause and no noun phrase follows it.
    return words, before if before in known else ""


@pytest.mark.parametrize("split", ["train", "test_long", "test_novel", "test_pronoun"])
def test_articles_adjectives_and_nouns_agree(split):
    checked = 0
    for example in generate(split, 1500, seed=11):
        _, leaves = parse(example.tree)
        for node, noun in noun_phrases(leaves):
            words = [leaf for leaf in node.children if leaf.word]
            determiner = next(
                (w.word.lower() for w in words if w.label in ("DT", "PRP$", "CD") or w.word.lower() == "many"), ""
            )
            adjective = next((w.word.lower() for w in words if w.label == "JJ" and w.word.lower() != "many"), "")
            actual, preposition = german_phrase(example, words)
            cases = case_of(node, example, preposition)
            entry = NOUNS[noun.word.lower()]
            negated = any(leaf.word == "not" for leaf in leaves)
            allowed = [
                expected_forms(determiner, adjective, entry, entry[1], case, kein)
                for case in cases
                for kein in ({False, negated} if determiner != "any" else {True})
            ]
            assert actual in allowed, f"{example.source} / {example.target}: {actual}, expected one of {allowed}"
            checked += 1
    assert checked > 3000
