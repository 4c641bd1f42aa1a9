"""Exercises of lesson 05 about rotary positions, and about models that do not see order."""

from collections.abc import Callable

import torch
from torch import Tensor

from tinytransformer.model.masks import causal_mask
from tinytransformer.model.positions import sinusoids
from tinytransformer.teaching.exercises import Exercise, Mistake, Symptom, agree, random

# --- rotary positions


def _rotate_cases() -> list[tuple]:
    return [(random(*shape, seed=200 + offset), offset) for shape, offset in (((2, 3, 5, 8), 0), ((1, 2, 4, 6), 9))]


def _rotate(
    heads: Tensor, offset: int, sign: float = 1.0, exponent: int = 2, positions: Tensor | None = None
) -> Tensor:
    size = heads.size(-1)
    place = torch.arange(offset, offset + heads.size(-2)) if positions is None else positions
    angles = sign * place[:, None] * 1e4 ** (-exponent * torch.arange(size // 2) / size)
    pairs = torch.view_as_complex(heads.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def _swapped(heads: Tensor, offset: int) -> Tensor:
    """Sine where the cosine belongs, and the other way round."""
    size = heads.size(-1)
    angles = torch.arange(offset, offset + heads.size(-2))[:, None] * 1e4 ** (-2 * torch.arange(size // 2) / size)
    even, odd = heads[..., 0::2], heads[..., 1::2]
    return torch.stack(
        [even * angles.sin() - odd * angles.cos(), even * angles.cos() + odd * angles.sin()], -1
    ).flatten(-2)


def _split_in_halves(heads: Tensor) -> Tensor:
    """Feature i and feature i + d/2 as neighbours."""
    return heads.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)


def _joined_from_halves(heads: Tensor) -> Tensor:
    return torch.cat([heads[..., 0::2], heads[..., 1::2]], dim=-1)


def _overwritten(heads: Tensor, offset: int) -> Tensor:
    turned = _rotate(heads, offset)
    size = heads.size(-1)
    angles = torch.arange(offset, offset + heads.size(-2))[:, None] * 1e4 ** (-2 * torch.arange(size // 2) / size)
    odd = turned[..., 0::2] * angles.sin() + heads[..., 1::2] * angles.cos()
    return torch.stack([turned[..., 0::2], odd], dim=-1).flatten(-2)


ROTATE = Exercise(
    "rotate",
    reference=_rotate,
    cases=_rotate_cases,
    mistakes=(
        Mistake("half-split", "Feature i is turned together with feature i + d / 2. Here neighbours, 2i and 2i + 1, "
                "are a pair.", lambda heads, o: _joined_from_halves(_rotate(_split_in_halves(heads), o))),
        Mistake("not-interleaved-again", "The pairs are turned rightly, but the result has all even features first. "
                "Put them back where they were.", lambda heads, o: _joined_from_halves(_rotate(heads, o))),
        Mistake("backwards", "It turns the other way: the two signs of the sine are exchanged.",
                lambda heads, o: _rotate(heads, o, sign=-1.0)),
        Mistake("offset-ignored", "Right when the offset is 0. The first of these words stands at position `offset`.",
                lambda heads, o: _rotate(heads, 0)),
        Mistake("counted-from-one", "Every word is turned one place too far: positions are counted from 0.",
                lambda heads, o: _rotate(heads, o + 1)),
        Mistake("exponent-i", "The later pairs turn too fast: the exponent is 2i / d_k.",
                lambda heads, o: _rotate(heads, o, exponent=1)),
        Mistake("overwritten", "The odd features were computed from even ones that had been turned already: a slice is "
                "a view, and writing into the tensor changes it. Keep the old ones.", _overwritten),
        Mistake("not-turned", "Queries come back as they were.", lambda heads, o: heads),
        Mistake("swapped", "Sine and cosine are exchanged: at position 0 nothing may move.",
                _swapped),
        Mistake("added", "The sinusoids are added. Rotary positions turn the features instead.",
                lambda heads, o: heads + sinusoids(o + heads.size(-2), heads.size(-1))[o:]),
        Mistake("all-the-same-angle", "All words are turned by the same angle, so nothing tells them apart.",
                lambda heads, o: _rotate(heads, o, positions=torch.full((heads.size(-2),), o))),
    ),
)  # fmt: skip


# --- is a model blind to order?


def _models() -> list[Callable[[Tensor], Tensor]]:
    """Functions from ids (T) to outputs (T, features): blind ones, and ones that see order in several ways."""
    vectors = random(30, 8, seed=210)
    table = sinusoids(40, 8)

    def attending(x: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = x @ x.T / 8**0.5
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1) @ x

    return [
        lambda ids: attending(vectors[ids]),
        lambda ids: attending(vectors[ids] + table[: len(ids)]),
        lambda ids: attending(vectors[ids], causal_mask(len(ids))),
        lambda ids: vectors[ids],  # each word by itself
        lambda ids: vectors[ids].mean(dim=0).expand(len(ids), -1),  # the same for every word: a bag
        lambda ids: vectors[ids] + vectors[ids.roll(1)],  # adds the word before
        lambda ids: vectors[ids] + vectors[ids.roll(1)] + vectors[ids.roll(-1)],  # neighbours, both alike
        lambda ids: vectors[ids].flip(0),  # the words in reverse: only their sum is blind
    ]


def _blind(model: Callable[[Tensor], Tensor], ids: Tensor, orders=None) -> bool:
    """Shuffled words give shuffled outputs, for a few orders."""
    chance = torch.Generator().manual_seed(3)
    orders = [torch.randperm(len(ids), generator=chance) for _ in range(4)] if orders is None else orders(len(ids))
    return all(torch.allclose(model(ids[order]), model(ids)[order], atol=1e-5) for order in orders)


def _unchanged(model: Callable[[Tensor], Tensor], ids: Tensor) -> bool:
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(4))
    return bool(torch.allclose(model(ids[order]), model(ids), atol=1e-5))


def _summed(model: Callable[[Tensor], Tensor], ids: Tensor) -> bool:
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(4))
    return bool(torch.allclose(model(ids[order]).sum(dim=0), model(ids).sum(dim=0), atol=1e-4))


BLIND = Exercise(
    "order_blind",
    reference=_blind,
    cases=lambda: [(model, torch.tensor([5, 17, 2, 9, 23, 11, 8])) for model in _models()],
    mistakes=(
        Mistake("expects-the-same", "It expects the outputs to stay where they are. When words move, their outputs "
                "move with them: that is what blind means.", _unchanged),
        Mistake("reversal-only", "It tries only the reversed sentence: a model that looks at its two neighbours alike "
                "passes. Try another order.",
                lambda model, ids: _blind(model, ids, lambda n: [torch.arange(n).flip(0)])),
        Mistake("one-turn-only", "It tries only orders in which every word keeps its neighbours. Shuffle properly.",
                lambda model, ids: _blind(model, ids, lambda n: [torch.arange(n).roll(1)])),
        Mistake("sums-compared", "It compares sums over the words. Outputs must agree word by word.", _summed),
        Mistake("inverted", "True and False are exchanged: True says that the model does not see order.",
                lambda model, ids: not _blind(model, ids)),
        Mistake("always-true", "It calls every model blind that we tried.", lambda model, ids: True),
        Mistake("always-false", "It calls no model blind. Outputs of the same numbers in another order of sums differ "
                "in the last digits: compare with a tolerance.", lambda model, ids: False),
    ),
    symptoms=(
        Symptom("misses-order", lambda runs: any(agree(run.got, True) and not run.wanted for run in runs),
                lambda run: "It calls a model blind that sees order: try other orders, and compare word by word."),
        Symptom("too-strict", lambda runs: any(agree(run.got, False) and run.wanted for run in runs),
                lambda run: "It says of a blind model that it sees order. Sums in another order differ in the last "
                "digits: compare with a tolerance."),
    ),
)  # fmt: skip
