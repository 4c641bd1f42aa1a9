"""The fused kernel and the written-out formula are one function: values and gradients, under every kind of mask."""

import pytest
import torch
from support import max_difference, random_ids

from tinytransformer import attention, causal_mask, padding_mask, window_mask
from tinytransformer.model.attention import attention_weights

BATCH, HEADS, LENGTH = 3, 2, 9


def explicit(query, key, value, mask=None):
    return attention_weights(query, key, mask) @ value


def masks() -> dict[str, torch.Tensor | None]:
    torch.manual_seed(1)
    padding = padding_mask(random_ids(BATCH, LENGTH, padding=4))
    one_row_empty = torch.rand(BATCH, 1, LENGTH, LENGTH) > 0.4
    one_row_empty[0, :, 3] = False
    return {
        "none": None,
        "padding": padding,
        "causal": causal_mask(LENGTH),
        "window": window_mask(LENGTH, 2),
        "causal and padding": causal_mask(LENGTH) & padding,
        "causal and window": causal_mask(LENGTH) & window_mask(LENGTH, 1),
        "window and padding, rows without a key": window_mask(LENGTH, 1) & padding,
        "random, one row without a key": one_row_empty,
        "nothing allowed": torch.zeros(LENGTH, LENGTH, dtype=torch.bool),
    }


@pytest.mark.parametrize(("d_k", "d_v"), [(8, 8), (4, 6)])
@pytest.mark.parametrize("name", masks())
def test_equal_values_and_gradients(name, d_k, d_v):
    mask = masks()[name]
    inputs = [torch.randn(BATCH, HEADS, LENGTH, d, requires_grad=True) for d in (d_k, d_k, d_v)]
    direction = torch.randn(BATCH, HEADS, LENGTH, d_v)
    fused, written = attention(*inputs, mask), explicit(*inputs, mask)
    assert max_difference(fused, written) <= 1e-5
    fused_gradients = torch.autograd.grad((fused * direction).sum(), inputs)
    written_gradients = torch.autograd.grad((written * direction).sum(), inputs)
    for one, other in zip(fused_gradients, written_gradients, strict=True):
        assert max_difference(one, other) <= 1e-5


@pytest.mark.parametrize("path", [attention, explicit])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", [name for name in masks() if "without" in name or "nothing" in name])
def test_a_row_without_an_allowed_key_gives_zeros_and_finite_gradients(path, dtype, name):
    mask = masks()[name]
    inputs = [torch.randn(BATCH, HEADS, LENGTH, 8, dtype=dtype, requires_grad=True) for _ in range(3)]
    out = path(*inputs, mask)
    empty = ~mask.any(-1).expand(BATCH, HEADS, LENGTH)
    assert empty.any()
    assert (out[empty] == 0).all()
    assert out.isfinite().all()
    for gradient in torch.autograd.grad(out.float().square().sum(), inputs):
        assert gradient.isfinite().all()


def test_weights_are_probabilities_over_the_allowed_keys():
    query, key = torch.randn(2, BATCH, HEADS, LENGTH, 8)
    mask = masks()["random, one row without a key"]
    weights = attention_weights(query, key, mask)
    assert (weights.masked_select(~mask) == 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).expand(BATCH, HEADS, LENGTH).float())


def test_dropout_acts_on_the_weights():
    value = torch.eye(4).expand(500, 1, 4, 4)
    query = key = torch.zeros(500, 1, 4, 8)
    out = attention(query, key, value, dropout=0.25)  # each weight is 1/4, kept with probability 3/4 and scaled up
    assert out.unique().tolist() == pytest.approx([0.0, 1 / 3], abs=1e-6)
    assert (out == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
