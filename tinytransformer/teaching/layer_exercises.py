"""Exercises of lesson 06 about the parts of a layer: embedding and output, LayerNorm, the decoder layer."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- into the model and out of it


def _embed_cases() -> list[tuple]:
    ids = random(2, 4, seed=1).mul(10).long().abs() % 7
    square = random(2, 4, 9, seed=2), random(9, 9, seed=3), random(4, 9, seed=4)  # as many tokens as features
    longer = random(1, 2, 16, seed=5), random(7, 16, seed=6), random(5, 16, seed=7)
    return [(ids, *square), (ids[:1, :2], *longer)]


def _embed(scale=math.sqrt, out_scale=lambda d: 1.0, join=None, turn=True):
    """The right answer, or one that scales, joins or turns in another way."""
    join = join or (lambda rows, places, factor: rows * factor + places)

    def embed_and_score(ids: Tensor, states: Tensor, matrix: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        size = matrix.size(1)
        received = join(matrix[ids], positions[: ids.size(1)], scale(size))
        return received, states @ (matrix.T if turn else matrix) * out_scale(size)

    return embed_and_score


EMBED_AND_SCORE = Exercise(
    "embed_and_score",
    reference=_embed(),
    cases=_embed_cases,
    mistakes=(
        Mistake("positions-scaled", "The positions are added before scaling, so they are scaled, too. Only the token's "
                "row is.", _embed(join=lambda rows, places, factor: (rows + places) * factor)),
        Mistake("not-scaled", "The rows are not scaled.", _embed(scale=lambda d: 1.0)),
        Mistake("scaled-by-d-model", "The rows are scaled by d_model, not by its root.", _embed(scale=lambda d: d)),
        Mistake("divided", "The rows are divided by √d_model: on the way in they are multiplied.",
                _embed(scale=lambda d: 1 / math.sqrt(d))),
        Mistake("no-positions", "Where are the positions? Without them the order of the words is lost.",
                _embed(join=lambda rows, places, factor: rows * factor)),
        Mistake("output-scaled", "The way in is right. On the way out the matrix is taken as it is: the scale belongs "
                "to the embedding only.", _embed(out_scale=math.sqrt)),
        Mistake("output-divided", "The way in is right. On the way out nothing is divided: that is attention's "
                "scale.", _embed(out_scale=lambda d: 1 / math.sqrt(d))),
        Mistake("output-not-turned", "The way in is right. The logits compare a state with each token's row; yours "
                "multiply it with the columns.", _embed(turn=False)),
        Mistake("probabilities", "The way in is right. These are probabilities: logits come before the softmax.",
                lambda i, s, m, p: (_embed()(i, s, m, p)[0], (s @ m.T).softmax(-1))),
    ),
)  # fmt: skip


# --- a LayerNorm that survives half precision


def _norm_cases() -> list[tuple]:
    gain, shift = 1 + random(6, seed=11, spread=0.3), random(6, seed=12)
    flat = random(3, 6, seed=13)
    flat[1] = 2.0  # one token with all features alike
    return [
        (random(6, 6, seed=14) + 3, gain, shift, 1e-5),
        (random(2, 3, 6, seed=15), gain, shift, 0.5),
        (flat, gain, shift, 1e-5),
        ((300 + 200 * random(3, 6, seed=16)).half(), gain.half(), shift.half(), 1e-5),
        (random(3, 6, seed=17).half(), gain, shift, 1e-5),  # x alone is half
    ]


def _norm(axis=-1, centre=True, correction=0, root=None, early=True, gain=True, shift=True, back=True):
    """The right answer, or one that differs in one of these."""
    root = root or (lambda variance, eps: (variance + eps).sqrt())

    def safe_layer_norm(x: Tensor, g: Tensor, b: Tensor, eps: float) -> Tensor:
        wide = x.float() if early else x
        dims = axis(x) if callable(axis) else axis
        centred = wide - wide.mean(dims, keepdim=True)
        count = centred.numel() // centred.sum(dims, keepdim=True).numel()
        variance = centred.square().sum(dims, keepdim=True) / max(count - correction, 1)
        result = (centred if centre else wide) / root(variance, eps)
        result = (result * g if gain else result) + (b if shift else 0.0)
        return result.to(x.dtype) if back else result

    return safe_layer_norm


LAYER_NORM = Exercise(
    "safe_layer_norm",
    reference=lambda x, g, b, eps: F.layer_norm(x.float(), x.shape[-1:], g.float(), b.float(), eps).to(x.dtype),
    cases=_norm_cases,
    normal=lambda arguments, y: (y, torch.tensor(float(y.dtype == arguments[0].dtype))) if isinstance(y, Tensor) else y,
    mistakes=(
        Mistake("unbiased", "The squares are divided by n - 1. LayerNorm divides by n: mind what `var` and `std` do "
                "unless they are told otherwise.", _norm(correction=1)),
        Mistake("eps-beside-the-root", "ε stands beside the root. It belongs under it: √(variance + ε).",
                _norm(root=lambda v, eps: v.sqrt() + eps)),
        Mistake("unbiased-and-eps-beside", "Two things: the squares are divided by n - 1 instead of n, and ε stands "
                "beside the root instead of under it.", _norm(correction=1, root=lambda v, eps: v.sqrt() + eps)),
        Mistake("no-eps", "A token whose features are all alike gives NaN: ε is missing.",
                _norm(root=lambda v, eps: v.sqrt())),
        Mistake("variance-not-root", "It is divided by the variance, not by its root.",
                _norm(root=lambda v, eps: v + eps)),
        Mistake("not-centred", "The mean is not subtracted.", _norm(centre=False)),
        Mistake("over-tokens", "The statistics run over the tokens: each feature is normalised, not each token. That "
                "is BatchNorm's axis.", _norm(axis=-2)),
        Mistake("over-everything", "One mean and one variance for the whole tensor. Each token has its own.",
                _norm(axis=lambda x: tuple(range(x.dim())))),
        Mistake("no-gain", "The gain is missing.", _norm(gain=False)),
        Mistake("no-shift", "The shift is missing.", _norm(shift=False)),
        Mistake("neither-gain-nor-shift", "Gain and shift are missing.", _norm(gain=False, shift=False)),
        Mistake("not-cast-back", "The numbers are right, but in float32: the result has the dtype of x.",
                _norm(back=False)),
        Mistake("cast-back-too-early", "Gain and shift come after the cast, and make float32 of a half x again: cast "
                "last.",
                lambda x, g, b, eps: _norm(gain=False, shift=False)(x, g, b, eps) * g + b),
        Mistake("half-overflow", "Right in float32. In half precision the squares do not fit: take the statistics in "
                "float32.", _norm(early=False, back=False)),
    ),
)  # fmt: skip


# --- the decoder layer


def _decoder_cases() -> list[tuple]:
    x, memory = random(2, 3, 6, seed=21), random(2, 4, 6, seed=22)
    mix, look, net = (random(6, 6, seed=seed) / 2 for seed in (23, 24, 25))

    def attend(h: Tensor, seen: Tensor, matrix: Tensor) -> Tensor:
        return (h @ seen.transpose(-2, -1)).softmax(-1) @ seen @ matrix

    norms = [lambda h, g=gain: g * F.layer_norm(h, h.shape[-1:]) for gain in (0.5, 1.0, 2.0)]
    functions = (lambda h: attend(h, h, mix), lambda h, m: attend(h, m, look), lambda h: (h @ net).relu() - h / 3)
    return [(x, memory, *functions, norms), (x[:1, :1], memory[:1], *functions, norms[::-1])]


def _decoder(join=None, order=(0, 1, 2), norm_order=(0, 1, 2), cross=None, from_start=False):
    """The right answer, or one that joins, orders or looks in another way."""
    join = join or (lambda x, part, norm: norm(x + part(x)))
    cross = cross or (lambda attend, h, memory: attend(h, memory))

    def decoder_block(x, memory, self_attend, cross_attend, feed_forward, norms):
        parts = [self_attend, lambda h: cross(cross_attend, h, memory), feed_forward]
        state = x
        for number, place in zip(order, norm_order, strict=True):
            part, norm = parts[number], norms[place]
            state = norm(x + part(state)) if from_start else join(state, part, norm)
        return state

    return decoder_block


def _decoder_second_from_start(x, memory, self_attend, cross_attend, feed_forward, norms):
    state = norms[0](x + self_attend(x))
    state = norms[1](x + cross_attend(state, memory))
    return norms[2](state + feed_forward(state))


def _decoder_reads_the_start(x, memory, self_attend, cross_attend, feed_forward, norms):
    state = norms[0](x + self_attend(x))
    state = norms[1](state + cross_attend(x, memory))
    return norms[2](state + feed_forward(x))


DECODER = Exercise(
    "decoder_block",
    reference=_decoder(),
    cases=_decoder_cases,
    mistakes=(
        Mistake("pre-norm", "This is pre-norm: the norm stands before the part. The paper's stands after the addition.",
                _decoder(join=lambda x, part, norm: x + part(norm(x)))),
        Mistake("no-residual", "The residual connections are missing: what goes into a part is to be added to what "
                "comes out.", _decoder(join=lambda x, part, norm: norm(part(x)))),
        Mistake("norm-of-the-part", "Only the part's output is normalised, then x is added. The norm belongs around "
                "the sum.", _decoder(join=lambda x, part, norm: x + norm(part(x)))),
        Mistake("no-norm", "The norms are missing.", _decoder(join=lambda x, part, norm: x + part(x))),
        Mistake("residual-from-the-start", "Every time the layer's own input is added. Each part adds to what the part "
                "before it made.", _decoder(from_start=True)),
        Mistake("second-residual-from-the-start", "Cross-attention's output is added to the layer's own input. It "
                "belongs to what self-attention made.", _decoder_second_from_start),
        Mistake("parts-read-the-old-input", "The second and third part read the layer's own input. They must read what "
                "the part before them made.", _decoder_reads_the_start),
        Mistake("last-norm-missing", "The last norm is missing.",
                lambda *i: _decoder()(*i[:-1], [*i[-1][:2], lambda h: h])),
        Mistake("cross-first", "The decoder looks at the memory first. Self-attention comes first.",
                _decoder(order=(1, 0, 2))),
        Mistake("network-in-the-middle", "The feed-forward network comes last.", _decoder(order=(0, 2, 1))),
        Mistake("no-cross-attention", "It never looks at the memory.", _decoder(order=(0, 2), norm_order=(0, 2))),
        Mistake("no-cross-attention-next-norm", "It never looks at the memory, and the network takes the norm meant "
                "for that.", _decoder(order=(0, 2), norm_order=(0, 1))),
        Mistake("cross-looks-at-itself", "Cross-attention is given the decoder's own vectors as memory.",
                _decoder(cross=lambda attend, h, memory: attend(h, h))),
        Mistake("one-norm-for-all", "The same norm is used three times. Each part has its own.",
                _decoder(norm_order=(0, 0, 0))),
    ),
)  # fmt: skip
