"""The cache: keys and values kept between decoding steps, as values that are passed, never as module state.

In attention each *query* (a position that looks) is compared with *keys* and receives a mix of *values* (of the
positions looked at; attention.py has the formula). Keys and values of the past do not change while a sentence grows, so
they are worth keeping. A query is used once, at its own step, so it is not.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class KeyValue:
    """What one attention looks at: keys (B, H, S, d_k) and values (B, H, S, d_v)."""

    key: Tensor
    value: Tensor

    def append(self, new: "KeyValue") -> "KeyValue":
        """These positions followed by the new ones."""
        return KeyValue(torch.cat([self.key, new.key], dim=2), torch.cat([self.value, new.value], dim=2))

    def select(self, rows: Tensor) -> "KeyValue":
        """The given rows of the batch, in the given order; a row may come more than once."""
        return KeyValue(self.key.index_select(0, rows), self.value.index_select(0, rows))


@dataclass(frozen=True, eq=False)
class LayerCache:
    """What one decoder layer keeps: its own past positions, and the encoder's output as keys and values.

    Several translations of one sentence stand next to each other, and share the encoder's output: the past has one row
    per translation, the memory one row per sentence.
    """

    past: KeyValue | None
    memory: KeyValue

    @property
    def length(self) -> int:
        """How many target positions have been decoded."""
        return 0 if self.past is None else self.past.key.size(2)

    def reorder(self, rows: Tensor) -> "LayerCache":
        past = None if self.past is None else self.past.select(rows)
        return LayerCache(past, self.memory)


@dataclass(frozen=True, eq=False)
class Cache:
    """What the whole decoder keeps: one `LayerCache` per layer, and the padding mask of the encoder's output."""

    layers: tuple[LayerCache, ...]
    memory_mask: Tensor

    @property
    def length(self) -> int:
        return self.layers[0].length

    @property
    def rows(self) -> int:
        """How many translations are under way; several of one sentence share the encoder's output."""
        past = self.layers[0].past
        return self.memory_mask.size(0) if past is None else past.key.size(0)

    def reorder(self, rows: Tensor) -> "Cache":
        """Rows change places only among translations of the same sentence: its keys and values need no copy."""
        return Cache(tuple(layer.reorder(rows) for layer in self.layers), self.memory_mask)

    def select(self, rows: Tensor) -> "Cache":
        """Reorder, repeat or drop translations: rows (N), or (N, K) where the K of a line translate one sentence."""
        sentences = (rows if rows.dim() == 1 else rows[:, 0]) // (self.rows // self.memory_mask.size(0))
        layers = self.reorder(rows.flatten()).layers
        selected = tuple(LayerCache(layer.past, layer.memory.select(sentences)) for layer in layers)
        return Cache(selected, self.memory_mask.index_select(0, sentences))


@dataclass(frozen=True, eq=False)
class Memory:
    """The encoder's output (B, S, D) together with its padding mask, so that nobody can forget the mask."""

    states: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> "Memory":
        """The given sentences, in the given order."""
        return Memory(self.states.index_select(0, rows), self.mask.index_select(0, rows))
