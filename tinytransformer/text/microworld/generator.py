"""The generator: an endless stream of examples of a split, the same for the same seed on every machine."""

import hashlib
from collections.abc import Iterator
from itertools import islice
from random import Random

from tinytransformer.text.microworld.choices import Chooser
from tinytransformer.text.microworld.examples import Example, finish, source_words_of, text_of
from tinytransformer.text.microworld.phrases import Draft, Phrase
from tinytransformer.text.microworld.questions import QUESTIONS
from tinytransformer.text.microworld.reasons import Contrasted, contrast_of_reasons, found_beside
from tinytransformer.text.microworld.rivals import rivals
from tinytransformer.text.microworld.sentences import (
    AND,
    STATEMENTS,
    Pattern,
    coordinate,
    join_because,
    join_found,
)
from tinytransformer.text.microworld.splits import (
    LONG,
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


def _expand(patterns: tuple[tuple[Pattern, int], ...]) -> tuple[Pattern, ...]:
    return tuple(pattern for pattern, share in patterns for _ in range(share))


_STATEMENTS = _expand(STATEMENTS)
_ALL = _expand(STATEMENTS + QUESTIONS)


def _sentences(split: str, chooser: Chooser) -> Iterator[Example]:
    compose = _long if split == "test_long" else _short
    while True:
        draft = Draft()
        phrase = compose(chooser, draft)
        if not fits_combinations(split, draft.combinations) or not fits_nouns(draft.nouns):
            continue
        words = source_words_of(phrase, "?" if "question" in draft.constructions else ".")
        if fits_length(split, words) and fits_checksum(split, text_of(words)):
            yield finish(phrase, draft, words)


def _pattern(patterns: tuple[Pattern, ...], chooser: Chooser, draft: Draft) -> Phrase:
    """A sentence of one of the patterns; it is tried again until its words fit together."""
    pattern = chooser.pick(patterns)
    phrase = None
    while phrase is None:
        phrase = pattern(chooser, draft)
    return phrase


def _short(chooser: Chooser, draft: Draft) -> Phrase:
    phrase = _pattern(_ALL, chooser, draft)
    joined = "question" not in draft.constructions and chooser.chance(JOINED)
    return coordinate(phrase, AND, _pattern(_STATEMENTS, chooser, draft), draft) if joined else phrase


def _long(chooser: Chooser, draft: Draft) -> Phrase:
    phrase = _pattern(_STATEMENTS, chooser, draft)
    while len(phrase.english) < LONG[0]:
        phrase = coordinate(phrase, AND, _pattern(_STATEMENTS, chooser, draft), draft)
    return phrase


def _contrasts(chooser: Chooser) -> Iterator[Example]:
    """Contrastive pairs, one sentence after the other; which antecedent comes first is left to chance."""
    unseen = [[r for r in rivals(chooser.world, plural) if held_out_pair(r.subject, r.object)] for plural in (0, 1)]
    while True:
        pair, join = None, join_because
        reasons = chooser.chance(0.65)
        while pair is None or not _fits_contrast(*pair, join):
            if reasons:
                pair = contrast_of_reasons(chooser, unseen[chooser.chance(0.4)])
            else:
                pair, join = found_beside(chooser), join_found
        first, second = pair if chooser.chance(0.5) else reversed(pair)
        yield _finished(first, join)
        yield _finished(second, join)


def _fits_contrast(one: Contrasted, other: Contrasted, join) -> bool:
    """The two nouns that the pronoun could mean are a held-out pair; nothing else about the sentences is new."""
    if not held_out_pair(one.antecedent, other.antecedent):
        return False
    examples = [_finished(member, join) for member in (one, other)]
    return all(
        fits_combinations("test_pronoun", example.combinations) and fits_length("test_pronoun", example.source_words)
        for example in examples
    )


def _finished(member: Contrasted, join) -> Example:
    draft = Draft()
    phrase = join(member, draft)
    return finish(phrase, draft, source_words_of(phrase, "."))
