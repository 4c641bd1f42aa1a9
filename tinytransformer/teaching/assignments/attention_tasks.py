"""Tasks of assignment 1 about the formula itself: what weights tell about scores, and the way back through it."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task

# --- from weights back to dot products


def _gaps(weights: Tensor, d_k: int, scale=lambda d_k, keys: d_k**0.5, start=lambda logs: logs[..., :1]) -> Tensor:
    logs = weights.log()
    return (logs - start(logs)) * scale(d_k, weights.size(-1))


def _weights(*shape: int, seed: int) -> Tensor:
    return random(*shape, seed=seed, spread=1.5).softmax(dim=-1)


def _gaps_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    queries, keys = (int(size) for size in torch.randint(3, 7, (2,), generator=dice))
    d_k = 8 + int(torch.randint(0, 40, (), generator=dice))
    return [
        Case("a table of weights", (_weights(queries, keys, seed=seed), d_k)),
        Case("as many queries as keys", (_weights(keys, keys, seed=seed + 1), d_k + 1)),
        Case("sentences and heads before the table", (_weights(2, 3, queries, keys, seed=seed + 2), d_k + 2)),
        Case("keys of one feature", (_weights(queries, keys, seed=seed + 3), 1)),
        Case("one key only", (torch.ones(queries, 1), d_k)),
    ]


SCORE_GAPS = Task(
    Exercise(
        "score_gaps",
        reference=_gaps,
        cases=lambda: [
            (torch.tensor([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375]]), 4),
            (_weights(2, 3, 3, seed=1), 16),
            (torch.ones(2, 1), 9),
        ],
        mistakes=(
            Mistake("no-scale", "These are differences of scaled scores. Undo the scale as well.",
                    lambda w, d: _gaps(w, d, scale=lambda d_k, keys: 1.0)),
            Mistake("divided", "The scale is applied a second time. It has to be undone.",
                    lambda w, d: _gaps(w, d, scale=lambda d_k, keys: d_k**-0.5)),
            Mistake("scale-d_k", "The scale is undone with d_k itself, not with its root.",
                    lambda w, d: _gaps(w, d, scale=lambda d_k, keys: d_k)),
            Mistake("scale-by-number-of-keys", "The number of keys stands where the number of features belongs.",
                    lambda w, d: _gaps(w, d, scale=lambda d_k, keys: keys**0.5)),
            Mistake("from-the-largest", "The differences are taken from the best key. Asked for is the first key.",
                    lambda w, d: _gaps(w, d, start=lambda logs: logs.amax(dim=-1, keepdim=True))),
            Mistake("sign", "The sign is turned: a key with more weight than the first has a positive gap.",
                    lambda w, d: -_gaps(w, d)),
            Mistake("no-logarithm", "Weights are subtracted as they are. What undoes the exponential?",
                    lambda w, d: (w - w[..., :1]) * d**0.5),
            Mistake("not-relative", "These are logarithms of weights, scaled back. They are the dot products only up "
                    "to a number that is the same in a whole row: take the difference from the first key.",
                    lambda w, d: _gaps(w, d, start=lambda logs: 0.0)),
        ),
    ),
    points=8,
    minutes=10,
    hidden=_gaps_hidden,
)  # fmt: skip


# --- the way back through attention


def _slope(weights: Tensor, change: Tensor) -> Tensor:
    """From the gradient at the weights to the one at the scores."""
    return weights * (change - (weights * change).sum(dim=-1, keepdim=True))


def _backward(query, key, value, weights, grad, slope=_slope, scale=lambda d_k: d_k**-0.5) -> tuple[Tensor, ...]:
    scores = slope(weights, grad @ value.mT) * scale(query.size(-1))
    return scores @ key, scores.mT @ query, weights.mT @ grad


def _values_unweighted(query, key, value, weights, grad) -> tuple[Tensor, ...]:
    """Every value gets the sum of all gradients, whatever its weight."""
    at_value = grad.sum(dim=-2, keepdim=True).expand_as(value)
    return (*_backward(query, key, value, weights, grad)[:2], at_value.clone())


def _by_hand() -> tuple:
    """The example of the task's text."""
    query, key = torch.tensor([[4.0, 0.0, 0.0, 0.0]]), torch.tensor([[2.0, 0.0, 0.0, 0.0]] * 2)
    return query, key, torch.tensor([[3.0], [1.0]]), torch.full((1, 2), 0.5), torch.ones(1, 1)


def _backward_case(*leading: int, sizes: tuple[int, int, int, int], seed: int, hide: Tensor | None = None) -> tuple:
    queries, keys, d_k, d_v = sizes
    shapes = ((queries, d_k), (keys, d_k), (keys, d_v), (queries, d_v))
    query, key, value, grad = (random(*leading, *shape, seed=seed + i) for i, shape in enumerate(shapes))
    scores = query @ key.mT / d_k**0.5
    if hide is not None:
        scores = scores.masked_fill(hide, -torch.inf)
    return query, key, value, scores.softmax(dim=-1).nan_to_num(nan=0.0), grad


def _backward_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    queries, keys, d_k, d_v = (int(size) for size in torch.randperm(5, generator=dice)[:4] + 3)
    future = torch.ones(keys, keys, dtype=torch.bool).triu(1)
    blank = torch.rand(queries, keys, generator=dice) < 0.3
    blank[1] = True
    return [
        Case("four different sizes", _backward_case(sizes=(queries, keys, d_k, d_v), seed=seed)),
        Case("weights under a causal mask", _backward_case(sizes=(keys, keys, d_k, d_v), seed=seed + 10, hide=future)),
        Case("a query that saw nothing",
             _backward_case(sizes=(queries, keys, d_v, d_k), seed=seed + 20, hide=blank)),
        Case("sentences and heads before the rows",
             _backward_case(2, 3, sizes=(queries, keys, d_k, d_v), seed=seed + 30)),
        Case("one query and one key", _backward_case(sizes=(1, 1, d_k, d_v), seed=seed + 40)),
    ]  # fmt: skip


# Autograd backwards and forwards, every softmax, and attention as a whole.
FORBIDDEN = (
    *("backward", "grad", "make_dual"),
    *("softmax", "log_softmax", "special_softmax", "special_log_softmax", "softmin", "gumbel_softmax"),
    *("softmax_backward_data", "log_softmax_backward_data"),
    *("scaled_dot_product_attention", "multi_head_attention_forward", "native_multi_head_attention"),
)


BACKWARD = Task(
    Exercise(
        "attention_backward",
        reference=_backward,
        cases=lambda: [
            _backward_case(sizes=(2, 3, 4, 5), seed=30),
            _by_hand(),
            _backward_case(2, sizes=(3, 3, 4, 2), seed=40, hide=torch.ones(3, 3, dtype=torch.bool).triu(1)),
            _backward_case(sizes=(3, 4, 2, 3), seed=50, hide=torch.tensor([[False], [True], [False]]).expand(3, 4)),
        ],
        mistakes=(
            Mistake("softmax-skipped", "The gradient at the weights is taken for the gradient at the scores. The "
                    "softmax stands between them.", lambda *i: _backward(*i, slope=lambda w, change: change)),
            Mistake("no-product-term", "When one score rises, the other weights of its row fall: the second term of "
                    "the softmax's slope is missing.", lambda *i: _backward(*i, slope=lambda w, change: w * change)),
            Mistake("diagonal-only", "Each weight answers to its own score only. A score moves all weights of its row.",
                    lambda *i: _backward(*i, slope=lambda w, change: w * (1 - w) * change)),
            Mistake("sum-not-weighted", "The number that is subtracted in each row is a plain sum. Each key counts in "
                    "it as much as its weight says.",
                    lambda *i: _backward(*i, slope=lambda w, change: w * (change - change.sum(-1, keepdim=True)))),
            Mistake("sum-for-all-alike", "The sum over the row is subtracted from every score alike. How much a score "
                    "gets of it depends on its weight.",
                    lambda *i: _backward(*i, slope=lambda w, change: w * change - (w * change).sum(-1, keepdim=True))),
            Mistake("opposite-sign", "Values are right; queries and keys have the opposite sign. In the softmax's "
                    "slope, which of the two terms is subtracted?",
                    lambda *i: _backward(*i, slope=lambda w, change: -_slope(w, change))),
            Mistake("wrong-axis", "The softmax's slope adds up over the queries. A softmax joins the keys of one row.",
                    lambda *i: _backward(
                        *i, slope=lambda w, change: w * (change - (w * change).sum(-2, keepdim=True)))),
            Mistake("no-scale", "The scale is forgotten on the way back: scores are dot products divided by √d_k.",
                    lambda *i: _backward(*i, scale=lambda d_k: 1.0)),
            Mistake("scale-d_k", "On the way back the gradient is divided by d_k, not by its root.",
                    lambda *i: _backward(*i, scale=lambda d_k: 1 / d_k)),
            Mistake("values-unweighted", "Queries and keys are right. Every value gets the same gradient; it should "
                    "get as much as each query took from it.", _values_unweighted),
        ),
    ),
    points=16,
    minutes=30,
    hidden=_backward_hidden,
    forbidden=FORBIDDEN,
)  # fmt: skip
