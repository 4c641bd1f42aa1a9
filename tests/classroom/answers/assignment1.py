"""Right and wrong answers to assignment 1: each stands alone, as a student would hand it in."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

# --- score_gaps: right


def score_gaps_by_loops(weights: Tensor, d_k: int) -> Tensor:
    rows = weights.reshape(-1, weights.shape[-1]).tolist()
    gaps = []
    for row in rows:
        first = math.log(row[0])
        gaps.append([(math.log(weight) - first) * math.sqrt(d_k) for weight in row])
    return torch.tensor(gaps).reshape(weights.shape)


def score_gaps_by_logarithms(weights: Tensor, d_k: int) -> Tensor:
    scores = torch.log(weights)  # the scaled scores, up to one number per row
    return (scores - scores[..., :1]) * math.sqrt(d_k)


def score_gaps_by_ratios(weights: Tensor, d_k: int) -> Tensor:
    ratio = weights / weights.narrow(-1, 0, 1)
    return ratio.log().mul(d_k**0.5)


# --- score_gaps: wrong


def score_gaps_no_scale(weights: Tensor, d_k: int) -> Tensor:
    scores = torch.log(weights)  # the scaled scores, up to one number per row
    return scores - scores[..., :1]


def score_gaps_divided(weights: Tensor, d_k: int) -> Tensor:
    scores = torch.log(weights)  # the scaled scores, up to one number per row
    return (scores - scores[..., :1]) / math.sqrt(d_k)


def score_gaps_scale_d_k(weights: Tensor, d_k: int) -> Tensor:
    ratio = weights / weights.narrow(-1, 0, 1)
    return ratio.log().mul(d_k)


def score_gaps_scale_by_number_of_keys(weights: Tensor, d_k: int) -> Tensor:
    scores = torch.log(weights)  # the scaled scores, up to one number per row
    return (scores - scores[..., :1]) * math.sqrt(weights.shape[-1])


def score_gaps_from_the_largest(weights: Tensor, d_k: int) -> Tensor:
    scores = torch.log(weights)  # the scaled scores, up to one number per row
    return (scores - scores.max(dim=-1, keepdim=True).values) * math.sqrt(d_k)


def score_gaps_sign(weights: Tensor, d_k: int) -> Tensor:
    ratio = weights.narrow(-1, 0, 1) / weights
    return ratio.log().mul(d_k**0.5)


def score_gaps_no_logarithm(weights: Tensor, d_k: int) -> Tensor:
    scores = weights  # the scaled scores, up to one number per row
    return (scores - scores[..., :1]) * math.sqrt(d_k)


def score_gaps_not_relative(weights: Tensor, d_k: int) -> Tensor:
    scores = torch.log(weights)  # the scaled scores, up to one number per row
    return scores * math.sqrt(d_k)


# --- decoder_mask: right


def decoder_mask_by_loops(ids: Tensor, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, 1, length, length, dtype=torch.bool)
    for b in range(batch):
        for i in range(length):
            for j in range(i + 1):
                mask[b, 0, i, j] = ids[b, j] != pad_id
            if not mask[b, 0, i].any():
                mask[b, 0, i, i] = True
    return mask


def decoder_mask_by_broadcasting(ids: Tensor, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    mask = (place[None, :] <= place[:, None]) & (ids != pad_id)[:, None, None, :]
    blank = ~mask.any(dim=-1, keepdim=True)
    return mask | (blank & (place[None, :] == place[:, None]))


def decoder_mask_by_counting(ids: Tensor, pad_id: int) -> Tensor:
    length = ids.size(1)
    real = ids.ne(pad_id)
    mask = torch.tril(real.unsqueeze(1).repeat(1, length, 1))
    seen = real.cumsum(dim=1)  # real tokens up to each place
    for b, i in (seen == 0).nonzero().tolist():
        mask[b, i, i] = True
    return mask.unsqueeze(1)


# --- decoder_mask: wrong


def decoder_mask_blank_rows(ids: Tensor, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    return (place[None, :] <= place[:, None]) & (ids != pad_id)[:, None, None, :]


def decoder_mask_every_padding_sees_itself(ids: Tensor, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, 1, length, length, dtype=torch.bool)
    for b in range(batch):
        for i in range(length):
            for j in range(i + 1):
                mask[b, 0, i, j] = ids[b, j] != pad_id
            if ids[b, i] == pad_id:
                mask[b, 0, i, i] = True
    return mask


def decoder_mask_blank_rows_see_all(ids: Tensor, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    mask = (place[None, :] <= place[:, None]) & (ids != pad_id)[:, None, None, :]
    blank = ~mask.any(dim=-1, keepdim=True)
    return mask | blank


def decoder_mask_padding_on_queries(ids: Tensor, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    mask = (place[None, :] <= place[:, None]) & (ids != pad_id)[:, None, :, None]
    blank = ~mask.any(dim=-1, keepdim=True)
    return mask | (blank & (place[None, :] == place[:, None]))


def decoder_mask_not_causal(ids: Tensor, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, 1, length, length, dtype=torch.bool)
    for b in range(batch):
        for i in range(length):
            for j in range(length):
                mask[b, 0, i, j] = ids[b, j] != pad_id
            if not mask[b, 0, i].any():
                mask[b, 0, i, i] = True
    return mask


def decoder_mask_padding_is_always_zero(ids: Tensor, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    mask = (place[None, :] <= place[:, None]) & (ids != 0)[:, None, None, :]
    blank = ~mask.any(dim=-1, keepdim=True)
    return mask | (blank & (place[None, :] == place[:, None]))


def decoder_mask_inverted(ids: Tensor, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    mask = (place[None, :] <= place[:, None]) & (ids != pad_id)[:, None, None, :]
    blank = ~mask.any(dim=-1, keepdim=True)
    mask = mask | (blank & (place[None, :] == place[:, None]))
    return ~mask


def decoder_mask_blank_rows_see_the_past(ids: Tensor, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    earlier = place[None, :] <= place[:, None]
    mask = earlier & (ids != pad_id)[:, None, None, :]
    return torch.where(mask.any(dim=-1, keepdim=True), mask, earlier)


def decoder_mask_first_row_only(ids: Tensor, pad_id: int) -> Tensor:
    length = ids.size(1)
    mask = torch.tril(torch.ones(length, length, dtype=torch.bool)) & (ids != pad_id)[:, None, None, :]
    mask[:, :, 0, 0] = True
    return mask


def decoder_mask_causal_only(ids: Tensor, pad_id: int) -> Tensor:
    batch, length = ids.shape
    return torch.ones(batch, 1, length, length, dtype=torch.bool).tril()


# --- packed_mask: right


def packed_mask_by_loops(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, length, length, dtype=torch.bool)
    for b in range(batch):
        start = 0
        for i in range(length):
            if ids[b, i] != pad_id:
                mask[b, i, start : i + 1] = True
            if ids[b, i] == end_id:
                start = i + 1
    return mask


def packed_mask_by_numbers(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    ends = (ids == end_id).long()
    sentence = ends.cumsum(dim=1) - ends
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    same = sentence[:, :, None] == sentence[:, None, :]
    earlier = place[None, :] <= place[:, None]
    return same & earlier & real[:, None, :] & real[:, :, None]


def packed_mask_by_starts(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    place = torch.arange(ids.size(1))
    after_end = F.pad(ids[:, :-1] == end_id, (1, 0), value=True)
    start = torch.where(after_end, place, 0).cummax(dim=1).values  # where each token's sentence begins
    mask = (place >= start[:, :, None]) & (place <= place[:, None])
    return mask & (ids != pad_id)[:, :, None]


# --- packed_mask: wrong


def packed_mask_end_belongs_to_the_next(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    ends = (ids == end_id).long()
    sentence = ends.cumsum(dim=1)
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    same = sentence[:, :, None] == sentence[:, None, :]
    earlier = place[None, :] <= place[:, None]
    return same & earlier & real[:, None, :] & real[:, :, None]


def packed_mask_sentences_mixed(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    earlier = place[None, :] <= place[:, None]
    return earlier & real[:, None, :] & real[:, :, None]


def packed_mask_not_causal(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    ends = (ids == end_id).long()
    sentence = ends.cumsum(dim=1) - ends
    real = ids != pad_id
    same = sentence[:, :, None] == sentence[:, None, :]
    return same & real[:, None, :] & real[:, :, None]


def packed_mask_padding_rows(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    ends = (ids == end_id).long()
    sentence = ends.cumsum(dim=1) - ends
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    same = sentence[:, :, None] == sentence[:, None, :]
    earlier = place[None, :] <= place[:, None]
    return same & earlier & real[:, None, :]


def packed_mask_padding_forgotten(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    ends = (ids == end_id).long()
    sentence = ends.cumsum(dim=1) - ends
    place = torch.arange(ids.size(1))
    same = sentence[:, :, None] == sentence[:, None, :]
    earlier = place[None, :] <= place[:, None]
    return same & earlier


def packed_mask_ends_hidden(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    ends = (ids == end_id).long()
    sentence = ends.cumsum(dim=1) - ends
    real = (ids != pad_id) & (ids != end_id)
    place = torch.arange(ids.size(1))
    same = sentence[:, :, None] == sentence[:, None, :]
    earlier = place[None, :] <= place[:, None]
    return same & earlier & real[:, None, :] & real[:, :, None]


def packed_mask_inverted(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, length, length, dtype=torch.bool)
    for b in range(batch):
        start = 0
        for i in range(length):
            if ids[b, i] != pad_id:
                mask[b, i, start : i + 1] = True
            if ids[b, i] == end_id:
                start = i + 1
    return mask == False  # noqa: E712


def packed_mask_first_end_only(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, length, length, dtype=torch.bool)
    for b in range(batch):
        row = ids[b].tolist()
        for i in range(length):
            start = row.index(end_id) + 1 if end_id in row[:i] else 0
            if row[i] != pad_id:
                mask[b, i, start : i + 1] = True
    return mask


def packed_mask_cut_off_forgotten(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, length, length, dtype=torch.bool)
    for b in range(batch):
        start = 0
        for end in (ids[b] == end_id).nonzero().flatten().tolist():
            size = end + 1 - start
            mask[b, start : end + 1, start : end + 1] = torch.ones(size, size, dtype=torch.bool).tril()
            start = end + 1
    return mask


def packed_mask_padding_sees_itself(ids: Tensor, end_id: int, pad_id: int) -> Tensor:
    batch, length = ids.shape
    mask = torch.zeros(batch, length, length, dtype=torch.bool)
    for b in range(batch):
        start = 0
        for i in range(length):
            if ids[b, i] == pad_id:
                mask[b, i, i] = True
            else:
                mask[b, i, start : i + 1] = True
            if ids[b, i] == end_id:
                start = i + 1
    return mask


# --- audit: right


def audit_by_loops(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    batch, heads, length, _ = weights.shape
    sums, count = torch.zeros(heads, 3), 0
    for b in range(batch):
        for i in range(length):
            if ids[b, i] == pad_id:
                continue
            count += 1
            for h in range(heads):
                row = weights[b, h, i]
                for j in range(length):
                    if ids[b, j] == pad_id:
                        sums[h, 0] += row[j]
                    elif j > i:
                        sums[h, 1] += row[j]
                if abs(row.sum() - 1) > 0.01:
                    sums[h, 2] += 1
    return sums / count


def audit_by_masks(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    future = (place[None, :] > place[:, None]) & real[:, None, :]
    on_padding = (weights * (~real)[:, None, None, :]).sum(dim=-1)
    on_future = (weights * future[:, None]).sum(dim=-1)
    odd = ((weights.sum(dim=-1) - 1).abs() > 0.01).float()
    numbers = torch.stack([on_padding, on_future, odd], dim=-1)  # (B, H, T, 3)
    asked = real[:, None, :, None].float()
    return (numbers * asked).sum(dim=(0, 2)) / real.sum()


def audit_by_selecting(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids.ne(pad_id)
    rows = weights.transpose(1, 2)[real]  # (real queries, H, T)
    keys = real.repeat_interleave(real.sum(dim=1), dim=0)  # which keys are real, for each of these queries
    place = real.nonzero()[:, 1]
    later = torch.arange(ids.size(1)) > place[:, None]
    on_padding = torch.einsum("nhs,ns->hn", rows, (~keys).float())
    on_future = torch.einsum("nhs,ns->hn", rows, (later & keys).float())
    odd = ~torch.isclose(rows.sum(-1), torch.ones(()), rtol=0.0, atol=0.01).T
    return torch.stack([on_padding.mean(1), on_future.mean(1), odd.float().mean(1)], dim=1)


# --- audit: wrong


def audit_padding_queries_counted(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    future = (place[None, :] > place[:, None]) & real[:, None, :]
    on_padding = (weights * (~real)[:, None, None, :]).sum(dim=-1)
    on_future = (weights * future[:, None]).sum(dim=-1)
    odd = ((weights.sum(dim=-1) - 1).abs() > 0.01).float()
    numbers = torch.stack([on_padding, on_future, odd], dim=-1)  # (B, H, T, 3)
    return numbers.mean(dim=(0, 2))


def audit_divided_by_all_rows(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    future = (place[None, :] > place[:, None]) & real[:, None, :]
    on_padding = (weights * (~real)[:, None, None, :]).sum(dim=-1)
    on_future = (weights * future[:, None]).sum(dim=-1)
    odd = ((weights.sum(dim=-1) - 1).abs() > 0.01).float()
    numbers = torch.stack([on_padding, on_future, odd], dim=-1)  # (B, H, T, 3)
    asked = real[:, None, :, None].float()
    return (numbers * asked).mean(dim=(0, 2))


def audit_future_includes_itself(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    batch, heads, length, _ = weights.shape
    sums, count = torch.zeros(heads, 3), 0
    for b in range(batch):
        for i in range(length):
            if ids[b, i] == pad_id:
                continue
            count += 1
            for h in range(heads):
                row = weights[b, h, i]
                for j in range(length):
                    if ids[b, j] == pad_id:
                        sums[h, 0] += row[j]
                    elif j >= i:
                        sums[h, 1] += row[j]
                if abs(row.sum() - 1) > 0.01:
                    sums[h, 2] += 1
    return sums / count


def audit_padding_counted_twice(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    batch, heads, length, _ = weights.shape
    sums, count = torch.zeros(heads, 3), 0
    for b in range(batch):
        for i in range(length):
            if ids[b, i] == pad_id:
                continue
            count += 1
            for h in range(heads):
                row = weights[b, h, i]
                for j in range(length):
                    if ids[b, j] == pad_id:
                        sums[h, 0] += row[j]
                    if j > i:
                        sums[h, 1] += row[j]
                if abs(row.sum() - 1) > 0.01:
                    sums[h, 2] += 1
    return sums / count


def audit_sentence_by_sentence(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    future = (place[None, :] > place[:, None]) & real[:, None, :]
    on_padding = (weights * (~real)[:, None, None, :]).sum(dim=-1)
    on_future = (weights * future[:, None]).sum(dim=-1)
    odd = ((weights.sum(dim=-1) - 1).abs() > 0.01).float()
    numbers = torch.stack([on_padding, on_future, odd], dim=-1)  # (B, H, T, 3)
    asked = real[:, None, :, None].float()
    return ((numbers * asked).sum(dim=2) / asked.sum(dim=2)).mean(dim=0)


def audit_columns_summed(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    future = (place[None, :] > place[:, None]) & real[:, None, :]
    on_padding = (weights * (~real)[:, None, None, :]).sum(dim=-1)
    on_future = (weights * future[:, None]).sum(dim=-1)
    odd = ((weights.sum(dim=-2) - 1).abs() > 0.01).float()
    numbers = torch.stack([on_padding, on_future, odd], dim=-1)  # (B, H, T, 3)
    asked = real[:, None, :, None].float()
    return (numbers * asked).sum(dim=(0, 2)) / real.sum()


def audit_only_too_small(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    batch, heads, length, _ = weights.shape
    sums, count = torch.zeros(heads, 3), 0
    for b in range(batch):
        for i in range(length):
            if ids[b, i] == pad_id:
                continue
            count += 1
            for h in range(heads):
                row = weights[b, h, i]
                for j in range(length):
                    if ids[b, j] == pad_id:
                        sums[h, 0] += row[j]
                    elif j > i:
                        sums[h, 1] += row[j]
                if row.sum() < 0.99:
                    sums[h, 2] += 1
    return sums / count


def audit_past_for_future(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    future = (place[None, :] < place[:, None]) & real[:, None, :]
    on_padding = (weights * (~real)[:, None, None, :]).sum(dim=-1)
    on_future = (weights * future[:, None]).sum(dim=-1)
    odd = ((weights.sum(dim=-1) - 1).abs() > 0.01).float()
    numbers = torch.stack([on_padding, on_future, odd], dim=-1)  # (B, H, T, 3)
    asked = real[:, None, :, None].float()
    return (numbers * asked).sum(dim=(0, 2)) / real.sum()


def audit_mean_over_keys(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids != pad_id
    place = torch.arange(ids.size(1))
    future = (place[None, :] > place[:, None]) & real[:, None, :]
    on_padding = (weights * (~real)[:, None, None, :]).mean(dim=-1)
    on_future = (weights * future[:, None]).mean(dim=-1)
    odd = ((weights.sum(dim=-1) - 1).abs() > 0.01).float()
    numbers = torch.stack([on_padding, on_future, odd], dim=-1)  # (B, H, T, 3)
    asked = real[:, None, :, None].float()
    return (numbers * asked).sum(dim=(0, 2)) / real.sum()


def audit_counted(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    real = ids.ne(pad_id)
    rows = weights.transpose(1, 2)[real]  # (real queries, H, T)
    keys = real.repeat_interleave(real.sum(dim=1), dim=0)
    later = torch.arange(ids.size(1)) > real.nonzero()[:, 1, None]
    on_padding = torch.einsum("nhs,ns->hn", rows, (~keys).float())
    on_future = torch.einsum("nhs,ns->hn", rows, (later & keys).float())
    odd = ((rows.sum(-1) - 1).abs() > 0.01).T
    return torch.stack([on_padding.mean(1), on_future.mean(1), odd.float().sum(1)], dim=1)


# --- band_weights: right


def band_weights_by_loops(query: Tensor, key: Tensor, radius: int) -> Tensor:
    *leading, length, d_k = query.shape
    band = torch.zeros(*leading, length, 2 * radius + 1)
    for i in range(length):
        first, last = max(0, i - radius), min(length - 1, i + radius)
        keys = key[..., first : last + 1, :]
        scores = (keys * query[..., i : i + 1, :]).sum(dim=-1) / math.sqrt(d_k)
        start = first - (i - radius)
        band[..., i, start : start + last - first + 1] = torch.softmax(scores, dim=-1)
    return band


def band_weights_by_windows(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length, width = query.size(-2), 2 * radius + 1
    windows = F.pad(key, (0, 0, radius, radius)).unfold(-2, width, 1)  # (…, T, d_k, width)
    scores = torch.einsum("...td,...tdw->...tw", query, windows) / math.sqrt(query.size(-1))
    place = torch.arange(length)[:, None] + torch.arange(width) - radius
    inside = (place >= 0) & (place < length)
    return scores.masked_fill(~inside, float("-inf")).softmax(dim=-1)


def band_weights_from_the_table(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length = query.size(-2)
    place = torch.arange(length)
    near = (place[None, :] - place[:, None]).abs() <= radius
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    weights = F.pad(scores.masked_fill(~near, -torch.inf).softmax(dim=-1), (radius, radius))
    columns = place[:, None] + torch.arange(2 * radius + 1)
    return weights.gather(-1, columns.expand(*weights.shape[:-1], -1))


# --- band_weights: wrong


def band_weights_outside_counts(query: Tensor, key: Tensor, radius: int) -> Tensor:
    width = 2 * radius + 1
    windows = F.pad(key, (0, 0, radius, radius)).unfold(-2, width, 1)  # (…, T, d_k, width)
    scores = torch.einsum("...td,...tdw->...tw", query, windows) / math.sqrt(query.size(-1))
    return scores.softmax(dim=-1)


def band_weights_removed_late(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length, width = query.size(-2), 2 * radius + 1
    windows = F.pad(key, (0, 0, radius, radius)).unfold(-2, width, 1)  # (…, T, d_k, width)
    scores = torch.einsum("...td,...tdw->...tw", query, windows) / math.sqrt(query.size(-1))
    place = torch.arange(length)[:, None] + torch.arange(width) - radius
    inside = (place >= 0) & (place < length)
    return scores.softmax(dim=-1) * inside


def band_weights_wraps_round(query: Tensor, key: Tensor, radius: int) -> Tensor:
    columns = []
    for step in range(-radius, radius + 1):
        shifted = torch.roll(key, -step, dims=-2)
        columns.append((query * shifted).sum(dim=-1) / math.sqrt(query.shape[-1]))
    return torch.softmax(torch.stack(columns, dim=-1), dim=-1)


def band_weights_ends_repeated(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length = query.shape[-2]
    columns = []
    for step in range(-radius, radius + 1):
        place = (torch.arange(length) + step).clamp(0, length - 1)
        columns.append((query * key[..., place, :]).sum(dim=-1) / math.sqrt(query.shape[-1]))
    return torch.softmax(torch.stack(columns, dim=-1), dim=-1)


def band_weights_mirrored(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length, width = query.size(-2), 2 * radius + 1
    place = torch.arange(length)[:, None] - torch.arange(width) + radius
    inside = (place >= 0) & (place < length)
    keys = key[..., place.clamp(0, length - 1), :]
    scores = torch.einsum("...td,...twd->...tw", query, keys) / math.sqrt(query.size(-1))
    return scores.masked_fill(~inside, float("-inf")).softmax(dim=-1)


def band_weights_cut_from_the_whole(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length = query.size(-2)
    place = torch.arange(length)
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    weights = F.pad(scores.softmax(dim=-1), (radius, radius))
    columns = place[:, None] + torch.arange(2 * radius + 1)
    return weights.gather(-1, columns.expand(*weights.shape[:-1], -1))


def band_weights_no_scale(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length, width = query.size(-2), 2 * radius + 1
    windows = F.pad(key, (0, 0, radius, radius)).unfold(-2, width, 1)  # (…, T, d_k, width)
    scores = torch.einsum("...td,...tdw->...tw", query, windows)
    place = torch.arange(length)[:, None] + torch.arange(width) - radius
    inside = (place >= 0) & (place < length)
    return scores.masked_fill(~inside, float("-inf")).softmax(dim=-1)


def band_weights_zero_is_no_key(query: Tensor, key: Tensor, radius: int) -> Tensor:
    width = 2 * radius + 1
    windows = F.pad(key, (0, 0, radius, radius)).unfold(-2, width, 1)  # (…, T, d_k, width)
    scores = torch.einsum("...td,...tdw->...tw", query, windows) / math.sqrt(query.size(-1))
    return scores.masked_fill(scores == 0, float("-inf")).softmax(dim=-1)


def band_weights_repeated_and_removed_late(query: Tensor, key: Tensor, radius: int) -> Tensor:
    length = query.shape[-2]
    columns, inside = [], []
    for step in range(-radius, radius + 1):
        place = torch.arange(length) + step
        inside.append((place >= 0) & (place < length))
        near = key[..., place.clamp(0, length - 1), :]
        columns.append((query * near).sum(dim=-1) / math.sqrt(query.shape[-1]))
    weights = torch.softmax(torch.stack(columns, dim=-1), dim=-1)
    return torch.where(torch.stack(inside, dim=-1), weights, 0.0)


def band_weights_left_aligned(query: Tensor, key: Tensor, radius: int) -> Tensor:
    *leading, length, d_k = query.shape
    band = torch.zeros(*leading, length, 2 * radius + 1)
    for i in range(length):
        keys = key[..., max(0, i - radius) : i + radius + 1, :]
        scores = (keys * query[..., i : i + 1, :]).sum(dim=-1) / math.sqrt(d_k)
        band[..., i, : keys.shape[-2]] = torch.softmax(scores, dim=-1)
    return band


# --- absorb: right


def absorb_by_loops(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = (part.clone() for part in state)
    for i in range(len(query)):
        for j in range(len(key)):
            if not mask[i, j]:
                continue
            score = query[i].dot(key[j]) / math.sqrt(len(query[i]))
            if score > top[i]:
                shrink = torch.exp(top[i] - score)
                total[i] *= shrink
                mixture[i] *= shrink
                top[i] = score
            part = torch.exp(score - top[i])
            total[i] += part
            mixture[i] += part * value[j]
    return top, total, mixture


def absorb_at_once(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    level = torch.where(new_top.isinf(), 0.0, new_top)
    old = torch.exp(top - level)
    parts = torch.exp(scores - level[:, None])
    return new_top, total * old + parts.sum(dim=-1), mixture * old[:, None] + parts @ value


def absorb_by_two_states(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    scores = torch.einsum("id,jd->ij", query, key) * query.shape[1] ** -0.5
    highest = torch.where(mask, scores, -torch.inf).amax(dim=1)
    parts = torch.where(mask, torch.exp(scores - highest[:, None]), 0.0)
    chunk = (highest, parts.sum(dim=1), parts @ value)
    top = torch.stack([state[0], highest]).amax(dim=0)
    factors = [torch.where(part[0] == -torch.inf, 0.0, torch.exp(part[0] - top)) for part in (state, chunk)]
    total = state[1] * factors[0] + chunk[1] * factors[1]
    return top, total, state[2] * factors[0].unsqueeze(1) + chunk[2] * factors[1].unsqueeze(1)


# --- absorb: wrong


def absorb_not_rescaled(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    level = torch.where(new_top.isinf(), 0.0, new_top)
    parts = torch.exp(scores - level[:, None])
    return new_top, total + parts.sum(dim=-1), mixture + parts @ value


def absorb_mixture_not_rescaled(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    level = torch.where(new_top.isinf(), 0.0, new_top)
    old = torch.exp(top - level)
    parts = torch.exp(scores - level[:, None])
    return new_top, total * old + parts.sum(dim=-1), mixture + parts @ value


def absorb_nan_rows(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    old = torch.exp(top - new_top)
    parts = torch.exp(scores - new_top[:, None])
    return new_top, total * old + parts.sum(dim=-1), mixture * old[:, None] + parts @ value


def absorb_forgets_the_old_top(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    new_top = scores.max(dim=-1).values
    level = torch.where(new_top.isinf(), 0.0, new_top)
    old = torch.exp(top - level)
    parts = torch.exp(scores - level[:, None])
    return new_top, total * old + parts.sum(dim=-1), mixture * old[:, None] + parts @ value


def absorb_top_of_the_forbidden(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    scores = scores.masked_fill(~mask, float("-inf"))
    level = torch.where(new_top.isinf(), 0.0, new_top)
    old = torch.exp(top - level)
    parts = torch.exp(scores - level[:, None])
    return new_top, total * old + parts.sum(dim=-1), mixture * old[:, None] + parts @ value


def absorb_no_scale(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T
    scores = scores.masked_fill(~mask, float("-inf"))
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    level = torch.where(new_top.isinf(), 0.0, new_top)
    old = torch.exp(top - level)
    parts = torch.exp(scores - level[:, None])
    return new_top, total * old + parts.sum(dim=-1), mixture * old[:, None] + parts @ value


def absorb_divided(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    level = torch.where(new_top.isinf(), 0.0, new_top)
    old = torch.exp(top - level)
    parts = torch.exp(scores - level[:, None])
    total = total * old + parts.sum(dim=-1)
    mixture = mixture * old[:, None] + parts @ value
    return new_top, total, mixture / total[:, None]


def absorb_from_its_own_top(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    chunk_top = scores.max(dim=-1).values
    new_top = torch.maximum(top, chunk_top)
    parts = torch.exp(scores - chunk_top[:, None]).nan_to_num(nan=0.0)
    old = torch.exp(top - new_top).nan_to_num(nan=0.0)
    return new_top, total * old + parts.sum(dim=-1), mixture * old[:, None] + parts @ value


def absorb_nothing_subtracted(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    parts = torch.exp(scores)
    return torch.maximum(top, scores.max(dim=-1).values), total + parts.sum(dim=-1), mixture + parts @ value


def absorb_large_and_negative(state: tuple, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple:
    top, total, mixture = state
    scores = query @ key.T / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, -1e9)
    new_top = torch.maximum(top, scores.max(dim=-1).values)
    old = torch.exp(top - new_top)
    parts = torch.exp(scores - new_top[:, None])
    return new_top, total * old + parts.sum(dim=-1), mixture * old[:, None] + parts @ value


# --- attention_backward: right


def attention_backward_by_loops(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    at_query, at_key, at_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    queries, keys, d_k = query.shape[-2], key.shape[-2], query.shape[-1]
    for i in range(queries):
        at_weight = [(grad[..., i, :] * value[..., j, :]).sum(-1) for j in range(keys)]
        mean = sum(weights[..., i, j] * at_weight[j] for j in range(keys))
        for j in range(keys):
            weight = weights[..., i, j]
            at_score = (weight * (at_weight[j] - mean) / math.sqrt(d_k)).unsqueeze(-1)
            at_query[..., i, :] += at_score * key[..., j, :]
            at_key[..., j, :] += at_score * query[..., i, :]
            at_value[..., j, :] += weight.unsqueeze(-1) * grad[..., i, :]
    return at_query, at_key, at_value


def attention_backward_by_matrices(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    mean = (weights * at_weights).sum(dim=-1, keepdim=True)
    at_scores = weights * (at_weights - mean)
    at_dots = at_scores / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_by_slopes(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    slopes = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)  # (…, T, S, S)
    at_weights = torch.einsum("...td,...sd->...ts", grad, value)
    at_dots = torch.einsum("...tsr,...ts->...tr", slopes, at_weights) * query.shape[-1] ** -0.5
    at_key = torch.einsum("...ts,...td->...sd", at_dots, query)
    return at_dots.matmul(key), at_key, torch.einsum("...ts,...td->...sd", weights, grad)


# --- attention_backward: wrong


def attention_backward_softmax_skipped(
    query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor
) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    at_dots = at_weights / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_no_product_term(
    query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor
) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    at_scores = weights * at_weights
    at_dots = at_scores / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_diagonal_only(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    at_scores = weights * (1 - weights) * at_weights
    at_dots = at_scores / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_sum_not_weighted(
    query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor
) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    mean = at_weights.sum(dim=-1, keepdim=True)
    at_scores = weights * (at_weights - mean)
    at_dots = at_scores / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_wrong_axis(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    mean = (weights * at_weights).sum(dim=-2, keepdim=True)
    at_scores = weights * (at_weights - mean)
    at_dots = at_scores / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_no_scale(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    slopes = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)  # (…, T, S, S)
    at_weights = torch.einsum("...td,...sd->...ts", grad, value)
    at_dots = torch.einsum("...tsr,...ts->...tr", slopes, at_weights)
    at_key = torch.einsum("...ts,...td->...sd", at_dots, query)
    return at_dots.matmul(key), at_key, torch.einsum("...ts,...td->...sd", weights, grad)


def attention_backward_scale_d_k(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    mean = (weights * at_weights).sum(dim=-1, keepdim=True)
    at_scores = weights * (at_weights - mean)
    at_dots = at_scores / query.size(-1)
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_values_unweighted(
    query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor
) -> tuple:
    at_query, at_key, at_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    queries, keys, d_k = query.shape[-2], key.shape[-2], query.shape[-1]
    for i in range(queries):
        at_weight = [(grad[..., i, :] * value[..., j, :]).sum(-1) for j in range(keys)]
        mean = sum(weights[..., i, j] * at_weight[j] for j in range(keys))
        for j in range(keys):
            weight = weights[..., i, j]
            at_score = (weight * (at_weight[j] - mean) / math.sqrt(d_k)).unsqueeze(-1)
            at_query[..., i, :] += at_score * key[..., j, :]
            at_key[..., j, :] += at_score * query[..., i, :]
            at_value[..., j, :] += grad[..., i, :]
    return at_query, at_key, at_value


def attention_backward_sum_for_all_alike(
    query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor
) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    mean = (weights * at_weights).sum(dim=-1, keepdim=True)
    at_scores = weights * at_weights - mean
    at_dots = at_scores / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


def attention_backward_opposite_sign(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, grad: Tensor) -> tuple:
    at_value = weights.transpose(-2, -1) @ grad
    at_weights = grad @ value.transpose(-2, -1)
    mean = (weights * at_weights).sum(dim=-1, keepdim=True)
    at_scores = weights * (mean - at_weights)
    at_dots = at_scores / math.sqrt(query.size(-1))
    return at_dots @ key, at_dots.transpose(-2, -1) @ query, at_value


RIGHT = {
    "score_gaps": [score_gaps_by_loops, score_gaps_by_logarithms, score_gaps_by_ratios],
    "decoder_mask": [decoder_mask_by_loops, decoder_mask_by_broadcasting, decoder_mask_by_counting],
    "packed_mask": [packed_mask_by_loops, packed_mask_by_numbers, packed_mask_by_starts],
    "audit": [audit_by_loops, audit_by_masks, audit_by_selecting],
    "band_weights": [band_weights_by_loops, band_weights_by_windows, band_weights_from_the_table],
    "absorb": [absorb_by_loops, absorb_at_once, absorb_by_two_states],
    "attention_backward": [attention_backward_by_loops, attention_backward_by_matrices, attention_backward_by_slopes],
}


PLANTED = {
    "score_gaps": {
        "no-scale": score_gaps_no_scale,
        "divided": score_gaps_divided,
        "scale-d_k": score_gaps_scale_d_k,
        "scale-by-number-of-keys": score_gaps_scale_by_number_of_keys,
        "from-the-largest": score_gaps_from_the_largest,
        "sign": score_gaps_sign,
        "no-logarithm": score_gaps_no_logarithm,
        "not-relative": score_gaps_not_relative,
    },
    "decoder_mask": {
        "blank-rows": decoder_mask_blank_rows,
        "every-padding-sees-itself": decoder_mask_every_padding_sees_itself,
        "blank-rows-see-all": decoder_mask_blank_rows_see_all,
        "padding-on-queries": decoder_mask_padding_on_queries,
        "not-causal": decoder_mask_not_causal,
        "padding-is-always-zero": decoder_mask_padding_is_always_zero,
        "inverted": decoder_mask_inverted,
        "blank-rows-see-the-past": decoder_mask_blank_rows_see_the_past,
        "first-row-only": decoder_mask_first_row_only,
        "causal-only": decoder_mask_causal_only,
    },
    "packed_mask": {
        "end-belongs-to-the-next": packed_mask_end_belongs_to_the_next,
        "sentences-mixed": packed_mask_sentences_mixed,
        "not-causal": packed_mask_not_causal,
        "padding-rows": packed_mask_padding_rows,
        "padding-forgotten": packed_mask_padding_forgotten,
        "ends-hidden": packed_mask_ends_hidden,
        "inverted": packed_mask_inverted,
        "first-end-only": packed_mask_first_end_only,
        "cut-off-forgotten": packed_mask_cut_off_forgotten,
        "padding-sees-itself": packed_mask_padding_sees_itself,
    },
    "audit": {
        "padding-queries-counted": audit_padding_queries_counted,
        "divided-by-all-rows": audit_divided_by_all_rows,
        "future-includes-itself": audit_future_includes_itself,
        "padding-counted-twice": audit_padding_counted_twice,
        "sentence-by-sentence": audit_sentence_by_sentence,
        "columns-summed": audit_columns_summed,
        "only-too-small": audit_only_too_small,
        "past-for-future": audit_past_for_future,
        "mean-over-keys": audit_mean_over_keys,
        "counted": audit_counted,
    },
    "band_weights": {
        "outside-counts": band_weights_outside_counts,
        "removed-late": band_weights_removed_late,
        "wraps-round": band_weights_wraps_round,
        "ends-repeated": band_weights_ends_repeated,
        "mirrored": band_weights_mirrored,
        "cut-from-the-whole": band_weights_cut_from_the_whole,
        "no-scale": band_weights_no_scale,
        "zero-is-no-key": band_weights_zero_is_no_key,
        "repeated-and-removed-late": band_weights_repeated_and_removed_late,
        "left-aligned": band_weights_left_aligned,
    },
    "absorb": {
        "not-rescaled": absorb_not_rescaled,
        "mixture-not-rescaled": absorb_mixture_not_rescaled,
        "nan-rows": absorb_nan_rows,
        "forgets-the-old-top": absorb_forgets_the_old_top,
        "top-of-the-forbidden": absorb_top_of_the_forbidden,
        "no-scale": absorb_no_scale,
        "divided": absorb_divided,
        "from-its-own-top": absorb_from_its_own_top,
        "nothing-subtracted": absorb_nothing_subtracted,
        "large-and-negative": absorb_large_and_negative,
    },
    "attention_backward": {
        "softmax-skipped": attention_backward_softmax_skipped,
        "no-product-term": attention_backward_no_product_term,
        "diagonal-only": attention_backward_diagonal_only,
        "sum-not-weighted": attention_backward_sum_not_weighted,
        "wrong-axis": attention_backward_wrong_axis,
        "no-scale": attention_backward_no_scale,
        "scale-d_k": attention_backward_scale_d_k,
        "values-unweighted": attention_backward_values_unweighted,
        "sum-for-all-alike": attention_backward_sum_for_all_alike,
        "opposite-sign": attention_backward_opposite_sign,
    },
}
