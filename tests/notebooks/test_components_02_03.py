"""What the lessons build is what the package has: their definitions are lifted out and compared on random sizes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support_notebooks import lifted

from tinytransformer.model import masks
from tinytransformer.model.attention import attention, attention_weights

sizes = st.integers(1, 9)


def assert_attention_is_the_packages(built: dict, batch: int, queries: int, keys: int, d_k: int, d_v: int) -> None:
    generator = torch.Generator().manual_seed(batch * 1000 + queries)
    shapes = ((batch, 2, queries, d_k), (batch, 2, keys, d_k), (batch, 2, keys, d_v))
    q, k, v = (torch.randn(*shape, generator=generator) for shape in shapes)
    torch.testing.assert_close(built["softmax_rows"](built["scaled_scores"](q, k)), attention_weights(q, k))
    torch.testing.assert_close(built["attend"](q, k, v), attention(q, k, v))


def assert_masks_are_the_packages(built: dict, length: int, radius: int, batch: int, pad_id: int) -> None:
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(0, 4, (batch, length), generator=generator)
    assert torch.equal(built["padding_mask"](ids, pad_id), masks.padding_mask(ids, pad_id))
    assert torch.equal(built["causal_mask"](length), masks.causal_mask(length))
    assert torch.equal(built["window_mask"](length, radius), masks.window_mask(length, radius))
    q, k = torch.randn(2, batch, 1, length, 5, generator=generator)
    mask = masks.causal_mask(length) & masks.padding_mask(ids, pad_id) | torch.eye(length, dtype=torch.bool)
    scores = q @ k.transpose(-2, -1) / math.sqrt(5)
    torch.testing.assert_close(built["masked_weights"](scores, mask), attention_weights(q, k, mask))


ATTENTION, MASKS = lifted("02_attention"), lifted("03_masks")


@given(batch=sizes, queries=sizes, keys=sizes, d_k=sizes, d_v=sizes)
def test_attention_of_lesson_02(batch, queries, keys, d_k, d_v):
    assert_attention_is_the_packages(ATTENTION, batch, queries, keys, d_k, d_v)


@given(length=sizes, radius=st.integers(0, 9), batch=sizes, pad_id=st.integers(0, 3))
def test_masks_of_lesson_03(length, radius, batch, pad_id):
    assert_masks_are_the_packages(MASKS, length, radius, batch, pad_id)


@pytest.mark.parametrize(
    ("old", "new"),
    [("math.sqrt(d_k)", "d_k"), ("dim=-1", "dim=-2"), ("@ value", "@ value + 0.01"), ("key.tr", "-key.tr")],
)
def test_a_change_in_lesson_02_is_noticed(old, new):
    with pytest.raises(AssertionError):
        assert_attention_is_the_packages(lifted("02_attention", lambda source: source.replace(old, new)), 2, 4, 4, 6, 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("!= pad_id", "!= 0"),
        ("<= positions", "< positions"),
        ("<= radius", "< radius"),
        ("~mask", "mask"),
        ("-1)", "-2)"),
    ],
)
def test_a_change_in_lesson_03_is_noticed(old, new):
    with pytest.raises(AssertionError):
        assert_masks_are_the_packages(lifted("03_masks", lambda source: source.replace(old, new)), 5, 1, 3, 2)
