"""Splits: which sentence belongs where, decided by the sentence alone and so the same for every seed and size.

    train, valid, test   4 to 24 words; a checksum of the English sentence says which of the three
    test_long            25 to 40 words
    test_novel           4 to 24 words, with a combination of noun and verb or of adjective and noun that is held out
    test_pronoun         contrastive pairs about two nouns that never meet in one sentence of another split

Only test_novel contains held-out combinations, only test_pronoun contains held-out noun pairs.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from zlib import crc32

from tinytransformer.text.microworld.entries import Noun

SPLITS = ("train", "valid", "test", "test_long", "test_novel", "test_pronoun")
HELD_OUT_PERCENT = 3
HELD_OUT_PAIRS_PERCENT = 12
SHORT = (4, 24)
LONG = (25, 40)
_MARKS = (",", ".", "?")


def check_split(split: str) -> None:
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: use one of {', '.join(SPLITS)}")


@cache
def held_out_combination(word: str, noun: str) -> bool:
    """Whether an adjective or a verb is never combined with this noun in training."""
    return crc32(f"{word} + {noun}".encode()) % 100 < HELD_OUT_PERCENT


@cache
def held_out_pair(noun: Noun, other: Noun) -> bool:
    """Whether two nouns never meet in a training sentence; the order does not matter.

    Only nouns that one English pronoun could mean are held out: *it* means no person, and *they* is worth resolving
    where a plural is a German singular (the children and the vegetables).
    """
    if noun is other or not ((_thing(noun) and _thing(other)) or _lone_plural(noun) or _lone_plural(other)):
        return False
    first, second = sorted((noun.key, other.key))
    return crc32(f"{first} & {second}".encode()) % 100 < HELD_OUT_PAIRS_PERCENT


def _thing(noun: Noun) -> bool:
    return "person" not in noun.classes


def _lone_plural(noun: Noun) -> bool:
    return noun.numbers == ((1, 0),)


def fits_combinations(split: str, pairs: Iterable[tuple[str, str]]) -> bool:
    """Held-out combinations belong to test_novel, and only there."""
    novel = any(held_out_combination(word, noun) for word, noun in pairs)
    return novel == (split == "test_novel")


def fits_nouns(nouns: Sequence[Noun]) -> bool:
    """No two nouns of the sentence are a held-out pair, and none comes twice."""
    if len(set(nouns)) < len(nouns):
        return False
    return not any(held_out_pair(noun, other) for noun, other in combinations(nouns, 2))


def fits_length(split: str, words: list[str]) -> bool:
    """The lower limit does not count punctuation, the upper one does: so the limits hold both ways of counting."""
    low, high = LONG if split == "test_long" else SHORT
    return len(words) <= high and len(words) - sum(map(words.count, _MARKS)) >= low


def fits_checksum(split: str, source: str) -> bool:
    """Of twenty sentences, eighteen are for training, one for validation, one for the test."""
    if split not in ("train", "valid", "test"):
        return True
    share = crc32(source.encode()) % 20
    return split == ("valid" if share == 0 else "test" if share == 1 else "train")
