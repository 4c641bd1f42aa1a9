"""Exercises of lesson 05 about the sinusoids: one row, the shift, the wavelengths, and adding them to words."""

import math

import torch
from torch import Tensor

from tinytransformer.model.positions import sinusoids
from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- one row of the table, by hand


def _row(position: float, d_model: int, exponent=lambda i: 2 * i, over=None, base: float = 1e4, turn: int = 0) -> list:
    """One row, pair by pair; ``turn`` = 1 exchanges sine and cosine."""
    width = d_model if over is None else over
    angles = [position / base ** (exponent(i) / width) for i in range(d_model // 2)]
    return [value for angle in angles for value in (math.sin(angle), math.cos(angle))[:: -1 if turn else 1]]


def _halves(row: list) -> list:
    return row[0::2] + row[1::2]


def _own_exponents(position: int, d_model: int) -> list:
    angles = [position / 1e4 ** (2 * dimension / d_model) for dimension in range(d_model)]
    return [math.cos(angle) if dimension % 2 else math.sin(angle) for dimension, angle in enumerate(angles)]


def _own_single_exponents(position: int, d_model: int) -> list:
    angles = [position / 1e4 ** (dimension / d_model) for dimension in range(d_model)]
    return [math.cos(angle) if dimension % 2 else math.sin(angle) for dimension, angle in enumerate(angles)]


ROW = Exercise(
    "position_by_hand",
    reference=lambda position, d_model: _row(position, d_model),
    cases=lambda: [(0, 4), (3, 6), (1, 8), (50, 4)],
    mistakes=(
        Mistake("own-exponent", "Every dimension has an exponent of its own. Dimensions 2i and 2i + 1 share one. (Row "
                "0 hides the mistake.)", _own_exponents),
        Mistake("own-single-exponent", "The cosine has a slightly lower frequency than its sine. Dimensions 2i and "
                "2i + 1 share one exponent, 2i. (Row 0 hides the mistake.)", _own_single_exponents),
        Mistake("exponent-i", "The exponent is i / d_model. It is 2i / d_model, so that it runs up to nearly 1.",
                lambda position, d: _row(position, d, exponent=lambda i: i)),
        Mistake("swapped", "Sine and cosine are exchanged: even dimensions hold the sine.",
                lambda position, d: _row(position, d, turn=1)),
        Mistake("half-split", "First all sines, then all cosines. Here they alternate: dimensions 2i and 2i + 1 are a "
                "pair.", lambda position, d: _halves(_row(position, d))),
        Mistake("frequencies-grow", "The position is multiplied by 10000^…: later dimensions turn faster. They shall "
                "turn more slowly.", lambda position, d: _row(position, d, base=1e-4)),
        Mistake("not-divided-by-d_model", "The exponent is not divided by d_model: after the first pair hardly "
                "anything moves.", lambda position, d: _row(position, d, over=1)),
        Mistake("counted-from-one", "Positions are counted from 0: at position 0 every angle is 0.",
                lambda position, d: _row(position + 1, d)),
        Mistake("no-cosine", "All dimensions hold the sine. The odd ones hold the cosine of the same angle.",
                lambda position, d: [value for value in _row(position, d)[0::2] for _ in range(2)]),
        Mistake("degrees", "The angles are taken in degrees. They are radians: math.sin needs no conversion.",
                lambda position, d: _row(math.radians(position), d)),
    ),
)  # fmt: skip


# --- the matrix that shifts by k


def _angles(d_model: int, exponent: int = 2) -> Tensor:
    return 1e4 ** (-exponent * torch.arange(d_model // 2).double() / d_model)


def _shift(k: int, d_model: int, angles: Tensor | None = None, block=lambda s, c: (c, s, -s, c)) -> Tensor:
    """A block of two by two numbers for each pair, made from its sine and cosine."""
    turns = k * (_angles(d_model) if angles is None else angles)
    return torch.block_diag(*torch.stack(block(turns.sin(), turns.cos()), dim=-1).view(-1, 2, 2))


def _by_halves(k: int, d_model: int) -> Tensor:
    order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    return _shift(k, d_model)[order][:, order]


SHIFT = Exercise(
    "shift_matrix",
    reference=_shift,
    cases=lambda: [(0, 4), (1, 4), (5, 8), (-3, 6)],
    mistakes=(
        Mistake("backwards", "It shifts by -k: the two signs of the sine are exchanged. Sine of a sum: "
                "sin a cos b + cos a sin b.", lambda k, d: _shift(-k, d)),
        Mistake("sign-lost", "Both sines of a block have the same sign. A rotation has one of each.",
                lambda k, d: _shift(k, d, block=lambda s, c: (c, s, s, c))),
        Mistake("one-speed", "All blocks turn by the same angle. Each pair has a frequency of its own.",
                lambda k, d: _shift(k, d, angles=torch.ones(d // 2).double())),
        Mistake("half-split", "The blocks stand as if all sines came first and then all cosines. Here a pair is "
                "dimensions 2i and 2i + 1.", _by_halves),
        Mistake("sine-and-cosine-swapped", "Each block has its sines on the diagonal. For k = 0 nothing may move, so "
                "the diagonal must then be 1.", lambda k, d: _shift(k, d, block=lambda s, c: (s, c, -c, s))),
        Mistake("exponent-i", "The frequencies of the blocks fall too slowly: the exponent is 2i / d_model.",
                lambda k, d: _shift(k, d, angles=_angles(d, exponent=1))),
    ),
)  # fmt: skip


# --- wavelengths


def _wavelengths(d_model: int) -> Tensor:
    return 2 * math.pi * 1e4 ** (torch.arange(0, d_model, 2).double() / d_model)


WAVELENGTHS = Exercise(
    "wavelengths",
    reference=_wavelengths,
    cases=lambda: [(4,), (10,), (512,)],
    mistakes=(
        Mistake("frequencies", "These are frequencies: they fall. Wavelengths, in positions, grow.",
                lambda d: 1 / _wavelengths(d)),
        Mistake("angular-frequencies", "These are the angles per position: they fall. How many positions does a full "
                "turn of 2π take?", lambda d: 2 * math.pi / _wavelengths(d)),
        Mistake("without-two-pi", "A factor is missing: a wave is through when its angle has grown by 2π.",
                lambda d: _wavelengths(d) / (2 * math.pi)),
        Mistake("one-per-dimension", "One for each dimension. Sine and cosine of a pair share theirs: asked for is one "
                "for each pair.", lambda d: _wavelengths(d).repeat_interleave(2)),
        Mistake("exponent-i", "They grow too slowly: the exponent is 2i / d_model, up to nearly 1.",
                lambda d: 2 * math.pi * 1e4 ** (torch.arange(d // 2).double() / d)),
        Mistake("half-a-turn", "Half of what is asked for: a wave is through after 2π, not after π.",
                lambda d: _wavelengths(d) / 2),
        Mistake("slowest-first", "The order is turned round: the fastest hand comes first.",
                lambda d: _wavelengths(d).flip(0)),
        Mistake("counted-from-one", "The hands are counted from 1: the first exponent is 0, so its wavelength is 2π.",
                lambda d: _wavelengths(d) * 1e4 ** (2 / d)),
        Mistake("up-to-the-end", "The last one is exactly 10000 · 2π. The exponents stop one step before 1.",
                lambda d: 2 * math.pi * torch.logspace(0, 4, d // 2, dtype=torch.double)),
    ),
)  # fmt: skip


# --- words and positions together


def _embed_cases() -> list[tuple]:
    def case(rows: list[list[int]], d_model: int, offset: int) -> tuple:
        return torch.tensor(rows), random(9, d_model, seed=190 + d_model), sinusoids(20, d_model), offset

    return [case([[1, 2, 3], [4, 4, 8]], 6, 0), case([[5, 0]], 4, 7), case([[1], [2], [3]], 16, 0)]


def _embed(ids: Tensor, vectors: Tensor, table: Tensor, offset: int) -> Tensor:
    return vectors[ids] * vectors.size(1) ** 0.5 + table[offset : offset + ids.size(1)]


EMBED = Exercise(
    "embed",
    reference=_embed,
    cases=_embed_cases,
    mistakes=(
        Mistake("positions-before-scaling", "The positions are scaled, too: they were added before the scale. Scale "
                "the words, then add.",
                lambda ids, v, t, o: (v[ids] + t[o : o + ids.size(1)]) * v.size(1) ** 0.5),
        Mistake("no-scale", "The words are not scaled: √d_model is missing.",
                lambda ids, v, t, o: v[ids] + t[o : o + ids.size(1)]),
        Mistake("scale-d_model", "The words are scaled by d_model itself, not by its root.",
                lambda ids, v, t, o: v[ids] * v.size(1) + t[o : o + ids.size(1)]),
        Mistake("divided", "The words are divided by √d_model. That is attention's scale; here they are multiplied.",
                lambda ids, v, t, o: v[ids] / v.size(1) ** 0.5 + t[o : o + ids.size(1)]),
        Mistake("offset-ignored", "Right when the offset is 0. The first word stands at position `offset`.",
                lambda ids, v, t, o: _embed(ids, v, t, 0)),
        Mistake("position-by-id", "The position vector is chosen by the word's id. It depends on the word's place.",
                lambda ids, v, t, o: v[ids] * v.size(1) ** 0.5 + t[ids]),
        Mistake("counted-from-one", "Every word gets the vector of the next place. The first stands at `offset`.",
                lambda ids, v, t, o: _embed(ids, v, t, o + 1)),
        Mistake("one-place-for-all", "All words of a sentence get the same position vector.",
                lambda ids, v, t, o: v[ids] * v.size(1) ** 0.5 + t[o]),
        Mistake("scale-vocabulary", "The scale comes from the number of words in the vocabulary, not from d_model.",
                lambda ids, v, t, o: v[ids] * len(v) ** 0.5 + t[o : o + ids.size(1)]),
        Mistake("no-positions", "The positions are missing.", lambda ids, v, t, o: v[ids] * v.size(1) ** 0.5),
        Mistake("multiplied", "Words and positions are multiplied. They are added.",
                lambda ids, v, t, o: v[ids] * v.size(1) ** 0.5 * t[o : o + ids.size(1)]),
        Mistake("side-by-side", "Positions stand beside the words, so vectors grow. They are added: the size stays.",
                lambda ids, v, t, o: torch.cat(
                    [v[ids] * v.size(1) ** 0.5, t[o : o + ids.size(1)].expand(*ids.shape, -1)], dim=-1)),
    ),
)  # fmt: skip
