"""Attention of the shipped microworld model, recorded for hidden cases: outside, where the model is, not in the box."""

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from tinytransformer.text.microworld import Example, generate
from tinytransformer.text.microworld.examples import text_of
from tinytransformer.translation.translator import Translator


@dataclass(frozen=True, eq=False)
class Recorded:
    """One sentence pair: attention (L, H, queries, keys), the word number of each piece, and what is known about it."""

    encoder: Tensor
    cross: Tensor
    source_words: list[int]
    target_words: list[int]
    gold: list[tuple[int, int]]  # links (source word, target word)
    pronouns: list[tuple[int, int]]  # source words: the pronoun, and what it means
    in_pieces: bool


@functools.cache
def shipped() -> Translator:
    """The model of the microworld, read once."""
    return Translator.load("microworld-en-de", device="cpu")


@functools.lru_cache(maxsize=4)
def sentences(seed: int) -> list[Recorded]:
    """Sentences that the seed chooses. Half of them are cut into smaller pieces than usual, as BPE-dropout does: the
    vocabulary of the microworld has a piece for nearly every word, and words in pieces are what a task is about."""
    plain, contrasts = generate("valid", 14, seed), generate("test_pronoun", 26, seed)
    return recorded([*plain, *contrasts], seed)


def recorded(examples: list[Example], seed: int | None = None) -> list[Recorded]:
    """What the model looks at while it reads each source and writes the reference; with a seed half are cut small."""
    translator = shipped()
    texts = [[text_of(list(side)) for side in (one.source_words, one.target_words)] for one in examples]
    usual = [[translator.tokenizer.encode(text) for text in pair] for pair in texts]
    small = [False] * len(examples) if seed is None else [bool(i % 2) for i in range(len(examples))]
    if seed is not None:
        flat = translator.tokenizer.encode_at_random([text for pair in texts for text in pair], 0.2, seed % 2**31)
        usual = [flat[2 * i : 2 * i + 2] if cut else usual[i] for i, cut in enumerate(small)]
    return [_record(translator, *row) for row in zip(examples, usual, small, strict=True)]


def _record(translator: Translator, example: Example, ids: list[list[int]], in_pieces: bool) -> Recorded:
    records = translator.record(*ids)
    encoder, cross = (
        torch.stack([one.weights[0] for one in records if one.kind == kind]) for kind in ("encoder", "cross")
    )
    sides = (example.source_words, example.target_words)
    owners = [_owners(translator, list(words), pieces) for words, pieces in zip(sides, ids, strict=True)]
    gold = [(int(i), int(j)) for i, j in example.alignment]
    pronouns = [(one["position"], one["antecedent"]) for one in example.pronouns]
    return Recorded(encoder, cross, *owners, gold, pronouns, in_pieces)


def _owners(translator: Translator, words: list[str], ids: list[int]) -> list[int]:
    """The number of the word that each piece belongs to; a space alone belongs to the word after it."""
    letters = [number for number, word in enumerate(words) for _ in word]
    owners, place = [], 0
    for piece in translator.tokenizer.pieces(ids):
        owners.append(letters[place])
        place += len(piece.replace("▁", ""))
    return owners
