"""Exercises of lesson 04 about taking heads apart and putting them together."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- the paper's formula, head by head


def _loop_cases() -> list[tuple]:
    def case(batch: int, length: int, d_model: int, heads: int, d_k: int, d_v: int) -> tuple:
        shapes = (
            (batch, length, d_model),
            *((heads, d_model, size) for size in (d_k, d_k, d_v)),
            (heads * d_v, d_model),
        )
        return tuple(random(*shape, seed=100 + heads + i) for i, shape in enumerate(shapes))

    return [case(2, 4, 6, 2, 3, 3), case(1, 5, 6, 3, 5, 4), case(3, 2, 4, 1, 4, 3)]


def _heads(x, w_q, w_k, w_v, scale=None, axis=-1) -> Tensor:
    """All heads at once: (B, H, T, d_v)."""
    q, k, v = (torch.einsum("btd,hde->bhte", x, w) for w in (w_q, w_k, w_v))
    return (q @ k.mT * (w_q.size(-1) ** -0.5 if scale is None else scale)).softmax(dim=axis) @ v


def _merged(heads: Tensor) -> Tensor:
    return heads.transpose(1, 2).flatten(2)


def _loop(x, w_q, w_k, w_v, w_o, **choices) -> Tensor:
    return _merged(_heads(x, w_q, w_k, w_v, **choices)) @ w_o


def _averaged_weights(x, w_q, w_k, w_v, w_o) -> Tensor:
    q, k, v = (torch.einsum("btd,hde->bhte", x, w) for w in (w_q, w_k, w_v))
    weights = (q @ k.mT * w_q.size(-1) ** -0.5).softmax(dim=-1).mean(dim=1, keepdim=True)
    return _merged(weights @ v) @ w_o


LOOP = Exercise(
    "multi_head_by_loop",
    reference=_loop,
    cases=_loop_cases,
    mistakes=(
        Mistake("no-scale", "The scores are used as they are: the scale is missing.",
                lambda *inputs: _loop(*inputs, scale=1.0)),
        Mistake("scale-d_model", "The scores are divided by √d_model. A head's dot products have d_k terms.",
                lambda x, *rest: _loop(x, *rest, scale=x.size(-1) ** -0.5)),
        Mistake("scale-d_model-by-heads", "The scale is √(d_model / H). That is d_k in the paper's model; here the "
                "matrices decide how large d_k is.",
                lambda x, w_q, *rest: _loop(x, w_q, *rest, scale=(x.size(-1) // len(w_q)) ** -0.5)),
        Mistake("scale-d_k", "The scores become too small: they are divided by d_k itself, not by its root.",
                lambda x, w_q, *rest: _loop(x, w_q, *rest, scale=1 / w_q.size(-1))),
        Mistake("scale-d_v", "The scale comes from the values. Scores compare queries and keys: their size counts.",
                lambda x, w_q, w_k, w_v, w_o: _loop(x, w_q, w_k, w_v, w_o, scale=w_v.size(-1) ** -0.5)),
        Mistake("wrong-axis", "The softmax runs over the queries: columns sum to one, rows do not.",
                lambda *inputs: _loop(*inputs, axis=-2)),
        Mistake("without-w_o", "The heads stand side by side, but the last matrix, W_O, is not applied.",
                lambda x, w_q, w_k, w_v, w_o: _merged(_heads(x, w_q, w_k, w_v))),
        Mistake("not-side-by-side", "Head after head in one long row of numbers, reshaped: words and heads are mixed. "
                "Each word's row must hold its own heads.",
                lambda x, w_q, w_k, w_v, w_o: _heads(x, w_q, w_k, w_v).reshape(*x.shape[:2], -1) @ w_o),
        Mistake("below-each-other", "The heads stand below each other, as if they were more words. Lay them side by "
                "side, along the features.",
                lambda x, w_q, w_k, w_v, w_o: torch.cat(list(_heads(x, w_q, w_k, w_v).unbind(1)), dim=1)),
        Mistake("features-interleaved", "The features of the heads alternate. All features of head 0 come first, then "
                "all of head 1.",
                lambda x, w_q, w_k, w_v, w_o: _heads(x, w_q, w_k, w_v).permute(0, 2, 3, 1).flatten(2) @ w_o),
        Mistake("one-pattern-for-all", "All heads use the average of their weights. Each head keeps its own.",
                _averaged_weights),
        Mistake("first-head-only", "Every head computes with the matrices of head 0.",
                lambda x, w_q, w_k, w_v, w_o: _loop(x, *(w[:1].expand_as(w) for w in (w_q, w_k, w_v)), w_o)),
        Mistake("queries-and-keys-swapped", "Queries and keys are exchanged: rows belong to the words that look.",
                lambda x, w_q, w_k, w_v, w_o: _loop(x, w_k, w_q, w_v, w_o)),
    ),
)  # fmt: skip


# --- queries, keys and values from one row


def _unpack_cases() -> list[tuple]:
    return [(random(*shape, seed=120 + heads), heads) for shape, heads in (((2, 5, 12), 2), ((1, 3, 24), 4))]


def _unpack(packed: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    return tuple(part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in packed.chunk(3, dim=-1))


def _head_first(packed: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    return tuple(packed.unflatten(-1, (num_heads, 3, -1)).permute(3, 0, 2, 1, 4))


UNPACK = Exercise(
    "unpack_heads",
    reference=_unpack,
    cases=_unpack_cases,
    mistakes=(
        Mistake("no-transpose", "The shape is right, but words and heads are mixed: the row was cut as if heads came "
                "before words.",
                lambda packed, h: tuple(
                    part.reshape(part.size(0), h, part.size(1), -1) for part in packed.chunk(3, dim=-1))),
        Mistake("words-first", "The heads still stand behind the words: (B, T, H, d). The attention needs them before.",
                lambda packed, h: tuple(part.transpose(1, 2) for part in _unpack(packed, h))),
        Mistake("head-first", "You read the row as head 0 with its query, key and value, then head 1. Here all queries "
                "come first, then all keys, then all values.", _head_first),
        Mistake("features-interleaved", "Head i gets every H-th feature. It must get a stretch of neighbours.",
                lambda packed, h: tuple(
                    part.unflatten(-1, (-1, h)).permute(0, 3, 1, 2) for part in packed.chunk(3, dim=-1))),
        Mistake("three-interleaved", "Query, key and value alternate from number to number. Each is one stretch of D "
                "numbers.", lambda packed, h: _unpack(torch.cat([packed[..., i::3] for i in range(3)], dim=-1), h)),
        Mistake("wrong-order", "The order is query, key, value. Yours begins with another of them.",
                lambda packed, h: tuple(_unpack(packed, h)[i] for i in (1, 0, 2))),
    ),
)  # fmt: skip


# --- what each head adds to the output


def _parts_cases() -> list[tuple]:
    sizes = [(2, 3, 4, 2, 5), (1, 2, 3, 3, 6)]  # sentences, heads, words, features of a head, d_model
    return [(random(b, h, t, d, seed=140 + h), random(h * d, m, seed=150 + h)) for b, h, t, d, m in sizes]


def _parts(heads: Tensor, w_o: Tensor) -> Tensor:
    return torch.einsum("bhtd,hde->bhte", heads, w_o.unflatten(0, (heads.size(1), -1)))


HEAD_PARTS = Exercise(
    "head_parts",
    reference=_parts,
    cases=_parts_cases,
    mistakes=(
        Mistake("summed", "This is the sum over the heads, the output itself. Asked for is each head's part of it.",
                lambda heads, w_o: _parts(heads, w_o).sum(dim=1)),
        Mistake("averaged", "This is the average over the heads. Asked for is each head's part, and parts add up.",
                lambda heads, w_o: _parts(heads, w_o).mean(dim=1)),
        Mistake("every-other-row", "Head i meets every H-th row of w_o. In the merged row its features stand together, "
                "so it meets a stretch of neighbouring rows.",
                lambda heads, w_o: torch.einsum("bhtd,dhe->bhte", heads, w_o.unflatten(0, (-1, heads.size(1))))),
        Mistake("first-stretch-for-all", "Every head meets the first rows of w_o. Each has a stretch of its own.",
                lambda heads, w_o: heads @ w_o[: heads.size(-1)]),
        Mistake("words-first", "Right numbers, but the words stand before the heads: wanted is (B, H, T, D).",
                lambda heads, w_o: _parts(heads, w_o).transpose(1, 2)),
        Mistake("heads-backwards", "The heads meet the stretches of w_o in the opposite order.",
                lambda heads, w_o: _parts(heads, w_o.unflatten(0, (heads.size(1), -1)).flip(0).flatten(0, 1))),
    ),
)  # fmt: skip
