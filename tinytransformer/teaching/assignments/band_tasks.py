"""A task of assignment 1 about long sentences: the weights of a window, without the whole table."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task


def _places(length: int, radius: int) -> Tensor:
    """The key that each column of the band stands for, for each query: (T, 2 · radius + 1), perhaps out of range."""
    return torch.arange(length)[:, None] + torch.arange(-radius, radius + 1)


def _band(query: Tensor, key: Tensor, radius: int, scale: float | None = None, hide=None, bring=None) -> Tensor:
    length = query.size(-2)
    places = _places(length, radius)
    inside = (places >= 0) & (places < length)
    bring = bring or (lambda places: places.clamp(0, length - 1))
    scores = (query.unsqueeze(-2) * key[..., bring(places), :]).sum(dim=-1)
    scores = scores * (query.size(-1) ** -0.5 if scale is None else scale)
    hidden = ~inside if hide is None else hide(inside, places)
    return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)


def _zero_keys_outside(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length = query.size(-2)
    wide = torch.nn.functional.pad(key, (0, 0, radius, radius))
    scores = (query.unsqueeze(-2) * wide[..., _places(length, radius) + radius, :]).sum(dim=-1)
    return (scores * query.size(-1) ** -0.5).softmax(dim=-1)


def _ends_repeated(query: Tensor, key: Tensor, radius: int) -> Tensor:
    return _band(query, key, radius, hide=lambda inside, places: torch.zeros_like(inside))


def _removed_late(wrong):
    """Places outside the sentence take part in the softmax, as they do in ``wrong``, and are set to 0 after it."""

    def removed(query: Tensor, key: Tensor, radius: int) -> Tensor:
        places = _places(query.size(-2), radius)
        return wrong(query, key, radius) * ((places >= 0) & (places < query.size(-2)))

    return removed


def _zero_is_no_key(query: Tensor, key: Tensor, radius: int) -> Tensor:
    """Zeros outside, and every score of 0 is taken for one of them."""
    length = query.size(-2)
    wide = torch.nn.functional.pad(key, (0, 0, radius, radius))
    scores = (query.unsqueeze(-2) * wide[..., _places(length, radius) + radius, :]).sum(dim=-1)
    return (scores.masked_fill(scores == 0, -torch.inf) * query.size(-1) ** -0.5).softmax(dim=-1)


def _left_aligned(query: Tensor, key: Tensor, radius: int) -> Tensor:
    """Each row begins with its first key, and what is missing is missing at the end."""
    right, gaps = _band(query, key, radius), [max(0, radius - i) for i in range(query.size(-2))]
    return torch.stack([right[..., i, :].roll(-gap, dims=-1) for i, gap in enumerate(gaps)], dim=-2)


def _cut_from_the_whole(query: Tensor, key: Tensor, radius: int) -> Tensor:
    """The softmax over all keys first, then the band of it."""
    length = query.size(-2)
    weights = torch.nn.functional.pad((query @ key.mT * query.size(-1) ** -0.5).softmax(dim=-1), (radius, radius))
    return torch.stack([weights[..., i, i : i + 2 * radius + 1] for i in range(length)], dim=-2)


def _pair(*leading: int, length: int, d_k: int, seed: int) -> tuple[Tensor, Tensor]:
    return random(*leading, length, d_k, seed=seed), random(*leading, length, d_k, seed=seed + 1, spread=1.5)


def _with_zero_key(query: Tensor, key: Tensor, radius: int) -> tuple:
    """One key in the middle is 0, so that its scores are."""
    middle = torch.arange(key.size(-2)) == key.size(-2) // 2
    return query, key.masked_fill(middle[:, None], 0.0), radius


def _band_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    length, d_k = 7 + int(torch.randint(0, 5, (), generator=dice)), 4 + int(torch.randint(0, 5, (), generator=dice))
    return [
        Case("a narrow window, with scores of zero", _with_zero_key(*_pair(length=length, d_k=d_k, seed=seed), 1)),
        Case("a wider window, in a batch with heads", (*_pair(2, 3, length=length, d_k=d_k, seed=seed + 2), 3)),
        Case("a window wider than the sentence", (*_pair(length=4, d_k=d_k, seed=seed + 4), 5)),
        Case("each word sees itself only", (*_pair(2, length=length, d_k=d_k, seed=seed + 6), 0)),
        Case("one word", (*_pair(length=1, d_k=d_k, seed=seed + 8), 2)),
    ]


BAND = Task(
    Exercise(
        "band_weights",
        reference=_band,
        cases=lambda: [
            (*_pair(length=5, d_k=4, seed=1), 1),
            (torch.ones(3, 1), torch.tensor([[1.0], [2.0], [3.0]]).log(), 1),
            (*_pair(2, length=6, d_k=3, seed=3), 2),
            (*_pair(length=2, d_k=4, seed=5), 3),
        ],
        mistakes=(
            Mistake("outside-counts", "Places outside the sentence get weight. They hold no key: a score of 0 is still "
                    "a score.", _zero_keys_outside),
            Mistake("zero-is-no-key", "Every score of 0 is taken for a place outside the sentence. A key inside it can "
                    "have the score 0, too: decide by the place.", _zero_is_no_key),
            Mistake("removed-late", "Places outside the sentence are set to 0 after the softmax: the rows at both ends "
                    "no longer sum to one.", _removed_late(_zero_keys_outside)),
            Mistake("repeated-and-removed-late", "The first and the last key are repeated outside the sentence, and "
                    "only the softmax's result is set to 0 there: these rows no longer sum to one.",
                    _removed_late(_ends_repeated)),
            Mistake("wraps-round", "The first word sees the last one: places outside the sentence come back in at the "
                    "other end.",
                    lambda q, k, r: _band(q, k, r, bring=lambda places: places % q.size(-2),
                                          hide=lambda inside, places: torch.zeros_like(inside))),
            Mistake("ends-repeated", "Places outside the sentence hold the first or the last key once more. They hold "
                    "none.", _ends_repeated),
            Mistake("left-aligned", "Rows at the beginning start with their first key in column 0. The query's own key "
                    "stands in the middle column of every row.", _left_aligned),
            Mistake("mirrored", "The columns run backwards: column 0 is the key farthest to the left.",
                    lambda q, k, r: _band(q, k, r).flip(-1)),
            Mistake("cut-from-the-whole", "The softmax ran over all keys, and the band was cut out of it. Keys outside "
                    "the window must take no weight away.", _cut_from_the_whole),
            Mistake("no-scale", "The scores are used as they are: the scale is missing.",
                    lambda q, k, r: _band(q, k, r, scale=1.0)),
        ),
    ),
    points=15,
    minutes=25,
    hidden=_band_hidden,
)  # fmt: skip
