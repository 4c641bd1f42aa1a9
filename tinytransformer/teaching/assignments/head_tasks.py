"""Tasks of assignment 2 about heads: taking some out of a layer, and attention from weights as libraries pack them."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task

# --- heads taken out


def _kept(num_heads: int, drop: list[int]) -> list[int]:
    return [head for head in range(num_heads) if head not in drop]


def _columns(matrix: Tensor, num_heads: int, heads: list[int]) -> Tensor:
    return matrix.unflatten(1, (num_heads, -1))[:, heads].flatten(1)


def _prune(w_q, w_k, w_v, w_o, num_heads, drop, choose=_kept, cut=_columns) -> tuple[Tensor, ...]:
    heads = choose(num_heads, drop)
    return (*(cut(w, num_heads, heads) for w in (w_q, w_k, w_v)), cut(w_o.T, num_heads, heads).T)


def _interleaved(matrix: Tensor, num_heads: int, heads: list[int]) -> Tensor:
    return matrix.unflatten(1, (-1, num_heads))[:, :, heads].flatten(1)


def _zeroed(matrix: Tensor, num_heads: int, heads: list[int]) -> Tensor:
    gate = torch.zeros(num_heads)
    gate[heads] = 1.0
    return matrix * gate.repeat_interleave(matrix.size(1) // num_heads)


def _numbers_shift(num_heads: int, drop: list[int]) -> list[int]:
    """Heads are taken out one after the other, and the numbers of those behind change meanwhile."""
    heads = list(range(num_heads))
    for number in drop:
        del heads[number : number + 1]
    return heads


def _output_by_columns(w_q, w_k, w_v, w_o, num_heads, drop) -> tuple[Tensor, ...]:
    first = _prune(w_q, w_k, w_v, w_o, num_heads, drop)[:3]
    return (*first, _columns(w_o, num_heads, _kept(num_heads, drop)))


def _size_of_keys(w_q, w_k, w_v, w_o, num_heads, drop) -> tuple[Tensor, ...]:
    """Values and w_o are cut as if a head's value were as long as its key."""
    size = w_k.size(1) // num_heads
    parts = [slice(head * size, (head + 1) * size) for head in _kept(num_heads, drop)]
    values, rows = torch.cat([w_v[:, part] for part in parts], dim=1), torch.cat([w_o[part] for part in parts])
    return (*_prune(w_q, w_k, w_v, w_o, num_heads, drop)[:2], values, rows)


def _prune_case(num_heads: int, d_k: int, d_v: int, drop: list[int], seed: int) -> tuple:
    d_model = num_heads * d_v
    shapes = ((d_model, num_heads * d_k), (d_model, num_heads * d_k), (d_model, d_model), (d_model, d_model))
    return (*(random(*shape, seed=seed + i) for i, shape in enumerate(shapes)), num_heads, drop)


def _prune_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    d_k = 2 + int(torch.randint(0, 3, (), generator=dice))
    heads = torch.randperm(5, generator=dice).tolist()
    return [
        Case("one head taken out", _prune_case(5, d_k, d_k + 1, heads[:1], seed)),
        Case("two heads taken out, in rising order", _prune_case(6, d_k + 2, d_k, [1 + heads[0] % 2, 4], seed + 10)),
        Case("three heads taken out, in any order", _prune_case(5, d_k, d_k + 1, heads[:3], seed + 20)),
        Case("one head left", _prune_case(3, d_k + 1, d_k, [0, 2], seed + 30)),
        Case("nothing taken out", _prune_case(2, d_k, d_k + 1, [], seed + 40)),
    ]


PRUNE = Task(
    Exercise(
        "prune_heads",
        reference=_prune,
        cases=lambda: [
            _prune_case(3, 2, 3, [1], 1),
            _prune_case(4, 3, 2, [0, 2], 10),
            _prune_case(2, 1, 2, [], 20),
            _prune_case(2, 1, 2, [0], 30),
        ],
        mistakes=(
            Mistake("only-the-dropped", "The heads in the list are kept, and all others are gone.",
                    lambda *i: _prune(*i, choose=lambda num_heads, drop: sorted(drop))),
            Mistake("features-interleaved", "A head is taken to be every H-th column. It is a stretch of neighbours.",
                    lambda *i: _prune(*i, cut=_interleaved)),
            Mistake("set-to-zero", "The heads are set to 0, not taken out: the matrices were to become smaller.",
                    lambda *i: _prune(*i, cut=_zeroed)),
            Mistake("w_o-not-cut", "w_o is still whole. The features of a head that is gone meet nothing any more.",
                    lambda *i: (*_prune(*i)[:3], i[3])),
            Mistake("w_o-by-columns", "w_o is cut along its columns. What do the merged heads meet, its rows or its "
                    "columns?", _output_by_columns),
            Mistake("size-of-keys", "Values and w_o are cut as if a head's value were as long as its key.",
                    _size_of_keys),
            Mistake("numbers-shift", "The heads are taken out one after the other, and after the first the others have "
                    "new numbers. The list means the old ones.", lambda *i: _prune(*i, choose=_numbers_shift)),
        ),
    ),
    points=10,
    minutes=15,
    hidden=_prune_hidden,
)  # fmt: skip


# --- attention from packed weights


def packed_attention(x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None) -> Tensor:
    """x (B, T, D) looks at memory (B, S, D) under a mask (B, T, S) or None; the result is (B, T, D)."""
    d_model = x.size(-1)
    w_q, w_k, w_v = weights["in_weight"].split(d_model)
    b_q, b_k, b_v = weights["in_bias"].split(d_model)
    query, key, value = x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in (query, key, value))
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5  # (B, H, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], -torch.inf)
    heads = scores.softmax(dim=-1).nan_to_num(nan=0.0) @ v
    return heads.transpose(1, 2).flatten(2) @ weights["out_weight"].T + weights["out_bias"]


def _attention(x, memory, weights, num_heads, mask, split=None, scale=None, hide=None, merge=None) -> Tensor:
    """The same once more, with places where it can go wrong."""
    d_model = x.size(-1)
    split = split or (lambda part: part.unflatten(-1, (num_heads, -1)).transpose(1, 2))
    hide = hide or (lambda scores, mask: scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).nan_to_num(nan=0.0))
    merge = merge or (lambda heads: heads.transpose(1, 2).flatten(2))
    matrices, biases = weights["in_weight"].split(d_model), weights["in_bias"].split(d_model)
    q, k, v = (split(part @ w.T + b) for part, w, b in zip((x, memory, memory), matrices, biases, strict=True))
    scores = q @ k.transpose(-2, -1) * (q.size(-1) ** -0.5 if scale is None else scale)
    allowed = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask is None else mask[:, None]
    heads = hide(scores, allowed.expand_as(scores)) @ v
    return merge(heads) @ weights["out_weight"].T + weights["out_bias"]


def _not_turned(x, memory, weights, num_heads, mask) -> Tensor:
    d_model = x.size(-1)
    turned = torch.cat([w.T for w in weights["in_weight"].split(d_model)])
    wrong = {**weights, "in_weight": turned, "out_weight": weights["out_weight"].T}
    return packed_attention(x, memory, wrong, num_heads, mask)


def packed_weights(d_model: int, seed: int) -> dict[str, Tensor]:
    """Random weights of one attention, as the tasks of this assignment name them."""
    shapes = {"in_weight": (3 * d_model, d_model), "in_bias": (3 * d_model,)}
    shapes |= {"out_weight": (d_model, d_model), "out_bias": (d_model,)}
    return {
        name: random(*shape, seed=seed + i, spread=d_model**-0.5 if len(shape) == 2 else 0.5)
        for i, (name, shape) in enumerate(shapes.items())
    }


def _packed_case(batch: int, queries: int, keys: int, heads: int, size: int, seed: int, masked: bool = True) -> tuple:
    """Some pairs forbidden; the last query of the first sentence sees nothing."""
    x, memory = random(batch, queries, heads * size, seed=seed), random(batch, keys, heads * size, seed=seed + 1)
    mask = torch.rand(batch, queries, keys, generator=torch.Generator().manual_seed(seed + 2)) < 0.6
    mask[:, 0, 0], mask[0, -1] = True, False
    return 2 * x, 2 * memory, packed_weights(heads * size, seed + 3), heads, mask if masked else None


def _packed_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    queries, keys, size = (int(size) for size in torch.randperm(4, generator=dice)[:3] + 3)
    return [
        Case("no mask", _packed_case(2, queries, keys, 3, size, seed, masked=False)),
        Case("a mask with a query that sees nothing", _packed_case(3, queries, keys, 2, size, seed + 10)),
        Case("as many queries as keys", _packed_case(2, keys, keys, 4, size, seed + 20)),
        Case("as many sentences as heads", _packed_case(3, queries, keys, 3, size, seed + 30)),
        Case("one head, one sentence", _packed_case(1, queries, keys, 1, size, seed + 40)),
    ]


PACKED_ATTENTION = Task(
    Exercise(
        "packed_attention",
        reference=packed_attention,
        cases=lambda: [
            _packed_case(2, 3, 4, 2, 3, 1, masked=False),
            _packed_case(2, 4, 3, 3, 2, 10),
            _packed_case(2, 3, 3, 2, 2, 20),
        ],
        mistakes=(
            Mistake("not-turned", "The matrices are used as they lie there. A linear layer of PyTorch stores one row "
                    "for each feature that comes out.", _not_turned),
            Mistake("output-not-turned", "Queries, keys and values are right. `out_weight` is used as it lies there, "
                    "but it is stored like the other matrices.",
                    lambda x, m, w, h, mask: packed_attention(
                        x, m, {**w, "out_weight": w["out_weight"].T}, h, mask)),
            Mistake("no-scale", "The scores are used as they are: the scale is missing.",
                    lambda x, *i: _attention(x, *i, scale=1.0)),
            Mistake("scale-d_model", "The scores are divided by √d_model. A head's dot products have d_k terms.",
                    lambda x, *i: _attention(x, *i, scale=x.size(-1) ** -0.5)),
            Mistake("split-without-transposing", "The features are cut into heads as if the heads came before the "
                    "words: a head gets features of several words. Cut each word's features, then exchange the axes.",
                    lambda x, m, w, h, mask: _attention(
                        x, m, w, h, mask, split=lambda part: part.reshape(len(x), h, part.size(1), -1))),
            Mistake("words-and-heads-mixed", "The heads are right, but they are merged without putting words before "
                    "heads again: rows of different words are mixed.",
                    lambda x, *i: _attention(x, *i, merge=lambda heads: heads.reshape(x.shape))),
            Mistake("features-interleaved", "Head i gets every H-th feature. It must get a stretch of neighbours.",
                    lambda x, m, w, h, mask: _attention(
                        x, m, w, h, mask, split=lambda part: part.unflatten(-1, (-1, h)).permute(0, 3, 1, 2))),
            Mistake("mask-inverted", "Allowed keys are hidden and forbidden ones seen: here True means \"may attend\".",
                    lambda *i: packed_attention(*i[:4], None if i[4] is None else ~i[4])),
            Mistake("nan-row", "A query that sees nothing becomes NaN. Its heads were to give zeros.",
                    lambda *i: _attention(*i, hide=lambda s, m: s.masked_fill(~m, -torch.inf).softmax(dim=-1))),
            Mistake("uniform-row", "A query that sees nothing shares its weight among forbidden keys. Its heads were "
                    "to give zeros.",
                    lambda *i: _attention(*i, hide=lambda s, m: s.masked_fill(~m, -1e9).softmax(dim=-1))),
        ),
    ),
    points=14,
    minutes=25,
    hidden=_packed_hidden,
    forbidden=("multi_head_attention_forward", "native_multi_head_attention"),
)  # fmt: skip
