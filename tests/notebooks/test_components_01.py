"""What lesson 01 builds is what the package and PyTorch have: lifted out and compared on random sizes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import randomise
from support_notebooks import lifted

from tinytransformer.model.cells import CELLS, RecurrentLayer
from tinytransformer.model.early_attention import AdditiveAttention

sizes = st.integers(1, 6)
NAMES = {"rnn": "PlainRNN", "gru": "GatedGRU", "lstm": "GatedLSTM"}


def assert_the_nets_are_the_packages(built: dict, batch: int, length: int, d_input: int, d_model: int) -> None:
    generator = torch.Generator().manual_seed(batch * 100 + length)
    x = torch.randn(batch, length, d_input, generator=generator)
    for cell, name in NAMES.items():
        layer, ours = randomise(RecurrentLayer(cell, d_input, d_model)), built[name](d_input, d_model)
        ours.load_state_dict(layer.fused.state_dict(), strict=True)
        before = tuple(torch.randn(ours.parts, batch, d_model, generator=generator))
        with torch.no_grad():
            torch.testing.assert_close(ours(x), layer(x))
            torch.testing.assert_close(ours(x, before), layer(x, before))
            by_formula = CELLS[cell].formula(*ours.shares(x[:, 0], before[0]), before)
            torch.testing.assert_close(ours.step(x[:, 0], before), by_formula)


def assert_the_attention_is_the_packages(built: dict, batch: int, queries: int, words: int, d_model: int) -> None:
    generator = torch.Generator().manual_seed(batch * 100 + words)
    theirs, ours = randomise(AdditiveAttention(d_model)), built["Additive"](d_model)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    query, states = (torch.randn(batch, n, d_model, generator=generator) for n in (queries, words))
    lengths = torch.randint(1, words + 1, (batch, 1), generator=generator)
    mask = torch.arange(words) < lengths
    with torch.no_grad():
        contexts, weights = theirs.attend(query, theirs.keys(states), states, mask[:, None, None])
        torch.testing.assert_close(ours(query, states, mask), (contexts, weights[:, 0]))


def assert_all_parts_are_the_packages(built: dict) -> None:
    assert_the_nets_are_the_packages(built, 2, 4, 3, 5)
    assert_the_attention_is_the_packages(built, 3, 2, 5, 4)


LESSON = lifted("01_before_attention")


@given(batch=sizes, length=sizes, d_input=sizes, d_model=sizes)
def test_recurrent_nets_of_lesson_01(batch, length, d_input, d_model):
    assert_the_nets_are_the_packages(LESSON, batch, length, d_input, d_model)


@given(batch=sizes, queries=sizes, words=sizes, d_model=sizes)
def test_additive_attention_of_lesson_01(batch, queries, words, d_model):
    assert_the_attention_is_the_packages(LESSON, batch, queries, words, d_model)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("h @ self.weight_hh_l0.T", "h @ self.weight_hh_l0"),
        ("+ self.bias_ih_l0, h", ", h"),
        ("state = self.step(word, state)", "state = self.step(word, state) if seen else self.step(0 * word, state)"),
        ("state = state or (x", "state = (x"),
        ("torch.tanh(from_word + from_state)", "torch.tanh(from_word) + from_state"),
        ("take, forget, candidate, show", "forget, take, candidate, show"),
        ("* torch.tanh(c), c", "* c, c"),
        ("* c + torch", "* c.tanh() + torch"),
        ("reset_x, update_x, candidate_x", "update_x, reset_x, candidate_x"),
        ("update * state[0] + (1 - update) * candidate", "update * candidate + (1 - update) * state[0]"),
        ("torch.tanh(pairs)", "pairs"),
        ("~mask[:, None]", "mask[:, None]"),
        ("weights @ states, weights", "weights @ self.u(states), weights"),
    ],
)
def test_a_change_in_lesson_01_is_noticed(old, new):
    changed = lifted("01_before_attention", lambda source: source.replace(old, new))
    with pytest.raises((AssertionError, RuntimeError)):
        assert_all_parts_are_the_packages(changed)
