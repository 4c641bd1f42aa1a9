"""What lesson 04 builds is what the package has: its definitions are lifted out and compared on random sizes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import randomise
from support_notebooks import lifted

from tinytransformer.model.attention import MultiHeadAttention
from tinytransformer.model.masks import causal_mask, padding_mask

sizes = st.integers(1, 6)


def assert_heads_are_the_packages(built: dict, batch: int, length: int, keys: int, heads: int, d_k: int) -> None:
    generator = torch.Generator().manual_seed(batch * 100 + heads)
    theirs = randomise(MultiHeadAttention(heads * d_k, heads))
    ours = built["MultiHead"](heads * d_k, heads)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    x, memory = (torch.randn(batch, n, heads * d_k, generator=generator) for n in (length, keys))
    ids = torch.randint(0, 3, (batch, keys), generator=generator)
    ids[:, 0] = 5  # a row must see something
    with torch.no_grad():
        torch.testing.assert_close(ours(x, x, x, causal_mask(length)), theirs(x, x, x, causal_mask(length)))
        mask = padding_mask(ids)
        torch.testing.assert_close(ours(x, memory, memory, mask), theirs(x, memory, memory, mask))
    assert torch.equal(built["split_heads"](x, heads), theirs._split(x))
    assert torch.equal(built["merge_heads"](built["split_heads"](x, heads)), x)


HEADS = lifted("04_heads")


@given(batch=sizes, length=sizes, keys=sizes, heads=sizes, d_k=sizes)
def test_heads_of_lesson_04(batch, length, keys, heads, d_k):
    assert_heads_are_the_packages(HEADS, batch, length, keys, heads, d_k)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("heads.transpose(1, 2)", "heads"),
        ("cut.transpose(1, 2)", "cut.reshape(batch, num_heads, length, -1)"),
        ("math.sqrt(q.size(-1))", "math.sqrt(query.size(-1))"),
        ("~mask", "mask"),
        ("dim=-1", "dim=1"),
        ("self.w_o(merge", "(merge"),
    ],
)
def test_a_change_in_lesson_04_is_noticed(old, new):
    with pytest.raises((AssertionError, RuntimeError)):
        assert_heads_are_the_packages(lifted("04_heads", lambda source: source.replace(old, new)), 2, 4, 5, 2, 3)
