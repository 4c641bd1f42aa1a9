"""Beam search: keep the K best beginnings of a translation instead of one (section 6.1: K = 4, α = 0.6).

Four steps under one short loop: `start`, then `extend` all beginnings by a token, `retire` what has ended, until
`is_done`. The state is a value; each step returns a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tinytransformer.model.cache import Cache, Memory
from tinytransformer.model.transformer import Transformer
from tinytransformer.translation.greedy import EXTRA, Hypothesis, length_limits, only_allowed

Penalty = Callable[[int, float], float]


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α: what a log-probability is divided by (Wu et al. 2016). The end token counts."""
    return ((5 + length) / 6) ** alpha


@dataclass(frozen=True, eq=False)
class Beams:
    """The beginnings under way: N sentences with K beginnings each. A score of -inf marks an empty place."""

    sentences: Tensor  # (N): which sentence of the batch each is
    tokens: Tensor  # (N, K, t): start token and what came after it
    scores: Tensor  # (N, K): log-probabilities
    limits: Tensor  # (N): how many tokens a translation may have
    cache: Cache | None  # N * K rows


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source: Tensor,
    beam: int = 4,
    alpha: float = 0.6,
    extra: int = EXTRA,
    penalty: Penalty = length_penalty,
) -> list[list[Hypothesis]]:
    """For each row of source ids (B, S) its translations that ended first, at most about ``beam``, best first."""
    if beam < 1:
        raise ValueError(f"beam={beam} must be at least 1; with 1 it is greedy decoding")
    memory, beams = start(model, source, beam, extra)
    ended: list[list[Hypothesis]] = [[] for _ in source]
    while beams.sentences.numel():
        beams, ends = extend(model, memory, beams)
        for sentence, ids, log_probability in ends:
            score = log_probability / penalty(len(ids) + 1, alpha)
            ended[sentence].append(Hypothesis(ids, log_probability, score))
        beams = retire(beams, is_done(beams, ended, beam))
    return [sorted(found, key=lambda hypothesis: -hypothesis.score) for found in ended]


def start(model: Transformer, source: Tensor, beam: int, extra: int) -> tuple[Memory, Beams]:
    """One beginning per sentence, the start token, and K - 1 empty places beside it."""
    memory = model.encode(source)
    size = source.size(0)
    tokens = torch.full((size, beam, 1), model.config.start_id, device=source.device)
    scores = torch.full((size, beam), float("-inf"), device=source.device)
    scores[:, 0] = 0.0
    sentences = torch.arange(size, device=source.device)
    repeated = memory.select(sentences.repeat_interleave(beam))
    return repeated, Beams(sentences, tokens, scores, length_limits(model, source, extra), cache=None)


def extend(model: Transformer, memory: Memory, beams: Beams) -> tuple[Beams, list[tuple[int, tuple[int, ...], float]]]:
    """Add a token to every beginning; returns the K best that go on, and those among the best that have ended."""
    size, beam, length = beams.tokens.shape
    logits, cache = model.step(beams.tokens[..., -1].reshape(-1, 1), memory, beams.cache)
    steps = logits[:, -1].float().log_softmax(-1).view(size, beam, -1)
    steps = only_allowed(model, steps, (length > beams.limits)[:, None].expand(size, beam))
    totals = beams.scores[..., None] + steps  # (N, K, V)
    vocabulary = totals.size(-1)
    # 2K candidates: even if K of them end, K others can go on.
    scores, places = totals.flatten(1).topk(min(2 * beam, beam * vocabulary))
    origins, tokens = places // vocabulary, places % vocabulary
    is_end = tokens == model.config.end_id

    ends = []
    for row, rank in (is_end[:, :beam] & scores[:, :beam].isfinite()).nonzero().tolist():
        ids = beams.tokens[row, origins[row, rank], 1:].tolist()
        ends.append((int(beams.sentences[row]), tuple(ids), float(scores[row, rank])))

    scores, kept = scores.masked_fill(is_end, float("-inf")).topk(beam)
    origins, tokens = origins.gather(1, kept), tokens.gather(1, kept)
    rows = origins + beam * torch.arange(size, device=origins.device)[:, None]
    grown = torch.cat([beams.tokens.flatten(0, 1)[rows], tokens[..., None]], dim=-1)
    return replace(beams, tokens=grown, scores=scores, cache=cache.reorder(rows.flatten())), ends


def is_done(beams: Beams, ended: list[list[Hypothesis]], beam: int) -> Tensor:
    """Which sentences need no more steps: K translations have ended, or nothing is left to go on with."""
    enough = torch.tensor([len(ended[sentence]) >= beam for sentence in beams.sentences.tolist()])
    return enough.to(beams.scores.device) | ~beams.scores.isfinite().any(-1)


def retire(beams: Beams, done: Tensor) -> Beams:
    """Only the sentences that are not done."""
    if not done.any():
        return beams
    rest = (~done).nonzero()[:, 0]
    beam = beams.tokens.size(1)
    rows = (rest[:, None] * beam + torch.arange(beam, device=rest.device)).flatten()
    return Beams(
        beams.sentences[rest], beams.tokens[rest], beams.scores[rest], beams.limits[rest], beams.cache.select(rows)
    )
