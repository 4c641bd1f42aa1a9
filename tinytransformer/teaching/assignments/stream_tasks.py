"""A task of assignment 1 about long sentences: attention that meets its keys chunk by chunk."""

import math

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task


def _absorb(state, query, key, value, mask, scale=None, best=None, again=None, count=None) -> tuple[Tensor, ...]:
    top, total, mixture = state
    scores = query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale)
    allowed = scores.masked_fill(~mask, -torch.inf)
    new = torch.maximum(top, allowed.amax(dim=-1)) if best is None else best(top, scores, allowed)
    level = new.masked_fill(new == -torch.inf, 0.0)  # a row that saw nothing: any number will do
    old = (top - level).exp()
    of_total, of_mixture = (old, old) if again is None else again(old)
    parts = ((allowed if count is None else count(scores, allowed)) - level[:, None]).exp()
    return new, of_total * total + parts.sum(dim=-1), of_mixture[:, None] * mixture + parts @ value


def _blank_rows_are_nan(state, query, key, value, mask) -> tuple[Tensor, ...]:
    top, total, mixture = state
    scores = (query @ key.mT * query.size(-1) ** -0.5).masked_fill(~mask, -torch.inf)
    new = torch.maximum(top, scores.amax(dim=-1))
    old, parts = (top - new).exp(), (scores - new[:, None]).exp()
    return new, old * total + parts.sum(dim=-1), old[:, None] * mixture + parts @ value


def _from_its_own_top(state, query, key, value, mask) -> tuple[Tensor, ...]:
    """What was there is brought to the new top, the chunk is measured from its own."""
    top, total, mixture = state
    scores = (query @ key.mT * query.size(-1) ** -0.5).masked_fill(~mask, -torch.inf)
    highest = scores.amax(dim=-1)
    new = torch.maximum(top, highest)
    level, own = (number.masked_fill(number == -torch.inf, 0.0) for number in (new, highest))
    old, parts = (top - level).exp(), (scores - own[:, None]).exp()
    return new, old * total + parts.sum(dim=-1), old[:, None] * mixture + parts @ value


def _nothing_subtracted(state, query, key, value, mask) -> tuple[Tensor, ...]:
    top, total, mixture = state
    scores = (query @ key.mT * query.size(-1) ** -0.5).masked_fill(~mask, -torch.inf)
    parts = scores.exp()
    return torch.maximum(top, scores.amax(dim=-1)), total + parts.sum(dim=-1), mixture + parts @ value


def _large_and_negative(state, query, key, value, mask) -> tuple[Tensor, ...]:
    """Forbidden keys get a score of -1e9, so that a row that sees nothing shares its weight among them."""
    top, total, mixture = state
    scores = (query @ key.mT * query.size(-1) ** -0.5).masked_fill(~mask, -1e9)
    new = torch.maximum(top, scores.amax(dim=-1))
    old, parts = (top - new).exp(), (scores - new[:, None]).exp()
    return new, old * total + parts.sum(dim=-1), old[:, None] * mixture + parts @ value


def _divided(*arguments) -> tuple[Tensor, ...]:
    top, total, mixture = _absorb(*arguments)
    return top, total, mixture / total[:, None]


def _start(queries: int, d_v: int) -> tuple[Tensor, Tensor, Tensor]:
    return torch.full((queries,), -torch.inf), torch.zeros(queries), torch.zeros(queries, d_v)


def _chunk(queries: int, keys: int, d_k: int, d_v: int, seed: int, spread: float = 1.5) -> list[Tensor]:
    shapes = ((queries, d_k), (keys, d_k), (keys, d_v))
    inputs = [random(*shape, seed=seed + i, spread=spread if i < 2 else 1.0) for i, shape in enumerate(shapes)]
    mask = torch.rand(queries, keys, generator=torch.Generator().manual_seed(seed + 3)) < 0.6
    return [*inputs, mask]


def _later_case(queries: int, keys: int, d_k: int, d_v: int, seed: int, spread: float = 1.5) -> tuple:
    """A second chunk: row 0 sees nothing in it, row 1 saw nothing before it, row 2 never sees anything, for row 3 the
    best key comes last, and for row 4 it came first, in the chunk before."""
    before, now = _chunk(queries, keys + 1, d_k, d_v, seed, spread), _chunk(queries, keys, d_k, d_v, seed + 5, spread)
    before[3][1:3], now[3][0], now[3][2] = False, False, False
    before[3][0, 0], now[3][1, 0], before[3][3:, 1], now[3][3:, -1] = True, True, True, True
    before[3][3, 0], before[3][4, 0], now[3][4, 0], now[3][4, -1] = False, True, True, False

    def above(row: int, others: Tensor, seen: Tensor) -> Tensor:
        """A key whose score with this row's query is higher than those of the others that it sees."""
        query = now[0][row]
        most = (others @ query / d_k**0.5)[seen].max()
        return query * (most.clamp(min=0) + 2) * d_k**0.5 / query.square().sum()

    before[1][0] = above(4, now[1][:-1], now[3][4, :-1])
    now[1][-1] = above(3, before[1], before[3][3])
    return (_absorb(_start(queries, d_v), now[0], *before[1:]), *now)


def _by_hand(score: float) -> tuple:
    """The example of the task's text: one key of score 0 and value 4 was there, one of value 1 arrives."""
    state = torch.zeros(1), torch.ones(1), torch.full((1, 1), 4.0)
    return state, torch.ones(1, 1), torch.full((1, 1), score), torch.ones(1, 1), torch.ones(1, 1, dtype=torch.bool)


def _absorb_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    queries, keys, d_k, d_v = (int(size) for size in torch.randperm(5, generator=dice)[:4] + 5)
    first = _chunk(queries, keys, d_k, d_v, seed)
    first[3][:] = True
    return [
        Case("the first chunk, nothing hidden", (_start(queries, d_v), *first)),
        Case("the first chunk, with rows that see nothing", (_start(queries, d_v), *_later_case(
            queries, keys, d_k, d_v, seed + 10)[1:])),
        Case("a later chunk", _later_case(queries, keys, d_k, d_v, seed + 20)),
        Case("a later chunk with as many keys as queries", _later_case(keys, keys, d_k, d_v, seed + 40)),
        Case("scores whose exponentials do not fit", _later_case(queries, keys, d_k, d_v, seed + 60, spread=7.0)),
    ]  # fmt: skip


ABSORB = Task(
    Exercise(
        "absorb",
        reference=_absorb,
        cases=lambda: [
            (_start(4, 2), *_chunk(4, 3, 5, 2, seed=70)[:3], torch.ones(4, 3, dtype=torch.bool)),
            _later_case(5, 4, 3, 2, seed=80),
            _later_case(5, 5, 4, 3, seed=90, spread=7.0),
            _by_hand(math.log(2)),
            _by_hand(-math.log(2)),
        ],
        mistakes=(
            Mistake("from-its-own-top", "The new chunk is measured from its own top. Where the old top is higher, new "
                    "keys must be measured from that one and count less.", _from_its_own_top),
            Mistake("not-rescaled", "What was gathered before is still measured from its old top. When the top rises, "
                    "old parts must shrink.", lambda *i: _absorb(*i, again=lambda old: (old**0, old**0))),
            Mistake("mixture-not-rescaled", "The total is brought to the new top, the mixture is not.",
                    lambda *i: _absorb(*i, again=lambda old: (old, old**0))),
            Mistake("nan-rows", "A row that has seen nothing becomes NaN: −∞ minus −∞ is not a number.",
                    _blank_rows_are_nan),
            Mistake("nothing-subtracted", "These are exponentials of the scores themselves. Total and mixture are "
                    "measured from the top, and large scores do not fit otherwise.", _nothing_subtracted),
            Mistake("large-and-negative", "A row that sees nothing shares its weight among forbidden keys: a large "
                    "negative number is still a score.", _large_and_negative),
            Mistake("forgets-the-old-top", "The top is that of the new chunk alone. It may be lower than one seen "
                    "before.",
                    lambda *i: _absorb(*i, best=lambda top, scores, allowed: allowed.amax(dim=-1))),
            Mistake("top-of-the-forbidden", "Forbidden keys take part in the top.",
                    lambda *i: _absorb(*i, best=lambda top, scores, allowed: torch.maximum(top, scores.amax(dim=-1)))),
            Mistake("no-scale", "The scores are used as they are: the scale is missing.",
                    lambda *i: _absorb(*i, scale=1.0)),
            Mistake("divided", "The mixture is divided by the total already. That is done once, after the last chunk.",
                    _divided),
        ),
    ),
    points=16,
    minutes=30,
    hidden=_absorb_hidden,
)  # fmt: skip
