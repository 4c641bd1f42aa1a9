"""Exercises of lesson 04 that measure heads: their cost, how much they disagree, and whether a merge is right."""

from collections.abc import Callable

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, Symptom, agree, random

# --- what heads cost


def _cost(n: int, d: int, projections: int = 4, squares: int = 2, times: int = 1) -> int:
    return projections * n * d * d + squares * n * n * d * times


MULTIPLICATIONS = Exercise(
    "multiplications",
    reference=lambda n, d, h: _cost(n, d),
    cases=lambda: [(50, 512, 8), (7, 12, 3), (10, 8, 1), (100, 16, 4)],
    mistakes=(
        Mistake("heads-times-scores", "Each head's scores are counted as if it had d_model features. A head has "
                "d_model / h.", lambda n, d, h: _cost(n, d, times=h)),
        Mistake("heads-times-everything", "Everything is multiplied by the number of heads. But the heads share "
                "d_model: each is small.", lambda n, d, h: h * _cost(n, d)),
        Mistake("without-w_o", "Three projections are counted. There are four: W_O mixes the heads.",
                lambda n, d, h: _cost(n, d, projections=3)),
        Mistake("without-mixtures", "The scores are counted, the mixtures of the values are not.",
                lambda n, d, h: _cost(n, d, squares=1)),
        Mistake("without-projections", "The projections are missing: W_Q, W_K, W_V and W_O act on every word.",
                lambda n, d, h: _cost(n, d, projections=0)),
        Mistake("without-w_o-and-mixtures", "Two things are missing: W_O, and the mixtures of the values.",
                lambda n, d, h: _cost(n, d, projections=3, squares=1)),
        Mistake("one-head-only", "Only one head's scores and mixtures are counted. There are h of them.",
                lambda n, d, h: 4 * n * d * d + 2 * n * n * (d // h)),
        Mistake("small-projections", "The projections are counted for one head only: together they are d_model by "
                "d_model.", lambda n, d, h: 4 * n * d * (d // h) + 2 * n * n * d),
        Mistake("one-word-projected", "The projections are counted for one word. They act on all n.",
                lambda n, d, h: 4 * d * d + 2 * n * n * d),
        Mistake("d-squared-scores", "Scores and mixtures count n · d · d. Every word meets every word: n · n · d.",
                lambda n, d, h: 6 * n * d * d),
        Mistake("additions-too", "Twice too many: you count additions as well, or every product twice.",
                lambda n, d, h: 2 * _cost(n, d)),
    ),
)  # fmt: skip


# --- how much heads disagree


def _disagreement_cases() -> list[tuple]:
    def weights(*shape: int, seed: int) -> Tensor:
        return random(*shape, seed=seed, spread=2.0).softmax(dim=-1)

    same = weights(2, 1, 3, 5, seed=161).expand(2, 4, 3, 5).contiguous()
    decided = torch.eye(3).repeat(1, 2, 1, 1)
    decided[0, 1] = decided[0, 1].roll(1, dims=-1)
    return [(weights(2, 3, 4, 5, seed=160),), (same,), (decided,)]


def _entropy(weights: Tensor) -> Tensor:
    return torch.special.entr(weights).sum(dim=-1)


def _raw_entropy(weights: Tensor) -> Tensor:
    return -(weights * weights.log()).sum(dim=-1)


def _gap(weights: Tensor, entropy=_entropy, heads: int = 1) -> Tensor:
    return entropy(weights.mean(dim=heads)) - entropy(weights).mean(dim=heads)


DISAGREEMENT = Exercise(
    "disagreement",
    reference=_gap,
    cases=_disagreement_cases,
    mistakes=(
        Mistake("sign", "The sign is turned round: the average is the less decided one, so its entropy comes first.",
                lambda w: -_gap(w)),
        Mistake("zero-weight", "A weight of exactly 0 gives NaN: 0 · log 0 must count nothing.",
                lambda w: _gap(w, _raw_entropy)),
        Mistake("of-the-average-only", "This is the entropy of the average alone: the heads' own entropies are not "
                "subtracted.", lambda w: _entropy(w.mean(dim=1))),
        Mistake("of-the-heads-only", "This is the average of the heads' entropies alone.",
                lambda w: _entropy(w).mean(dim=1)),
        Mistake("base-two", "The logarithm has base 2. Asked for are nats, the natural logarithm.",
                lambda w: _gap(w) / torch.log(torch.tensor(2.0))),
        Mistake("summed-over-heads", "The heads' entropies are summed. Subtract their average.",
                lambda w: _entropy(w.mean(dim=1)) - _entropy(w).sum(dim=1)),
        Mistake("mean-over-keys", "The entropy is a sum over the keys. Yours is a mean: too small by their number.",
                lambda w: _gap(w) / w.size(-1)),
        Mistake("one-number-for-all", "One number for everything. Asked for is one for each query of each sentence.",
                lambda w: _gap(w).mean()),
        Mistake("not-averaged", "The result still has an axis of heads: average their entropies.",
                lambda w: _entropy(w.mean(dim=1, keepdim=True)) - _entropy(w)),
    ),
)  # fmt: skip


# --- a test for a merge


def _right(heads: Tensor) -> Tensor:
    return heads.transpose(1, 2).flatten(2)


def _merges() -> list[Callable[[Tensor], Tensor]]:
    """Right ones, right ones in another order of features, and wrong ones of several kinds."""
    return [
        _right,
        lambda heads: heads.reshape(heads.size(0), heads.size(2), -1),
        lambda heads: heads.permute(0, 2, 3, 1).flatten(2),  # features alternate; the words stay apart
        lambda heads: torch.cat([_right(heads)[:, 1:], _right(heads)[:, :1]], dim=1),  # each row is the next word's
        lambda heads: _right(heads).roll(1, dims=0),  # the words of another sentence
        lambda heads: torch.cat(list(heads.unbind(1)), dim=-1),
        lambda heads: _right(heads[:, :1].expand_as(heads)),  # head 0 again and again: still of word t alone
        lambda heads: torch.cat([heads[:, 0], _right(heads[:, 1:]).flip(1)], dim=-1),  # only head 0 stands rightly
    ]


def _keeps_apart(merge: Callable[[Tensor], Tensor], shape: tuple[int, ...] = (2, 3, 5, 4)) -> bool:
    batch, _, length, _ = shape
    marks = torch.arange(batch * length).view(batch, 1, length, 1).expand(shape).float()
    merged = merge(marks.contiguous())
    return bool((merged == torch.arange(batch * length).view(batch, length, 1)).all())


def _same_as_right(merge: Callable[[Tensor], Tensor]) -> bool:
    heads = random(2, 3, 5, 4, seed=170)
    return bool(torch.equal(merge(heads), _right(heads)))


APART = Exercise(
    "keeps_words_apart",
    reference=_keeps_apart,
    cases=lambda: [(merge,) for merge in _merges()],
    mistakes=(
        Mistake("always-true", "It accepts every merge we tried, wrong ones too. Does it look at numbers, or only at "
                "shapes? With one head or one word every merge looks right.", lambda merge: True),
        Mistake("one-sentence", "It misses a merge that takes the words of another sentence: try more than one.",
                lambda merge: _keeps_apart(merge, (1, 3, 5, 4))),
        Mistake("order-counts", "It rejects merges whose features stand in another order, or which leave some out. The "
                "question is only whether row t is made of word t.", _same_as_right),
        Mistake("inverted", "True and False are exchanged: True says that the words stay apart.",
                lambda merge: not _keeps_apart(merge)),
        Mistake("first-feature-only", "It looks only at the first number of each row, or only at head 0. Look at all.",
                lambda merge: _first_only(merge)),
        Mistake("always-false", "It rejects every merge we tried, right ones too.", lambda merge: False),
    ),
    symptoms=(
        Symptom("accepts-a-wrong-merge", lambda runs: any(agree(run.got, True) and not run.wanted for run in runs),
                lambda run: "It accepts a merge that mixes words. Does every number you feed in tell its word and its "
                "sentence?"),
        Symptom("rejects-a-right-merge", lambda runs: any(agree(run.got, False) and run.wanted for run in runs),
                lambda run: "It rejects a merge that keeps the words apart, with features in another order or with "
                "some left out. The question is only whether row t is made of word t."),
    ),
)  # fmt: skip


def _first_only(merge: Callable[[Tensor], Tensor]) -> bool:
    marks = torch.arange(10.0).view(2, 1, 5, 1).expand(2, 3, 5, 4).contiguous()
    return bool((merge(marks)[..., 0] == torch.arange(10).view(2, 5)).all())
