"""Layers: the feed-forward network, the two residual connections, the embeddings, encoder and decoder layers.

Parts take plain numbers and layers take parts, so each can be built and tried alone:
``EncoderLayer(MultiHeadAttention(512, 8), FeedForward(512, 2048))``.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytransformer.model.attention import MultiHeadAttention, xavier_linear
from tinytransformer.model.cache import KeyValue, LayerCache
from tinytransformer.model.dropout import Dropout
from tinytransformer.model.products import linear


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same for each position (section 3.3)."""

    def __init__(self, d_model: int, d_ff: int, activation: Callable[[Tensor], Tensor] = F.relu):
        super().__init__()
        self.w_1 = xavier_linear(d_model, d_ff)
        self.w_2 = xavier_linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.activation(self.w_1(x)))


class PostNorm(nn.Module):
    """The paper's residual connection (sections 3.1 and 5.4): norm(x + dropout(sublayer(x)))."""

    def __init__(self, d_model: int, dropout: float):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer receives."""
        return x

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        """The sub-layer's input x and output y, joined."""
        return self.norm(x + self.dropout(y))

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.after(x, sublayer(self.before(x)))

    @staticmethod
    def closing(d_model: int) -> nn.Module:
        """What stands at the end of a stack of layers: nothing, for each layer ends in a norm already."""
        return nn.Identity()


class PreNorm(PostNorm):
    """Departure: x + dropout(sublayer(norm(x))), as in GPT-2, with one more norm at the end of each stack."""

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x)

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        return x + self.dropout(y)

    @staticmethod
    def closing(d_model: int) -> nn.Module:
        return nn.LayerNorm(d_model)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each inside a residual connection."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        dropout: float = 0.1,
        residual: type[PostNorm] = PostNorm,
    ):
        super().__init__()
        self.self_attention = self_attention
        self.self_attention_residual = residual(self_attention.d_model, dropout)
        self.feed_forward = feed_forward
        self.feed_forward_residual = residual(self_attention.d_model, dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, S, D) to (B, S, D)."""
        x = self.self_attention_residual(x, lambda h: self.self_attention(h, h, h, mask))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(EncoderLayer):
    """The encoder's layer with attention to the encoder's output in between."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        dropout: float = 0.1,
        residual: type[PostNorm] = PostNorm,
    ):
        super().__init__(self_attention, feed_forward, dropout, residual)
        self.cross_attention = cross_attention
        self.cross_attention_residual = residual(cross_attention.d_model, dropout)

    def forward(
        self, x: Tensor, memory: Tensor, mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """x (B, T, D) and the encoder's output (B, S, D) to (B, T, D)."""
        x, _ = self.step(x, self.start(memory), mask, memory_mask)
        return x

    def start(self, memory: Tensor) -> LayerCache:
        """An empty past, and the encoder's output projected once for all steps to come."""
        return LayerCache(past=None, memory=self.cross_attention.keys_values(memory, memory))

    def step(
        self, x: Tensor, cache: LayerCache, mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, LayerCache]:
        """The next positions x (B, T, D), given the past ones in the cache. Training is one step from an empty past."""
        h = self.self_attention_residual.before(x)
        new = self.self_attention.keys_values(h, h, offset=cache.length)
        past = cache.followed_by(new)
        y = self.self_attention.attend(h, past, mask, offset=cache.length)
        x = self.self_attention_residual.after(x, y)
        x = self.cross_attention_residual(x, lambda h: self._look_at_memory(h, cache.memory, memory_mask))
        return self.feed_forward_residual(x, self.feed_forward), LayerCache(past, cache.memory)

    def _look_at_memory(self, h: Tensor, memory: KeyValue, mask: Tensor | None) -> Tensor:
        """Translations of one sentence ask its keys together, as one longer row of queries."""
        queries = h.reshape(memory.key.size(0), -1, h.size(-1))
        return self.cross_attention.attend(queries, memory, mask).view_as(h)


class TiedEmbedding(nn.Module):
    """One matrix for source tokens, target tokens and the output (section 3.4), started at d_model^-0.5."""

    def __init__(self, vocab_size: int, d_model: int, output_bias: bool = False):
        super().__init__()
        self.tokens = _embedding_matrix(vocab_size, d_model)
        self.output_bias = nn.Parameter(torch.zeros(vocab_size)) if output_bias else None
        self.scale = math.sqrt(d_model)

    def source(self, ids: Tensor) -> Tensor:
        """Source ids (B, S) to vectors (B, S, D), scaled by √d_model."""
        return F.embedding(ids, self.tokens) * self.scale

    def target(self, ids: Tensor) -> Tensor:
        """Target ids (B, T) to vectors (B, T, D), scaled by √d_model."""
        return self.source(ids)

    @property
    def output_matrix(self) -> Tensor:
        """The rows (V, D) that the output compares a state with: the tokens' own vectors."""
        return self.tokens

    def logits(self, states: Tensor) -> Tensor:
        """Decoder states (…, D) to one score per token of the vocabulary (…, V)."""
        return linear(states, self.output_matrix, self.output_bias)


class SeparateEmbeddings(TiedEmbedding):
    """Departure: a matrix of its own for each of the three uses."""

    def __init__(self, vocab_size: int, d_model: int, output_bias: bool = False):
        super().__init__(vocab_size, d_model, output_bias)
        self.target_tokens = _embedding_matrix(vocab_size, d_model)
        self.output = _embedding_matrix(vocab_size, d_model)

    def target(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.target_tokens) * self.scale

    @property
    def output_matrix(self) -> Tensor:
        return self.output


def _embedding_matrix(vocab_size: int, d_model: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(vocab_size, d_model) * d_model**-0.5)
