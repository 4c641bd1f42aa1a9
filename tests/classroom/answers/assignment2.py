"""Right and wrong answers to assignment 2: each stands alone, as a student would hand it in."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytransformer.teaching.assignments.head_tasks import packed_attention

# --- prune_heads: right


def prune_heads_by_loops(w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]) -> tuple:
    d_k, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    queries, keys, values, rows = [], [], [], []
    for head in range(num_heads):
        if head in drop:
            continue
        queries.append(w_q[:, head * d_k : (head + 1) * d_k])
        keys.append(w_k[:, head * d_k : (head + 1) * d_k])
        values.append(w_v[:, head * d_v : (head + 1) * d_v])
        rows.append(w_o[head * d_v : (head + 1) * d_v])
    return torch.cat(queries, dim=1), torch.cat(keys, dim=1), torch.cat(values, dim=1), torch.cat(rows, dim=0)


def prune_heads_by_views(w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]) -> tuple:
    kept = [head for head in range(num_heads) if head not in drop]
    columns = [w.view(len(w), num_heads, -1)[:, kept].reshape(len(w), -1) for w in (w_q, w_k, w_v)]
    rows = w_o.view(num_heads, -1, w_o.size(1))[kept].reshape(-1, w_o.size(1))
    return (*columns, rows)


def prune_heads_by_masks(w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]) -> tuple:
    keep = torch.ones(num_heads, dtype=torch.bool)
    keep[torch.tensor(drop, dtype=torch.long)] = False
    of_keys = keep.repeat_interleave(w_k.size(1) // num_heads)
    of_values = keep.repeat_interleave(w_v.size(1) // num_heads)
    return w_q[:, of_keys], w_k[:, of_keys], w_v[:, of_values], w_o[of_values]


# --- prune_heads: wrong


def prune_heads_only_the_dropped(
    w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]
) -> tuple:
    kept = [head for head in range(num_heads) if head in drop]
    columns = [w.view(len(w), num_heads, -1)[:, kept].reshape(len(w), -1) for w in (w_q, w_k, w_v)]
    rows = w_o.view(num_heads, -1, w_o.size(1))[kept].reshape(-1, w_o.size(1))
    return (*columns, rows)


def prune_heads_features_interleaved(
    w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]
) -> tuple:
    kept = [head for head in range(num_heads) if head not in drop]
    columns = [w.view(len(w), -1, num_heads)[:, :, kept].reshape(len(w), -1) for w in (w_q, w_k, w_v)]
    rows = w_o.view(-1, num_heads, w_o.size(1))[:, kept].reshape(-1, w_o.size(1))
    return (*columns, rows)


def prune_heads_set_to_zero(
    w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]
) -> tuple:
    keep = torch.ones(num_heads, dtype=torch.bool)
    keep[torch.tensor(drop, dtype=torch.long)] = False
    of_keys = keep.repeat_interleave(w_k.size(1) // num_heads)
    of_values = keep.repeat_interleave(w_v.size(1) // num_heads)
    return w_q * of_keys, w_k * of_keys, w_v * of_values, w_o * of_values[:, None]


def prune_heads_w_o_not_cut(
    w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]
) -> tuple:
    keep = torch.ones(num_heads, dtype=torch.bool)
    keep[torch.tensor(drop, dtype=torch.long)] = False
    of_keys = keep.repeat_interleave(w_k.size(1) // num_heads)
    of_values = keep.repeat_interleave(w_v.size(1) // num_heads)
    return w_q[:, of_keys], w_k[:, of_keys], w_v[:, of_values], w_o


def prune_heads_w_o_by_columns(
    w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]
) -> tuple:
    keep = torch.ones(num_heads, dtype=torch.bool)
    keep[torch.tensor(drop, dtype=torch.long)] = False
    of_keys = keep.repeat_interleave(w_k.size(1) // num_heads)
    of_values = keep.repeat_interleave(w_v.size(1) // num_heads)
    return w_q[:, of_keys], w_k[:, of_keys], w_v[:, of_values], w_o[:, of_values]


def prune_heads_size_of_keys(
    w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]
) -> tuple:
    d_k = d_v = w_q.shape[1] // num_heads
    queries, keys, values, rows = [], [], [], []
    for head in range(num_heads):
        if head in drop:
            continue
        queries.append(w_q[:, head * d_k : (head + 1) * d_k])
        keys.append(w_k[:, head * d_k : (head + 1) * d_k])
        values.append(w_v[:, head * d_v : (head + 1) * d_v])
        rows.append(w_o[head * d_v : (head + 1) * d_v])
    return torch.cat(queries, dim=1), torch.cat(keys, dim=1), torch.cat(values, dim=1), torch.cat(rows, dim=0)


def prune_heads_numbers_shift(
    w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, drop: list[int]
) -> tuple:
    d_k, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    for head in drop:
        first, last = head * d_k, (head + 1) * d_k
        w_q = torch.cat([w_q[:, :first], w_q[:, last:]], dim=1)
        w_k = torch.cat([w_k[:, :first], w_k[:, last:]], dim=1)
        first, last = head * d_v, (head + 1) * d_v
        w_v = torch.cat([w_v[:, :first], w_v[:, last:]], dim=1)
        w_o = torch.cat([w_o[:first], w_o[last:]], dim=0)
    return w_q, w_k, w_v, w_o


# --- padded_positions: right


def padded_positions_by_loops(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    batch, length = ids.shape
    table = torch.zeros(batch, length, d_model)
    for b in range(batch):
        position = 0
        for t in range(length):
            if ids[b, t] == pad_id:
                continue
            for i in range(d_model // 2):
                angle = position / 10_000 ** (2 * i / d_model)
                table[b, t, 2 * i] = math.sin(angle)
                table[b, t, 2 * i + 1] = math.cos(angle)
            position += 1
    return table


def padded_positions_at_once(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids != pad_id
    position = real.long().cumsum(dim=1) - 1
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, :, None] * frequency  # (B, T, D / 2)
    waves = torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(-2)
    return waves * real[:, :, None]


def padded_positions_from_a_table(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids.ne(pad_id)
    place = torch.arange(ids.size(1)).unsqueeze(1)
    table = torch.zeros(ids.size(1), d_model)
    table[:, 0::2] = torch.sin(place * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model)))
    table[:, 1::2] = torch.cos(place * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model)))
    number = (real.cumsum(dim=1) - 1).clamp(min=0)
    return torch.where(real.unsqueeze(-1), F.embedding(number, table), 0.0)


# --- padded_positions: wrong


def padded_positions_places_counted(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    batch, length = ids.shape
    table = torch.zeros(batch, length, d_model)
    for b in range(batch):
        for t in range(length):
            if ids[b, t] == pad_id:
                continue
            for i in range(d_model // 2):
                angle = t / 10_000 ** (2 * i / d_model)
                table[b, t, 2 * i] = math.sin(angle)
                table[b, t, 2 * i + 1] = math.cos(angle)
    return table


def padded_positions_counted_from_one(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids != pad_id
    position = real.long().cumsum(dim=1)
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, :, None] * frequency  # (B, T, D / 2)
    waves = torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(-2)
    return waves * real[:, :, None]


def padded_positions_padding_not_zero(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids != pad_id
    position = real.long().cumsum(dim=1) - 1
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, :, None] * frequency  # (B, T, D / 2)
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(-2)


def padded_positions_padding_takes_the_next(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids != pad_id
    position = real.long().cumsum(dim=1) - real.long()
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, :, None] * frequency  # (B, T, D / 2)
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(-2)


def padded_positions_half_split(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids != pad_id
    position = real.long().cumsum(dim=1) - 1
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, :, None] * frequency  # (B, T, D / 2)
    waves = torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)
    return waves * real[:, :, None]


def padded_positions_own_exponent(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    batch, length = ids.shape
    table = torch.zeros(batch, length, d_model)
    for b in range(batch):
        position = 0
        for t in range(length):
            if ids[b, t] == pad_id:
                continue
            for i in range(d_model):
                angle = position / 10_000 ** (i / d_model)
                table[b, t, i] = math.cos(angle) if i % 2 else math.sin(angle)
            position += 1
    return table


def padded_positions_exponent_i(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    batch, length = ids.shape
    table = torch.zeros(batch, length, d_model)
    for b in range(batch):
        position = 0
        for t in range(length):
            if ids[b, t] == pad_id:
                continue
            for i in range(d_model // 2):
                angle = position / 10_000 ** (i / d_model)
                table[b, t, 2 * i] = math.sin(angle)
                table[b, t, 2 * i + 1] = math.cos(angle)
            position += 1
    return table


def padded_positions_padding_at_the_start(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids != pad_id
    position = real.long().cumsum(dim=1) - 1
    position = position * real
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, :, None] * frequency  # (B, T, D / 2)
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(-2)


def padded_positions_from_the_first_word(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    batch, length = ids.shape
    table = torch.zeros(batch, length, d_model)
    for b in range(batch):
        words = (ids[b] != pad_id).nonzero().flatten().tolist()
        for t in range(length):
            if ids[b, t] == pad_id:
                continue
            for i in range(d_model // 2):
                angle = (t - words[0]) / 10_000 ** (2 * i / d_model)
                table[b, t, 2 * i] = math.sin(angle)
                table[b, t, 2 * i + 1] = math.cos(angle)
    return table


def padded_positions_swapped(ids: Tensor, pad_id: int, d_model: int) -> Tensor:
    real = ids != pad_id
    position = real.long().cumsum(dim=1) - 1
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, :, None] * frequency  # (B, T, D / 2)
    waves = torch.stack([torch.cos(angle), torch.sin(angle)], dim=-1).flatten(-2)
    return waves * real[:, :, None]


# --- packed_attention: right


def packed_attention_by_loops(x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None) -> Tensor:
    size, d_model = x.shape[-1] // num_heads, x.shape[-1]
    heads = []
    for head in range(num_heads):
        q, k, v = (range(start + head * size, start + (head + 1) * size) for start in (0, d_model, 2 * d_model))
        query = F.linear(x, weights["in_weight"][q], weights["in_bias"][q])
        key = F.linear(memory, weights["in_weight"][k], weights["in_bias"][k])
        value = F.linear(memory, weights["in_weight"][v], weights["in_bias"][v])
        parts = torch.exp(query @ key.transpose(1, 2) / math.sqrt(size))
        if mask is not None:
            parts = parts * mask
        heads.append(parts / parts.sum(dim=-1, keepdim=True).clamp(min=1e-30) @ value)
    return F.linear(torch.cat(heads, dim=-1), weights["out_weight"], weights["out_bias"])


def packed_attention_at_once(x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_fused(x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None) -> Tensor:
    names = ("in_weight", "in_bias", "out_weight", "out_bias")
    in_weight, in_bias, out_weight, out_bias = (weights[name] for name in names)
    d_model = x.size(-1)
    query = F.linear(x, in_weight[:d_model], in_bias[:d_model])
    key, value = F.linear(memory, in_weight[d_model:], in_bias[d_model:]).chunk(2, dim=-1)
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in (query, key, value))
    hidden = None if mask is None else mask.unsqueeze(1)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)
    return F.linear(heads.transpose(1, 2).flatten(2), out_weight, out_bias)


# --- packed_attention: wrong


def packed_attention_not_turned(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q + b_q, memory @ w_k + b_k, memory @ w_v + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"] + weights["out_bias"]


def packed_attention_scale_d_model(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(d_model)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_words_and_heads_mixed(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_features_interleaved(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), -1, num_heads).permute(0, 3, 1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_nan_row(x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = scores.softmax(dim=-1)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_uniform_row(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], -1e9)
    attended = scores.softmax(dim=-1)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_output_not_turned(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"] + weights["out_bias"]


def packed_attention_no_scale(x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_split_without_transposing(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, num_heads, part.size(1), -1) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


def packed_attention_mask_inverted(
    x: Tensor, memory: Tensor, weights: dict, num_heads: int, mask: Tensor | None
) -> Tensor:
    batch, length, d_model = x.shape
    w_q, w_k, w_v = weights["in_weight"].chunk(3)
    b_q, b_k, b_v = weights["in_bias"].chunk(3)
    projected = (x @ w_q.T + b_q, memory @ w_k.T + b_k, memory @ w_v.T + b_v)
    q, k, v = (part.view(batch, part.size(1), num_heads, -1).transpose(1, 2) for part in projected)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask[:, None], float("-inf"))
    attended = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    merged = (attended @ v).transpose(1, 2).reshape(batch, length, d_model)
    return merged @ weights["out_weight"].T + weights["out_bias"]


# --- rotary_scores: right


def rotary_scores_by_loops(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    half = query.shape[-1] // 2
    scores = torch.zeros(*query.shape[:3], key.shape[2])
    for t, p in enumerate(query_positions.tolist()):
        for s, r in enumerate(key_positions.tolist()):
            q, k = query[:, :, t], key[:, :, s]
            for i in range(half):
                angle = (p - r) / 10_000 ** (i / half)  # only the difference counts
                along = q[..., i] * k[..., i] + q[..., i + half] * k[..., i + half]
                across = q[..., i] * k[..., i + half] - q[..., i + half] * k[..., i]
                scores[:, :, t, s] += math.cos(angle) * along + math.sin(angle) * across
    return scores / math.sqrt(2 * half)


def rotary_scores_at_once(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-2 * torch.arange(d // 2) / d)

    def turn(x, positions):
        angle = positions[:, None] * frequency
        first, second = x[..., : d // 2], x[..., d // 2 :]
        turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
        return torch.cat(turned, dim=-1)

    return turn(query, query_positions) @ turn(key, key_positions).transpose(-2, -1) / math.sqrt(d)


def rotary_scores_by_complex_numbers(
    query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor
) -> Tensor:
    d = query.size(-1)
    rate = torch.exp(-math.log(10_000.0) * torch.arange(0, d, 2) / d)
    q = torch.complex(*query.chunk(2, dim=-1)) * torch.exp(1j * torch.outer(query_positions.float(), rate))
    k = torch.complex(*key.chunk(2, dim=-1)) * torch.exp(1j * torch.outer(key_positions.float(), rate))
    return torch.einsum("bhtd,bhsd->bhts", q, k.conj()).real / d**0.5


# --- rotary_scores: wrong


def rotary_scores_neighbours(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-2 * torch.arange(d // 2) / d)

    def turn(x, positions):
        angle = positions[:, None] * frequency
        first, second = x[..., 0::2], x[..., 1::2]
        turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
        return torch.stack(turned, dim=-1).flatten(-2)

    return turn(query, query_positions) @ turn(key, key_positions).transpose(-2, -1) / math.sqrt(d)


def rotary_scores_keys_not_turned(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-2 * torch.arange(d // 2) / d)

    def turn(x, positions):
        angle = positions[:, None] * frequency
        first, second = x[..., : d // 2], x[..., d // 2 :]
        turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
        return torch.cat(turned, dim=-1)

    return turn(query, query_positions) @ key.transpose(-2, -1) / math.sqrt(d)


def rotary_scores_opposite_ways(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    rate = torch.exp(-math.log(10_000.0) * torch.arange(0, d, 2) / d)
    q = torch.complex(*query.chunk(2, dim=-1)) * torch.exp(1j * torch.outer(query_positions.float(), rate))
    k = torch.complex(*key.chunk(2, dim=-1)).conj() * torch.exp(1j * torch.outer(key_positions.float(), rate))
    return torch.einsum("bhtd,bhsd->bhts", q, k).real / d**0.5


def rotary_scores_no_scale(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-2 * torch.arange(d // 2) / d)

    def turn(x, positions):
        angle = positions[:, None] * frequency
        first, second = x[..., : d // 2], x[..., d // 2 :]
        turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
        return torch.cat(turned, dim=-1)

    return turn(query, query_positions) @ turn(key, key_positions).transpose(-2, -1)


def rotary_scores_exponent_i(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-torch.arange(d // 2) / d)

    def turn(x, positions):
        angle = positions[:, None] * frequency
        first, second = x[..., : d // 2], x[..., d // 2 :]
        turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
        return torch.cat(turned, dim=-1)

    return turn(query, query_positions) @ turn(key, key_positions).transpose(-2, -1) / math.sqrt(d)


def rotary_scores_places_counted(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-2 * torch.arange(d // 2) / d)

    def turn(x):
        angle = torch.arange(x.size(2))[:, None] * frequency
        first, second = x[..., : d // 2], x[..., d // 2 :]
        turned = (first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos())
        return torch.cat(turned, dim=-1)

    return turn(query) @ turn(key).transpose(-2, -1) / math.sqrt(d)


def rotary_scores_not_turned(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def rotary_scores_turned_backwards(
    query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor
) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-2 * torch.arange(d // 2) / d)

    def turn(x, positions):
        angle = positions[:, None] * frequency
        first, second = x[..., : d // 2], x[..., d // 2 :]
        turned = (first * angle.cos() + second * angle.sin(), second * angle.cos() - first * angle.sin())
        return torch.cat(turned, dim=-1)

    return turn(query, query_positions) @ turn(key, key_positions).transpose(-2, -1) / math.sqrt(d)


def rotary_scores_mixed_layouts(query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    d = query.size(-1)
    frequency = 10_000.0 ** (-2 * torch.arange(d // 2) / d).repeat_interleave(2)

    def turn(x, positions):
        angle = positions[:, None] * frequency
        first, second = x[..., : d // 2], x[..., d // 2 :]
        return x * angle.cos() + torch.cat([-second, first], dim=-1) * angle.sin()

    return turn(query, query_positions) @ turn(key, key_positions).transpose(-2, -1) / math.sqrt(d)


# --- fold_norm: right


def fold_norm_by_loops(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    outputs, inputs = weight.shape
    new_weight, new_bias = torch.zeros(outputs, inputs), torch.zeros(outputs)
    for o in range(outputs):
        new_bias[o] = bias[o]
        for i in range(inputs):
            new_weight[o, i] = weight[o, i] * gain[i]
            new_bias[o] += weight[o, i] * shift[i]
    return new_weight, new_bias


def fold_norm_by_broadcasting(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    return weight * gain[None, :], weight @ shift + bias


def fold_norm_by_trying(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    size = len(gain)
    new_bias = F.linear(shift, weight, bias)  # what comes out where the normalised vector is 0
    columns = F.linear(torch.diag(gain) + shift, weight, bias) - new_bias
    return columns.T.reshape(-1, size), new_bias


# --- fold_norm: wrong


def fold_norm_gain_on_the_rows(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    return weight * gain[:, None], weight @ shift + bias


def fold_norm_shift_lost(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    return weight * gain[None, :], bias


def fold_norm_shift_not_multiplied(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    return weight * gain[None, :], shift + bias


def fold_norm_shift_through_the_new(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    weight = weight * gain[None, :]
    return weight, weight @ shift + bias


def fold_norm_bias_lost(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    return weight * gain[None, :], weight @ shift


def fold_norm_divided(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple:
    return weight / gain[None, :], weight @ shift + bias


# --- encoder_layer: right


def encoder_layer_by_loops(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        rows = []
        for row in h.reshape(-1, h.shape[-1]):
            centred = row - row.sum() / len(row)
            variance = (centred * centred).sum() / len(row)
            rows.append(centred / torch.sqrt(variance + 1e-5))
        return torch.stack(rows).reshape(h.shape) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    sentences = []
    for one, mine in zip(x, real, strict=True):
        h, mask = one[None], mine[None, None].repeat(1, len(one), 1)
        for number in (1, 2):
            inside = norm(h, number) if norm_first else h
            if number == 1:
                made = packed_attention(inside, inside, weights["attention"], num_heads, mask)
            else:
                hidden = (inside @ weights["w_1"].T + weights["b_1"]).clamp(min=0)
                made = hidden @ weights["w_2"].T + weights["b_2"]
            h = h + made if norm_first else norm(h + made, number)
        sentences.append(h[0])
    return torch.stack(sentences)


def encoder_layer_at_once(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 2))
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


def encoder_layer_by_torch(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    attention, d_model = weights["attention"], x.size(-1)
    layer = torch.nn.TransformerEncoderLayer(
        d_model, num_heads, len(weights["b_1"]), dropout=0.0, batch_first=True, norm_first=norm_first
    )
    names = {"linear1.weight": "w_1", "linear1.bias": "b_1", "linear2.weight": "w_2", "linear2.bias": "b_2"}
    for number in (1, 2):
        names |= {f"norm{number}.weight": f"gain_{number}", f"norm{number}.bias": f"shift_{number}"}
    state = {theirs: weights[ours] for theirs, ours in names.items()}
    state["self_attn.in_proj_weight"], state["self_attn.in_proj_bias"] = attention["in_weight"], attention["in_bias"]
    state["self_attn.out_proj.weight"], state["self_attn.out_proj.bias"] = (
        attention["out_weight"],
        attention["out_bias"],
    )
    layer.load_state_dict(state)
    return layer(x, src_key_padding_mask=~real)


# --- encoder_layer: wrong


def encoder_layer_always_post_norm(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


def encoder_layer_norm_of_the_part(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 2))
    x = x + norm(attend(x), 1)
    return x + norm(network(x), 2)


def encoder_layer_normalised_residual(
    x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool
) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = norm(x, 1)
        x = x + attend(x)
        x = norm(x, 2)
        return x + network(x)
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


def encoder_layer_one_norm_for_both(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 1))
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 1)


def encoder_layer_unbiased(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = h.var(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 2))
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


def encoder_layer_padding_seen(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        return packed_attention(h, h, weights["attention"], num_heads, None)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 2))
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


def encoder_layer_no_residual(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = attend(norm(x, 1))
        return network(norm(x, 2))
    x = norm(attend(x), 1)
    return norm(network(x), 2)


def encoder_layer_no_relu(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :].expand(-1, h.size(1), -1)
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return (h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 2))
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


def encoder_layer_rows_for_keys(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, :, None].expand(-1, -1, h.size(1))
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 2))
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


def encoder_layer_padding_sees_nothing(
    x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool
) -> Tensor:
    def norm(h, number):
        mean = h.mean(dim=-1, keepdim=True)
        variance = (h - mean).square().mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(variance + 1e-5) * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    def attend(h):
        mask = real[:, None, :] & real[:, :, None]
        return packed_attention(h, h, weights["attention"], num_heads, mask)

    def network(h):
        return torch.relu(h @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]

    if norm_first:
        x = x + attend(norm(x, 1))
        return x + network(norm(x, 2))
    x = norm(x + attend(x), 1)
    return norm(x + network(x), 2)


# --- decoder_layer: right


def decoder_layer_by_loops(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        centred = h - h.mean(dim=-1, keepdim=True)
        deviation = torch.sqrt(centred.square().mean(dim=-1, keepdim=True) + 1e-5)
        return centred / deviation * weights[f"gain_{number}"] + weights[f"shift_{number}"]

    outputs = []
    for t in range(x.shape[1]):  # one new token after the other
        h, end = x[:, t : t + 1], past.shape[1] + t + 1
        seen = torch.cat([past, x], dim=1)[:, :end]
        h = norm(h + packed_attention(h, seen, weights["self"], num_heads, target_real[:, None, :end]), 1)
        h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source_real[:, None, :]), 2)
        hidden = (h @ weights["w_1"].T + weights["b_1"]).clamp(min=0)
        outputs.append(norm(h + hidden @ weights["w_2"].T + weights["b_2"], 3))
    return torch.cat(outputs, dim=1)


def decoder_layer_at_once(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] <= query[:, None]) & target_real[:, None, :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_by_torch(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    layer = torch.nn.TransformerDecoderLayer(x.size(-1), num_heads, len(weights["b_1"]), dropout=0.0, batch_first=True)
    names = {"linear1.weight": "w_1", "linear1.bias": "b_1", "linear2.weight": "w_2", "linear2.bias": "b_2"}
    for number in (1, 2, 3):
        names |= {f"norm{number}.weight": f"gain_{number}", f"norm{number}.bias": f"shift_{number}"}
    state = {theirs: weights[ours] for theirs, ours in names.items()}
    for theirs, ours in (("self_attn", "self"), ("multihead_attn", "cross")):
        state |= {f"{theirs}.in_proj_{kind}": weights[ours][f"in_{kind}"] for kind in ("weight", "bias")}
        state |= {f"{theirs}.out_proj.{kind}": weights[ours][f"out_{kind}"] for kind in ("weight", "bias")}
    layer.load_state_dict(state)
    whole = torch.cat([past, x], dim=1)  # past and new tokens together; the new ones are cut out at the end
    allowed = torch.ones(whole.size(1), whole.size(1), dtype=torch.bool).tril() & target_real[:, None, :]
    hidden = (~allowed).repeat_interleave(num_heads, dim=0)
    return layer(whole, memory, tgt_mask=hidden, memory_key_padding_mask=~source_real)[:, past.size(1) :]


# --- decoder_layer: wrong


def decoder_layer_past_forgotten(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    place = torch.arange(x.size(1))
    mask = (place[None, :] <= place[:, None]) & target_real[:, None, past.size(1) :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, x, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_top_left(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = torch.arange(x.size(1))
    mask = (key[None, :] <= query[:, None]) & target_real[:, None, :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_not_causal(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    mask = target_real[:, None, :].expand(-1, x.size(1), -1)
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_target_padding_seen(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] <= query[:, None]).expand(len(x), -1, -1)
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_source_padding_seen(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] <= query[:, None]) & target_real[:, None, :]
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, None), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_cross_asks_with_the_input(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] <= query[:, None]) & target_real[:, None, :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(x, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_new_before_past(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([x, past], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] <= query[:, None]) & target_real[:, None, :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_not_oneself(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] < query[:, None]) & target_real[:, None, :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(h + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(h + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_residual_from_the_input(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] <= query[:, None]) & target_real[:, None, :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = norm(x + packed_attention(x, seen, weights["self"], num_heads, mask), 1)
    h = norm(x + packed_attention(h, memory, weights["cross"], num_heads, source), 2)
    hidden = torch.relu(F.linear(h, weights["w_1"], weights["b_1"]))
    return norm(x + F.linear(hidden, weights["w_2"], weights["b_2"]), 3)


def decoder_layer_pre_norm(
    x: Tensor, past: Tensor, memory: Tensor, target_real: Tensor, source_real: Tensor, weights: dict, num_heads: int
) -> Tensor:
    def norm(h, number):
        return F.layer_norm(h, h.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])

    seen = torch.cat([past, x], dim=1)
    key = torch.arange(seen.size(1))
    query = key[past.size(1) :]
    mask = (key[None, :] <= query[:, None]) & target_real[:, None, :]
    source = source_real[:, None, :].expand(-1, x.size(1), -1)
    h = x + packed_attention(norm(x, 1), norm(seen, 1), weights["self"], num_heads, mask)
    h = h + packed_attention(norm(h, 2), memory, weights["cross"], num_heads, source)
    hidden = torch.relu(F.linear(norm(h, 3), weights["w_1"], weights["b_1"]))
    return h + F.linear(hidden, weights["w_2"], weights["b_2"])


RIGHT = {
    "prune_heads": [prune_heads_by_loops, prune_heads_by_views, prune_heads_by_masks],
    "padded_positions": [padded_positions_by_loops, padded_positions_at_once, padded_positions_from_a_table],
    "packed_attention": [packed_attention_by_loops, packed_attention_at_once, packed_attention_fused],
    "rotary_scores": [rotary_scores_by_loops, rotary_scores_at_once, rotary_scores_by_complex_numbers],
    "fold_norm": [fold_norm_by_loops, fold_norm_by_broadcasting, fold_norm_by_trying],
    "encoder_layer": [encoder_layer_by_loops, encoder_layer_at_once, encoder_layer_by_torch],
    "decoder_layer": [decoder_layer_by_loops, decoder_layer_at_once, decoder_layer_by_torch],
}


PLANTED = {
    "prune_heads": {
        "only-the-dropped": prune_heads_only_the_dropped,
        "features-interleaved": prune_heads_features_interleaved,
        "set-to-zero": prune_heads_set_to_zero,
        "w_o-not-cut": prune_heads_w_o_not_cut,
        "w_o-by-columns": prune_heads_w_o_by_columns,
        "size-of-keys": prune_heads_size_of_keys,
        "numbers-shift": prune_heads_numbers_shift,
    },
    "padded_positions": {
        "places-counted": padded_positions_places_counted,
        "counted-from-one": padded_positions_counted_from_one,
        "padding-not-zero": padded_positions_padding_not_zero,
        "padding-takes-the-next": padded_positions_padding_takes_the_next,
        "half-split": padded_positions_half_split,
        "own-exponent": padded_positions_own_exponent,
        "exponent-i": padded_positions_exponent_i,
        "padding-at-the-start": padded_positions_padding_at_the_start,
        "from-the-first-word": padded_positions_from_the_first_word,
        "swapped": padded_positions_swapped,
    },
    "packed_attention": {
        "not-turned": packed_attention_not_turned,
        "scale-d_model": packed_attention_scale_d_model,
        "words-and-heads-mixed": packed_attention_words_and_heads_mixed,
        "features-interleaved": packed_attention_features_interleaved,
        "nan-row": packed_attention_nan_row,
        "uniform-row": packed_attention_uniform_row,
        "output-not-turned": packed_attention_output_not_turned,
        "no-scale": packed_attention_no_scale,
        "split-without-transposing": packed_attention_split_without_transposing,
        "mask-inverted": packed_attention_mask_inverted,
    },
    "rotary_scores": {
        "neighbours": rotary_scores_neighbours,
        "keys-not-turned": rotary_scores_keys_not_turned,
        "opposite-ways": rotary_scores_opposite_ways,
        "no-scale": rotary_scores_no_scale,
        "exponent-i": rotary_scores_exponent_i,
        "places-counted": rotary_scores_places_counted,
        "not-turned": rotary_scores_not_turned,
        "turned-backwards": rotary_scores_turned_backwards,
        "mixed-layouts": rotary_scores_mixed_layouts,
    },
    "fold_norm": {
        "gain-on-the-rows": fold_norm_gain_on_the_rows,
        "shift-lost": fold_norm_shift_lost,
        "shift-not-multiplied": fold_norm_shift_not_multiplied,
        "shift-through-the-new": fold_norm_shift_through_the_new,
        "bias-lost": fold_norm_bias_lost,
        "divided": fold_norm_divided,
    },
    "encoder_layer": {
        "always-post-norm": encoder_layer_always_post_norm,
        "norm-of-the-part": encoder_layer_norm_of_the_part,
        "normalised-residual": encoder_layer_normalised_residual,
        "one-norm-for-both": encoder_layer_one_norm_for_both,
        "unbiased": encoder_layer_unbiased,
        "padding-seen": encoder_layer_padding_seen,
        "no-residual": encoder_layer_no_residual,
        "no-relu": encoder_layer_no_relu,
        "rows-for-keys": encoder_layer_rows_for_keys,
        "padding-sees-nothing": encoder_layer_padding_sees_nothing,
    },
    "decoder_layer": {
        "past-forgotten": decoder_layer_past_forgotten,
        "top-left": decoder_layer_top_left,
        "not-causal": decoder_layer_not_causal,
        "target-padding-seen": decoder_layer_target_padding_seen,
        "source-padding-seen": decoder_layer_source_padding_seen,
        "cross-asks-with-the-input": decoder_layer_cross_asks_with_the_input,
        "new-before-past": decoder_layer_new_before_past,
        "not-oneself": decoder_layer_not_oneself,
        "residual-from-the-input": decoder_layer_residual_from_the_input,
        "pre-norm": decoder_layer_pre_norm,
    },
}
