"""Products: whichever library computes them, the same values and the same gradients as PyTorch's own ``F.linear``."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tinytransformer.experiments.measuring import single_products
from tinytransformer.model import products
from tinytransformer.model.products import SMALL, Linear, linear

needs_onednn = pytest.mark.skipif(products._BY_ONEDNN is None, reason="this PyTorch has no oneDNN")
LARGE = (40, 128, 256)  # rows, inputs, outputs: more multiplications than SMALL
LAYOUTS = {
    "matrix": lambda: torch.randn(40, 128),
    "batch": lambda: torch.randn(5, 8, 128),
    "transposed": lambda: torch.randn(128, 40).T,
    "swapped": lambda: torch.randn(8, 5, 128).transpose(0, 1),
    "part": lambda: torch.randn(2, 30, 128)[:, 3:23],
    "wide": lambda: torch.randn(40, 300)[:, 7:135],
    "expanded": lambda: torch.randn(1, 128).expand(40, 128),
}


@pytest.fixture
def calls(monkeypatch):
    """How often oneDNN was asked."""
    made = []
    by_onednn = products._BY_ONEDNN
    monkeypatch.setattr(products, "_BY_ONEDNN", lambda *given: made.append(given) or by_onednn(*given))
    return made


def by_pytorch(x, weight, bias, grad):
    """Value and gradients of the same product without us."""
    leaves = [None if one is None else one.detach().clone().requires_grad_() for one in (x, weight, bias)]
    value = F.linear(*leaves)
    value.backward(grad)
    return value, [None if leaf is None else leaf.grad for leaf in leaves]


@needs_onednn
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("weight_layout", ["plain", "transposed"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_gradients_are_those_of_pytorch(calls, layout, weight_layout, with_bias):
    x = LAYOUTS[layout]()
    weight = torch.randn(256, 128) if weight_layout == "plain" else torch.randn(128, 256).T
    bias = torch.randn(256) if with_bias else None
    grad = torch.randn(*x.shape[:-1], 256)
    expected, gradients = by_pytorch(x, weight, bias, grad)
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight, bias), expected, atol=1e-4, rtol=1e-5)
    assert len(calls) == 1
    given = [one for one in (x.requires_grad_(), weight.requires_grad_(), bias) if one is not None]
    if bias is not None:
        bias.requires_grad_()
    value = linear(x, weight, bias)
    torch.testing.assert_close(value, expected, atol=1e-4, rtol=1e-5)
    found = torch.autograd.grad(value, given, grad)
    assert len(calls) == 4, "the product and both its gradients"
    for one, other in zip(found, gradients, strict=False):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-5)


@needs_onednn
def test_a_gradient_that_is_one_number_for_all_places_is_right_too():
    """A sum sends back a tensor that has all its numbers at one place in memory."""
    x, weight, bias = torch.randn(5, 8, 128, requires_grad=True), torch.randn(256, 128), torch.randn(256)
    _, (expected, *_) = by_pytorch(x, weight, bias, torch.ones(()).expand(5, 8, 256))
    linear(x, weight, bias).sum().backward()
    torch.testing.assert_close(x.grad, expected, atol=1e-3, rtol=1e-5)


@needs_onednn
def test_gradients_that_nobody_needs_are_not_computed(calls):
    x, layer = torch.randn(40, 128), Linear(128, 256)
    layer(x).sum().backward()
    assert len(calls) == 2, "the input needs none"
    layer.requires_grad_(False)(x.requires_grad_()).sum().backward()
    assert len(calls) == 4, "the weight needs none"
    assert x.grad.shape == x.shape


@needs_onednn
def test_a_gradient_has_a_gradient():
    x, weight = torch.randn(40, 128, requires_grad=True), torch.randn(256, 128, requires_grad=True)
    second = []
    for product in (linear, F.linear):
        (first,) = torch.autograd.grad(product(x, weight).square().sum(), x, create_graph=True)
        second.append(torch.autograd.grad(first.square().sum(), weight)[0])
    torch.testing.assert_close(*second, rtol=1e-4, atol=1e-4 * second[1].abs().max().item())


@needs_onednn
def test_large_products_in_float32_on_a_cpu_go_to_onednn_and_no_others(calls):
    rows, inputs, outputs = LARGE
    assert rows * inputs * outputs > SMALL

    def asked(x, weight, around=torch.no_grad):
        calls.clear()
        with around():
            linear(x, weight)
        return len(calls)

    x, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs)
    assert asked(x, weight) == 1
    assert asked(x[: SMALL // inputs // outputs], weight) == 1
    assert asked(x[: SMALL // inputs // outputs - 1], weight) == 0, "small"
    assert asked(x.double(), weight.double()) == 0
    assert asked(x.bfloat16(), weight.bfloat16()) == 0
    assert asked(x.to("meta"), weight.to("meta")) == 0
    assert asked(x, weight, lambda: torch.autocast("cpu", torch.bfloat16)) == 0
    assert asked(x, weight, single_products) == 0
    assert asked(torch.randn(2**12), torch.randn(2**9, 2**12)) == 0, "a vector"


@needs_onednn
def test_autocast_multiplies_in_bfloat16():
    layer = Linear(128, 256)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.randn(40, 128)).dtype == torch.bfloat16


def test_without_onednn_all_is_as_usual(monkeypatch):
    monkeypatch.setattr(products, "_BY_ONEDNN", None)
    x, layer = torch.randn(40, 128), Linear(128, 256)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_it_is_a_linear_layer_like_any_other():
    theirs, ours = nn.Linear(128, 256), Linear(128, 256)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(40, 128)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)
    assert isinstance(ours, nn.Linear)


@needs_onednn
def test_the_same_product_gives_the_same_bits():
    x, weight = torch.randn(300, 128), torch.randn(1000, 128)
    assert torch.equal(linear(x, weight), linear(x.clone(), weight.clone()))


@pytest.mark.parametrize(("given", "kept"), [({}, "64 64"), ({"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "7"}, "7 64")])
def test_few_compiled_products_are_kept_unless_told_otherwise(given, kept):
    """Both caches hold a product for each shape: with their defaults a training grows to gigabytes."""
    names = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
    code = f"import os, tinytransformer.model; print(*(os.environ[name] for name in {names}))"
    clean = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run([sys.executable, "-c", code], env=clean | given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == kept
