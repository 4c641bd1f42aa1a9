"""Attention before the Transformer: one head, from the decoder to the encoder's states.

Additive attention (Bahdanau et al. 2015) scores a query q and a key k by v · tanh(W q + U k), dot-product attention
by q · W k (Luong et al. 2015, whose name for this kind is *general*; their plain q · k asks that encoder and decoder
share one space). Neither is scaled. Keys are projected once per sentence; the values are the states themselves.
Both have what recording.py attaches to, so their weights can be recorded and silenced like a Transformer's.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tinytransformer.model.attention import xavier_linear
from tinytransformer.model.products import Linear


class EarlyAttention(nn.Module):
    """One head. Its kinds differ in how they prepare a key and in how they score a query and a key."""

    num_heads = 1

    def __init__(self):
        super().__init__()
        self.recorders: list[Callable[[Tensor | None, Tensor | None, Tensor], None]] = []
        self.head_gate: Tensor | None = None  # (1, 1, 1): 1 lets the head through, 0 silences it

    def keys(self, states: Tensor) -> Tensor:
        """The encoder's states (B, S, D) as keys: what a cache keeps."""
        raise NotImplementedError

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """query (B, T, D) and key (B, S, D) to (B, T, S)."""
        raise NotImplementedError

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """What each query (B, T, D) gets from the values (B, S, D), recorded: (B, T, D)."""
        context, weights = self.attend(query, key, value, mask)
        self.record(weights, *self._factors(query.reshape(key.size(0), -1, query.size(-1)), key))
        return context

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The same with the weights (B, 1, T, S), not recorded: for a decoder that looks once for every token.

        Translations of one sentence (more rows of queries than of keys) ask its keys together, as one longer row.
        """
        together = query.reshape(key.size(0), -1, query.size(-1))
        weights = masked_softmax(self.scores(together, key)[:, None], mask)
        context = weights @ value[:, None]  # (B, 1, T, D)
        if self.head_gate is not None:
            context = context * self.head_gate.to(context)
        return context.reshape(query.shape), weights

    def record(self, weights: Tensor, query: Tensor | None = None, key: Tensor | None = None) -> None:
        """Hand the weights (B, 1, T, S) to whoever records, and what they are made of."""
        for recorder in self.recorders:
            recorder(query, key, weights)

    def _factors(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor] | tuple[()]:
        """Queries and keys (B, 1, …, D) whose softmax(Q Kᵀ / √D) gives the weights, if there are such."""
        return ()

    def __getstate__(self) -> dict:
        """A copy made while somebody looks inside is a plain one."""
        return {**self.__dict__, "recorders": [], "head_gate": None}


class AdditiveAttention(EarlyAttention):
    """v · tanh(W q + U k): a small network with one hidden layer scores each pair."""

    def __init__(self, d_model: int):
        super().__init__()
        self.w = xavier_linear(d_model, d_model)
        self.u = Linear(d_model, d_model, bias=False)
        nn.init.xavier_uniform_(self.u.weight)
        self.v = nn.Parameter(torch.randn(d_model) * d_model**-0.5)

    def keys(self, states: Tensor) -> Tensor:
        return self.u(states)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        pairs = self.w(query)[:, :, None] + key[:, None]  # (B, T, S, D): every query with every key
        return pairs.tanh() @ self.v


class DotAttention(EarlyAttention):
    """q · W k."""

    def __init__(self, d_model: int):
        super().__init__()
        self.w = Linear(d_model, d_model, bias=False)
        nn.init.xavier_uniform_(self.w.weight)

    def keys(self, states: Tensor) -> Tensor:
        return self.w(states)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT

    def _factors(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return query[:, None] * math.sqrt(query.size(-1)), key[:, None]


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Weights over the last axis, zero where the mask is False; a row without any True is all zero."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)
