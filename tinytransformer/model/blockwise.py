"""Attention block by block: the same result without ever holding the whole matrix of weights.

A softmax needs the sum over all keys before it can divide. It can be had in one walk over the keys (online softmax,
Milakov and Gimelshein 2018; the idea inside FlashAttention, Dao et al. 2022): keep the highest score so far, and sum
and mix relative to it. When a block brings a higher one, what was gathered shrinks by one factor. PyTorch's fused
kernel does this in compiled code; here it stands to be read.
"""

import math

import torch
from torch import Tensor


def blockwise_attention(query: Tensor, key: Tensor, value: Tensor, block: int, mask: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d_k) V with at most ``block`` keys at a time: shapes and masks as in `attention`.

    Scores exist for T × block pairs only. A query that may attend to no key at all gets zeros.
    """
    if block < 1:
        raise ValueError(f"block={block} must be at least 1 key")
    query = query / math.sqrt(query.size(-1))
    highest = query.new_full((*query.shape[:-1], 1), float("-inf"))  # (…, T, 1)
    total = torch.zeros_like(highest)
    mixed = query.new_zeros(*query.shape[:-1], value.size(-1))  # (…, T, d_v)
    for first in range(0, key.size(-2), block):
        part = slice(first, first + block)
        scores = query @ key[..., part, :].transpose(-2, -1)  # (…, T, block)
        if mask is not None:
            allowed = mask if mask.size(-1) == 1 else mask[..., part]
            scores = scores.masked_fill(~allowed, float("-inf"))
        new = torch.maximum(highest, scores.amax(-1, keepdim=True))
        # Where nothing was allowed so far the highest score is -inf; any finite number then gives weights of zero.
        safe = new.masked_fill(new == float("-inf"), 0.0)
        shrink, weights = (highest - safe).exp(), (scores - safe).exp()
        total = total * shrink + weights.sum(-1, keepdim=True)
        mixed = mixed * shrink + weights @ value[..., part, :]
        highest = new
    return mixed / total.masked_fill(total == 0, 1.0)


def windowed_attention(query: Tensor, key: Tensor, value: Tensor, radius: int, block: int | None = None) -> Tensor:
    """Restricted self-attention over (…, T, d): query i sees keys j with |i - j| <= radius, and no others are computed.

    Queries go in blocks; each block is compared with its own keys and ``radius`` more to each side. So time and memory
    grow with T · radius, where a mask only hides what has been computed.
    """
    if radius < 0:
        raise ValueError(f"radius={radius} must be 0 or more")
    length = query.size(-2)
    block = block or max(1, radius)
    parts = []
    for first in range(0, length, block):
        last = min(first + block, length)
        low, high = max(0, first - radius), min(length, last + radius)
        places, keys = torch.arange(first, last)[:, None], torch.arange(low, high)
        near = ((places - keys).abs() <= radius).to(query.device)
        parts.append(blockwise_attention(query[..., first:last, :], key[..., low:high, :], value[..., low:high, :],
                                         high - low, near))  # fmt: skip
    return torch.cat(parts, dim=-2)
