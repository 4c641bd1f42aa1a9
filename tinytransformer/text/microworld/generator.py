"""The generator: an endless stream of examples of a split, the same for the same seed on every machine."""

import hashlib
from collections.abc import Iterator
from itertools import islice
from random import Random

from tinytransformer.text.microworld.choices import Chooser
from tinytransformer.text.microworld.examples import Example, finish, source_words_of, text_of
from tinytransformer.text.microworld.phrases import Draft, Phrase
from tinytransformer.text.microworld.reasons import contrast_of_reasons, found_beside
from tinytransformer.text.microworld.sentences import (
    AND,
    QUESTIONS,
    STATEMENTS,
    coordinate,
    join_because,
    join_found,
)
from tinytransformer.text.microworld.splits import (
    check_split,
    fits_checksum,
    fits_combinations,
    fits_length,
    fits_nouns,
    held_out_pair,
)
from tinytransformer.text.microworld.world import World, embedded_world

JOINED = 0.08  # share of sentences that are two patterns joined by "and"; all of test_long is joined


def generate(split: str, count: int, seed: int = 0, world: World | None = None) -> Iterator[Example]:
    """Yield `count` examples of a split. Nothing is stored; a longer stream begins with the shorter one."""
    check_split(split)
    if count < 0:
        raise ValueError(f"count is {count}: ask for 0 examples or more")
    digest = hashlib.sha256(f"{split} {seed}".encode()).digest()
    chooser = Chooser(world or embedded_world(), Random(int.from_bytes(digest[:8])).random)
    stream = _contrasts(chooser) if split == "test_pronoun" else _sentences(split, chooser)
    return islice(stream, count)


def _expand(patterns) -> tuple:
    return tuple(pattern for pattern, share in patterns for _ in range(share))


_STATEMENTS = _expand(STATEMENTS)
_ALL = _expand(STATEMENTS + QUESTIONS)


def _sentences(split: str, chooser: Chooser) -> Iterator[Example]:
    compose = _long if split == "test_long" else _short
    while True:
        draft = Draft()
        phrase, mark = compose(chooser, draft)
        if phrase is None or not fits_combinations(split, draft.combinations) or not fits_nouns(draft.nouns):
            continue
        words = source_words_of(phrase, mark)
        if fits_length(split, words) and fits_checksum(split, text_of(words)):
            yield finish(phrase, draft, words)


def _short(chooser: Chooser, draft: Draft) -> tuple[Phrase | None, str]:
    pattern = chooser.pick(_ALL)
    phrase = pattern(chooser, draft)
    if "question" in draft.constructions:
        return phrase, "?"
    if phrase and chooser.chance(JOINED):
        return _join(phrase, chooser, draft), "."
    return phrase, "."


def _join(phrase: Phrase, chooser: Chooser, draft: Draft) -> Phrase | None:
    more = chooser.pick(_STATEMENTS)(chooser, draft)
    return coordinate(phrase, AND, more, draft) if more else None


def _long(chooser: Chooser, draft: Draft) -> tuple[Phrase | None, str]:
    """Patterns joined until the sentence is long."""
    phrase = chooser.pick(_STATEMENTS)(chooser, draft)
    while phrase and len(phrase.english) < 25:
        phrase = _join(phrase, chooser, draft)
    return phrase, "."


def _contrasts(chooser: Chooser) -> Iterator[Example]:
    """Contrastive pairs, one sentence after the other; which antecedent comes first is left to chance."""
    while True:
        if chooser.chance(0.7):
            pair, join = contrast_of_reasons(chooser), join_because
        else:
            pair, join = found_beside(chooser), join_found
        if pair:
            examples = [_finished(join, member) for member in pair]
            if all(map(_fits_contrast, examples)):
                yield from examples if chooser.chance(0.5) else reversed(examples)


def _finished(join, member) -> Example:
    draft = Draft()
    phrase = join(member, draft)
    return finish(phrase, draft, source_words_of(phrase, "."))


def _fits_contrast(example: Example) -> bool:
    """The two nouns that the pronoun could mean are a held-out pair; nothing else about the sentence is new."""
    return (
        held_out_pair(*example.nouns[-2:])
        and fits_combinations("test_pronoun", list(example.combinations))
        and fits_length("test_pronoun", example.source_words)
    )
