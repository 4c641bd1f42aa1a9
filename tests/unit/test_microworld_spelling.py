"""Every form of the lexicon and of the grammar is known to a spelling dictionary."""

import shutil
import subprocess

import pytest

from tinytransformer.text.microworld import SPLITS, generate
from tinytransformer.text.microworld.lexicon import embedded_lexicon
from tinytransformer.text.microworld.morphology import (
    DATIVE,
    german_noun,
    present,
    preterite,
    third_person,
)

# Correct words that Debian's dictionaries lack, each with the reason why it is right.
_JOINED = "correct: a separable prefix and its verb are one word at the end of a subordinate clause"
GERMAN_EXCEPTIONS = {
    "Clara": "a first name",
    "Laura": "a first name",
    "gegrast": "correct: participle of grasen",
    "aufhängte": _JOINED,
    "aufhängten": _JOINED,
    "mitnimmt": _JOINED,
    "weglief": _JOINED,
    "wegliefen": _JOINED,
    "wegläuft": _JOINED,
    "wegwarf": _JOINED,
    "wegwarfen": _JOINED,
    "wegwirft": _JOINED,
    "zurückgibt": _JOINED,
    "zurückkam": _JOINED,
    "zurückkamen": _JOINED,
}


def unknown(words: set[str], dictionary: str) -> set[str]:
    """The words that hunspell does not know; skips where hunspell or the dictionary is not installed."""
    if shutil.which("hunspell") is None:
        pytest.skip("hunspell is not installed (Debian: hunspell hunspell-de-de hunspell-en-us)")
    done = subprocess.run(
        ["hunspell", "-d", dictionary, "-i", "utf-8", "-l"],
        input="\n".join(sorted(words)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if "Can't open" in done.stderr:
        pytest.skip(f"the dictionary {dictionary} is not installed (Debian: hunspell-de-de hunspell-en-us)")
    return set(done.stdout.split())


def generated(side: str) -> set[str]:
    """Words as they come in sentences; the first one only if it is a noun, for its capital says nothing."""
    words: set[str] = set()
    for split in SPLITS:
        for example in generate(split, 4000 if split == "train" else 500, seed=8):
            words.update(getattr(example, side)[1:])
    return words - {",", ".", "?"}


def german_forms() -> set[str]:
    lexicon = embedded_lexicon()
    forms: set[str] = set()
    for noun in lexicon.nouns:
        forms |= {german_noun(noun, n, case) for n in (0, 1) if noun.german[n] for case in (0, 1, DATIVE)}
    for verb in lexicon.verbs:
        finite = {present(verb, person, number) for person in (1, 3) for number in (0, 1)}
        finite |= {preterite(verb, 0), preterite(verb, 1)}
        forms |= finite | {verb.prefix + form for form in finite} | {verb.prefix + verb.infinitive, verb.partizip}
    for adjective in lexicon.adjectives:
        forms |= {adjective.german, *(adjective.stem + ending for ending in ("e", "er", "es", "en", "em"))}
    return (
        forms | {word for adverb in lexicon.adverbs for word in adverb.german} | {name.name for name in lexicon.names}
    )


def english_forms() -> set[str]:
    lexicon = embedded_lexicon()
    forms = {form for noun in lexicon.nouns for form in noun.english if form}
    for verb in lexicon.verbs:
        forms |= {verb.base, verb.past, verb.participle, third_person(verb.base)}
    forms |= {adjective.english for adjective in lexicon.adjectives}
    return (
        forms | {word for adverb in lexicon.adverbs for word in adverb.english} | {name.name for name in lexicon.names}
    )


def test_the_dictionary_refuses_a_misspelt_word():
    assert unknown({"Strase", "Straße"}, "de_DE") == {"Strase"}
    assert unknown({"stret", "street"}, "en_US") == {"stret"}


def test_german():
    assert unknown(german_forms() | generated("target_words"), "de_DE") <= set(GERMAN_EXCEPTIONS)


def test_english():
    assert unknown(english_forms() | generated("source_words"), "en_US") == set()
