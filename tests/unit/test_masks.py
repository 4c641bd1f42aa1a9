import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tinytransformer import causal_mask, padding_mask, window_mask


def test_padding_mask_hides_padding_as_keys_only():
    ids = torch.tensor([[5, 6, 7], [8, 0, 0]])
    assert padding_mask(ids).tolist() == [[[[True, True, True]]], [[[True, False, False]]]]
    assert padding_mask(ids, pad_id=8).flatten(1).tolist() == [[True, True, True], [False, True, True]]


def test_causal_mask_shows_oneself_and_the_past():
    assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_causal_mask_with_an_offset_is_the_lower_part_of_the_whole_one():
    assert torch.equal(causal_mask(2, offset=3), causal_mask(5)[3:])


def test_window_mask_is_a_band():
    assert window_mask(4, 1).int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert torch.equal(window_mask(2, 1, offset=3), window_mask(5, 1)[3:])


def test_masks_combine_with_and():
    ids = torch.tensor([[5, 6, 0]])
    both = causal_mask(3) & padding_mask(ids)
    assert both.shape == (1, 1, 3, 3)
    assert both[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


def test_making_a_causal_mask_takes_no_more_than_the_mask():
    """No (n, n) table of whole numbers in between, which would be eight times as large."""
    sizes = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            out = function(*arguments, **(keywords or {}))
            sizes.append(out.numel() * out.element_size())
            return out

    with Sizes():
        causal_mask(100)
        window_mask(100, 3)
    assert max(sizes) == 100 * 100


def test_bad_masks():
    with pytest.raises(ValueError, match=r"shape \(batch, length\), got \(3,\)"):
        padding_mask(torch.tensor([1, 2, 0]))
    with pytest.raises(ValueError, match="radius of 0 or more, got -1"):
        window_mask(4, -1)
    with pytest.raises(ValueError, match="length=0"):
        causal_mask(0)
