"""Examples: a rendered sentence becomes text, words, word alignment, tree and pronouns."""

from dataclasses import dataclass
from typing import Any

from tinytransformer.text.microworld.entries import Noun
from tinytransformer.text.microworld.phrases import Draft, Phrase, Token

# The constructions of German that an example may show, so that scores can be reported for each.
CONSTRUCTIONS = {
    "article": "an article or a word like it, by gender, case and number",
    "adjective": "an adjective with its ending",
    "plural": "a German plural",
    "verb_second": "something other than the subject first, then the verb, then the subject",
    "clause_weil": "verb last after weil",
    "clause_dass": "verb last after dass",
    "clause_als": "verb last after als",
    "clause_relative": "verb last in a relative clause",
    "separable": "a verb with a separable prefix, separated or not",
    "perfect_haben": "perfect with haben, participle last",
    "perfect_sein": "perfect with sein, participle last",
    "modal": "modal verb or werden, infinitive last",
    "negation_nicht": "nicht",
    "negation_kein": "kein",
    "dative_object": "a dative object",
    "preposition_dative": "a preposition with the dative",
    "preposition_accusative": "a preposition with the accusative",
    "time_place": "time and place, in German in this order",
    "question": "a question with or without a question word",
    "compound": "clauses or phrases joined by und, aber, denn or oder",
    "pronoun": "a pronoun with an antecedent in the sentence",
}
_CLOSING = (",", ".", "?")


@dataclass(frozen=True)
class Example:
    """A sentence pair with everything that is known about it; `to_dict` gives the published part."""

    source: str
    target: str
    source_words: list[str]
    target_words: list[str]
    alignment: list[list[int]]  # pairs [source position, target position]
    tree: str
    constructions: list[str]
    pronouns: list[dict[str, Any]]  # position and antecedent in the source words, target: the German pronoun
    combinations: tuple[tuple[str, str], ...]  # (adjective, noun) and (verb, noun), as held out for test_novel
    nouns: tuple[Noun, ...]  # as held out in pairs for test_pronoun

    def to_dict(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {key: value for key, value in vars(self).items() if key not in ("combinations", "nouns")}


def source_words_of(phrase: Phrase, mark: str) -> list[str]:
    """The English words of a sentence that ends with the mark."""
    words = [word for word, _ in phrase.english]
    words[0] = _capital(words[0])
    words.append(mark)
    return words


def finish(phrase: Phrase, draft: Draft, source_words: list[str]) -> Example:
    """Work out the annotations of a sentence, given its `source_words_of`."""
    unit, mark = draft.unit(), source_words[-1]
    english = [*phrase.english, (mark, unit)]
    german = _single_commas([*phrase.german, (mark, unit)])
    target_words = [word for word, _ in german]
    target_words[0] = _capital(target_words[0])
    places: dict[int, list[int]] = {}
    for position, (_, unit) in enumerate(english):
        places.setdefault(unit, []).append(position)
    return Example(
        source=text_of(source_words),
        target=text_of(target_words),
        source_words=source_words,
        target_words=target_words,
        alignment=_alignment(places, german),
        tree=_capital_leaf(f"{phrase.tree[:-1]} (. {mark}))"),
        constructions=[name for name in CONSTRUCTIONS if name in draft.constructions],
        pronouns=[
            {"position": places[unit][0], "antecedent": places[antecedent][0], "target": target}
            for unit, antecedent, target in draft.pronouns
        ],
        combinations=tuple(draft.combinations),
        nouns=tuple(draft.nouns),
    )


def _single_commas(german: list[Token]) -> list[Token]:
    """Without commas that stand before another mark: clauses bring their own comma on both sides."""
    last = len(german) - 1
    return [t for i, t in enumerate(german) if t[0] != "," or (i < last and german[i + 1][0] not in _CLOSING)]


def _alignment(places: dict[int, list[int]], german: list[Token]) -> list[list[int]]:
    """Unit 0 belongs to words without a partner."""
    links = [[i, j] for j, (_, unit) in enumerate(german) if unit for i in places.get(unit, ())]
    links.sort()
    return links


def _capital(word: str) -> str:
    return word[0].upper() + word[1:]


def _capital_leaf(tree: str) -> str:
    end = tree.index(")")
    start = tree.rindex(" ", 0, end) + 1
    return tree[:start] + tree[start].upper() + tree[start + 1 :]


def text_of(words: list[str]) -> str:
    """Words as a reader writes them: no space before a mark."""
    return " ".join(words).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")
