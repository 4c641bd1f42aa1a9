"""Exercises of lesson 12 about relatives of the model: BERT's hidden words, and heads that share keys and values."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- which words are hidden, and how

IGNORED = -100
CHOSEN, MASKED, SWAPPED = 0.15, 0.12, 0.135  # of all tokens; eight, one and one tenth of the chosen


def _corrupt(
    ids: Tensor,
    draws: Tensor,
    others: Tensor,
    mask_id: int,
    pad_id: int,
    chosen: Callable = lambda ids, draws, pad_id: (draws < CHOSEN) & (ids != pad_id),
    masked: tuple[float, float] = (0.0, MASKED),
    swapped: tuple[float, float] = (MASKED, SWAPPED),
    ignored: int = IGNORED,
) -> tuple[Tensor, Tensor]:
    picked = chosen(ids, draws, pad_id)
    inputs = torch.where(picked & (draws >= masked[0]) & (draws < masked[1]), mask_id, ids)
    inputs = torch.where(picked & (draws >= swapped[0]) & (draws < swapped[1]), others, inputs)
    return inputs, torch.where(picked, ids, ignored)


def _targets(change: Callable) -> Callable:
    """The right inputs with other targets."""

    def corrupt(ids, draws, others, mask_id, pad_id):
        inputs, targets = _corrupt(ids, draws, others, mask_id, pad_id)
        return inputs, change(ids, inputs, targets, mask_id)

    return corrupt


def _sentences() -> list[tuple]:
    ids = torch.tensor([[7, 8, 9, 10, 11, 12, 13, 14], [15, 16, 17, 18, 0, 0, 0, 0]])
    draws = torch.tensor([
        [0.01, 0.95, 0.119, 0.121, 0.134, 0.136, 0.149, 0.151],
        [0.5, 0.13, 0.14, 0.05, 0.01, 0.13, 0.14, 0.95],
    ])  # fmt: skip
    others = torch.full_like(ids, 30) + torch.arange(8)
    long = torch.arange(5, 45).view(2, 20)
    spread = torch.rand(2, 20, generator=torch.Generator().manual_seed(12)) / 4
    return [(ids, draws, others, 4, 0), (long, spread, long.flip(1), 3, 40), (ids, draws + 0.5, others, 4, 0)]


CORRUPT = Exercise(
    "corrupt",
    reference=_corrupt,
    cases=_sentences,
    mistakes=(
        Mistake("padding-chosen", "Padding is chosen, too. There is no word to be guessed there.",
                lambda *case: _corrupt(*case, chosen=lambda ids, draws, pad_id: draws < CHOSEN)),
        Mistake("all-masked", "Every chosen token becomes the mask. Some are swapped and some stay as they are, for "
                "later no text will have a mask in it.",
                lambda *case: _corrupt(*case, masked=(0.0, CHOSEN), swapped=(1, 1))),
        Mistake("swapped-and-kept", "The tenth that is swapped and the tenth that stays have changed places.",
                lambda *case: _corrupt(*case, swapped=(SWAPPED, CHOSEN))),
        Mistake("none-kept", "All chosen tokens that are not masked are swapped. Half of those stay as they are.",
                lambda *case: _corrupt(*case, swapped=(MASKED, CHOSEN))),
        Mistake("shares-of-all", "More than 15 % are changed: the shares 80, 10 and 10 are of the chosen tokens, not "
                "of all.", lambda *case: _corrupt(*case, chosen=lambda ids, draws, pad_id: ids != pad_id,
                                               masked=(0.0, 0.8), swapped=(0.8, 0.9))),
        Mistake("targets-everywhere", "There are targets at every place. The loss is about the chosen tokens only.",
                _targets(lambda ids, inputs, targets, mask_id: ids.clone())),
        Mistake("targets-of-masks", "Only masked tokens have a target. The swapped and the kept ones are to be "
                "guessed, too: that is what they are for.",
                _targets(lambda ids, inputs, targets, mask_id: torch.where(inputs == mask_id, targets, IGNORED))),
        Mistake("targets-of-changes", "A token that was chosen and stays has no target. It is to be guessed like the "
                "others.",
                _targets(lambda ids, inputs, targets, mask_id: torch.where(inputs != ids, targets, IGNORED))),
        Mistake("targets-changed", "The targets are what stands there after the change. Wanted is what stood there "
                "before.", _targets(lambda ids, inputs, targets, mask_id: torch.where(
                    targets == IGNORED, targets, inputs))),
        Mistake("targets-of-the-rest", "The targets are those of the tokens that were not chosen.",
                _targets(lambda ids, inputs, targets, mask_id: torch.where(targets == IGNORED, ids, IGNORED))),
        Mistake("padding-as-target", "Places without a target hold the padding's number. Wanted is -100, which the "
                "loss leaves out.", lambda ids, draws, others, mask_id, pad_id: _corrupt(
                    ids, draws, others, mask_id, pad_id, ignored=pad_id)),
    ),
)  # fmt: skip


# --- heads that share keys and values


def _shared(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    spread: Callable = lambda x, times: x.repeat_interleave(times, dim=1),
    spread_values: Callable | None = None,
    scale: Callable = lambda d: 1 / math.sqrt(d),
) -> Tensor:
    times = query.size(1) // key.size(1)
    keys, values = spread(key, times), (spread_values or spread)(value, times)
    weights = (query @ keys.transpose(-2, -1) * scale(query.size(-1))).softmax(-1)
    return weights @ values


def _tiled(x: Tensor, times: int) -> Tensor:
    return x.repeat(1, times, 1, 1)


def _first(x: Tensor, times: int) -> Tensor:
    return x[:, :1].expand(-1, x.size(1) * times, -1, -1)


def _averaged(x: Tensor, times: int) -> Tensor:
    return x.mean(1, keepdim=True).expand(-1, x.size(1) * times, -1, -1)


def _heads() -> list[tuple]:
    sizes = [(1, 4, 2, 3, 5, 4), (2, 6, 3, 4, 4, 2), (2, 3, 1, 2, 6, 8), (1, 2, 2, 3, 3, 4)]
    return [
        (random(b, h, t, d, seed=number), random(b, g, s, d, seed=10 + number), random(b, g, s, d, seed=20 + number))
        for number, (b, h, g, t, s, d) in enumerate(sizes)
    ]


SHARED = Exercise(
    "shared_keys_attention",
    reference=_shared,
    cases=_heads,
    mistakes=(
        Mistake("tiled", "Neighbouring heads share: of four heads and two groups, heads 0 and 1 take the first keys. "
                "Yours go round in turns.", lambda q, k, v: _shared(q, k, v, _tiled)),
        Mistake("values-tiled", "Keys and values of a head come from different groups.",
                lambda q, k, v: _shared(q, k, v, spread_values=_tiled)),
        Mistake("first-only", "All heads use the first group. That is right only when there is one.",
                lambda q, k, v: _shared(q, k, v, _first)),
        Mistake("averaged", "All groups are averaged into one. Each group serves its own heads.",
                lambda q, k, v: _shared(q, k, v, _averaged)),
        Mistake("no-scale", "The scores are not divided by √d_k.",
                lambda q, k, v: _shared(q, k, v, scale=lambda d: 1.0)),
        Mistake("scale-d", "The scores are divided by d_k. It is its root.",
                lambda q, k, v: _shared(q, k, v, scale=lambda d: 1 / d)),
    ),
)  # fmt: skip
