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

    def append(self, new: "KeyValue", rows: Tensor | None = None) -> "KeyValue":
        """These positions, or only the given rows of them, followed by the new ones."""
        return KeyValue(_append(self.key, new.key, rows), _append(self.value, new.value, rows))

    def select(self, rows: Tensor) -> "KeyValue":
        """The given rows of the batch, in the given order; a row may come more than once."""
        return KeyValue(self.key.index_select(0, rows), self.value.index_select(0, rows))


def _append(past: Tensor, new: Tensor, rows: Tensor | None) -> Tensor:
    if rows is None or past.requires_grad:
        return torch.cat([past if rows is None else past.index_select(0, rows), new], dim=2)
    # Selected and appended in one copy: beam search does this for every token. With the positions outermost in memory
    # both parts are whole pieces of it.
    length = past.size(2)
    grown = past.new_empty(length + new.size(2), len(rows), past.size(1), past.size(3))  # (S + T, B, H, d)
    torch.index_select(past.permute(2, 0, 1, 3), 1, rows, out=grown[:length])
    grown[length:] = new.permute(2, 0, 1, 3)
    return grown.permute(1, 2, 0, 3)


@dataclass(frozen=True, eq=False)
class LayerCache:
    """What one decoder layer keeps: its own past positions, and the encoder's output as keys and values.

    Several translations of one sentence stand next to each other, and share the encoder's output: the past has one row
    per translation, the memory one row per sentence. Reordering only notes which rows of the past go on; they are
    copied when the next positions arrive.
    """

    past: KeyValue | None
    memory: KeyValue
    rows: Tensor | None = None

    @property
    def length(self) -> int:
        """How many target positions have been decoded."""
        return 0 if self.past is None else self.past.key.size(2)

    def followed_by(self, new: KeyValue) -> KeyValue:
        """The past and the new positions."""
        return new if self.past is None else self.past.append(new, self.rows)

    def reorder(self, rows: Tensor) -> "LayerCache":
        return LayerCache(self.past, self.memory, rows if self.rows is None else self.rows.index_select(0, rows))


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
        first = self.layers[0]
        if first.rows is not None:
            return len(first.rows)
        return self.memory_mask.size(0) if first.past is None else first.past.key.size(0)

    def reorder(self, rows: Tensor) -> "Cache":
        """Rows change places only among translations of the same sentence: its keys and values need no copy."""
        return Cache(tuple(layer.reorder(rows) for layer in self.layers), self.memory_mask)

    def select(self, rows: Tensor) -> "Cache":
        """Reorder, repeat or drop translations: rows (N), or (N, K) where the K of a line translate one sentence."""
        sentences = (rows if rows.dim() == 1 else rows[:, 0]) // (self.rows // self.memory_mask.size(0))
        layers = self.reorder(rows.flatten()).layers
        selected = tuple(LayerCache(layer.past, layer.memory.select(sentences), layer.rows) for layer in layers)
        return Cache(selected, self.memory_mask.index_select(0, sentences))


@dataclass(frozen=True, eq=False)
class Memory:
    """The encoder's output (B, S, D) together with its padding mask, so that nobody can forget the mask."""

    states: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> "Memory":
        """The given sentences, in the given order."""
        return Memory(self.states.index_select(0, rows), self.mask.index_select(0, rows))
