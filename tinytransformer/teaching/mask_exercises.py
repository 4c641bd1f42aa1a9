"""Exercises of lesson 03 about making and using masks."""

import torch
from torch import Tensor

from tinytransformer.model.masks import causal_mask, padding_mask
from tinytransformer.teaching.exercises import Exercise, Mistake, Symptom, agree, random

# --- the causal mask of a chunk


CHUNK = Exercise(
    "chunk_mask",
    reference=causal_mask,
    cases=lambda: [(4, 0), (2, 3), (1, 4), (3, 1)],
    mistakes=(
        Mistake("not-oneself", "The diagonal is hidden, too: a query must see its own position.",
                lambda length, offset: torch.ones(length, offset + length).tril(offset - 1).bool()),
        Mistake("sees-the-next", "Each query sees one position of the future: the mask is one place too wide.",
                lambda length, offset: torch.ones(length, offset + length).tril(offset + 1).bool()),
        Mistake("inverted", "True and False are exchanged: here True means \"may attend\".",
                lambda length, offset: ~causal_mask(length, offset)),
        Mistake("top-left", "Right without an offset. With one, the first query stands at position `offset` and has "
                "seen all keys before it; yours begins at key 0.",
                lambda length, offset: torch.ones(length, offset + length).tril().bool()),
        Mistake("looks-ahead-only", "Each query sees itself and what comes after it: earlier and later are exchanged.",
                lambda length, offset: torch.ones(length, offset + length).triu(offset).bool()),
        Mistake("keys-down", "Rows and columns are exchanged: queries go down, keys across.",
                lambda length, offset: causal_mask(length, offset).T),
        Mistake("offset-ignored", "There are offset + length keys. Yours has columns for the new positions only.",
                lambda length, offset: causal_mask(length)),
    ),
)  # fmt: skip


# --- the three masks of a translator


def _translation_cases() -> list[tuple]:
    source = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, 1, 1], [3, 0, 4, 2, 1]])  # 1 is the padding here, 0 is a word
    target = torch.tensor([[2, 6, 7, 4], [2, 9, 1, 1], [1, 2, 0, 5]])  # padding behind, and once in front
    return [(source, target, 1), (source[:2].where(source[:2] != 1, 0), target[:2].where(target[:2] != 1, 0), 0)]


def _broadcast(arguments: tuple, answer: object) -> object:
    """A mask may leave axes at size 1 that broadcasting fills: all are compared in full."""
    source, target, _ = arguments
    batch, sizes = len(source), (source.size(1), target.size(1))
    full = [(batch, 1, sizes[0], sizes[0]), (batch, 1, sizes[1], sizes[1]), (batch, 1, sizes[1], sizes[0])]
    if not isinstance(answer, tuple | list) or len(answer) != len(full):
        return answer
    return tuple(
        mask.expand(shape) if isinstance(mask, Tensor) and _fits(mask.shape, shape) else mask
        for mask, shape in zip(answer, full, strict=True)
    )


def _fits(shape: torch.Size, full: tuple[int, ...]) -> bool:
    return len(shape) == len(full) and all(size in (1, wanted) for size, wanted in zip(shape, full, strict=True))


def _masks(source: Tensor, target: Tensor, pad_id: int, look=causal_mask) -> tuple[Tensor, Tensor, Tensor]:
    real = padding_mask(source, pad_id)
    return real, look(target.size(1)) & padding_mask(target, pad_id), real


def _queries_real(ids: Tensor, pad_id: int) -> Tensor:
    return padding_mask(ids, pad_id).transpose(-2, -1)


def _on_queries(source: Tensor, target: Tensor, pad_id: int) -> tuple[Tensor, Tensor, Tensor]:
    seen = causal_mask(target.size(1)) & _queries_real(target, pad_id)
    return _queries_real(source, pad_id), seen, _queries_real(target, pad_id)


def _changed(place: int, change):
    """The right masks but for one, which ``change`` makes from the right ones and the arguments."""

    def wrong(source: Tensor, target: Tensor, pad_id: int) -> tuple[Tensor, ...]:
        masks = list(_masks(source, target, pad_id))
        masks[place] = change(masks[place], source, target, pad_id)
        return tuple(masks)

    return wrong


TRANSLATION = Exercise(
    "translation_masks",
    reference=_masks,
    cases=_translation_cases,
    normal=_broadcast,
    mistakes=(
        Mistake("padding-on-queries", "The rows of padding tokens are hidden, not their columns: real words still look "
                "at padding, and padding rows see nothing, which gives NaN.", _on_queries),
        Mistake("cross-by-target", "The cross mask hides queries that are padding. Its keys are source words: only "
                "the source's padding decides.", _changed(2, lambda m, s, t, p: _queries_real(t, p))),
        Mistake("cross-hides-padded-queries", "The cross mask hides the source's padding, and the rows of padded "
                "target words as well: those rows see nothing, which gives NaN.",
                _changed(2, lambda m, s, t, p: m & _queries_real(t, p))),
        Mistake("cross-causal", "The cross mask is causal. The whole source is known before the first word is "
                "written: nothing in it is the future.",
                _changed(2, lambda m, s, t, p: m & torch.ones(t.size(1), s.size(1)).tril().bool())),
        Mistake("encoder-causal", "The encoder's mask is causal. Source words may look ahead.",
                _changed(0, lambda m, s, t, p: m & causal_mask(s.size(1)))),
        Mistake("decoder-not-causal", "The decoder's mask hides padding but not the future.",
                _changed(1, lambda m, s, t, p: padding_mask(t, p))),
        Mistake("decoder-without-padding", "The decoder's mask hides the future but not the target's padding.",
                _changed(1, lambda m, s, t, p: causal_mask(t.size(1))[None, None])),
        Mistake("or", "The decoder's two rules are joined so that either is enough. Both must allow a pair.",
                _changed(1, lambda m, s, t, p: causal_mask(t.size(1)) | padding_mask(t, p))),
        Mistake("not-oneself", "The decoder's queries do not see their own position. They must: the target is shifted "
                "by one.", _changed(1, lambda m, s, t, p: causal_mask(t.size(1)).tril(-1) & padding_mask(t, p))),
        Mistake("sees-the-next", "Each query of the decoder sees the next position, which is the answer.",
                lambda s, t, p: _masks(s, t, p, look=lambda n: torch.ones(n, n).tril(1).bool())),
        Mistake("looks-ahead-only", "Each query of the decoder sees itself and what comes after it: earlier and later "
                "are exchanged.",
                lambda s, t, p: _masks(s, t, p, look=lambda n: torch.ones(n, n).triu().bool())),
        Mistake("inverted", "True and False are exchanged: here True means \"may attend\".",
                lambda s, t, p: tuple(~mask for mask in _masks(s, t, p))),
        Mistake("padding-is-always-zero", "Right when the padding's id is 0. The id is an argument: use it.",
                lambda s, t, p: _masks(s, t, 0)),
    ),
)  # fmt: skip


# --- a softmax that knows masks


def _masked_softmax_cases() -> list[tuple]:
    blank = causal_mask(3)
    blank[1] = False  # one query that may look nowhere
    keys = torch.tensor([[[True, True, False, True]], [[False, True, True, False]]])
    return [
        (random(3, 3, seed=1), causal_mask(3)),
        (random(2, 3, 4, seed=2), keys),
        (random(3, 3, seed=3), blank),
        (random(3, 3, seed=4).half(), causal_mask(3)),
        (random(3, 3, seed=5) + 200.0, causal_mask(3)),
        (random(3, 3, seed=6) + 150.0 * ~causal_mask(3), causal_mask(3)),  # the best key is a forbidden one
    ]


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1) * mask


def _forbidden_maximum(scores: Tensor, mask: Tensor) -> Tensor:
    part = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    return (part / part.sum(-1, keepdim=True)).nan_to_num(nan=0.0)


def _only_large_scores_fail(runs) -> bool:
    return all(agree(run.got, run.wanted) for run in runs if run.arguments[0].max() < 100)


OVERFLOW = Symptom(
    "overflow",
    _only_large_scores_fail,
    lambda run: (
        "Right for small scores. Scores around 200 have infinite exponentials: subtract something from each row first."
    ),
)

MASKED_SOFTMAX = Exercise(
    "masked_softmax",
    reference=_masked,
    cases=_masked_softmax_cases,
    mistakes=(
        Mistake("maximum-of-the-forbidden", "A row vanishes when a forbidden score is far above the others: the "
                "maximum that is subtracted must be that of the allowed keys.", _forbidden_maximum),
        Mistake("nan-row", "A row in which nothing is allowed becomes NaN: its exponentials sum to 0. Asked for are "
                "zeros.", lambda s, m: s.masked_fill(~m, -torch.inf).softmax(dim=-1)),
        Mistake("uniform-row", "A row in which nothing is allowed shares its weight among forbidden keys, since to a "
                "softmax only differences count. Asked for are zeros.",
                lambda s, m: s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(dim=-1)),
        Mistake("too-low-for-half", "Your large negative number does not fit into half precision, whose lowest is "
                "-65504. Ask the dtype for its lowest number, or use -inf.",
                lambda s, m: s.masked_fill(~m, -1e9).softmax(dim=-1) * m),
        Mistake("too-low-for-half-and-uniform", "Two things: your large negative number does not fit into half "
                "precision, and a row in which nothing is allowed must be zeros.",
                lambda s, m: s.masked_fill(~m, -1e9).softmax(dim=-1)),
        Mistake("inverted", "The forbidden keys have the weight: True means \"may attend\".",
                lambda s, m: _masked(s, ~m)),
        Mistake("masked-after-softmax", "The mask comes after the softmax, and the rows no longer sum to one: the "
                "forbidden scores still count in the denominator.", lambda s, m: s.softmax(dim=-1) * m),
        Mistake("mask-added", "The mask is added as 0 and 1: forbidden keys lose a little weight, not all of it.",
                lambda s, m: (s + m).softmax(dim=-1)),
        Mistake("scores-set-to-zero", "Forbidden scores are set to 0, and the exponential of 0 is 1: they still get "
                "weight.", lambda s, m: (s * m).softmax(dim=-1)),
        Mistake("scores-zero-then-hidden", "Forbidden scores are set to 0 and hidden after the softmax; in between "
                "they took weight away from the others.", lambda s, m: (s * m).softmax(dim=-1) * m),
        Mistake("wrong-axis", "The softmax runs over the queries: columns sum to one, rows do not.",
                lambda s, m: s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(dim=-2) * m),
    ),
    symptoms=(OVERFLOW,),
)  # fmt: skip
