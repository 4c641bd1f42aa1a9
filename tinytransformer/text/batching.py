"""Batches: sentences of similar length together, as many as a budget of tokens allows, so that little is padding.

A token budget, not a number of sentences, makes a batch (section 5.1): it counts padded places, the source's or the
target's, whichever are more.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tinytransformer.text.tokenizer import END, PAD, START


@dataclass(frozen=True, eq=False)
class Batch:
    """Padded ids: what the encoder reads (B, S), what the decoder reads and what it shall predict (both B, T)."""

    source: Tensor
    target_in: Tensor  # begins with START
    target_out: Tensor  # the same, one place ahead: ends with END

    @property
    def num_targets(self) -> int:
        """How many real tokens there are to predict."""
        return int((self.target_out != PAD).sum())

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(*(tensor.to(device) for tensor in (self.source, self.target_in, self.target_out)))


Encoded = tuple[Sequence[int], Sequence[int]]  # source ids and target ids of one pair, without start and end


def collate(pairs: Sequence[Encoded]) -> Batch:
    """Pad pairs of ids to one batch."""
    return Batch(
        source=pad([[*source, END] for source, _ in pairs]),
        target_in=pad([[START, *target] for _, target in pairs]),
        target_out=pad([[*target, END] for _, target in pairs]),
    )


def pad(rows: Sequence[Sequence[int]], value: int = PAD) -> Tensor:
    """Rows of ids, filled up on the right to the longest: (B, length)."""
    padded = torch.full((len(rows), max(map(len, rows))), value, dtype=torch.long)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = torch.as_tensor(row, dtype=torch.long)
    return padded


def epoch_seed(epoch: int, seed: int) -> int:
    """One seed per epoch and run."""
    return seed * 1_000_003 + epoch


class TokenBatches:
    """The batches of one epoch after another: ``for batch in TokenBatches(pairs, 4096).epoch(number, seed)``.

    The plan of an epoch depends on its number and the seed alone, so a run can go on in the middle of one: `epoch`
    takes the batch to begin with.
    """

    def __init__(self, pairs: Sequence[Encoded], tokens: int):
        if not pairs:
            raise ValueError("there are no sentence pairs to make batches of")
        self.tokens = tokens
        self._take(pairs)

    def _take(self, pairs: Sequence[Encoded]) -> None:
        self.pairs = pairs
        self.lengths = torch.tensor([(len(source) + 1, len(target) + 1) for source, target in pairs])
        longest = int(self.lengths.max())
        if longest > self.tokens:
            raise ValueError(
                f"a sentence of {longest} tokens does not fit into a batch of {self.tokens}: "
                "take larger batches, or leave such sentences out"
            )

    def plan(self, epoch: int, seed: int) -> list[list[int]]:
        """Which pairs make which batch. Pairs of equal length meet in another order each epoch."""
        generator = torch.Generator().manual_seed(epoch_seed(epoch, seed))
        order = torch.randperm(len(self.pairs), generator=generator)
        # Sorted by target, then source: stable, so that the shuffle decides among equals.
        for column in (0, 1):
            order = order[self.lengths[order, column].sort(stable=True).indices]
        batches = list(self._cut(order.tolist()))
        shuffled = torch.randperm(len(batches), generator=generator).tolist()
        return [batches[i] for i in shuffled]

    def epoch(self, epoch: int, seed: int, first: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from number ``first`` on."""
        for rows in itertools.islice(self.plan(epoch, seed), first, None):
            yield self.batch(rows)

    def batch(self, rows: list[int]) -> Batch:
        """One batch of a plan."""
        return collate([self.pairs[row] for row in rows])

    def _cut(self, order: list[int]) -> Iterator[list[int]]:
        lengths = self.lengths.tolist()
        batch: list[int] = []
        longest = 0
        for row in order:
            longest_now = max(longest, *lengths[row])
            if batch and longest_now * (len(batch) + 1) > self.tokens:
                yield batch
                batch, longest_now = [], max(lengths[row])
            batch.append(row)
            longest = longest_now
        yield batch


class ResampledBatches(TokenBatches):
    """Pairs that are encoded anew for each epoch, as BPE-dropout wants it: ``encode`` makes them from a seed."""

    def __init__(self, encode: Callable[[int], Sequence[Encoded]], tokens: int):
        super().__init__(encode(0), tokens)
        self.encode = encode

    def plan(self, epoch: int, seed: int) -> list[list[int]]:
        self._take(self.encode(epoch_seed(epoch, seed)))
        return super().plan(epoch, seed)


def padding_share(batches: Sequence[Batch]) -> float:
    """The share of places, of sources and targets together, that hold no token."""
    places = sum(batch.source.numel() + batch.target_out.numel() for batch in batches)
    tokens = sum(int((batch.source != PAD).sum()) + batch.num_targets for batch in batches)
    return 1 - tokens / places
