"""What lesson 06 builds is what the package and PyTorch have, on random sizes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import VOCAB, random_ids, randomise, small_model
from support_notebooks import lifted
from torch import nn

from tinytransformer import MultiHeadAttention, causal_mask, padding_mask
from tinytransformer.model.layers import FeedForward
from tinytransformer.model.positions import sinusoids

LESSON = lifted("06_model")


def assembled(built: dict, d_model: int, heads: int, d_ff: int, layers: int, norm: str) -> nn.Module:
    """The lesson's whole model."""
    residual = built["PostNorm" if norm == "post" else "PreNorm"]

    def attention():
        return MultiHeadAttention(d_model, heads)

    def network():
        return built["FeedForward"](d_model, d_ff)

    encoder = [built["EncoderLayer"](attention(), network(), d_model, residual) for _ in range(layers)]
    decoder = [built["DecoderLayer"](attention(), attention(), network(), d_model, residual) for _ in range(layers)]
    stacks = [
        built["Stack"](part, built["LayerNorm"](d_model) if norm == "pre" else nn.Identity())
        for part in (encoder, decoder)
    ]
    embedding = built["TiedEmbedding"](VOCAB, d_model)
    return built["EncoderDecoder"](embedding, *stacks, sinusoids(40, d_model))


def assert_the_model_is_the_packages(built: dict, heads: int, d_k: int, d_ff: int, layers: int, norm: str) -> None:
    d_model = 2 * heads * d_k
    sizes = {"d_model": d_model, "num_heads": heads, "d_ff": d_ff, "num_layers": layers, "norm": norm, "dropout": 0.0}
    theirs = small_model(**sizes)
    ours = assembled(built, d_model, heads, d_ff, layers, norm)
    ours.load_state_dict(theirs.state_dict())
    source, target = random_ids(3, 7, padding=3), random_ids(3, 5)
    logits = ours(source, target, padding_mask(source), causal_mask(5))
    torch.testing.assert_close(logits, theirs(source, target), atol=1e-4, rtol=1e-4)


def assert_both_orders(built: dict) -> None:
    for norm in ("post", "pre"):
        assert_the_model_is_the_packages(built, 2, 3, 12, 2, norm)


def assert_the_parts_are_right(built: dict, size: int, d_ff: int, length: int) -> None:
    x = 2 + 3 * torch.randn(2, length, size)
    norm, network = randomise(nn.LayerNorm(size)), randomise(FeedForward(size, d_ff))
    for name, theirs, arguments in (("LayerNorm", norm, (size,)), ("FeedForward", network, (size, d_ff))):
        ours = built[name](*arguments)
        ours.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(ours(x), theirs(x), atol=1e-4, rtol=1e-4)
    ids = random_ids(2, length)
    embedding = built["TiedEmbedding"](VOCAB, size)
    torch.testing.assert_close(embedding(ids), embedding.tokens[ids] * math.sqrt(size))


@given(
    heads=st.integers(1, 3),
    d_k=st.integers(1, 5),
    d_ff=st.integers(1, 20),
    layers=st.integers(1, 2),
    norm=st.sampled_from(["post", "pre"]),
)
def test_the_whole_model(heads, d_k, d_ff, layers, norm):
    assert_the_model_is_the_packages(LESSON, heads, d_k, d_ff, layers, norm)


@given(size=st.integers(2, 20), d_ff=st.integers(1, 20), length=st.integers(1, 6))
def test_the_parts(size, d_ff, length):
    assert_the_parts_are_right(LESSON, size, d_ff, length)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("square().mean(", "square().sum("),
        ("variance + self.eps", "variance + 0.1"),
        ("torch.relu(self.w_1(x))", "self.w_1(x)"),
        ("self.norm(x + sublayer(x))", "x + self.norm(sublayer(x))"),
        ("return x + sublayer(self.norm(x))", "return self.norm(x) + sublayer(self.norm(x))"),
        ("(h, memory, memory, memory_mask)", "(h, memory, memory, None)"),
        ("self.self_attention(h, h, h, mask)", "self.self_attention(h, h, h, None)"),
        ("* math.sqrt(self.tokens.size(1))", ""),
        ("return self.closing(x)", "return x"),
        ("self.embedding(target) + ", "self.embedding(target) - "),
    ],
)
def test_a_change_in_lesson_06_is_noticed(old, new):
    built = lifted("06_model", lambda source: source.replace(old, new))
    with pytest.raises(AssertionError):
        assert_both_orders(built)
