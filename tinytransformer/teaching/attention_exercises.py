"""Exercises of lesson 02 about attention: by hand, with its three projections, and additive."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, Run, Symptom, agree, random


def _weigh(query: Tensor, key: Tensor, scale: float, axis: int = -1) -> Tensor:
    return (query @ key.transpose(-2, -1) * scale).softmax(dim=axis)


# --- one query, by hand


def _lists(function):
    """A function of tensors as one of plain lists: a query, keys, values."""

    def on_lists(query: list[float], keys: list[list[float]], values: list[list[float]]) -> list[float]:
        return (
            function(*(torch.tensor(rows, dtype=torch.double) for rows in ([query], keys, values))).flatten().tolist()
        )

    return on_lists


def _by_hand_cases() -> list[tuple]:
    sizes = [(2, 4, 2), (3, 4, 2), (5, 3, 4)]  # keys, features of a key, features of a value
    return [
        tuple(random(*shape, seed=n + d, spread=2.0).tolist() for shape in ((d,), (n, d), (n, v))) for n, d, v in sizes
    ]


BY_HAND = Exercise(
    "attend_by_hand",
    reference=_lists(F.scaled_dot_product_attention),
    cases=_by_hand_cases,
    mistakes=(
        Mistake("no-scale", "The scores are used as they are: one step between dot product and exponential is missing.",
                _lists(lambda q, k, v: _weigh(q, k, 1.0) @ v)),
        Mistake("scale-d_k", "The scores become too small: they are divided by d_k itself, not by its root.",
                _lists(lambda q, k, v: _weigh(q, k, 1 / q.size(-1)) @ v)),
        Mistake("scale-by-number-of-keys", "The scale depends on how many keys there are. It must depend on how long "
                "one key is.", _lists(lambda q, k, v: _weigh(q, k, len(k) ** -0.5) @ v)),
        Mistake("scale-d_v", "The scale comes from the length of a value. Scores compare queries and keys: their "
                "length counts.", _lists(lambda q, k, v: _weigh(q, k, v.size(-1) ** -0.5) @ v)),
        Mistake("not-normalised", "The weights do not sum to one: the exponentials are not divided by their sum.",
                _lists(lambda q, k, v: (q @ k.T * q.size(-1) ** -0.5).exp() @ v)),
        Mistake("no-exponential", "The scores are divided by their sum without the exponential; a negative score "
                "would then give a negative weight.",
                _lists(lambda q, k, v: (s := q @ k.T * q.size(-1) ** -0.5) / s.sum() @ v)),
        Mistake("keys-averaged", "The weights are right, but they average the keys. Handed over are the values.",
                _lists(lambda q, k, v: _weigh(q, k, q.size(-1) ** -0.5) @ k)),
        Mistake("weights-returned", "These are the weights. The last step, the weighted average, is missing.",
                _lists(lambda q, k, v: _weigh(q, k, q.size(-1) ** -0.5))),
        Mistake("best-key-only", "The value of the best key is returned alone. Attention mixes all values.",
                _lists(lambda q, k, v: v[(q @ k.T).argmax()])),
    ),
)  # fmt: skip


# --- self-attention with three projections


def _self_attention_cases() -> list[tuple]:
    def case(*leading: int, seed: int) -> tuple:
        x = random(*leading, 6, seed=seed)
        return (x, *(random(6, size, seed=seed + i) for i, size in ((1, 3), (2, 3), (3, 2))))

    return [case(4, seed=10), case(2, 5, seed=20), case(2, 3, 4, seed=30)]


def _project(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_v


def _self_attention(x, w_q, w_k, w_v, scale=None, axis=-1):
    q, k, v = _project(x, w_q, w_k, w_v)
    return _weigh(q, k, q.size(-1) ** -0.5 if scale is None else scale, axis) @ v


def _fails_in_batches(runs) -> bool:
    """Right without leading axes, wrong or stopped with them."""
    alone = [run for run in runs if run.arguments[0].dim() == 2]
    return all(agree(run.got, run.wanted) for run in alone)


def _batch_hint(run: Run) -> str:
    return (
        f"Right for one sentence, not for a batch of shape {tuple(run.arguments[0].shape)}: count axes from the end, "
        "so that any number of axes can stand before them."
    )


NOT_BATCHED = Symptom("not-batched", _fails_in_batches, _batch_hint)

SELF_ATTENTION = Exercise(
    "self_attention",
    reference=lambda *inputs: F.scaled_dot_product_attention(*_project(*inputs)),
    cases=_self_attention_cases,
    mistakes=(
        Mistake("wrong-axis", "The softmax runs over the queries: columns sum to one. Each query shares out its own "
                "weight among the keys.", lambda *inputs: _self_attention(*inputs, axis=-2)),
        Mistake("no-scale", "The scores are not scaled.", lambda *inputs: _self_attention(*inputs, scale=1.0)),
        Mistake("scale-d_k", "The scores are divided by d_k, not by its root.",
                lambda x, q, k, v: _self_attention(x, q, k, v, scale=1 / q.size(1))),
        Mistake("scale-d_model", "The scale uses the size of x, d_model. The dot product runs over the d_k features "
                "of the projected vectors.", lambda x, q, k, v: _self_attention(x, q, k, v, scale=x.size(-1) ** -0.5)),
        Mistake("scale-by-number-of-words", "The scale depends on how many words there are. It must depend on how many "
                "features a key has.", lambda x, q, k, v: _self_attention(x, q, k, v, scale=x.size(-2) ** -0.5)),
        Mistake("weights-returned", "These are the weights. The last step, the mixture of the values, is missing.",
                lambda x, q, k, v: _weigh(x @ q, x @ k, q.size(1) ** -0.5)),
        Mistake("queries-and-keys-swapped", "The keys do the asking: the scores are transposed. A row is a query.",
                lambda x, q, k, v: _self_attention(x, k, q, v)),
        Mistake("one-projection-for-both", "Queries and keys are made with the same matrix, so all scores are "
                "symmetric.", lambda x, q, k, v: _self_attention(x, q, q, v)),
        Mistake("values-not-projected", "The average is taken over x itself. Values have a projection of their own.",
                lambda x, q, k, v: _weigh(x @ q, x @ k, q.size(1) ** -0.5) @ x),
        Mistake("scaled-after-softmax", "The scale comes after the softmax: the rows no longer sum to one.",
                lambda x, q, k, v: _weigh(x @ q, x @ k, 1.0) * q.size(1) ** -0.5 @ (x @ v)),
        Mistake("axis-counted-from-the-front", "Right for one sentence; in a batch the softmax runs over the wrong "
                "axis. Count axes from the end.", lambda *inputs: _self_attention(*inputs, axis=1)),
    ),
    symptoms=(NOT_BATCHED,),
)  # fmt: skip


# --- additive attention


def _additive_cases() -> list[tuple]:
    def case(*leading: int, queries: int, keys: int, seed: int) -> tuple:
        inputs = ((*leading, queries, 3), (*leading, keys, 4), (*leading, keys, 2), (3, 5), (4, 5), (5,))
        return tuple(random(*shape, seed=seed + i, spread=1.5) for i, shape in enumerate(inputs))

    return [
        case(queries=4, keys=4, seed=50),
        case(queries=2, keys=6, seed=60),
        case(2, queries=3, keys=5, seed=70),
        case(2, queries=4, keys=4, seed=80),
    ]


def _additive(query, key, value, w_query, w_key, v, axis=-1, scale=1.0, bend=torch.tanh, outer=lambda s: s):
    hidden = bend((query @ w_query).unsqueeze(-2) + (key @ w_key).unsqueeze(-3))
    return (outer(hidden @ v) * scale).softmax(dim=axis) @ value


def _additive_in_pairs(query, key, value, w_query, w_key, v):
    """Query i meets key i only: one score per pair instead of a table."""
    scores = torch.tanh(query @ w_query + key @ w_key) @ v
    return scores.softmax(dim=-1).unsqueeze(-2) @ value


def _bent_apart(query, key, value, w_query, w_key, v) -> Tensor:
    scores = ((query @ w_query).tanh() @ v)[..., :, None] + ((key @ w_key).tanh() @ v)[..., None, :]
    return scores.softmax(dim=-1) @ value


ADDITIVE = Exercise(
    "additive_attention",
    reference=_additive,
    cases=_additive_cases,
    mistakes=(
        Mistake("no-tanh", "The tanh is missing. Without it, the query adds the same number to every score of its row "
                "and the softmax takes it out again.", lambda *inputs: _additive(*inputs, bend=lambda h: h)),
        Mistake("tanh-outside", "The tanh is applied to the score. It belongs inside, before the product with v.",
                lambda *inputs: _additive(*inputs, bend=lambda h: h, outer=torch.tanh)),
        Mistake("wrong-axis", "The softmax runs over the queries, not over the keys.",
                lambda *inputs: _additive(*inputs, axis=-2)),
        Mistake("scaled", "The scores are scaled as for dot products. Additive attention has no such factor.",
                lambda *inputs: _additive(*inputs, scale=inputs[-1].numel() ** -0.5)),
        Mistake("tanh-of-each", "Query and key are bent each by itself and added then, so the query adds the same to "
                "all its scores. First add, then bend.", _bent_apart),
        Mistake("pairs-only", "Query i meets key i only. Every query meets every key: the sum needs an axis for "
                "queries and one for keys.", _additive_in_pairs),
    ),
    symptoms=(NOT_BATCHED,),
)  # fmt: skip
