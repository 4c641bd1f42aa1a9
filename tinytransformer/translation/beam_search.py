"""Beam search: keep the K best beginnings of a translation instead of one (section 6.1: K = 4, α = 0.6).

Four steps under one short loop: `start`, then `extend` all beginnings by a token, `retire` what has ended, until
`is_done`. The state is a value; each step returns a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tinytransformer.model.baselines import Model
from tinytransformer.model.cache import Cache, Memory
from tinytransformer.translation.greedy import EXTRA, Hypothesis, length_limits, only_allowed

Penalty = Callable[[int, float], float]
GROUP = 8  # sentences


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α: what a log-probability is divided by (Wu et al. 2016). The end token counts."""
    return ((5 + length) / 6) ** alpha


@dataclass(frozen=True, eq=False)
class Beams:
    """The beginnings under way: N sentences with at most K beginnings each. A score of -inf marks an empty place."""

    beam: int  # how many beginnings to keep
    sentences: Tensor  # (N): which sentence of the batch each is
    tokens: Tensor  # (N, K, t): start token and what came after it
    scores: Tensor  # (N, K): log-probabilities
    limits: Tensor  # (N): how many tokens a translation may have
    ended: Tensor  # (N): how many translations have ended
    rows: Tensor  # (N, K): the row of the cache that each beginning has grown from
    cache: Cache | None  # of all tokens but the last


@dataclass(frozen=True)
class End:
    """A translation that has ended: of which sentence, its ids without start and end, its log-probability."""

    sentence: int
    ids: tuple[int, ...]
    log_probability: float


@torch.inference_mode()
def beam_search(
    model: Model,
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
    found: list[list[Hypothesis]] = [[] for _ in source]
    while beams.sentences.numel():
        beams, ends = extend(model, memory, beams)
        for end in ends:
            score = end.log_probability / penalty(len(end.ids) + 1, alpha)
            found[end.sentence].append(Hypothesis(end.ids, end.log_probability, score))
        beams = retire(beams, is_done(beams))
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in found]


def start(model: Model, source: Tensor, beam: int, extra: int) -> tuple[Memory, Beams]:
    """One beginning per sentence: the start token."""
    size = source.size(0)
    sentences = torch.arange(size, device=source.device)
    beams = Beams(
        beam,
        sentences,
        tokens=torch.full((size, 1, 1), model.config.start_id, device=source.device),
        scores=torch.zeros(size, 1, device=source.device),
        limits=length_limits(model, source, extra),
        ended=torch.zeros_like(sentences),
        rows=sentences[:, None],
        cache=None,
    )
    return model.encode(source), beams


def extend(model: Model, memory: Memory, beams: Beams) -> tuple[Beams, list[End]]:
    """Add a token to every beginning; returns the K best that go on, and those among the best that have ended."""
    size, width, length = beams.tokens.shape
    logits, cache = model.step(beams.tokens[..., -1].reshape(-1, 1), memory, _in_order(beams))
    logits = logits[:, -1].float().view(size, width, -1)
    # In place: to fetch fresh memory of this size would take as long as the logarithms.
    steps = torch.log_softmax(logits, -1, out=logits)
    steps = only_allowed(model, steps, (length > beams.limits)[:, None])
    # Among 2K candidates K can go on, even if K of them end.
    scores, origins, tokens = _best(beams.scores, steps, 2 * beams.beam)
    is_end = tokens == model.config.end_id
    going_on = scores.masked_fill(is_end, float("-inf"))
    has_ended = (going_on < scores)[:, : beams.beam]

    ends = _ends(beams, scores, origins, has_ended)
    scores, kept = going_on.topk(min(beams.beam, scores.size(1)))
    origins, tokens = origins.gather(1, kept), tokens.gather(1, kept)
    lines = torch.arange(size, device=origins.device)[:, None]
    grown = torch.cat([beams.tokens[lines, origins], tokens[..., None]], dim=-1)
    ended = beams.ended + has_ended.sum(-1)
    return replace(beams, tokens=grown, scores=scores, ended=ended, rows=lines * width + origins, cache=cache), ends


def _in_order(beams: Beams) -> Cache | None:
    """The cache with one row for each beginning, in their order."""
    if beams.cache is None:
        return None
    if beams.cache.memory_mask.size(0) == beams.sentences.size(0):  # no sentence was retired
        return beams.cache.reorder(beams.rows.flatten())
    return beams.cache.select(beams.rows)


def _best(scores: Tensor, steps: Tensor, number: int, block: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    """The best ways to go on from scores (N, K) by steps (N, K, V): scores, origins and tokens, each (N, number)."""
    vocabulary = steps.size(-1)
    places = _candidates(scores, steps, number, block)
    totals = steps.flatten(1).gather(1, places) + scores.gather(1, places // vocabulary)
    best, found = totals.topk(min(number, totals.size(1)))
    places = places.gather(1, found)
    return best, places // vocabulary, places % vocabulary


def _candidates(scores: Tensor, steps: Tensor, number: int, block: int) -> Tensor:
    """Places in K · V, the same number of each sentence, among which its best ``number`` are.

    To look for them everywhere takes longer: each of the best ``number`` lies in one of the ``number`` blocks of tokens
    whose best is best. What fills no block at the end of the vocabulary is always a candidate.
    """
    size, width, vocabulary = steps.shape
    blocks = vocabulary // block
    tokens = torch.arange(vocabulary, device=steps.device)
    lines = torch.arange(0, width * vocabulary, vocabulary, device=steps.device)[:, None]
    rest = (lines + tokens[blocks * block :]).flatten().expand(size, -1)
    if not blocks:
        return rest
    maxima = steps[..., : blocks * block].unflatten(-1, (blocks, block)).amax(-1) + scores[..., None]
    chosen = maxima.flatten(1).topk(min(number, width * blocks), sorted=False).indices  # (N, number)
    starts = chosen // blocks * vocabulary + chosen % blocks * block
    return torch.cat([(starts[..., None] + tokens[:block]).flatten(1), rest], dim=1)


def _ends(beams: Beams, scores: Tensor, origins: Tensor, chosen: Tensor) -> list[End]:
    """The candidates that are ``chosen`` (N, K), as translations."""
    rows, ranks = chosen.nonzero(as_tuple=True)
    if not len(rows):
        return []
    ids = beams.tokens[rows, origins[rows, ranks], 1:].tolist()
    return [
        End(sentence, tuple(one), log_probability)
        for sentence, one, log_probability in zip(
            beams.sentences[rows].tolist(), ids, scores[rows, ranks].tolist(), strict=True
        )
    ]


def is_done(beams: Beams) -> Tensor:
    """Which sentences need no more steps: K translations have ended, or nothing is left to go on with."""
    return (beams.ended >= beams.beam) | (beams.scores[:, 0] == float("-inf"))  # the first is the best


def retire(beams: Beams, done: Tensor) -> Beams:
    """Only the sentences that are not done, and a few that are. The cache drops the others when it is put in order.

    Many sentences leave in groups, for products of every new size cost some time (see products.py). Who is done and
    stays has no beginnings left.
    """
    going = int((~done).sum())
    number = going if going <= GROUP else -(-going // GROUP) * GROUP
    if going < len(done):
        beams = replace(beams, scores=beams.scores.masked_fill(done[:, None], float("-inf")))
    if number >= len(done):
        return beams
    rest = done.int().argsort(stable=True)[:number].sort().values
    names = ("sentences", "tokens", "scores", "limits", "ended", "rows")
    return replace(beams, **{name: getattr(beams, name).index_select(0, rest) for name in names})
