"""The convolutional models equal the same written with ``nn.Conv1d``, one unpadded sentence at a time."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import max_difference, random_ids, randomise
from support_baselines import small_baseline
from torch import nn

from tinytransformer import record_attention
from tinytransformer.model.convolutional import Convolution, gap

TOLERANCE = 1e-5
ROOT_HALF = 0.5**0.5


def as_conv1d(ours: Convolution, kernel: int, padding: int = 0) -> nn.Conv1d:
    """PyTorch's module with the same weights; its order is (outputs, inputs, kernel)."""
    theirs = nn.Conv1d(ours.inputs, ours.window.out_features, kernel, padding=padding, dilation=ours.dilation)
    with torch.no_grad():
        theirs.weight.copy_(ours.window.weight.unflatten(1, (kernel, ours.inputs)).transpose(1, 2))
        theirs.bias.copy_(ours.window.bias)
    return theirs


def along(theirs: nn.Conv1d, x: torch.Tensor) -> torch.Tensor:
    """x (T, D): Conv1d wants the features first."""
    return theirs(x.T[None])[0].T


def causal(ours: Convolution, x: torch.Tensor) -> torch.Tensor:
    return along(as_conv1d(ours, 3), F.pad(x, (0, 0, ours.reach, 0)))


def centred(ours: Convolution, x: torch.Tensor) -> torch.Tensor:
    return along(as_conv1d(ours, 3, padding=ours.dilation), x)


@given(
    batch=st.integers(1, 3),
    length=st.integers(1, 8),
    kernel=st.integers(1, 5),
    dilation=st.integers(1, 4),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_windows_are_torchs_convolution(batch, length, kernel, dilation, sizes):
    ours = randomise(Convolution(*sizes, kernel, dilation))
    x = torch.randn(batch, length + ours.reach, sizes[0])
    expected = as_conv1d(ours, kernel)(x.transpose(1, 2)).transpose(1, 2)
    assert max_difference(ours(x), expected) <= TOLERANCE


def sentences(source: torch.Tensor, memory) -> list[tuple[int, int]]:
    return [(row, int((source[row] != 0).sum())) for row in range(len(source))]


def test_convs2s_word_by_word():
    model = small_baseline("convs2s", num_layers=3)
    source, target = random_ids(2, 6, padding=2), random_ids(2, 5)
    memory = model.encode(source)
    with record_attention(model) as records:
        states = model.decode(target, memory)
    for row, length in sentences(source, memory):
        x = e = model.embedding.source(source[row, :length]) + model.encoder.positions.table[:length]
        for layer in model.encoder.layers:
            values, gates = centred(layer.convolution, x).chunk(2, dim=-1)
            x = (values * gates.sigmoid() + x) * ROOT_HALF
        assert max_difference(memory.states[row, :length], x) <= TOLERANCE
        seen = (x + e) * ROOT_HALF * length**0.5
        y = g = model.embedding.target(target[row]) + model.decoder.positions.table[:5]
        for number, layer in enumerate(model.decoder.layers):
            values, gates = causal(layer.convolution, y).chunk(2, dim=-1)
            h = values * gates.sigmoid()
            query = (F.linear(h, layer.attention.w.weight, layer.attention.w.bias) + g) * ROOT_HALF
            weights = (query @ x.T / 4).softmax(-1)  # √16
            y = ((h + weights @ seen) * ROOT_HALF + y) * ROOT_HALF
            record = records.find("cross", number).weights[row, 0]
            assert max_difference(record[:, :length], weights) <= TOLERANCE
            assert not record[:, length:].any()
        assert max_difference(states[row], y) <= TOLERANCE


def block(ours, x: torch.Tensor, convolve) -> torch.Tensor:
    h = ours.narrow(ours.norms[0](x).relu())
    h = convolve(ours.convolution, ours.norms[1](h).relu())
    return x + ours.widen(ours.norms[2](h).relu())


def test_bytenet_word_by_word():
    model = small_baseline("bytenet", num_layers=3)
    source, target = random_ids(2, 6, padding=3), random_ids(2, 8)
    memory = model.encode(source)
    states = model.decode(target, memory)
    assert [layer.convolution.dilation for layer in model.decoder.layers] == [1, 2, 4]
    for row, length in sentences(source, memory):
        x = model.embedding.source(source[row, :length])
        for layer in model.encoder.layers:
            x = block(layer, x, centred)
        x = model.encoder.closing(x)
        assert max_difference(memory.states[row, :length], x) <= TOLERANCE
        beside = torch.cat([x, torch.zeros(8 - length, 16)])  # nothing past the source's end
        y = model.embedding.target(target[row]) + model.decoder.from_source(beside)
        for layer in model.decoder.layers:
            y = block(layer, y, causal)
        assert max_difference(states[row], model.decoder.closing(y)) <= TOLERANCE


@pytest.mark.parametrize(("layer", "distance"), [(0, 1), (4, 16), (5, 1), (8, 8)])
def test_gaps_double_and_begin_again(layer, distance):
    assert gap(layer) == distance
