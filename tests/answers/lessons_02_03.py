"""Right and wrong answers to the exercises of lessons 02 and 03."""

import math

import torch
import torch.nn.functional as F

from tinytransformer.model.masks import causal_mask, padding_mask

# --- wrong answers


def by_hand(scale=math.sqrt, over=lambda keys: len(keys[0]), mix=None, normalise=True, bend=math.exp, finish=None):
    def attend(query, keys, values):
        scores = []
        for key in keys:
            scores.append(sum(a * b for a, b in zip(query, key, strict=True)) / scale(over(keys)))
        parts = [bend(score) for score in scores]
        total = sum(parts) if normalise else 1.0
        weights = [part / total for part in parts]
        if finish:
            return finish(weights, values)
        rows = mix(keys, values) if mix else values
        return [sum(w * row[i] for w, row in zip(weights, rows, strict=True)) for i in range(len(rows[0]))]

    return attend


def softmax(dim=-1, top=lambda s: s.amax(-1, keepdim=True)):
    def my_softmax(scores):
        exp = torch.exp(scores - top(scores))
        return exp / exp.sum(dim=dim, keepdim=True)

    return my_softmax


def self_attention(axis=-1, divide=lambda x, q: math.sqrt(q.shape[-1]), late=None, roles="qkv", project=True):
    def attend(x, w_q, w_k, w_v):
        matrix = {"q": w_q, "k": w_k, "v": w_v}
        query, key = (torch.einsum("...nd,de->...ne", x, matrix[role]) for role in roles[:2])
        value = x @ matrix[roles[2]] if project else x
        scores = torch.einsum("...ie,...je->...ij", query, key) / divide(x, query)
        weights = torch.softmax(scores, axis)
        if late:
            weights = weights / late(query)
        return torch.einsum("...ij,...jv->...iv", weights, value)

    return attend


def only_weights(x, w_q, w_k, w_v):
    scores = torch.einsum("...id,...jd->...ij", x @ w_q, x @ w_k)
    return torch.softmax(scores / w_q.shape[1] ** 0.5, dim=-1)


def one_sentence_only(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.transpose(0, 1) / math.sqrt(query.shape[1])
    return torch.softmax(scores, 1) @ value


def additive(axis=-1, inner=torch.tanh, outer=None, divide=1.0):
    def attend(query, key, value, w_query, w_key, v):
        a, b = query @ w_query, key @ w_key
        rows = []
        for i in range(a.shape[-2]):
            score = inner(a[..., i : i + 1, :] + b) @ v / divide
            rows.append(outer(score) if outer else score)
        return torch.softmax(torch.stack(rows, dim=-2), dim=axis) @ value

    return attend


def pairs_only(query, key, value, w_query, w_key, v):
    scores = torch.tanh(query @ w_query + key @ w_key).matmul(v)
    weights = torch.softmax(scores, dim=-1)
    return (weights[..., None] * value).sum(-2, keepdim=True)


def jacobian_entries(entry):
    def softmax_jacobian(weights):
        n = len(weights)
        return torch.tensor([[float(entry(weights, i, j)) for j in range(n)] for i in range(n)])

    return softmax_jacobian


def chunk(rule):
    def chunk_mask(length, offset):
        return torch.tensor([[rule(offset, i, j) for j in range(offset + length)] for i in range(length)])

    return chunk_mask


def masks(encoder=None, decoder=None, cross=None):
    """The three masks pair by pair: each rule sees the ids of its queries and keys, the padding and the places."""

    def fill(queries, keys, pad, rule):
        shape = (queries.shape[0], 1, queries.shape[1], keys.shape[1])
        table = torch.zeros(shape, dtype=torch.bool)
        for b in range(shape[0]):
            for i in range(shape[2]):
                for j in range(shape[3]):
                    table[b, 0, i, j] = bool(rule(queries[b, i], keys[b, j], pad, i, j))
        return table

    def translation_masks(source, target, pad_id):
        real = lambda query, key, pad, i, j: key != pad  # noqa: E731
        past = lambda query, key, pad, i, j: key != pad and j <= i  # noqa: E731
        return (
            fill(source, source, pad_id, encoder or real),
            fill(target, target, pad_id, decoder or past),
            fill(target, source, pad_id, cross or real),
        )

    return translation_masks


def all_inverted(source, target, pad_id):
    return [mask.logical_not() for mask in masks()(source, target, pad_id)]


def fill_in(number, then=lambda weights, mask: weights, axis=-1):
    def masked_softmax(scores, mask):
        low = number(scores) if callable(number) else number
        return then(torch.softmax(scores.masked_fill(mask.logical_not(), low), axis), mask)

    return masked_softmax


def hide(weights, mask):
    return weights.masked_fill(mask.logical_not(), 0.0)


def lowest(scores):
    return torch.finfo(scores.dtype).min


def exponentials(scores, mask):
    part = torch.where(mask, torch.exp(scores), torch.zeros_like(scores))
    total = part.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, part / total, torch.zeros_like(part))


def walk(steps, start=None, keep=False, threshold=True):
    def reach_after(mask, layers):
        table = mask.float() if start is None else start(mask)
        for _ in range(steps(layers)):
            further = mask.float() @ table
            table = further + table if keep else further
        return table > 0 if threshold else table

    return reach_after


def doubled(mask, layers):
    for _ in range(layers - 1):
        mask = (mask.float() @ mask.float()) > 0
    return mask


def try_each(entry, copy=True):
    def influence(model, ids, replacement):
        table = torch.zeros(len(ids), len(ids), dtype=torch.bool)
        before, changed = model(ids), ids
        for j in range(len(ids)):
            changed = ids.clone() if copy else changed
            changed[j] = replacement
            after = model(changed)
            for i in range(len(ids)):
                entry(table, i, j, (after[i] - before[i]).abs() > 1e-6)
        return table

    return influence


def mark(table, i, j, moved):
    table[i, j] = moved.any()


PLANTED = {
    "attend_by_hand": {
        "no-scale": by_hand(scale=lambda d: 1.0),
        "scale-d_k": by_hand(scale=float),
        "scale-by-number-of-keys": by_hand(over=len),
        "not-normalised": by_hand(normalise=False),
        "no-exponential": by_hand(bend=float),
        "keys-averaged": by_hand(mix=lambda keys, values: keys),
        "weights-returned": by_hand(finish=lambda weights, values: weights),
        "best-key-only": by_hand(finish=lambda weights, values: values[weights.index(max(weights))]),
    },
    "my_softmax": {
        "overflow": softmax(top=lambda s: 0.0),
        "one-maximum-for-all": softmax(top=torch.max),
        "first-axis": softmax(dim=0, top=lambda s: s.amax(0, keepdim=True)),
        "wrong-axis": softmax(dim=-2, top=lambda s: s.amax(-2, keepdim=True)),
        "one-sum-for-all": lambda scores: (e := (scores - scores.max()).exp()) / e.sum(),
        "not-normalised": torch.exp,
        "no-exponential": lambda scores: scores / scores.sum(dim=-1, keepdim=True),
        "logarithm": lambda scores: scores - scores.logsumexp(-1, keepdim=True),
    },
    "self_attention": {
        "wrong-axis": self_attention(axis=-2),
        "no-scale": self_attention(divide=lambda x, q: 1.0),
        "scale-d_k": self_attention(divide=lambda x, q: q.shape[-1]),
        "scale-d_model": self_attention(divide=lambda x, q: x.shape[-1] ** 0.5),
        "scale-by-number-of-words": self_attention(divide=lambda x, q: math.sqrt(x.shape[-2])),
        "weights-returned": only_weights,
        "queries-and-keys-swapped": self_attention(roles="kqv"),
        "one-projection-for-both": self_attention(roles="qqv"),
        "values-not-projected": self_attention(project=False),
        "scaled-after-softmax": self_attention(divide=lambda x, q: 1.0, late=lambda q: q.shape[-1] ** 0.5),
        "axis-counted-from-the-front": self_attention(axis=1),
        "not-batched": one_sentence_only,
    },
    "entropy": {
        "zero-weight": lambda weights: -torch.sum(weights * torch.log(weights), dim=-1),
        "sign": lambda weights: (weights * weights.clamp(min=1e-30).log()).sum(-1),
        "base-two": lambda weights: -(weights * weights.clamp(min=1e-30).log2()).sum(-1),
        "mean": lambda weights: -(weights * weights.clamp(min=1e-30).log()).mean(-1),
        "one-number-for-all": lambda weights: -(weights * weights.clamp(min=1e-30).log()).sum(),
        "wrong-axis": lambda weights: -(weights * weights.clamp(min=1e-30).log()).sum(-2),
    },
    "additive_attention": {
        "no-tanh": additive(inner=lambda h: h),
        "tanh-outside": additive(inner=lambda h: h, outer=torch.tanh),
        "wrong-axis": additive(axis=-2),
        "scaled": additive(divide=math.sqrt(5)),
        "pairs-only": pairs_only,
        "not-batched": lambda query, *rest: (
            additive()(query, *rest)[0] if query.dim() > 2 else additive()(query, *rest)
        ),
    },
    "softmax_jacobian": {
        "diagonal-only": jacobian_entries(lambda w, i, j: w[i] * (1 - w[i]) if i == j else 0.0),
        "one-column": lambda weights: weights - weights**2,
        "sign": jacobian_entries(lambda w, i, j: w[i] * w[j] - (w[i] if i == j else 0.0)),
        "no-diagonal-term": jacobian_entries(lambda w, i, j: -w[i] * w[j]),
        "no-product-term": jacobian_entries(lambda w, i, j: w[i] if i == j else 0.0),
    },
    "chunk_mask": {
        "not-oneself": chunk(lambda offset, i, j: j < offset + i),
        "sees-the-next": chunk(lambda offset, i, j: j <= offset + i + 1),
        "inverted": chunk(lambda offset, i, j: j > offset + i),
        "top-left": chunk(lambda offset, i, j: j <= i),
        "looks-ahead-only": chunk(lambda offset, i, j: j >= offset + i),
        "keys-down": lambda length, offset: torch.ones(offset + length, length).triu(-offset) == 1,
        "offset-ignored": lambda length, offset: torch.ones(length, length).tril() == 1,
    },
    "translation_masks": {
        "padding-on-queries": masks(
            encoder=lambda query, key, pad, i, j: query != pad,
            decoder=lambda query, key, pad, i, j: query != pad and j <= i,
            cross=lambda query, key, pad, i, j: query != pad,
        ),
        "cross-by-target": masks(cross=lambda query, key, pad, i, j: query != pad),
        "cross-causal": masks(cross=lambda query, key, pad, i, j: key != pad and j <= i),
        "encoder-causal": masks(encoder=lambda query, key, pad, i, j: key != pad and j <= i),
        "decoder-not-causal": masks(decoder=lambda query, key, pad, i, j: key != pad),
        "decoder-without-padding": masks(decoder=lambda query, key, pad, i, j: j <= i),
        "or": masks(decoder=lambda query, key, pad, i, j: key != pad or j <= i),
        "not-oneself": masks(decoder=lambda query, key, pad, i, j: key != pad and j < i),
        "sees-the-next": masks(decoder=lambda query, key, pad, i, j: key != pad and j <= i + 1),
        "looks-ahead-only": masks(decoder=lambda query, key, pad, i, j: key != pad and j >= i),
        "inverted": all_inverted,
        "padding-is-always-zero": masks(
            encoder=lambda query, key, pad, i, j: key,
            decoder=lambda query, key, pad, i, j: key and j <= i,
            cross=lambda query, key, pad, i, j: key,
        ),
    },
    "masked_softmax": {
        "nan-row": fill_in(float("-inf")),
        "uniform-row": fill_in(lowest),
        "too-low-for-half": fill_in(-1e9, then=hide),
        "too-low-for-half-and-uniform": fill_in(-1e9),
        "inverted": lambda scores, mask: fill_in(lowest, then=hide)(scores, ~mask),
        "masked-after-softmax": lambda scores, mask: hide(torch.softmax(scores, -1), mask),
        "mask-added": lambda scores, mask: torch.softmax(scores + mask.to(scores.dtype), -1),
        "scores-set-to-zero": fill_in(0.0),
        "scores-zero-then-hidden": fill_in(0.0, then=hide),
        "wrong-axis": fill_in(lowest, then=hide, axis=-2),
        "overflow": exponentials,
    },
    "reach_after": {
        "one-layer-too-many": walk(lambda layers: layers),
        "one-layer-too-few": walk(lambda layers: layers - 1, start=lambda mask: torch.eye(len(mask))),
        "one-layer-only": lambda mask, layers: mask.float().pow(layers) > 0,
        "transposed": lambda mask, layers: walk(lambda layers: layers - 1)(mask.T, layers),
        "always-doubled": doubled,
        "stays-in-place": walk(lambda layers: layers - 1, keep=True),
        "numbers": walk(lambda layers: layers - 1, threshold=False),
    },
    "influence": {
        "transposed": try_each(lambda table, i, j, moved: mark(table, j, i, moved)),
        "changes-pile-up": try_each(mark, copy=False),
        "all-features": try_each(lambda table, i, j, moved: table[i].__setitem__(j, moved.all())),
        "inverted": try_each(lambda table, i, j, moved: mark(table, i, j, ~moved.any())),
        "future-only": try_each(lambda table, i, j, moved: mark(table, i, j, moved & (j > i))),
    },
}


# --- right answers


def attend_with_tensors(query, keys, values):
    query, keys, values = (torch.tensor(part, dtype=torch.double) for part in (query, keys, values))
    return (torch.softmax(keys @ query / math.sqrt(len(query)), 0) @ values).tolist()


def softmax_by_logarithms(scores):
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))


def softmax_minus_maximum(scores):
    exp = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return exp / exp.sum(dim=-1, keepdim=True)


def self_attention_by_einsum(x, w_q, w_k, w_v):
    query, key, value = (torch.einsum("...nd,de->...ne", x, w) for w in (w_q, w_k, w_v))
    scores = torch.einsum("...ie,...je->...ij", query, key)
    return torch.softmax(scores / query.shape[-1] ** 0.5, dim=-1) @ value


def self_attention_scaled_early(x, w_q, w_k, w_v):
    query = x @ w_q / math.sqrt(w_q.size(1))
    return (query @ (x @ w_k).mT).softmax(-1) @ (x @ w_v)


def additive_in_a_loop(query, key, value, w_query, w_key, v):
    rows = []
    for i in range(query.size(-2)):
        hidden = torch.tanh(query[..., i : i + 1, :] @ w_query + key @ w_key)
        rows.append((hidden * v).sum(-1))
    return torch.stack(rows, dim=-2).softmax(-1) @ value


def additive_broadcast(query, key, value, w_query, w_key, v):
    hidden = torch.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    return F.softmax(torch.einsum("...d,d->...", hidden, v), dim=-1) @ value


def entropy_where(weights):
    return torch.where(weights > 0, -weights * weights.log(), torch.zeros_like(weights)).sum(dim=-1)


def jacobian_by_autograd(weights):
    return torch.autograd.functional.jacobian(lambda scores: scores.softmax(-1), weights.log())


def chunk_in_a_loop(length, offset):
    return torch.tensor([[j <= offset + i for j in range(offset + length)] for i in range(length)])


def masks_in_full(source, target, pad_id):
    keys = (source != pad_id)[:, None, None, :]
    length = target.shape[1]
    past = torch.ones(length, length, dtype=torch.bool).tril()
    decoder = (target != pad_id)[:, None, None, :] & past
    ones = torch.ones(1, 1, source.shape[1], 1, dtype=torch.bool)
    return [keys & ones, decoder, keys & torch.ones(1, 1, length, 1, dtype=torch.bool)]


def masked_softmax_without_nan(scores, mask):
    return torch.nan_to_num(scores.masked_fill(~mask, float("-inf")).softmax(-1), nan=0.0)


def masked_softmax_written_out(scores, mask):
    hidden = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    part = torch.exp(hidden - hidden.amax(-1, keepdim=True)) * mask
    return part / part.sum(-1, keepdim=True).clamp(min=1e-6)


def reach_step_by_step(mask, layers):
    reach = mask
    for _ in range(layers - 1):
        reach = (mask[:, :, None] & reach[None]).any(dim=1)
    return reach


def reach_from_everywhere(mask, layers):
    steps = torch.eye(len(mask))
    for _ in range(layers):
        steps = ((mask.float() @ steps) > 0).float()
    return steps.bool()


def influence_by_columns(model, ids, replacement):
    changed = ids.repeat(len(ids), 1).fill_diagonal_(replacement)
    return torch.stack([~torch.isclose(model(row), model(ids)).all(-1) for row in changed], dim=1)


def influence_put_back(model, ids, replacement):
    table, before, ids = [], model(ids), ids.clone()
    for place, token in enumerate(ids.tolist()):
        ids[place] = replacement
        table.append(((model(ids) - before).abs().max(dim=1).values > 0).tolist())
        ids[place] = token
    return torch.tensor(table).T


RIGHT = {
    "attend_by_hand": [by_hand(), attend_with_tensors],
    "my_softmax": [softmax_by_logarithms, softmax_minus_maximum],
    "self_attention": [self_attention_by_einsum, self_attention_scaled_early],
    "entropy": [entropy_where, lambda weights: torch.special.entr(weights).sum(-1)],
    "additive_attention": [additive_in_a_loop, additive_broadcast],
    "softmax_jacobian": [jacobian_by_autograd, lambda w: w[:, None] * (torch.eye(len(w)) - w[None, :])],
    "chunk_mask": [chunk_in_a_loop, lambda length, offset: causal_mask(offset + length)[offset:]],
    "translation_masks": [
        masks_in_full,
        lambda s, t, p: (padding_mask(s, p), causal_mask(t.size(1)) & padding_mask(t, p), padding_mask(s, p)),
    ],
    "masked_softmax": [masked_softmax_without_nan, masked_softmax_written_out],
    "reach_after": [reach_step_by_step, reach_from_everywhere],
    "influence": [influence_by_columns, influence_put_back],
}
