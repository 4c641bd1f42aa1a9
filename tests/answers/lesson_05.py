"""Right and wrong answers to the exercises of lesson 05."""

import math

import numpy as np
import torch

# --- wrong answers


def row(angle=lambda pos, i, d: pos / 10000 ** (2 * i / d), first=math.sin, second=math.cos, finish=lambda row: row):
    def position_by_hand(position, d_model):
        numbers = []
        for i in range(d_model // 2):
            numbers += [first(angle(position, i, d_model)), second(angle(position, i, d_model))]
        return finish(numbers)

    return position_by_hand


def dimension_by_dimension(exponent):
    def position_by_hand(position, d_model):
        numbers = []
        for dimension in range(d_model):
            angle = position / 10000 ** (exponent(dimension) / d_model)
            numbers.append(math.sin(angle) if dimension % 2 == 0 else math.cos(angle))
        return numbers

    return position_by_hand


def sines_first(numbers):
    half = len(numbers) // 2
    return [numbers[2 * i] for i in range(half)] + [numbers[2 * i + 1] for i in range(half)]


def shift(
    speed=lambda i, d: 10000 ** (-2 * i / d), entries=lambda s, c: (c, s, -s, c), places=lambda i, d: (2 * i, 2 * i + 1)
):
    def shift_matrix(k, d_model):
        matrix = np.zeros((d_model, d_model))
        for i in range(d_model // 2):
            angle = k * speed(i, d_model)
            a, b = places(i, d_model)
            numbers = entries(math.sin(angle), math.cos(angle))
            matrix[a, a], matrix[a, b], matrix[b, a], matrix[b, b] = numbers
        return torch.from_numpy(matrix)

    return shift_matrix


def waves(count=lambda d: d // 2, length=lambda i, d: 2 * math.pi * 10000 ** (2 * i / d)):
    return lambda d_model: torch.tensor([length(i, d_model) for i in range(count(d_model))], dtype=torch.double)


def embed(scale=math.sqrt, place=None, join=torch.add, early=False):
    def embedded(ids, vectors, table, offset):
        words = torch.nn.functional.embedding(ids, vectors)
        chosen = place(ids, table) if place else table[offset:][: ids.shape[1]]
        factor = scale(vectors.shape[1])
        return join(words, chosen) * factor if early else join(words * factor, chosen.expand_as(words))

    return embedded


def forward(x, y, sine, cosine):
    return x * cosine - y * sine, x * sine + y * cosine


def pair_by_pair(
    sign=1,
    start=lambda offset, t: offset + t,
    speed=lambda i, d: 10000 ** (-2 * i / d),
    pair=None,
    out=None,
    turn=forward,
):
    def rotate(heads, offset):
        d = heads.shape[-1]
        result = torch.empty_like(heads)
        for t in range(heads.shape[2]):
            for i in range(d // 2):
                a, b = pair(i, d) if pair else (2 * i, 2 * i + 1)
                to_a, to_b = out(i, d) if out else (a, b)
                angle = sign * start(offset, t) * speed(i, d)
                sine, cosine = math.sin(angle), math.cos(angle)
                x, y = heads[:, :, t, a], heads[:, :, t, b]
                result[:, :, t, to_a], result[:, :, t, to_b] = turn(x, y, sine, cosine)
        return result

    return rotate


def sinusoids_added(heads, offset):
    make = row()
    rows = [make(offset + t, heads.shape[-1]) for t in range(heads.shape[2])]
    return heads + torch.tensor(rows, dtype=heads.dtype)


def halves(i, d):
    return i, i + d // 2


def try_orders(*orders):
    def order_blind(model, ids):
        before = model(ids)
        for order in orders:
            chosen = torch.tensor(order)
            if (model(ids[chosen]) - before[chosen]).abs().max() > 1e-4:
                return False
        return True

    return order_blind


SHUFFLES = ([2, 0, 5, 1, 6, 3, 4], [1, 3, 0, 6, 2, 5, 4], [6, 2, 4, 0, 1, 5, 3])


def stays(model, ids):
    chosen = torch.tensor(SHUFFLES[0])
    return bool((model(ids[chosen]) - model(ids)).abs().max() < 1e-4)


def same_sum(model, ids):
    chosen = torch.tensor(SHUFFLES[1])
    return bool((model(ids[chosen]).sum(0) - model(ids).sum(0)).abs().max() < 1e-3)


def last_word_only(model, ids):
    order = torch.tensor([1, 0, 2, 3, 4, 5, 6])
    return bool(torch.allclose(model(ids[order])[-1], model(ids)[-1], atol=1e-4))


def without_context(model, ids):
    return bool(torch.allclose(model(ids[-1:]), model(ids)[-1:], atol=1e-4))


PLANTED = {
    "position_by_hand": {
        "own-exponent": dimension_by_dimension(lambda dimension: 2 * dimension),
        "own-single-exponent": dimension_by_dimension(lambda dimension: dimension),
        "exponent-i": row(angle=lambda pos, i, d: pos / 10000 ** (i / d)),
        "swapped": row(first=math.cos, second=math.sin),
        "half-split": row(finish=sines_first),
        "frequencies-grow": row(angle=lambda pos, i, d: pos * 10000 ** (2 * i / d)),
        "not-divided-by-d_model": row(angle=lambda pos, i, d: pos / 10000 ** (2 * i)),
        "counted-from-one": row(angle=lambda pos, i, d: (pos + 1) / 10000 ** (2 * i / d)),
        "no-cosine": row(second=math.sin),
        "degrees": row(angle=lambda pos, i, d: pos * math.pi / 180 / 10000 ** (2 * i / d)),
    },
    "wavelengths": {
        "frequencies": waves(length=lambda i, d: 10000 ** (-2 * i / d) / (2 * math.pi)),
        "angular-frequencies": waves(length=lambda i, d: 10000 ** (-2 * i / d)),
        "without-two-pi": waves(length=lambda i, d: 10000 ** (2 * i / d)),
        "one-per-dimension": waves(lambda d: d, lambda i, d: 2 * math.pi * 10000 ** (2 * (i // 2) / d)),
        "exponent-i": waves(length=lambda i, d: 2 * math.pi * 10000 ** (i / d)),
        "half-a-turn": waves(length=lambda i, d: math.pi * 10000 ** (2 * i / d)),
        "slowest-first": waves(length=lambda i, d: 2 * math.pi * 10000 ** ((d - 2 - 2 * i) / d)),
        "counted-from-one": waves(length=lambda i, d: 2 * math.pi * 10000 ** ((2 * i + 2) / d)),
        "up-to-the-end": waves(length=lambda i, d: 2 * math.pi * 10000 ** (i / (d // 2 - 1))),
    },
    "embed": {
        "positions-before-scaling": embed(early=True),
        "no-scale": embed(scale=lambda d: 1.0),
        "scale-d_model": embed(scale=float),
        "divided": embed(scale=lambda d: d**-0.5),
        "offset-ignored": embed(place=lambda ids, table: table[: ids.shape[1]]),
        "position-by-id": embed(place=lambda ids, table: table[ids]),
        "counted-from-one": lambda ids, vectors, table, offset: embed()(ids, vectors, table[1:], offset),
        "one-place-for-all": lambda ids, vectors, table, offset: embed(place=lambda ids, table: table[offset])(
            ids, vectors, table, offset
        ),
        "scale-vocabulary": lambda ids, vectors, table, offset: embed(scale=lambda d: math.sqrt(len(vectors)))(
            ids, vectors, table, offset
        ),
        "no-positions": embed(join=lambda words, places: words),
        "multiplied": embed(join=torch.mul),
        "side-by-side": embed(join=lambda words, places: torch.cat([words, places], dim=2)),
    },
    "shift_matrix": {
        "backwards": shift(entries=lambda s, c: (c, -s, s, c)),
        "sign-lost": shift(entries=lambda s, c: (c, s, s, c)),
        "one-speed": shift(speed=lambda i, d: 1.0),
        "half-split": shift(places=halves),
        "sine-and-cosine-swapped": shift(entries=lambda s, c: (s, c, -c, s)),
        "exponent-i": shift(speed=lambda i, d: 10000 ** (-i / d)),
    },
    "rotate": {
        "half-split": pair_by_pair(pair=halves),
        "not-interleaved-again": pair_by_pair(out=halves),
        "backwards": pair_by_pair(sign=-1),
        "offset-ignored": pair_by_pair(start=lambda offset, t: t),
        "counted-from-one": pair_by_pair(start=lambda offset, t: offset + t + 1),
        "exponent-i": pair_by_pair(speed=lambda i, d: 10000 ** (-i / d)),
        "not-turned": lambda heads, offset: heads.clone(),
        "swapped": pair_by_pair(turn=lambda x, y, sine, cosine: (x * sine - y * cosine, x * cosine + y * sine)),
        "added": sinusoids_added,
        "all-the-same-angle": pair_by_pair(start=lambda offset, t: offset),
    },
    "order_blind": {
        "expects-the-same": stays,
        "reversal-only": try_orders([6, 5, 4, 3, 2, 1, 0]),
        "one-turn-only": try_orders([6, 0, 1, 2, 3, 4, 5]),
        "sums-compared": same_sum,
        "inverted": lambda model, ids: not try_orders(*SHUFFLES)(model, ids),
        "misses-order": last_word_only,
        "too-strict": without_context,
        "always-true": lambda model, ids: model(ids).shape[0] == len(ids),
        "always-false": lambda model, ids: model(ids).shape[0] != len(ids),
    },
}


# --- right answers


def row_by_numpy(position, d_model):
    angles = position / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1).ravel().tolist()


def shift_by_blocks(k, d_model):
    angles = k * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.block_diag(*(torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles))


def embed_by_hand(ids, vectors, table, offset):
    out = torch.zeros(*ids.shape, vectors.shape[1])
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1]):
            out[b, t] = math.sqrt(vectors.shape[1]) * vectors[ids[b, t]] + table[offset + t]
    return out


def rotate_as_complex(heads, offset):
    size = heads.shape[-1]
    angles = torch.outer(torch.arange(offset, offset + heads.shape[2]), 10000.0 ** (-torch.arange(0, size, 2) / size))
    numbers = torch.view_as_complex(heads.reshape(*heads.shape[:-1], -1, 2))
    return torch.view_as_real(numbers * torch.exp(1j * angles)).reshape(heads.shape)


def blind_by_swaps(model, ids):
    before = model(ids)
    for i in range(len(ids)):
        for j in range(i):
            order = torch.arange(len(ids))
            order[[i, j]] = order[[j, i]]
            if not torch.allclose(model(ids[order]), before[order], atol=1e-4):
                return False
    return True


RIGHT = {
    "position_by_hand": [row(), row_by_numpy],
    "wavelengths": [waves(), lambda d: 2 * math.pi / 10000.0 ** (-torch.arange(0, d, 2) / d)],
    "embed": [embed(), embed_by_hand],
    "shift_matrix": [shift(), shift_by_blocks],
    "rotate": [pair_by_pair(), rotate_as_complex],
    "order_blind": [try_orders(*SHUFFLES), blind_by_swaps],
}
