"""Masks: who may look at whom.

``True`` means "may attend". A mask has the shape (queries, keys), or any shape that broadcasts to
(B, H, queries, keys), so masks combine with ``&``.
"""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int = 0) -> Tensor:
    """Keys that are real tokens: (B, S) token ids to a (B, 1, 1, S) mask, for every head and every query."""
    if ids.dim() != 2:
        raise ValueError(f"padding_mask needs ids of shape (batch, length), got {tuple(ids.shape)}")
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, offset: int = 0, device: torch.device | str | None = None) -> Tensor:
    """No look into the future: query i sees keys 0 … i, itself included.

    With ``offset`` the queries are the last ``length`` of ``offset + length`` positions, as in decoding with a
    cache. The mask is (length, offset + length).
    """
    queries, keys = _positions(length, offset, device)
    return keys <= queries


def window_mask(length: int, radius: int, offset: int = 0, device: torch.device | str | None = None) -> Tensor:
    """Restricted self-attention: query i sees keys j with |i - j| <= radius.

    The paper's section 4 speaks of a neighbourhood of size r around each position; here the radius counts to each
    side. ``offset`` as in `causal_mask`; the mask is (length, offset + length).
    """
    if radius < 0:
        raise ValueError(f"window_mask needs a radius of 0 or more, got {radius}")
    queries, keys = _positions(length, offset, device)
    return (keys >= queries - radius) & (keys <= queries + radius)


def _positions(length: int, offset: int, device: torch.device | str | None) -> tuple[Tensor, Tensor]:
    """The positions of the queries as a column and of the keys as a row."""
    if length < 1 or offset < 0:
        raise ValueError(f"a mask needs length >= 1 and offset >= 0, got length={length} and offset={offset}")
    positions = torch.arange(offset + length, device=device)
    return positions[offset:, None], positions[None, :]
