"""What the models from before the Transformer share: what their decoders keep between steps, passed as values.

A decoder with self-attention keeps keys and values of all its past (cache.py). A recurrent or convolutional one
keeps states whose size does not grow with the sentence, and here they are plain tensors.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from tinytransformer.model.cache import Memory


@dataclass(frozen=True, eq=False)
class SourceMemory(Memory):
    """The encoder's output with its padding mask, and what else a decoder needs of the source: ``rest``, by row."""

    rest: tuple[Tensor, ...]

    def select(self, rows: Tensor) -> "SourceMemory":
        """The given sentences, in the given order."""
        return SourceMemory(*_chosen((self.states, self.mask), rows), _chosen(self.rest, rows))


@dataclass(frozen=True, eq=False)
class StateCache:
    """What a decoder keeps: states with one row per translation, and its view of the source, one row per sentence.

    As in `Cache`, several translations of one sentence stand next to each other and share that view.
    """

    states: tuple[Tensor, ...]
    memory: tuple[Tensor, ...]
    memory_mask: Tensor
    length: int = 0  # how many target positions have been decoded

    @property
    def rows(self) -> int:
        """How many translations are under way."""
        return self.states[0].size(0)

    def followed_by(self, states: Iterable[Tensor], positions: int) -> "StateCache":
        """The same after so many more positions, which have led to these states."""
        return StateCache(tuple(states), self.memory, self.memory_mask, self.length + positions)

    def reorder(self, rows: Tensor) -> "StateCache":
        """Rows change places only among translations of the same sentence."""
        return StateCache(_chosen(self.states, rows), self.memory, self.memory_mask, self.length)

    def select(self, rows: Tensor) -> "StateCache":
        """Reorder, repeat or drop translations: rows (N), or (N, K) where the K of a line translate one sentence."""
        sentences = (rows if rows.dim() == 1 else rows[:, 0]) // (self.rows // self.memory_mask.size(0))
        (mask,) = _chosen((self.memory_mask,), sentences)
        return StateCache(_chosen(self.states, rows.flatten()), _chosen(self.memory, sentences), mask, self.length)


def _chosen(tensors: tuple[Tensor, ...], rows: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.index_select(0, rows) for tensor in tensors)


class SteppingDecoder(nn.Module):
    """A decoder in two methods: ``start`` and ``step``. Training is one step over all positions."""

    def start(self, memory: SourceMemory) -> StateCache:
        """The cache before the first target token."""
        raise NotImplementedError

    def step(self, x: Tensor, cache: StateCache) -> tuple[Tensor, StateCache]:
        """The next positions x (B, T, D) to decoder states (B, T, D), given what the cache holds of the past ones."""
        raise NotImplementedError

    def attentions(self) -> list[nn.Module]:
        """Its attentions to the source, from the first layer on; none if it has none."""
        return []

    def forward(self, x: Tensor, memory: SourceMemory) -> Tensor:
        """x (B, T, D) to (B, T, D), all positions at once."""
        return self.step(x, self.start(memory))[0]
