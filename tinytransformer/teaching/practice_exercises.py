"""Exercises of lesson 12 about practice: attention in blocks, numbers of eight bits, another library's order."""

from collections.abc import Callable

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- two blocks of keys, seen one after the other

Part = tuple[Tensor, Tensor, Tensor]


def _merge(top_1: Tensor, total_1: Tensor, output_1: Tensor, top_2: Tensor, total_2: Tensor, output_2: Tensor) -> Part:
    top = torch.maximum(top_1, top_2)
    first, second = total_1 * (top_1 - top).exp(), total_2 * (top_2 - top).exp()
    total = first + second
    return top, total, (first[..., None] * output_1 + second[..., None] * output_2) / total[..., None]


def _mixed(weigh: Callable[..., tuple[Tensor, Tensor]]) -> Callable:
    """The right maximum and sum, and outputs mixed by other weights."""

    def merge(top_1, total_1, output_1, top_2, total_2, output_2):
        top, total, _ = _merge(top_1, total_1, output_1, top_2, total_2, output_2)
        first, second = weigh(top_1, total_1, top_2, total_2)
        whole = (first + second)[..., None]
        return top, total, (first[..., None] * output_1 + second[..., None] * output_2) / whole

    return merge


def _totals_added(top_1, total_1, output_1, top_2, total_2, output_2):
    top, total = torch.maximum(top_1, top_2), total_1 + total_2
    return top, total, (total_1[..., None] * output_1 + total_2[..., None] * output_2) / total[..., None]


def _not_divided(*parts):
    top, total, output = _merge(*parts)
    return top, total, output * total[..., None]


def _divided_again(top_1, total_1, output_1, top_2, total_2, output_2):
    """Outputs taken for sums of exponentials times values, which they are not any more."""
    top, total, _ = _merge(top_1, total_1, output_1, top_2, total_2, output_2)
    first, second = (top_1 - top).exp(), (top_2 - top).exp()
    return top, total, (first[..., None] * output_1 + second[..., None] * output_2) / total[..., None]


def _top_of_first(top_1, total_1, output_1, top_2, total_2, output_2):
    """Right on paper; exp overflows when the second block has the larger scores."""
    first, second = total_1, total_2 * (top_2 - top_1).exp()
    total = first + second
    return top_1, total, (first[..., None] * output_1 + second[..., None] * output_2) / total[..., None]


def _without_tops(top_1, total_1, output_1, top_2, total_2, output_2):
    first, second = total_1 * top_1.exp(), total_2 * top_2.exp()
    top, total = torch.maximum(top_1, top_2), first + second
    return top, total, (first[..., None] * output_1 + second[..., None] * output_2) / total[..., None]


def _part(scores: Tensor, values: Tensor) -> Part:
    top = scores.amax(-1)
    total = (scores - top[..., None]).exp().sum(-1)
    return top, total, scores.softmax(-1) @ values


def _blocks() -> list[tuple]:
    cases = []
    for seed, (queries, first, second, d, lift) in enumerate(
        [(3, 4, 2, 5, 0.0), (2, 1, 6, 3, 2.0), (4, 3, 3, 2, 300.0)]
    ):
        one = _part(random(queries, first, seed=seed), random(first, d, seed=seed + 10))
        two = _part(random(queries, second, seed=seed + 20) + lift, random(second, d, seed=seed + 30))
        cases += [(*one, *two), (*two, *one)]
    return cases


MERGE = Exercise(
    "merge_blocks",
    reference=_merge,
    cases=_blocks,
    mistakes=(
        Mistake("totals-added", "The sums were taken over different maxima. Bring both to the common one before you "
                "add them.", _totals_added),
        Mistake("mean-of-outputs", "The outputs are averaged. A block with more weight in it counts for more.",
                _mixed(lambda top_1, total_1, top_2, total_2: (torch.ones_like(top_1), torch.ones_like(top_2)))),
        Mistake("weights-not-rescaled", "The outputs are weighed by the sums as they came, each over its own maximum.",
                _mixed(lambda top_1, total_1, top_2, total_2: (total_1, total_2))),
        Mistake("totals-forgotten", "The outputs are weighed by their maxima alone. A block's weight is its whole sum.",
                _mixed(lambda top_1, total_1, top_2, total_2: tuple(torch.stack([top_1, top_2]).softmax(0)))),
        Mistake("not-divided", "The output is a sum of exponentials times values. Divide it by their sum.",
                _not_divided),
        Mistake("divided-twice", "Each block's output is divided by its sum already: multiply it back before you add.",
                _divided_again),
        Mistake("top-of-first", "The maximum is that of the first block. Where the second is larger, exp overflows.",
                _top_of_first),
        Mistake("tops-kept-in", "The sum still holds exp of the maxima. For scores of some hundred that is infinite.",
                _without_tops),
    ),
)  # fmt: skip


# --- eight bits

LARGEST = 127


def _int8(
    matrix: Tensor,
    largest: Callable = lambda matrix: matrix.abs().amax(-1),
    steps: int = LARGEST,
    to_whole: Callable = torch.round,
    kind: torch.dtype = torch.int8,
) -> tuple[Tensor, Tensor]:
    scales = largest(matrix) / steps
    scales = torch.where(scales == 0, 1.0, scales).expand(matrix.size(0)).clone()
    return to_whole(matrix / scales[:, None]).to(kind), scales


def _by_columns(matrix: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scales = _int8(matrix.T)
    return numbers.T, scales


def _zeros_divided(matrix: Tensor) -> tuple[Tensor, Tensor]:
    scales = matrix.abs().amax(-1) / LARGEST
    return (matrix / scales[:, None]).nan_to_num().round().to(torch.int8), scales


def _inverted(matrix: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scales = _int8(matrix)
    return numbers, 1 / scales


def _restored(matrix: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scales = _int8(matrix)
    return numbers * scales[:, None], scales


def _wrapped(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """127.5 of 128 steps round to 128, which a signed byte does not have: it comes out as -128."""
    numbers, scales = _int8(matrix, steps=128, kind=torch.int64)
    return torch.where(numbers > LARGEST, numbers - 256, numbers).to(torch.int8), scales


def _signed(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Without the size, a row's most negative number may be far outside."""
    numbers, scales = _int8(matrix, lambda m: m.amax(-1), kind=torch.int64)
    return numbers.to(torch.int8), scales


def _with_type(arguments: tuple, answer: object) -> object:
    """Which type the numbers have is part of the answer; values alone would not tell."""
    two = isinstance(answer, tuple | list) and len(answer) == 2 and isinstance(answer[0], Tensor)
    return (*answer, int(answer[0].dtype == torch.int8)) if two else answer


INT8 = Exercise(
    "int8_rows",
    reference=_int8,
    cases=lambda: [
        (random(4, 6, seed=1),),
        (random(3, 5, seed=2) * torch.tensor([[0.01], [1.0], [50.0]]),),
        (torch.tensor([[0.0, 0.0], [3.0, -1.0], [-2.0, 1.0]]),),
        (-random(2, 4, seed=3).abs(),),
    ],
    mistakes=(
        Mistake("one-scale", "One scale for the whole matrix: a row of small numbers loses almost all of its digits.",
                lambda matrix: _int8(matrix, lambda m: m.abs().max()[None])),
        Mistake("columns", "The scales are those of the columns.", _by_columns),
        Mistake("signed-maximum", "The largest number of a row may be a negative one: it is the size that counts.",
                lambda matrix: _int8(matrix, lambda m: m.amax(-1), to_whole=lambda x: x.round().clamp(-128, 127))),
        Mistake("signed-and-wrapped", "The largest number of a row may be a negative one: it is the size that counts. "
                "Here some leave the range of a signed byte, and come out with the other sign.", _signed),
        Mistake("scales-in-a-column", "There is one scale for each row: return them as (n), without a second axis.",
                lambda matrix: (_int8(matrix)[0], _int8(matrix)[1][:, None])),
        Mistake("128-steps", "A signed byte ends at 127. 128 comes out as -128.", _wrapped),
        Mistake("128-clamped", "The largest number becomes 128 and is cut off. With 127 steps nothing is cut.",
                lambda matrix: _int8(matrix, steps=128, to_whole=lambda x: x.round().clamp(-128, 127))),
        Mistake("255-steps", "255 steps are those of a byte without a sign.",
                lambda matrix: _int8(matrix, steps=255, to_whole=lambda x: x.round().clamp(-128, 127))),
        Mistake("truncated", "The numbers are cut off towards zero: round them first.",
                lambda matrix: _int8(matrix, to_whole=torch.trunc)),
        Mistake("rounded-down", "The numbers are rounded down. The nearest whole number is wanted.",
                lambda matrix: _int8(matrix, to_whole=torch.floor)),
        Mistake("not-int8", "The numbers are whole, but not of the type torch.int8: nothing is saved yet.",
                lambda matrix: _int8(matrix, kind=torch.float32)),
        Mistake("zero-scale", "A row of zeros has the scale 0. Let it have 1, so that nobody divides by zero.",
                _zeros_divided),
        Mistake("inverted", "The scale is upside down: number times scale shall give the weight.", _inverted),
        Mistake("restored", "These are weights again. Wanted are the whole numbers.", _restored),
    ),
    normal=_with_type,
)  # fmt: skip


# --- sines first, then cosines


def _halves(d_model: int) -> list[int]:
    return [*range(0, d_model, 2), *range(1, d_model, 2)]


def _inverse(d_model: int) -> list[int]:
    return [place // 2 + (place % 2) * (d_model // 2) for place in range(d_model)]


HALVES = Exercise(
    "marian_order",
    reference=_halves,
    cases=lambda: [(4,), (8,), (6,), (512,)],
    mistakes=(
        Mistake("inverse", "This is the way back: where each of our features goes. Asked is where each of theirs comes "
                "from.", _inverse),
        Mistake("cosines-first", "The sines come first.", lambda d: [*range(1, d, 2), *range(0, d, 2)]),
        Mistake("unchanged", "Nothing is moved. In our table sines and cosines take turns.", lambda d: list(range(d))),
        Mistake("from-one", "Features are numbered from 0.", lambda d: [place + 1 for place in _halves(d)]),
        Mistake("halves-in-turns", "The upper half follows the lower in turns. That would be right if ours were "
                "the one in halves and theirs took turns.",
                lambda d: [place for pair in zip(range(d // 2, d), range(d // 2), strict=True) for place in pair]),
        Mistake("sines-twice", "Each feature comes once. Yours are the sines, twice.",
                lambda d: [*range(0, d, 2), *range(0, d, 2)]),
    ),
)  # fmt: skip
