"""Right and wrong answers to the exercises of lesson 12."""

import math

import torch

# --- hidden words


def corrupt_by_masks(ids, draws, others, mask_id, pad_id):
    inputs, targets = ids.clone(), torch.full_like(ids, -100)
    chosen = (draws < 0.15) & (ids != pad_id)
    targets[chosen] = ids[chosen]
    masked, swapped = chosen & (draws < 0.12), chosen & (draws >= 0.12) & (draws < 0.135)
    inputs[masked] = mask_id
    inputs[swapped] = others[swapped]
    return inputs, targets


def corrupt_in_loops(ids, draws, others, mask_id, pad_id):
    rows, targets = [], []
    for row, dice, swaps in zip(ids.tolist(), draws.tolist(), others.tolist(), strict=True):
        new, wanted = [], []
        for one, draw, other in zip(row, dice, swaps, strict=True):
            if draw >= 0.15 or one == pad_id:
                new, wanted = [*new, one], [*wanted, -100]
                continue
            share = draw / 0.15
            new.append(mask_id if share < 0.8 else other if share < 0.9 else one)
            wanted.append(one)
        rows.append(new)
        targets.append(wanted)
    return torch.tensor(rows), torch.tensor(targets)


def corrupt_wrongly(choose=None, masked=lambda draw: draw < 0.12, swapped=None, target=None):
    """One token at a time; ``target(old, new, was_chosen, mask_id, pad_id)``."""
    swapped = swapped or (lambda draw: 0.12 <= draw < 0.135)
    choose = choose or (lambda one, draw, pad_id: draw < 0.15 and one != pad_id)
    target = target or (lambda old, new, chosen, mask_id, pad_id: old if chosen else -100)

    def corrupt(ids, draws, others, mask_id, pad_id):
        inputs, targets = ids.clone(), ids.clone()
        for place in torch.cartesian_prod(*map(torch.arange, ids.shape)).tolist():
            place = tuple(place)
            old, draw = ids[place].item(), draws[place].item()
            chosen = choose(old, draw, pad_id)
            new = old
            if chosen:
                new = mask_id if masked(draw) else others[place].item() if swapped(draw) else old
            inputs[place] = new
            targets[place] = target(old, new, chosen, mask_id, pad_id)
        return inputs, targets

    return corrupt


# --- shared keys


def shared_in_loops(query, key, value):
    each = query.size(1) // key.size(1)
    heads = []
    for head in range(query.size(1)):
        k, v = key[:, head // each], value[:, head // each]
        scores = query[:, head] @ k.transpose(1, 2) / math.sqrt(k.size(-1))
        heads.append(scores.softmax(-1) @ v)
    return torch.stack(heads, dim=1)


def shared_by_groups(query, key, value):
    """The heads of a group as one more axis, over which keys and values are broadcast."""
    grouped = query.unflatten(1, (key.size(1), -1))
    scores = torch.einsum("bgntd,bgsd->bgnts", grouped, key) * query.size(-1) ** -0.5
    return torch.einsum("bgnts,bgsd->bgntd", scores.softmax(-1), value).flatten(1, 2)


def shared_wrongly(key_of=lambda head, each, groups: head // each, value_of=None, scale=math.sqrt):
    def shared_keys_attention(query, key, value):
        groups = key.size(1)
        each = query.size(1) // groups
        heads = []
        for head in range(query.size(1)):
            k, v = key[:, key_of(head, each, groups)], value[:, (value_of or key_of)(head, each, groups)]
            heads.append((query[:, head] @ k.mT / scale(query.size(-1))).softmax(-1) @ v)
        return torch.stack(heads, dim=1)

    return shared_keys_attention


def shared_mean(query, key, value):
    return shared_in_loops(query, key.mean(1, keepdim=True), value.mean(1, keepdim=True))


# --- blocks


def merge_by_rescaling(top_1, total_1, output_1, top_2, total_2, output_2):
    top = torch.where(top_1 > top_2, top_1, top_2)
    weight_1 = torch.exp(top_1 - top) * total_1
    weight_2 = torch.exp(top_2 - top) * total_2
    total = weight_1 + weight_2
    share = (weight_1 / total).unsqueeze(-1)
    return top, total, share * output_1 + (1 - share) * output_2


def merge_by_logarithms(top_1, total_1, output_1, top_2, total_2, output_2):
    """By log-sum-exp of each block."""
    both = torch.stack([top_1 + total_1.log(), top_2 + total_2.log()])
    whole = both.logsumexp(0)
    top = torch.maximum(top_1, top_2)
    shares = (both - whole).exp()
    return top, (whole - top).exp(), shares[0, ..., None] * output_1 + shares[1, ..., None] * output_2


def merge_wrongly(weigh, total=None, divide=True):
    def merge_blocks(top_1, total_1, output_1, top_2, total_2, output_2):
        top, right, _ = merge_by_rescaling(top_1, total_1, output_1, top_2, total_2, output_2)
        one, two = weigh(top_1, total_1, top_2, total_2)
        mixed = one.unsqueeze(-1) * output_1 + two.unsqueeze(-1) * output_2
        if divide:
            mixed = mixed / (one + two).unsqueeze(-1)
        return top, right if total is None else total(one, two), mixed

    return merge_blocks


def rescaled(top_1, total_1, top_2, total_2):
    top = torch.maximum(top_1, top_2)
    return total_1 * (top_1 - top).exp(), total_2 * (top_2 - top).exp()


def merge_divided_twice(top_1, total_1, output_1, top_2, total_2, output_2):
    top, total, _ = merge_by_rescaling(top_1, total_1, output_1, top_2, total_2, output_2)
    sums = (top_1 - top).exp().unsqueeze(-1) * output_1 + (top_2 - top).exp().unsqueeze(-1) * output_2
    return top, total, sums / total.unsqueeze(-1)


def merge_to_the_first(top_1, total_1, output_1, top_2, total_2, output_2):
    grown = total_2 * torch.exp(top_2 - top_1)
    total = total_1 + grown
    mixed = (total_1.unsqueeze(-1) * output_1 + grown.unsqueeze(-1) * output_2) / total.unsqueeze(-1)
    return top_1, total, mixed


# --- eight bits


def int8_in_loops(matrix):
    numbers, scales = torch.zeros(matrix.shape, dtype=torch.int8), []
    for number, row in enumerate(matrix):
        scale = row.abs().max().item() / 127 or 1.0
        scales.append(scale)
        numbers[number] = torch.round(row / scale).to(torch.int8)
    return numbers, torch.tensor(scales)


def int8_at_once(matrix):
    largest = matrix.abs().max(dim=1).values
    scales = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return torch.clamp((matrix / scales.unsqueeze(1)).round(), -127, 127).char(), scales


def int8_wrongly(size=lambda row: row.abs().max(), steps=127, whole=torch.round, clamp=False):
    def int8_rows(matrix):
        scales = torch.stack([size(row) / steps for row in matrix])
        scales = torch.where(scales == 0, torch.ones(()), scales)
        numbers = whole(matrix / scales[:, None])
        numbers = numbers.clamp(-128, 127) if clamp else numbers
        return numbers.to(torch.int64).to(torch.int8), scales

    return int8_rows


def int8_of_the_whole(matrix):
    scale = matrix.abs().max() / 127
    return (matrix / scale).round().to(torch.int8), scale.repeat(len(matrix))


def int8_of_columns(matrix):
    numbers, scales = int8_at_once(matrix.T.contiguous())
    return numbers.T, scales


def int8_as_floats(matrix):
    numbers, scales = int8_at_once(matrix)
    return numbers.float(), scales


def int8_with_zero_scales(matrix):
    scales = matrix.abs().amax(1) / 127
    safe = scales.clamp(min=1e-30)
    return (matrix / safe[:, None]).round().to(torch.int8), scales


def int8_upside_down(matrix):
    numbers, scales = int8_at_once(matrix)
    return numbers, scales.reciprocal()


def int8_signed(matrix):
    """No size is taken; the conversion to a byte keeps the lowest eight bits."""
    scales = matrix.max(dim=1).values / 127
    scales[scales == 0] = 1.0
    wide = torch.round(matrix / scales.unsqueeze(1)).long()
    return ((wide + 128) % 256 - 128).to(torch.int8), scales


def int8_column(matrix):
    scales = matrix.abs().max(dim=1, keepdim=True).values / 127
    scales[scales == 0] = 1.0
    return torch.round(matrix / scales).to(torch.int8), scales


def int8_restored(matrix):
    numbers, scales = int8_at_once(matrix)
    return numbers.float() * scales.unsqueeze(1), scales


# --- another order


def order_by_slices(d_model):
    ours = list(range(d_model))
    return ours[::2] + ours[1::2]


def order_by_formula(d_model):
    half = d_model // 2
    return [2 * place if place < half else 2 * (place - half) + 1 for place in range(d_model)]


RIGHT = {
    "corrupt": [corrupt_by_masks, corrupt_in_loops],
    "shared_keys_attention": [shared_in_loops, shared_by_groups],
    "merge_blocks": [merge_by_rescaling, merge_by_logarithms],
    "int8_rows": [int8_in_loops, int8_at_once],
    "marian_order": [order_by_slices, order_by_formula],
}
PLANTED = {
    "corrupt": {
        "padding-chosen": corrupt_wrongly(choose=lambda one, draw, pad_id: draw < 0.15),
        "all-masked": corrupt_wrongly(masked=lambda draw: True),
        "swapped-and-kept": corrupt_wrongly(swapped=lambda draw: draw >= 0.135),
        "none-kept": corrupt_wrongly(swapped=lambda draw: True),
        "shares-of-all": corrupt_wrongly(
            choose=lambda one, draw, pad_id: one != pad_id,
            masked=lambda draw: draw < 0.8,
            swapped=lambda draw: draw < 0.9,
        ),
        "targets-everywhere": corrupt_wrongly(target=lambda old, new, chosen, mask_id, pad_id: old),
        "targets-of-masks": corrupt_wrongly(
            target=lambda old, new, chosen, mask_id, pad_id: old if new == mask_id else -100
        ),
        "targets-of-changes": corrupt_wrongly(
            target=lambda old, new, chosen, mask_id, pad_id: old if new != old else -100
        ),
        "targets-changed": corrupt_wrongly(target=lambda old, new, chosen, mask_id, pad_id: new if chosen else -100),
        "targets-of-the-rest": corrupt_wrongly(
            target=lambda old, new, chosen, mask_id, pad_id: -100 if chosen else old
        ),
        "padding-as-target": corrupt_wrongly(
            target=lambda old, new, chosen, mask_id, pad_id: old if chosen else pad_id
        ),
    },
    "shared_keys_attention": {
        "tiled": shared_wrongly(lambda head, each, groups: head % groups),
        "values-tiled": shared_wrongly(value_of=lambda head, each, groups: head % groups),
        "first-only": shared_wrongly(lambda head, each, groups: 0),
        "averaged": shared_mean,
        "no-scale": shared_wrongly(scale=lambda d: 1.0),
        "scale-d": shared_wrongly(scale=float),
    },
    "merge_blocks": {
        "totals-added": merge_wrongly(lambda top_1, total_1, top_2, total_2: (total_1, total_2), torch.add),
        "mean-of-outputs": merge_wrongly(
            lambda top_1, total_1, top_2, total_2: (torch.full_like(top_1, 0.5), torch.full_like(top_1, 0.5))
        ),
        "weights-not-rescaled": merge_wrongly(lambda top_1, total_1, top_2, total_2: (total_1, total_2)),
        "totals-forgotten": merge_wrongly(
            lambda top_1, total_1, top_2, total_2: (torch.sigmoid(top_1 - top_2), torch.sigmoid(top_2 - top_1))
        ),
        "not-divided": merge_wrongly(rescaled, divide=False),
        "divided-twice": merge_divided_twice,
        "top-of-first": merge_to_the_first,
        "tops-kept-in": merge_wrongly(
            lambda top_1, total_1, top_2, total_2: (total_1 * top_1.exp(), total_2 * top_2.exp()), torch.add
        ),
    },
    "int8_rows": {
        "one-scale": int8_of_the_whole,
        "columns": int8_of_columns,
        "signed-maximum": int8_wrongly(size=lambda row: row.max(), clamp=True),
        "signed-and-wrapped": int8_signed,
        "scales-in-a-column": int8_column,
        "128-steps": int8_wrongly(steps=128),
        "128-clamped": int8_wrongly(steps=128, clamp=True),
        "255-steps": int8_wrongly(steps=255, clamp=True),
        "truncated": int8_wrongly(whole=torch.fix),
        "rounded-down": int8_wrongly(whole=torch.floor),
        "not-int8": int8_as_floats,
        "zero-scale": int8_with_zero_scales,
        "inverted": int8_upside_down,
        "restored": int8_restored,
    },
    "marian_order": {
        "inverse": lambda d: [order_by_slices(d).index(place) for place in range(d)],
        "cosines-first": lambda d: list(range(d))[1::2] + list(range(d))[::2],
        "unchanged": lambda d: [*range(d)],
        "from-one": lambda d: [place + 1 for place in order_by_formula(d)],
        "halves-in-turns": lambda d: [d // 2 + place // 2 if place % 2 == 0 else place // 2 for place in range(d)],
        "sines-twice": lambda d: 2 * list(range(d))[::2],
    },
}
