"""Exercises of lesson 02 about the softmax: written out, its entropy, its slope."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- a softmax that survives large scores


def _softmax_cases() -> list[tuple]:
    level = torch.tensor([[0.0], [-500.0], [900.0]])  # rows of very different height
    return [(random(5, 3, seed=1),), (random(2, 3, 3, seed=2),), (random(3, 4, seed=3) + level,)]


SOFTMAX = Exercise(
    "my_softmax",
    reference=lambda scores: scores.softmax(dim=-1),
    cases=_softmax_cases,
    mistakes=(
        Mistake("overflow", "Right for small scores. For a score of 900 the exponential is infinite, and infinite "
                "divided by infinite is NaN: what may be subtracted from a whole row without changing its weights?",
                lambda s: s.exp() / s.exp().sum(-1, keepdim=True)),
        Mistake("one-maximum-for-all", "The maximum of the whole tensor is subtracted, and a row far below it becomes "
                "0 / 0: each row needs its own.",
                lambda s: (e := (s - s.max()).exp()) / e.sum(-1, keepdim=True)),
        Mistake("first-axis", "The weights sum to one down the first axis, not along each row.",
                lambda s: s.softmax(dim=0)),
        Mistake("wrong-axis", "Columns sum to one, rows do not: the sum runs over the last axis but one.",
                lambda s: s.softmax(dim=-2)),
        Mistake("one-sum-for-all", "All weights together sum to one. Each row must.",
                lambda s: s.flatten().softmax(0).view_as(s)),
        Mistake("not-normalised", "The rows do not sum to one: the exponentials are not divided by their sum.",
                lambda s: s.exp()),
        Mistake("no-exponential", "The scores are divided by their sum without the exponential: negative scores give "
                "negative weights.", lambda s: s / s.sum(-1, keepdim=True)),
        Mistake("logarithm", "These are logarithms of the weights.", lambda s: s.log_softmax(dim=-1)),
    ),
)  # fmt: skip


# --- entropy


def _entropy(weights: Tensor) -> Tensor:
    return -torch.xlogy(weights, weights).sum(-1)


ENTROPY = Exercise(
    "entropy",
    reference=_entropy,
    cases=lambda: [
        (random(3, 5, seed=41).softmax(-1),),
        (random(2, 3, 3, seed=42).softmax(-1),),
        (torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]]),),
    ],
    mistakes=(
        Mistake("zero-weight", "NaN where a weight is 0, for 0 · log 0 is 0 · (-inf). Such a key should count nothing.",
                lambda w: -(w * w.log()).sum(-1)),
        Mistake("repaired-after-the-sum", "A row with a weight of 0 has entropy 0, because its whole sum became NaN "
                "and was replaced. Only the one term counts nothing.",
                lambda w: (-(w * w.log()).sum(-1)).nan_to_num(nan=0.0)),
        Mistake("sign", "Entropy is never negative: look at the sign.", lambda w: torch.xlogy(w, w).sum(-1)),
        Mistake("base-two", "These are bits. Asked for are nats: the natural logarithm.",
                lambda w: _entropy(w) / torch.tensor(2.0).log()),
        Mistake("mean", "The terms of a row are averaged. They are to be summed.", lambda w: _entropy(w) / w.size(-1)),
        Mistake("one-number-for-all", "One number came out. Each row has an entropy of its own.",
                lambda w: _entropy(w).sum()),
        Mistake("wrong-axis", "The sum runs over the queries, not over the keys.",
                lambda w: -torch.xlogy(w, w).sum(-2)),
    ),
)  # fmt: skip


# --- the slope of softmax


def _jacobian(weights: Tensor) -> Tensor:
    return torch.diag(weights) - torch.outer(weights, weights)


JACOBIAN = Exercise(
    "softmax_jacobian",
    reference=_jacobian,
    cases=lambda: [(random(size, seed=90 + size).softmax(-1),) for size in (2, 3, 6)],
    mistakes=(
        Mistake("diagonal-only", "Only the diagonal is there. When one score rises, all other weights fall, too.",
                lambda w: torch.diag(w * (1 - w))),
        Mistake("one-column", "One number per key. How does weight i answer to score j: that is a table.",
                lambda w: w * (1 - w)),
        Mistake("softmax-again", "The weights were taken for scores and went through another softmax. They are weights "
                "already.", lambda w: _jacobian(w.softmax(-1))),
        Mistake("sign", "The sign is turned: raising a key's score must raise its own weight.",
                lambda w: -_jacobian(w)),
        Mistake("no-diagonal-term", "Every entry is negative. One term, present only where i = j, is missing.",
                lambda w: -torch.outer(w, w)),
        Mistake("no-product-term", "A column must sum to 0, for the weights always sum to one.", torch.diag),
    ),
)  # fmt: skip
