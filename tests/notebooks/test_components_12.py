"""What lesson 12 builds is what the package and PyTorch have, on random sizes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import random_ids
from support_notebooks import lifted
from torch import nn
from torch.utils.checkpoint import checkpoint

from tinytransformer import TransformerConfig, attention
from tinytransformer.model import DecoderOnly, EncoderOnly

LESSON = lifted("12_after")


def assert_blocks_are_attention(built: dict, queries: int, keys: int, size: int, block: int) -> None:
    query, key = 3 * torch.randn(2, queries, size), 3 * torch.randn(2, keys, size)
    value = torch.randn(2, keys, size + 1)
    found = built["attention_in_blocks"](query, key, value, block)
    torch.testing.assert_close(found, attention(query, key, value), atol=1e-5, rtol=1e-4)


def assert_masks_are_the_families(built: dict, length: int, padding: int) -> None:
    ids = random_ids(2, length, padding)
    for family, kind in (("encoder", EncoderOnly), ("decoder", DecoderOnly)):
        theirs = kind(TransformerConfig(vocab_size=50, d_model=8, num_heads=2, d_ff=8, num_layers=1)).mask(ids)
        assert torch.equal(built["family_mask"](ids, 0, family), theirs.expand(2, 1, length, length))
    prefix = min(2, length)
    wanted = torch.tensor([[k < prefix or k <= q for k in range(length)] for q in range(length)])
    found = built["family_mask"](ids, 0, "prefix", prefix)
    assert torch.equal(found, wanted & (ids != 0)[:, None, None, :])


def assert_the_same_gradients(built: dict, size: int, rows: int) -> None:
    layer = nn.Sequential(nn.Linear(size, 2 * size), nn.Tanh(), nn.Linear(2 * size, size))
    x = torch.randn(rows, size, requires_grad=True)
    wanted, kept = [x, *layer.parameters()], []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda t: t):
        output = built["Recompute"].apply(layer, x, *layer.parameters())
    assert (rows, 2 * size) not in kept, "what lies inside the layer is kept"
    found = torch.autograd.grad(output.square().sum(), wanted)
    for one, other in zip(found, torch.autograd.grad(layer(x).square().sum(), wanted), strict=True):
        torch.testing.assert_close(one, other)
    theirs = torch.autograd.grad(checkpoint(layer, x, use_reentrant=False).square().sum(), wanted)
    torch.testing.assert_close(found, theirs)


def assert_all_is_right(built: dict) -> None:
    assert_blocks_are_attention(built, 5, 8, 4, 2)
    assert_masks_are_the_families(built, 6, 2)
    assert_the_same_gradients(built, 4, 25)


@given(queries=st.integers(1, 6), keys=st.integers(1, 9), size=st.integers(1, 8), block=st.integers(1, 10))
def test_blocks(queries, keys, size, block):
    assert_blocks_are_attention(LESSON, queries, keys, size, block)


@given(length=st.integers(1, 7), padding=st.integers(0, 3))
def test_masks(length, padding):
    assert_masks_are_the_families(LESSON, length, min(padding, length - 1))


@given(size=st.integers(1, 6), rows=st.integers(1, 5))
def test_recomputing(size, rows):
    assert_the_same_gradients(LESSON, size, 20 + rows)  # more rows than any matrix has


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("output * old[..., None]", "output"),
        ("total * old", "total"),
        ("/ math.sqrt(query.size(-1))", ""),
        ("torch.maximum(top, scores.amax(-1))", "scores.amax(-1) + 0 * top + 5"),
        ("output / total[..., None]", "output"),
        (".tril()", ".tril(-1)"),
        ("causal[:] = True", "pass"),
        ("causal[:, :prefix] = True", "causal[:prefix] = True"),
        (" & (ids != pad_id)[:, None, None, :]", ".expand(len(ids), 1, length, length)"),
        ("gradient)\n", "gradient * 2)\n"),
        ("ctx.save_for_backward(x, *parameters)", "ctx.save_for_backward(x + 1, *parameters)"),
    ],
)
def test_a_change_in_lesson_12_is_noticed(old, new):
    torch.manual_seed(0)
    sources = []

    def changed(source: str) -> str:
        sources.append(source)
        return (source + "\n").replace(old, new)

    built = lifted("12_after", changed)
    assert any(old in source + "\n" for source in sources), "there is nothing to change"
    with pytest.raises(AssertionError):
        assert_all_is_right(built)
