"""Tasks of assignment 2 about positions: sinusoids for padded batches, and rotary scores at any positions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, Run, Symptom, agree, random
from tinytransformer.teaching.grading.tasks import Case, Task


def _frequencies(width: int, exponent: int = 2) -> Tensor:
    return 1e4 ** (-exponent * torch.arange(width // 2).double() / width)


# --- sinusoids for a padded batch


def _waves(places: Tensor, d_model: int, exponent: int = 2) -> Tensor:
    """Any positions (…) to their sinusoids (…, d_model)."""
    angles = places.double().unsqueeze(-1) * _frequencies(d_model, exponent)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


def _padded(ids: Tensor, pad_id: int, d_model: int, count=None, waves=_waves, keep: bool = False) -> Tensor:
    real = ids != pad_id
    places = real.long().cumsum(dim=1) - 1 if count is None else count(real)
    rows = waves(places, d_model)
    return rows if keep else rows * real.unsqueeze(-1)


def _halves(places: Tensor, d_model: int) -> Tensor:
    rows = _waves(places, d_model)
    return torch.cat([rows[..., 0::2], rows[..., 1::2]], dim=-1)


def _swapped(places: Tensor, d_model: int) -> Tensor:
    return _waves(places, d_model).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


def _from_the_first_word(real: Tensor) -> Tensor:
    return torch.arange(real.size(1)) - real.long().argmax(dim=1, keepdim=True)


def _own_exponents(places: Tensor, d_model: int) -> Tensor:
    dimensions = torch.arange(d_model)
    angles = places.double().unsqueeze(-1) * 1e4 ** (-dimensions.double() / d_model)
    return torch.where(dimensions % 2 == 0, angles.sin(), angles.cos()).float()


def _only_padding_is_wrong(runs: Sequence[Run]) -> bool:
    """Whether all rows of words are right."""
    if not all(isinstance(run.got, Tensor) and run.got.shape == run.wanted.shape for run in runs):
        return False
    return all(agree(run.got * (run.arguments[0] != run.arguments[1]).unsqueeze(-1), run.wanted) for run in runs)


def _padded_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    length, half = (5 + int(number) for number in torch.randint(0, 5, (2,), generator=dice))
    full, front, behind, both = (torch.randint(8, 30, (2, length), generator=dice) for _ in range(4))
    front[0, : 2 + half % 2] = 0
    behind[1, 2:] = 0
    both[0, 1], both[1, 0], both[1, -1] = 7, 7, 7
    both[:, 2] = 0  # a word, for the padding is 7 here
    return [
        Case("no padding", (full, 0, 2 * half)),
        Case("padding in front", (front, 0, 2 * half - 2)),
        Case("padding behind", (behind, 0, 2 * half + 2)),
        Case("padding between words, with another id", (both, 7, 6)),
        Case("one token, two features", (full[:, :1], 0, 2)),
    ]


PADDED = Task(
    Exercise(
        "padded_positions",
        reference=_padded,
        cases=lambda: [
            (torch.tensor([[0, 0, 5, 6, 7], [8, 9, 4, 0, 0]]), 0, 6),
            (torch.tensor([[5, 1, 0, 6]]), 1, 4),
            (torch.tensor([[0, 0, 5, 6]]), 0, 2),
        ],
        mistakes=(
            Mistake("places-counted", "Padding is counted: a word gets the position of its place in the row, not of "
                    "its place among the words.",
                    lambda *i: _padded(*i, count=lambda real: torch.arange(real.size(1)).expand(real.shape))),
            Mistake("counted-from-one", "The first word stands at position 0, not at 1.",
                    lambda *i: _padded(*i, count=lambda real: real.long().cumsum(dim=1))),
            Mistake("padding-not-zero", "The words are right. Padding was to get zeros; yours gets a "
                    "position.", lambda *i: _padded(*i, keep=True)),
            Mistake("padding-takes-the-next", "The words are right. Padding was to get zeros; yours gets the position "
                    "of the word after it.",
                    lambda *i: _padded(*i, keep=True, count=lambda real: real.long().cumsum(dim=1) - real.long())),
            Mistake("padding-at-the-start", "The words are right. Padding was to get zeros; yours gets the row of "
                    "position 0, in which every cosine is 1.",
                    lambda *i: _padded(*i, keep=True, count=lambda real: (real.long().cumsum(dim=1) - 1) * real)),
            Mistake("from-the-first-word", "Positions are counted from the first word on, and padding between words is "
                    "counted, too.", lambda *i: _padded(*i, count=_from_the_first_word)),
            Mistake("swapped", "Sine and cosine are exchanged: even dimensions hold sines.",
                    lambda *i: _padded(*i, waves=_swapped)),
            Mistake("half-split", "First all sines, then all cosines. Here they alternate: dimensions 2i and 2i + 1 "
                    "are a pair.", lambda *i: _padded(*i, waves=_halves)),
            Mistake("own-exponent", "Each dimension has an exponent of its own. Dimensions 2i and 2i + 1 share 2i.",
                    lambda *i: _padded(*i, waves=_own_exponents)),
            Mistake("exponent-i", "The exponent is i / d_model. It is 2i / d_model, so that it runs up to nearly 1.",
                    lambda *i: _padded(*i, waves=lambda places, d: _waves(places, d, exponent=1))),
        ),
        symptoms=(
            Symptom("padding-has-a-position", _only_padding_is_wrong,
                    lambda run: "The words are right. Padding was to get zeros; yours gets something else."),
        ),
    ),
    points=12,
    minutes=20,
    hidden=_padded_hidden,
)  # fmt: skip


# --- rotary scores


def _turned(x: Tensor, positions: Tensor, exponent: int = 2, sign: int = 1) -> Tensor:
    """Features i and i + d / 2 turned by the angle of their position."""
    angles = sign * positions.double()[:, None] * _frequencies(x.size(-1), exponent)
    sine, cosine = angles.sin().float(), angles.cos().float()
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)


def _neighbours(x: Tensor, positions: Tensor) -> Tensor:
    apart = torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)
    return _turned(apart, positions).unflatten(-1, (2, -1)).transpose(-2, -1).flatten(-2)


def _mixed_layouts(x: Tensor, positions: Tensor) -> Tensor:
    """Halves are paired, but each angle stands twice in a row, as it does where neighbours are paired."""
    angles = positions.double()[:, None] * _frequencies(x.size(-1)).repeat_interleave(2)
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos().float() + torch.cat([-second, first], dim=-1) * angles.sin().float()


def _by_hand() -> tuple:
    """The example of the task's text: one query, and both of its keys."""
    query, key = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    return query, key, torch.tensor([6]), torch.tensor([5, 5])


def _rotary(query, key, query_positions, key_positions, turn=_turned, turn_key=None, scale=None) -> Tensor:
    q, k = turn(query, query_positions), (turn_key or turn)(key, key_positions)
    return q @ k.mT * (query.size(-1) ** -0.5 if scale is None else scale)


def _rotary_case(batch: int, heads: int, size: int, queries: list[int], keys: list[int], seed: int) -> tuple:
    shapes = ((batch, heads, len(queries), size), (batch, heads, len(keys), size))
    return (
        *(random(*shape, seed=seed + i) for i, shape in enumerate(shapes)),
        torch.tensor(queries),
        torch.tensor(keys),
    )


def _rotary_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    length, start, size = (int(torch.randint(*limits, (), generator=dice)) for limits in ((4, 8), (3, 40), (2, 6)))
    shuffled = (3 * torch.randperm(length, generator=dice) + 2).tolist()
    here = list(range(length))
    return [
        Case("words of one sentence", _rotary_case(2, 3, 2 * size, here, here, seed)),
        Case("a new word looks back", _rotary_case(2, 2, 2 * size, [length + 2], list(range(length + 3)), seed + 2)),
        Case("positions far out",
             _rotary_case(1, 2, 2 * size, [start + place for place in here], [start + 1, start + 5], seed + 4)),
        Case("positions in any order", _rotary_case(2, 1, 2 * size, shuffled, here[:-1], seed + 6)),
        Case("two features", _rotary_case(1, 2, 2, [start, 1], [0, 1, 2], seed + 8)),
    ]  # fmt: skip


ROTARY = Task(
    Exercise(
        "rotary_scores",
        reference=_rotary,
        cases=lambda: [
            _rotary_case(1, 2, 4, [0, 1, 2], [0, 1, 2], 1),
            _rotary_case(2, 1, 6, [5, 6], [0, 3, 4, 5, 6], 3),
            _rotary_case(1, 1, 2, [9, 2], [4, 1, 0], 5),
            _by_hand(),
        ],
        mistakes=(
            Mistake("neighbours", "Features 2i and 2i + 1 are turned together, as in the lesson. Here a pair is "
                    "feature i and feature i + d / 2.", lambda *i: _rotary(*i, turn=_neighbours)),
            Mistake("keys-not-turned", "The keys are not turned: a score then depends on where the query stands, not "
                    "on the distance.", lambda *i: _rotary(*i, turn_key=lambda x, positions: x)),
            Mistake("opposite-ways", "Queries turn one way and keys the other: a score depends on the sum of the two "
                    "positions. It was to depend on their difference.",
                    lambda *i: _rotary(*i, turn_key=lambda x, positions: _turned(x, positions, sign=-1))),
            Mistake("turned-backwards", "Queries and keys turn the wrong way. Scores depend on it: who stands before "
                    "whom is exchanged.",
                    lambda *i: _rotary(*i, turn=lambda x, positions: _turned(x, positions, sign=-1))),
            Mistake("mixed-layouts", "Features are paired as asked, but each angle stands at two neighbours, as in the "
                    "other layout: the two features of a pair turn by different angles.",
                    lambda *i: _rotary(*i, turn=_mixed_layouts)),
            Mistake("no-scale", "The scale is missing.", lambda *i: _rotary(*i, scale=1.0)),
            Mistake("exponent-i", "The later pairs turn too fast: the exponent is 2i / d.",
                    lambda *i: _rotary(*i, turn=lambda x, positions: _turned(x, positions, exponent=1))),
            Mistake("places-counted", "Positions are counted from 0 on both sides. They are given: use them.",
                    lambda q, k, *i: _rotary(q, k, torch.arange(q.size(2)), torch.arange(k.size(2)))),
            Mistake("not-turned", "Nothing is turned: these are scores without positions.",
                    lambda *i: _rotary(*i, turn=lambda x, positions: x)),
        ),
    ),
    points=13,
    minutes=25,
    hidden=_rotary_hidden,
)  # fmt: skip
