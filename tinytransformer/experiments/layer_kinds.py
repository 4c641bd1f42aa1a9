"""The layers that Table 1 compares, each from (B, n, D) to (B, n, D), with the operations that formulas predict.

An operation here is one multiplication with its addition, in a matrix product or a convolution; what else a layer does
(softmax, tanh, biases) is of a smaller order and is left out, as in the paper. Restricted attention is here twice: with
a mask, which computes the whole matrix and throws most of it away, and in blocks, which computes little more than the
band.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytransformer.model.attention import MultiHeadAttention, attention
from tinytransformer.model.cache import KeyValue
from tinytransformer.model.masks import window_mask
from tinytransformer.model.products import Linear

KERNEL = 3
RADIUS = 16  # restricted attention sees so many positions to each side: the paper's r is 2 · 16 + 1
HEAD = 64  # features of one head, as in the paper


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself; ``mask`` makes a mask from the length."""

    def __init__(self, attention: MultiHeadAttention, mask: Callable[[int], Tensor | None] = lambda length: None):
        super().__init__()
        self.attention = attention
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, self.mask(x.size(1)))


class BlockedAttention(MultiHeadAttention):
    """Restricted self-attention that never computes the whole matrix of weights."""

    def __init__(self, d_model: int, num_heads: int, radius: int):
        super().__init__(d_model, num_heads)
        self.radius = radius

    def _attend_per_head(self, q: Tensor, seen: KeyValue, mask: Tensor | None) -> Tensor:
        return blocked_attention(q, seen.key, seen.value, self.radius)


def blocked_attention(query: Tensor, key: Tensor, value: Tensor, radius: int) -> Tensor:
    """Attention in which position i sees j with |i - j| <= radius: query, key, value (B, H, n, d) to (B, H, n, d).

    Positions are cut into blocks of ``radius``. What a block may see lies in itself and its two neighbours, so each
    query is compared with 3 · radius keys, of which the band leaves 2 · radius + 1.
    """
    if radius < 1:
        raise ValueError(f"blocked_attention needs a radius of at least 1, the size of its blocks, got {radius}")
    length = query.size(2)
    blocks = -(-length // radius)
    extra = blocks * radius - length
    queries = F.pad(query, (0, 0, 0, extra)).unflatten(2, (blocks, radius)).flatten(0, 1)  # (B * H, blocks, radius, d)
    keys, values = (
        F.pad(x, (0, 0, radius, extra + radius)).unfold(2, 3 * radius, radius).flatten(0, 1).transpose(-2, -1)
        for x in (key, value)
    )  # (B * H, blocks, 3 * radius, d)
    query_at = torch.arange(blocks * radius, device=query.device).view(blocks, radius, 1)
    key_at = query_at[:, :1] + torch.arange(-radius, 2 * radius, device=query.device)  # (blocks, 1, 3 * radius)
    mask = ((query_at - key_at).abs() <= radius) & (key_at >= 0) & (key_at < length)
    heads = attention(queries, keys, values, mask).flatten(1, 2)[:, :length]
    return heads.unflatten(0, query.shape[:2])


class Recurrent(nn.Module):
    """A recurrent layer of PyTorch that returns only the state at every position."""

    def __init__(self, layer: nn.RNNBase):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


class CausalConvolution(nn.Module):
    """Each position sees itself and ``kernel`` - 1 earlier ones, ``dilation`` apart."""

    def __init__(self, d_model: int, kernel: int, dilation: int = 1, groups: int = 1):
        super().__init__()
        self.before = (kernel - 1) * dilation
        self.convolution = nn.Conv1d(d_model, d_model, kernel, dilation=dilation, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(F.pad(x.transpose(1, 2), (self.before, 0))).transpose(1, 2)


def separable_convolution(d_model: int, kernel: int) -> nn.Module:
    """Along the positions each feature alone (k · n · d), then at each position all features (n · d²)."""
    return nn.Sequential(CausalConvolution(d_model, kernel, groups=d_model), Linear(d_model, d_model))


@dataclass(frozen=True)
class LayerKind:
    """A layer to measure: how it is built from d, the term of Table 1, and all its products, by name."""

    build: Callable[[int], nn.Module]
    paper: Callable[[int, int], int]  # (n, d): the term inside the paper's O(…)
    products: Callable[[int, int], dict[str, int]]  # (n, d): multiply-adds of each part
    memory_growth: int = 1  # the power of n by which what is held at once should grow

    def operations(self, n: int, d: int) -> int:
        """All multiply-adds of one forward pass over one sequence."""
        return sum(self.products(n, d).values())


def heads_for(d: int) -> int:
    return max(1, d // HEAD)


def _attention_products(n: int, d: int) -> dict[str, int]:
    return {"projections": 4 * n * d * d, "pairs of positions": 2 * n * n * d}


def _blocked_products(n: int, d: int) -> dict[str, int]:
    padded = -(-n // RADIUS) * RADIUS
    return {"projections": 4 * n * d * d, "pairs of positions": 2 * padded * 3 * RADIUS * d}


def _recurrent_products(gates: int) -> Callable[[int, int], dict[str, int]]:
    return lambda n, d: {"inputs": gates * n * d * d, "recurrence": gates * n * d * d}


def _written_out(d: int) -> nn.Module:
    layer = MultiHeadAttention(d, heads_for(d))
    layer.recorders.append(lambda query, key, weights: None)  # with a recorder the formula runs as it is written
    return SelfAttention(layer)


def _window(length: int) -> Tensor:
    return window_mask(length, RADIUS)


KINDS: dict[str, LayerKind] = {
    "self-attention": LayerKind(
        lambda d: SelfAttention(MultiHeadAttention(d, heads_for(d))), lambda n, d: n * n * d, _attention_products
    ),
    "self-attention, written out": LayerKind(
        _written_out, lambda n, d: n * n * d, _attention_products, memory_growth=2
    ),
    "restricted, by a mask": LayerKind(
        lambda d: SelfAttention(MultiHeadAttention(d, heads_for(d)), _window),
        lambda n, d: (2 * RADIUS + 1) * n * d,
        _attention_products,
        memory_growth=2,
    ),
    "restricted, in blocks": LayerKind(
        lambda d: SelfAttention(BlockedAttention(d, heads_for(d), RADIUS)),
        lambda n, d: (2 * RADIUS + 1) * n * d,
        _blocked_products,
    ),
    "recurrent": LayerKind(
        lambda d: Recurrent(nn.RNN(d, d, batch_first=True)), lambda n, d: n * d * d, _recurrent_products(1)
    ),
    "GRU": LayerKind(
        lambda d: Recurrent(nn.GRU(d, d, batch_first=True)), lambda n, d: n * d * d, _recurrent_products(3)
    ),
    "LSTM": LayerKind(
        lambda d: Recurrent(nn.LSTM(d, d, batch_first=True)), lambda n, d: n * d * d, _recurrent_products(4)
    ),
    "convolution": LayerKind(
        lambda d: CausalConvolution(d, KERNEL),
        lambda n, d: KERNEL * n * d * d,
        lambda n, d: {"kernel": KERNEL * n * d * d},
    ),
    "separable convolution": LayerKind(
        lambda d: separable_convolution(d, KERNEL),
        lambda n, d: KERNEL * n * d + n * d * d,
        lambda n, d: {"along positions": KERNEL * n * d, "across features": n * d * d},
    ),
}


Outputs = Callable[[Tensor], Iterator[Tensor]]  # from x to what comes after 1, 2, 3, … layers or steps


def stacked(layer: Callable[[int], nn.Module]) -> Outputs:
    """What a growing stack makes of x: its output after 1, 2, 3, … layers; ``layer`` builds the one of that number."""

    def outputs(x: Tensor) -> Iterator[Tensor]:
        number = 0
        while True:
            x = layer(number).to(x.dtype)(x)
            yield x
            number += 1

    return outputs


def recurrent_steps(layer: nn.RNN) -> Outputs:
    """One layer's recurrence, a step at a time at all positions at once: h_t ← tanh(W x_t + U h_{t-1}).

    A step carries news to the next position only. After n of them the states are those that ``layer`` returns.
    """

    def outputs(x: Tensor) -> Iterator[Tensor]:
        inputs = F.linear(x, layer.weight_ih_l0, layer.bias_ih_l0)  # (B, n, D)
        states = torch.zeros_like(x)
        while True:
            before = F.pad(states, (0, 0, 1, 0))[:, :-1]  # the state of the position before; zero at the first
            states = torch.tanh(inputs + F.linear(before, layer.weight_hh_l0, layer.bias_hh_l0))
            yield states

    return outputs


def travelling(kernels: Sequence[int], d: int) -> dict[str, tuple[Outputs, Callable[[int], int]]]:
    """What moves news from the first position to the last, and the number of layers that it should need.

    Convolutions are causal and reach k - 1 positions back; dilations grow by k. A window of r reaches (r - 1) / 2 far.
    """

    def convolutions(kernel: int, dilated: bool) -> Outputs:
        return stacked(lambda number: CausalConvolution(d, kernel, kernel**number if dilated else 1))

    kinds = {
        "self-attention": (stacked(lambda number: KINDS["self-attention"].build(d)), lambda n: 1),
        "recurrent": (recurrent_steps(nn.RNN(d, d).double()), lambda n: n),
        f"restricted, r = {2 * RADIUS + 1}": (
            stacked(lambda number: KINDS["restricted, in blocks"].build(d)),
            lambda n: math.ceil((n - 1) / RADIUS),
        ),
    }
    for k in kernels:
        kinds[f"contiguous, k = {k}"] = (convolutions(k, False), lambda n, k=k: math.ceil((n - 1) / (k - 1)))
        kinds[f"dilated, k = {k}"] = (convolutions(k, True), lambda n, k=k: _whole_logarithm(n, k))
    return kinds


def _whole_logarithm(n: int, base: int) -> int:
    """The smallest L with base^L >= n: log_k n, rounded up without the errors of floating point."""
    power = 0
    while base**power < n:
        power += 1
    return power
