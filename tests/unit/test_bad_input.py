"""Bad input gets an error that names the value and the remedy."""

import pytest
import torch
from support import VOCAB, random_ids, small_model

from tinytransformer import MultiHeadAttention, TransformerConfig, attention
from tinytransformer.model.positions import LearnedPositions, RotaryPositions, SinusoidalPositions


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 10, "num_heads": 4}, r"d_model=10 is not divisible by num_heads=4: .* or give d_k"),
        ({"d_model": 10, "num_heads": 4, "d_k": 2}, r"d_model=10 is not divisible by num_heads=4: .* or give d_v"),
        ({"d_model": 9, "num_heads": 3}, r"d_model=9 is odd.*make it even, or choose other positions"),
        ({"d_model": 6, "num_heads": 2, "positions": "rotary"}, r"d_k=3 is odd.*make d_k even"),
        ({"norm": "Post"}, r"norm='Post' is unknown: choose one of post, pre"),
        ({"positions": "alibi"}, r"positions='alibi' is unknown: choose one of sinusoidal, learned, rotary, none"),
        ({"activation": "tanh"}, r"activation='tanh' is unknown: choose one of relu, gelu, silu"),
        ({"dropout": 1.0}, r"dropout=1.0 is outside \[0, 1\)"),
        ({"dropout": -0.1}, r"dropout=-0.1 is outside \[0, 1\)"),
        ({"dropout": float("nan")}, r"dropout=nan is outside \[0, 1\)"),
        ({"attention_dropout": 1.5}, r"attention_dropout=1.5 is outside \[0, 1\)"),
        ({"dropout": "0.1"}, r"dropout='0.1' is outside \[0, 1\)"),
        ({"tie_embeddings": "no"}, r"tie_embeddings='no' must be True or False"),
        ({"vocab_size": 0}, r"vocab_size=0 must be a whole number of at least 1"),
        ({"vocab_size": 2}, r"end_id=2 is outside the vocabulary: choose one of 0 … 1"),
        ({"num_layers": 2.5}, r"num_layers=2.5 must be a whole number of at least 1"),
        ({"num_heads": 0}, r"num_heads=0 must be"),
        ({"window": -1}, r"window=-1 must be a whole number of at least 0"),
        ({"d_k": 0}, r"d_k=0 must be a whole number of at least 1"),
        ({"pad_id": 500}, r"pad_id=500 is outside the vocabulary: choose one of 0 … 99"),
    ],
)
def test_configurations(changes, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**{"vocab_size": 100, **changes})


def test_sizes_that_do_not_divide_are_fine_when_heads_are_given():
    TransformerConfig(vocab_size=100, d_model=10, num_heads=4, d_k=3, d_v=5)


GOOD = torch.full((2, 5), 7)


@pytest.mark.parametrize(
    ("source", "target", "error", "message"),
    [
        (torch.full((2, 41), 7), GOOD, ValueError, r"source has 41 tokens but max_length=40: shorten it, or build"),
        (GOOD, torch.full((2, 41), 7), ValueError, r"target has 41 tokens but max_length=40"),
        (torch.full((2, 5), VOCAB), GOOD, ValueError, r"source ids run from 31 to 31, outside the vocabulary 0 … 30"),
        (GOOD, torch.tensor([[5, -1], [6, 7]]), ValueError, r"target ids run from -1 to 7, outside the vocabulary"),
        (torch.empty(0, 5, dtype=torch.long), GOOD, ValueError, r"source is empty, shape \(0, 5\): give at least one"),
        (GOOD, torch.empty(2, 0, dtype=torch.long), ValueError, r"target is empty, shape \(2, 0\)"),
        (torch.tensor([5, 6]), GOOD, ValueError, r"source ids must be \(batch, length\), got shape \(2,\)"),
        (torch.rand(2, 5, 16), GOOD, ValueError, r"source ids must be \(batch, length\), got shape \(2, 5, 16\)"),
        (torch.rand(2, 5), GOOD, TypeError, r"source ids must be torch.int64 or .* got torch.float32: write source.lo"),
        (GOOD, GOOD.bool(), TypeError, r"target ids must be torch.int64 or .* got torch.bool"),
        (GOOD, GOOD[:1], ValueError, r"target has 1 rows but the source has 2: .*memory.select\(rows\)"),
    ],
)
@pytest.mark.parametrize("positions", ["sinusoidal", "none"])
def test_ids(source, target, error, message, positions):
    model = small_model(positions=positions)
    with pytest.raises(error, match=message):
        model(source, target)


def test_decoding_past_max_length():
    model = small_model(max_length=6)
    memory = model.encode(random_ids(1, 6))
    _, cache = model.step(random_ids(1, 6), memory)
    with pytest.raises(ValueError, match="target has 7 tokens but max_length=6"):
        model.step(random_ids(1, 1), memory, cache)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (
            torch.ones(5, 6, dtype=torch.bool),
            ValueError,
            r"mask of shape \(5, 6\) does not broadcast to \(2, 4, 5, 7\)",
        ),
        (torch.ones(3, 1, 5, 7, dtype=torch.bool), ValueError, r"mask of shape \(3, 1, 5, 7\) does not broadcast"),
        (torch.ones(1, 2, 4, 5, 7, dtype=torch.bool), ValueError, r"does not broadcast to \(2, 4, 5, 7\)"),
        (torch.ones(7, dtype=torch.bool), ValueError, r"mask of shape \(7,\) does not broadcast"),
        (torch.ones(5, 7), TypeError, r"mask must be boolean.*got torch.float32: write mask.bool\(\)"),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_masks(mask, error, message, recorded):
    layer = MultiHeadAttention(16, 4)
    if recorded:
        layer.recorders.append(lambda *tensors: None)
    with pytest.raises(error, match=message):
        layer(torch.randn(2, 5, 16), torch.randn(2, 7, 16), torch.randn(2, 7, 16), mask)


def test_mask_of_the_attention_function():
    q, k = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    with pytest.raises(ValueError, match="give \\(queries, keys\\)"):
        attention(q, k, k, torch.ones(7, 5, dtype=torch.bool))


def test_each_key_needs_its_value():
    q, k = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    for wrong in (k[:, :, :6], torch.randn(2, 3, 8, 8), k[:1]):
        with pytest.raises(
            ValueError, match=r"each key needs its value, got keys of shape \(2, 3, 7, 8\) and values of"
        ):
            attention(q, k, wrong)
    layer, x = MultiHeadAttention(16, 4), torch.randn(2, 7, 16)
    with pytest.raises(ValueError, match="each key needs its value"):
        layer(x, x, x[:, :6])
    with pytest.raises(ValueError, match="batches of different sizes: 1, 2 and 2"):
        layer(x[:1], x, x)


@pytest.mark.parametrize("scheme", [SinusoidalPositions, LearnedPositions])
def test_positions_end_at_max_length(scheme):
    with pytest.raises(ValueError, match="positions up to 7 were asked for, but there are max_length=5"):
        scheme(d_model=4, d_k=4, max_length=5).add(torch.randn(1, 3, 4), offset=4)
    with pytest.raises(ValueError, match="positions up to 6"):
        RotaryPositions(d_model=4, d_k=4, max_length=5).rotate(torch.randn(1, 1, 6, 4))


def test_attention_names_the_size_it_wants():
    with pytest.raises(ValueError, match=r"d_model=16, got query of shape \(2, 5, 12\)"):
        MultiHeadAttention(16, 4)(torch.randn(2, 5, 12), torch.randn(2, 7, 16), torch.randn(2, 7, 16))
