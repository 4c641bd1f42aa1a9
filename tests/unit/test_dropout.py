"""Dropout with cheap random numbers is still dropout: right share, right scale, every element by itself."""

import pytest
import torch
from torch import nn

from tinytransformer.model.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_share_and_scale(p):
    torch.manual_seed(0)
    y = Dropout(p).train()(torch.ones(1000, 1001))
    assert (y == 0).float().mean().item() == pytest.approx(p, abs=0.002)
    assert y.mean().item() == pytest.approx(1.0, abs=0.01)
    kept = y[y != 0]
    assert kept.unique().numel() == 1
    assert kept[0].item() == pytest.approx(1 / (1 - p), rel=1e-4)


def test_elements_are_independent():
    """Neighbours, elements of one random word, rows and columns: none says anything about another."""
    torch.manual_seed(1)
    dropped = (Dropout(0.3).train()(torch.ones(2000, 512)) == 0).double()
    for shift in (1, 2, 3, 4, 5, 8, 512, 1024):
        flat = dropped.flatten()
        correlation = torch.corrcoef(torch.stack((flat[:-shift], flat[shift:])))[0, 1]
        assert abs(correlation.item()) < 0.005, shift
    for axis in (0, 1):  # shares per row and per column vary as a binomial does, not more and not less
        count = dropped.size(axis)
        spread = dropped.mean(axis).var().item() / (0.3 * 0.7 / count)
        assert 0.8 < spread < 1.25


def test_gradients_pass_where_values_pass():
    torch.manual_seed(2)
    x = torch.randn(50, 51, requires_grad=True)
    y = Dropout(0.4).train()(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x.detach(), y.detach())


def test_it_repeats_with_the_seed_and_two_calls_differ():
    x, layer = torch.ones(30, 7), Dropout(0.5).train()
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("p", [0.0, 1e-7, 1.0])
def test_the_edges_are_those_of_torch(p):
    x = torch.randn(5, 5)
    torch.testing.assert_close(Dropout(p).train()(x), nn.Dropout(p).train()(x))
    assert torch.equal(Dropout(p).eval()(x), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    y = Dropout(0.5).train()(torch.ones(100, 100, dtype=dtype))
    assert y.dtype == dtype
    assert y.unique().tolist() == [0.0, 2.0]
