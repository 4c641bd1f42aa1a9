"""Convolutional encoder–decoders: each layer sees a window of positions, and a stack of them a whole sentence.

ConvS2S (Gehring et al. 2017) has gated windows and attention in every decoder layer. Departures: embeddings, windows
and states all have d_model features, so the maps between their sizes are left out; no weight normalisation and no
scaling of the encoder's gradients; attention scores are divided by √d_model, as embeddings start at unit variance.

ByteNet (Kalchbrenner et al. 2016) has no attention: its windows have gaps that double from layer to layer, and the
decoder's position t reads the encoder's state t. Departures: past the source's end there is no state to read, where
ByteNet lengthens the source by a fifth; sentences are of BPE pieces, not of characters; one LayerNorm ends each stack.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytransformer.model.attention import xavier_linear
from tinytransformer.model.dropout import Dropout
from tinytransformer.model.early_attention import EarlyAttention
from tinytransformer.model.positions import LearnedPositions
from tinytransformer.model.products import Linear
from tinytransformer.model.stepping import SourceMemory, StateCache, SteppingDecoder

ROOT_HALF = math.sqrt(0.5)  # a sum of two that are alike keeps their variance


class Convolution(nn.Module):
    """``kernel`` positions side by side through one matrix. Without padding: T + reach positions come in, T go out.

    The same as ``nn.Conv1d``, and faster on a CPU at the sizes of this course.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int = 1):
        super().__init__()
        self.dilation = dilation
        self.reach = (kernel - 1) * dilation
        self.inputs = inputs
        self.window = Linear(kernel * inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, reach + T, inputs) to (B, T, outputs)."""
        length = x.size(1) - self.reach
        parts = [x[:, start : start + length] for start in range(0, self.reach + 1, self.dilation)]
        return self.window(torch.cat(parts, dim=-1))

    def centred(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, S, inputs), as many positions from the left as from the right; padding counts as zeros."""
        side = self.reach // 2
        return self(F.pad(x * mask[:, 0, 0, :, None], (0, 0, side, side)))

    def causal(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, T, inputs) after the past (B, reach, inputs) to (B, T, outputs), and the past of the next position."""
        seen = torch.cat([past, x], dim=1)
        return self(seen), seen[:, seen.size(1) - self.reach :]

    def no_past(self, like: Tensor) -> Tensor:
        """The zeros that stand before the first position: one row for each row of ``like``."""
        return like.new_zeros(like.size(0), self.reach, self.inputs)


class GatedConvolution(nn.Module):
    """Half of the features open and close the other half: dropout, a window, a gated linear unit."""

    def __init__(self, d_model: int, kernel: int, dropout: float):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.convolution = Convolution(d_model, 2 * d_model, kernel)
        nn.init.normal_(self.convolution.window.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * d_model)))
        nn.init.zeros_(self.convolution.window.bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The encoder's layer: x (B, S, D) to (B, S, D)."""
        return (F.glu(self.convolution.centred(self.dropout(x), mask)) + x) * ROOT_HALF


class LayerAttention(EarlyAttention):
    """The attention of one decoder layer: q = W h + b + the target's embedding, and q · k / √d_model."""

    def __init__(self, d_model: int):
        super().__init__()
        self.w = xavier_linear(d_model, d_model)

    def query(self, h: Tensor, embedded: Tensor) -> Tensor:
        """The layer's state h and the embedding of the token read, both (B, T, D)."""
        return (self.w(h) + embedded) * ROOT_HALF

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT / math.sqrt(query.size(-1))

    def _factors(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return query[:, None], key[:, None]


class AttentiveConvolution(GatedConvolution):
    """The decoder's layer: a gated window of the past, then attention, whose outcome is added."""

    def __init__(self, d_model: int, kernel: int, dropout: float):
        super().__init__(d_model, kernel, dropout)
        self.attention = LayerAttention(d_model)

    def forward(self, x: Tensor, past: Tensor, embedded: Tensor, cache: StateCache) -> tuple[Tensor, Tensor]:
        """x (B, T, D) to (B, T, D), and the past of the next position."""
        windows, past = self.convolution.causal(self.dropout(x), past)
        h = F.glu(windows)
        context = self.attention(self.attention.query(h, embedded), *cache.memory, cache.memory_mask)
        return ((h + context) * ROOT_HALF + x) * ROOT_HALF, past


class ConvEncoder(nn.Module):
    """ConvS2S: learned positions, then a stack of gated windows."""

    def __init__(self, d_model: int, num_layers: int, kernel: int, max_length: int, dropout: float = 0.1):
        super().__init__()
        self.positions = LearnedPositions(d_model, d_model, max_length)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(GatedConvolution(d_model, kernel, dropout) for _ in range(num_layers))

    def forward(self, x: Tensor, mask: Tensor) -> SourceMemory:
        """Embeddings (B, S, D) to states, which are the keys; ``rest`` holds the values: states and embeddings added.

        Values are multiplied by √m, m the number of source tokens, since a mean of m values has less variance.
        """
        x = embedded = self.dropout(self.positions.add(x))
        for layer in self.layers:
            x = layer(x, mask)
        tokens = mask.sum(-1).to(x.dtype)[:, 0, :, None]  # (B, 1, 1)
        return SourceMemory(x, mask, ((x + embedded) * ROOT_HALF * tokens.sqrt(),))


class ConvDecoder(SteppingDecoder):
    """ConvS2S: learned positions, then a stack of gated windows of the past with attention."""

    def __init__(self, d_model: int, num_layers: int, kernel: int, max_length: int, dropout: float = 0.1):
        super().__init__()
        self.positions = LearnedPositions(d_model, d_model, max_length)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(AttentiveConvolution(d_model, kernel, dropout) for _ in range(num_layers))

    def attentions(self) -> list[nn.Module]:
        return [layer.attention for layer in self.layers]

    def start(self, memory: SourceMemory) -> StateCache:
        pasts = tuple(layer.convolution.no_past(memory.states) for layer in self.layers)
        return StateCache(pasts, (memory.states, *memory.rest), memory.mask)

    def step(self, x: Tensor, cache: StateCache) -> tuple[Tensor, StateCache]:
        x = embedded = self.dropout(self.positions.add(x, cache.length))
        pasts = []
        for layer, past in zip(self.layers, cache.states, strict=True):
            x, past = layer(x, past, embedded, cache)
            pasts.append(past)
        return self.dropout(x), cache.followed_by(pasts, x.size(1))


class DilatedBlock(nn.Module):
    """ByteNet's residual block: LayerNorm, ReLU and a matrix, three times; the second is a window with gaps.

    The encoder's windows look to both sides.
    """

    def __init__(self, d_model: int, kernel: int, dilation: int, dropout: float):
        super().__init__()
        inner = d_model // 2
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in (d_model, inner, inner))
        self.narrow, self.widen = Linear(d_model, inner), Linear(inner, d_model)
        self.convolution = Convolution(inner, inner, kernel, dilation)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, S, D) to (B, S, D)."""
        return self._after(x, self.convolution.centred(self._before(x), mask))

    def _before(self, x: Tensor) -> Tensor:
        return F.relu(self.norms[1](self.narrow(F.relu(self.norms[0](x)))))

    def _after(self, x: Tensor, h: Tensor) -> Tensor:
        return x + self.dropout(self.widen(F.relu(self.norms[2](h))))


class CausalDilatedBlock(DilatedBlock):
    """The decoder's block: windows look back only."""

    def forward(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, T, D) to (B, T, D), and the past of the next position."""
        h, past = self.convolution.causal(self._before(x), past)
        return self._after(x, h), past


def gap(layer: int) -> int:
    """ByteNet's distance between the positions of a window: 1, 2, 4, 8, 16, and then again."""
    return 2 ** (layer % 5)


class DilatedEncoder(nn.Module):
    """ByteNet's encoder."""

    def __init__(self, d_model: int, num_layers: int, kernel: int, dropout: float = 0.1):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(DilatedBlock(d_model, kernel, gap(layer), dropout) for layer in range(num_layers))
        self.closing = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor) -> SourceMemory:
        """Embeddings (B, S, D) to states (B, S, D), which are zero at padding."""
        x = self.dropout(x)
        for layer in self.layers:
            x = layer(x, mask)
        return SourceMemory(self.closing(x) * mask[:, 0, 0, :, None], mask, ())


class DilatedDecoder(SteppingDecoder):
    """ByteNet's decoder: position t reads its token and the encoder's state t, then looks back."""

    def __init__(self, d_model: int, num_layers: int, kernel: int, dropout: float = 0.1):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.from_source = Linear(d_model, d_model)
        blocks = (CausalDilatedBlock(d_model, kernel, gap(layer), dropout) for layer in range(num_layers))
        self.layers = nn.ModuleList(blocks)
        self.closing = nn.LayerNorm(d_model)

    def start(self, memory: SourceMemory) -> StateCache:
        pasts = tuple(layer.convolution.no_past(memory.states) for layer in self.layers)
        return StateCache(pasts, (memory.states,), memory.mask)

    def step(self, x: Tensor, cache: StateCache) -> tuple[Tensor, StateCache]:
        (source,) = cache.memory
        end = cache.length + x.size(1)
        beside = F.pad(source, (0, 0, 0, max(0, end - source.size(1))))[:, cache.length : end]
        beside = beside.repeat_interleave(cache.rows // source.size(0), dim=0)  # translations of one sentence share it
        x = self.dropout(x) + self.from_source(beside)
        pasts = []
        for layer, past in zip(self.layers, cache.states, strict=True):
            x, past = layer(x, past)
            pasts.append(past)
        return self.dropout(self.closing(x)), cache.followed_by(pasts, x.size(1))
