"""Positions: how the model learns the order of its tokens.

Attention by itself is blind to order. Each scheme here has the same two methods and changes one of two places:
``add`` the embeddings on their way in (sinusoidal, learned), or ``rotate`` the queries and keys of self-attention
(rotary). ``offset`` is the position of the first token given, so that decoding can go on where it stopped.
"""

import torch
from torch import Tensor, nn


class NoPositions(nn.Module):
    """No positions at all: the encoder then treats a sentence as a bag of words."""

    def __init__(self, d_model: int, d_k: int, max_length: int):
        super().__init__()

    def add(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        """Embeddings (B, T, D) with their positions added."""
        return embeddings

    def rotate(self, heads: Tensor, offset: int = 0) -> Tensor:
        """Queries or keys (B, H, T, d_k) turned by their positions."""
        return heads


class SinusoidalPositions(NoPositions):
    """The paper's fixed table (section 3.5). It has no weights: ``max_length`` may change after training.

    The table is not saved with the model, so build a model on a real device before loading weights into it.
    """

    def __init__(self, d_model: int, d_k: int, max_length: int):
        super().__init__(d_model, d_k, max_length)
        if d_model % 2:
            raise ValueError(f"sinusoidal positions pair sine and cosine: d_model={d_model} must be even")
        self.register_buffer("table", sinusoids(max_length, d_model), persistent=False)

    def add(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings + _rows(self.table, offset, embeddings.size(1)).to(embeddings.dtype)


class LearnedPositions(NoPositions):
    """A trained vector per position (the paper's Table 3, row E)."""

    def __init__(self, d_model: int, d_k: int, max_length: int):
        super().__init__(d_model, d_k, max_length)
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def add(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings + _rows(self.table, offset, embeddings.size(1))


class RotaryPositions(NoPositions):
    """Departure: rotary positions (Su et al. 2021), which came after the paper.

    Features 2i and 2i+1 of a query or key are turned by the angle position / 10000^(2i/d_k), so that a score
    depends only on the difference of the two positions.
    """

    def __init__(self, d_model: int, d_k: int, max_length: int):
        super().__init__(d_model, d_k, max_length)
        if d_k % 2:
            raise ValueError(f"rotary positions turn pairs of features: d_k={d_k} must be even")
        self.register_buffer("table", sinusoids(max_length, d_k), persistent=False)

    def rotate(self, heads: Tensor, offset: int = 0) -> Tensor:
        rows = _rows(self.table, offset, heads.size(2)).to(heads.dtype)
        sine, cosine = rows[:, 0::2], rows[:, 1::2]  # (T, d_k / 2)
        even, odd = heads[..., 0::2], heads[..., 1::2]
        turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
        return turned.flatten(-2)  # (B, H, T, d_k): even and odd features interleaved again


def _rows(table: Tensor, offset: int, length: int) -> Tensor:
    if offset + length > table.size(0):
        raise ValueError(
            f"positions up to {offset + length} were asked for, but there are max_length={table.size(0)}: "
            "shorten the sequence, or build with a larger max_length"
        )
    return table[offset : offset + length]


def sinusoids(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/width)) and PE(pos, 2i+1) the cosine of the same angle: (length, width).

    Angles are computed in float64, since float32 angles of late positions have lost digits.
    """
    positions = torch.arange(length, dtype=torch.float64)
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = positions[:, None] * frequencies  # (length, width / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).to(torch.get_default_dtype())
