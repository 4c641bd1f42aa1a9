"""Scaled dot-product attention and multi-head attention (the paper's sections 3.2.1 and 3.2.2).

The formula stands here twice. `attention` is PyTorch's fused kernel; the model runs on it. Where it can (no dropout on
the weights, d_k = d_v), it never holds the whole matrix of weights. `attention_weights` is the formula written out, for
reading and for looking inside: it runs while a recorder is attached. Tests keep the two equal.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytransformer.model.cache import KeyValue
from tinytransformer.model.products import Linear


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0) -> Tensor:
    """softmax(Q Kᵀ / √d_k) V, fused: query (…, T, d_k), key (…, S, d_k), value (…, S, d_v) to (…, T, d_v).

    A query that may attend to no key at all gets zeros. ``dropout`` acts on the weights.
    """
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            f"each key needs its value, got keys of shape {tuple(key.shape)} and values of shape {tuple(value.shape)}"
        )
    _check_mask(mask, query, key)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d_k), written out: the weights (…, T, S). A row sums to one, or to zero where all is masked."""
    _check_mask(mask, query, key)
    # The query is scaled first: in half precision the unscaled product could overflow.
    scores = (query / math.sqrt(query.size(-1))) @ key.transpose(-2, -1)  # (…, T, S)
    if mask is None:
        return scores.softmax(dim=-1)
    # With -inf a row without any allowed key would be NaN; the lowest finite number makes it uniform, and then zero.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def _check_mask(mask: Tensor | None, query: Tensor, key: Tensor) -> None:
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, True where a query may attend, got {mask.dtype}: write mask.bool()")
    full = (*_common_shape(query.shape[:-2], key.shape[:-2]), query.size(-2), key.size(-2))
    pairs = zip(reversed(mask.shape), reversed(full), strict=False)
    if not 2 <= mask.dim() <= len(full) or any(size not in (1, wanted) for size, wanted in pairs):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to {full}, the shape of the weights: "
            "give (queries, keys) or (batch, 1, queries, keys)"
        )


def _common_shape(one: torch.Size, other: torch.Size) -> torch.Size:
    return one if one == other else torch.broadcast_shapes(one, other)  # the second is slow, and rarely needed


def xavier_linear(inputs: int, outputs: int) -> Linear:
    """A linear layer with Xavier-uniform weights and a zero bias."""
    layer = Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def unturned(heads: Tensor, offset: int = 0) -> Tensor:
    """The rotation that changes nothing: what every attention without rotary positions uses."""
    return heads


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V): project to ``num_heads`` small spaces, attend in each, merge, project back.

    Departure: the paper writes the four projections as plain matrices; these have a bias, as in most libraries, so
    that weights can be exchanged with them.

    To look inside use `record_attention`, not PyTorch's forward hooks: a decoder calls `keys_values` and `attend`
    directly, with its cache in between.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        rotate: Callable[[Tensor, int], Tensor] = unturned,
    ):
        super().__init__()
        self.d_model = d_model
        self.num_heads = num_heads
        self.dropout = dropout
        self.rotate = rotate
        self.w_q = xavier_linear(d_model, num_heads * head_size("d_k", d_k, d_model, num_heads))
        self.w_k = xavier_linear(d_model, num_heads * head_size("d_k", d_k, d_model, num_heads))
        self.w_v = xavier_linear(d_model, num_heads * head_size("d_v", d_v, d_model, num_heads))
        self.w_o = xavier_linear(self.w_v.out_features, d_model)
        # recording.py attaches to these two; without them the fused kernel runs alone.
        self.recorders: list[Callable[[Tensor, Tensor, Tensor], None]] = []
        self.head_gate: Tensor | None = None  # (H, 1, 1): 1 lets a head through, 0 silences it

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """query (B, T, D), key and value (B, S, D) to (B, T, D)."""
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.dim() != 3 or x.size(-1) != self.d_model:
                shape = tuple(x.shape)
                raise ValueError(
                    f"needs (batch, length, d_model) with d_model={self.d_model}, got {name} of shape {shape}"
                )
        if not query.size(0) == key.size(0) == value.size(0):
            sizes = f"{query.size(0)}, {key.size(0)} and {value.size(0)}"
            raise ValueError(f"query, key and value come from batches of different sizes: {sizes}")
        return self.attend(query, self.keys_values(key, value), mask)

    def keys_values(self, key: Tensor, value: Tensor, offset: int = 0) -> KeyValue:
        """The projected keys and values: what a cache keeps. The first key stands at position ``offset``."""
        return KeyValue(self.rotate(self._split(self.w_k(key)), offset), self._split(self.w_v(value)))

    def attend(self, query: Tensor, seen: KeyValue, mask: Tensor | None = None, offset: int = 0) -> Tensor:
        """Let each query look at keys and values that are already projected."""
        q = self.rotate(self._split(self.w_q(query)), offset)  # (B, H, T, d_k)
        heads = self._attend_per_head(q, seen, mask)  # (B, H, T, d_v)
        if self.head_gate is not None:
            heads = heads * self.head_gate.to(heads)
        return self.w_o(heads.transpose(1, 2).flatten(2))  # (B, T, H, d_v) -> (B, T, H * d_v) -> (B, T, D)

    def _attend_per_head(self, q: Tensor, seen: KeyValue, mask: Tensor | None) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        if not self.recorders:
            return attention(q, seen.key, seen.value, mask, dropout)
        weights = attention_weights(q, seen.key, mask)
        for record in self.recorders:
            record(q, seen.key, weights)
        return F.dropout(weights, dropout) @ seen.value

    def __getstate__(self) -> dict:
        """A copy made while somebody looks inside is a plain one."""
        return {**self.__dict__, "recorders": [], "head_gate": None}

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, H * d) to (B, H, T, d)."""
        return x.view(x.size(0), x.size(1), self.num_heads, -1).transpose(1, 2)


def head_size(name: str, size: int | None, d_model: int, num_heads: int) -> int:
    """The given d_k or d_v, or the paper's choice d_model / num_heads."""
    if size is not None:
        return size
    if d_model % num_heads:
        raise ValueError(
            f"d_model={d_model} is not divisible by num_heads={num_heads}: "
            f"change one of them, or give {name}, the size of one head, yourself"
        )
    return d_model // num_heads
