"""What lesson 10 builds is what the tokenizer does: its definitions are lifted out and compared on random text."""

import re
from collections import Counter

import pytest
from answers.lesson_10 import learn
from hypothesis import given
from hypothesis import strategies as st
from support_notebooks import lifted

from tinytransformer.text.corpus import microworld
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training.checkpoints import find_model

PIECES = lifted("10_translator")
TOKENIZER = Tokenizer.load(find_model("multi30k-en-de"))
ORDER = {piece: rank for rank, piece in enumerate(TOKENIZER.pieces(range(len(TOKENIZER))))}
LETTERS = sorted(piece for piece in ORDER if len(piece) == 1 and piece.isalpha())


def assert_pieces_are_the_tokenizers(built: dict, word: str) -> None:
    assert built["split_into_pieces"](word, ORDER) == TOKENIZER.pieces(TOKENIZER.encode(word))


@given(st.text(st.sampled_from([*LETTERS, *"eennssttraaiid"]), min_size=1, max_size=20))
def test_pieces_of_lesson_10(word):
    assert_pieces_are_the_tokenizers(PIECES, word)


@pytest.mark.parametrize(
    ("old", "new"), [("min(known)", "max(known)"), ('"▁" + word', "word"), ("len(parts) - 1", "len(parts) - 2")]
)
def test_a_change_in_lesson_10_is_noticed(old, new):
    changed = lifted("10_translator", lambda source: source.replace(old, new))
    with pytest.raises(AssertionError):
        assert_pieces_are_the_tokenizers(changed, "Fußballspielerinnen")


def test_the_rule_for_equally_frequent_pairs_is_sentencepieces():
    text = microworld("train", 300, seed=5)
    sentences = [re.sub(r"[^\w ]", "", sentence) for sentence in (*text.source, *text.target)]
    words = Counter(word for sentence in sentences for word in sentence.split())
    letters = {letter for word in words for letter in "▁" + word}
    theirs = Tokenizer.train(sentences, 4 + len(letters) + 200)
    assert learn()(words, 200) == theirs.pieces(range(4, 204))
