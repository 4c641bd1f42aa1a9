"""Decoding one token at a time: the likeliest one (greedy), or one drawn at random (sampling).

Sentences that have ended leave the batch, so that the rest goes faster.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tinytransformer.model.baselines import Model

EXTRA = 50  # the paper: an output is at most so many tokens longer than its input (section 6.1)


@dataclass(frozen=True)
class Hypothesis:
    """A translation: its ids without start and end, its log-probability (end included), and what it is ranked by."""

    ids: tuple[int, ...]
    log_probability: float
    score: float


def greedy(model: Model, source: Tensor, extra: int = EXTRA) -> list[Hypothesis]:
    """The translation that takes the likeliest token at each step, for each row of source ids (B, S)."""
    return decode(model, source, lambda log_probabilities: log_probabilities.argmax(-1), extra)


def sample(
    model: Model,
    source: Tensor,
    generator: torch.Generator,
    temperature: float = 1.0,
    top: int | None = None,
    extra: int = EXTRA,
) -> list[Hypothesis]:
    """A translation drawn at random: a ``temperature`` below 1 prefers likely tokens, ``top`` allows only so many."""
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} must be above 0; for the likeliest tokens use greedy")

    def draw(log_probabilities: Tensor) -> Tensor:
        if top is not None:
            worst = log_probabilities.topk(top).values[:, -1:]
            log_probabilities = log_probabilities.masked_fill(log_probabilities < worst, float("-inf"))
        return torch.multinomial((log_probabilities / temperature).softmax(-1), 1, generator=generator)[:, 0]

    return decode(model, source, draw, extra)


@torch.inference_mode()
def decode(model: Model, source: Tensor, choose: Callable[[Tensor], Tensor], extra: int = EXTRA) -> list[Hypothesis]:
    """Step by step, take the token that ``choose`` picks from log-probabilities (B, V), until the end token."""
    end = model.config.end_id
    memory, cache = model.encode(source), None
    limits = length_limits(model, source, extra)
    rows = torch.arange(source.size(0), device=source.device)  # which sentence each row of the batch is
    tokens = torch.full_like(source[:, :1], model.config.start_id)
    outputs: list[list[int]] = [[] for _ in rows]
    totals = torch.zeros(source.size(0), device=source.device)
    while rows.numel():
        logits, cache = model.step(tokens, memory, cache)
        log_probabilities = logits[:, -1].float().log_softmax(-1)  # (B, V)
        chosen = choose(only_allowed(model, log_probabilities, cache.length > limits[rows]))
        totals[rows] += log_probabilities.gather(-1, chosen[:, None])[:, 0]
        for row, token in zip(rows.tolist(), chosen.tolist(), strict=True):
            outputs[row].append(token)
        alive = (chosen != end).nonzero()[:, 0]
        rows, tokens, cache = rows[alive], chosen[alive, None], cache.select(alive)
    scores = totals.tolist()
    return [Hypothesis(tuple(ids[:-1]), score, score) for ids, score in zip(outputs, scores, strict=True)]


def length_limits(model: Model, source: Tensor, extra: int) -> Tensor:
    """How many tokens each translation may have before it must end: (B). The end token counts on neither side."""
    c = model.config
    lengths = ((source != c.pad_id) & (source != c.end_id)).sum(-1) + extra
    return lengths.clamp(max=c.max_length - 1)


def only_allowed(model: Model, log_probabilities: Tensor, full: Tensor) -> Tensor:
    """Log-probabilities (…, V) of what may come next: never padding or start, and where ``full`` (…) only the end.

    The given tensor is changed in place: it is the largest one in decoding, and nobody needs what is forbidden.
    """
    c = model.config
    for token in {c.pad_id, c.start_id} - {c.end_id}:
        log_probabilities[..., token] = float("-inf")
    if full.any():
        others = torch.arange(c.vocab_size, device=full.device) != c.end_id
        log_probabilities.masked_fill_(full[..., None] & others, float("-inf"))
    return log_probabilities
