"""Exercises of lesson 01 about parts: a plain net over padded sentences, one step of an LSTM, a look back with a mask.

Matrices stand as in PyTorch's ``nn.Linear``: one row for each number that comes out.
"""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- a plain recurrent net that stops where a sentence ends


def _read_cases() -> list[tuple]:
    def case(lengths: list[int], longest: int, d_input: int, d_model: int, seed: int) -> tuple:
        shapes = ((len(lengths), longest, d_input), (d_model, d_input), (d_model, d_model), (d_model,))
        x, w_x, w_h, b = (random(*shape, seed=seed + i, spread=0.8) for i, shape in enumerate(shapes))
        return x, torch.tensor(lengths), w_x, w_h, b

    return [case([4], 4, 3, 2, 10), case([2, 5, 1], 5, 3, 4, 20), case([3, 3], 6, 2, 3, 30)]


def _steps(x, w_x, w_h, b, bend=torch.tanh) -> list[Tensor]:
    """The state before the first token and after each: S + 1 of (B, D)."""
    states = [x.new_zeros(len(x), len(w_h))]
    for token in x.unbind(1):
        states.append(bend(token @ w_x.T + states[-1] @ w_h.T + b))
    return states


def _read(x, lengths, w_x, w_h, b, shift=0, **choices) -> Tensor:
    states = torch.stack(_steps(x, w_x, w_h, b, **choices), dim=1)  # (B, S + 1, D)
    return states[torch.arange(len(x)), (lengths + shift).clamp(max=x.size(1))]


def _real(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(x.size(1)) < lengths[:, None]  # (B, S)


def _read_zeroed(x, lengths, w_x, w_h, b) -> Tensor:
    return _steps(x, w_x, w_h, b)[-1] * (lengths == x.size(1))[:, None]


def _read_on_and_on(x, lengths, w_x, w_h, b) -> Tensor:
    """Sentence after sentence, the state never set back."""
    h, ends = x.new_zeros(len(w_h)), []
    for sentence, length in zip(x, lengths, strict=True):
        for token in sentence[:length]:
            h = torch.tanh(w_x @ token + w_h @ h + b)
        ends.append(h)
    return torch.stack(ends)


READ = Exercise(
    "read_to_the_end",
    reference=_read,
    cases=_read_cases,
    mistakes=(
        Mistake("reads-padding", "The state goes on after the last real token: padding is read as if it were words.",
                lambda x, lengths, *rest: _steps(x, *rest)[-1]),
        Mistake("padding-as-zeros", "Padding is set to zero, but a zero is read like any token: the state is still "
                "multiplied and bent. It must stay as it is.",
                lambda x, lengths, *rest: _steps(x * _real(x, lengths)[..., None], *rest)[-1]),
        Mistake("zeroed-at-padding", "Where a sentence has ended, its state becomes zero. It should be kept.",
                _read_zeroed),
        Mistake("one-early", "The last real token is not read: you stop one too early.",
                lambda *inputs: _read(*inputs, shift=-1)),
        Mistake("one-late", "You stop one too late: a token of padding is read where there is one.",
                lambda *inputs: _read(*inputs, shift=1)),
        Mistake("first-end-for-all", "All sentences stop where the shortest one ends.",
                lambda x, lengths, *rest: _steps(x, *rest)[int(lengths.min())]),
        Mistake("not-set-back", "The first sentence is right, the second begins with the state that the first one "
                "left. Every sentence begins with zeros.", _read_on_and_on),
        Mistake("w_h-transposed", "w_h is used as it stands, where a row vector needs it turned (or the other way "
                "round): row i of w_h makes number i of the new state.",
                lambda x, lengths, w_x, w_h, b: _read(x, lengths, w_x, w_h.T, b)),
        Mistake("no-memory", "The state is made from the token alone: the one before it is not used.",
                lambda x, lengths, w_x, w_h, b: _read(x, lengths, w_x, 0 * w_h, b)),
        Mistake("no-tanh", "The sums are not bent: the tanh is missing.",
                lambda *inputs: _read(*inputs, bend=lambda sums: sums)),
        Mistake("no-bias", "The bias is left out.", lambda x, n, w_x, w_h, b: _read(x, n, w_x, w_h, 0 * b)),
        Mistake("all-states", "These are the states after every token. Asked for is one state for each sentence.",
                lambda x, lengths, *rest: torch.stack(_steps(x, *rest)[1:], dim=1)),
    ),
)  # fmt: skip


# --- one step of an LSTM


def _lstm_cases() -> list[tuple]:
    def case(batch: int, d_input: int, d_model: int, seed: int) -> tuple:
        shapes = ((batch, d_input), (batch, d_model), (batch, d_model))
        weights = ((4 * d_model, d_input), (4 * d_model, d_model), (4 * d_model,))
        return tuple(random(*shape, seed=seed + i) for i, shape in enumerate((*shapes, *weights)))

    return [case(1, 3, 2, 40), case(3, 2, 4, 50)]


def _gates(x, h, w_x, w_h, b) -> tuple[Tensor, ...]:
    return (x @ w_x.T + h @ w_h.T + b).chunk(4, dim=-1)


def _lstm(x, h, c, w_x, w_h, b, order=(0, 1, 2, 3), squash=torch.sigmoid, bend=torch.tanh, show=torch.tanh):
    gates = _gates(x, h, w_x, w_h, b)
    take, forget, candidate, output = (gates[i] for i in order)
    c = squash(forget) * c + squash(take) * bend(candidate)
    return squash(output) * show(c), c


def _plain(sums: Tensor) -> Tensor:
    return sums


def _lstm_never_forgets(x, h, c, w_x, w_h, b):
    take, _, candidate, output = _gates(x, h, w_x, w_h, b)
    c = c + take.sigmoid() * candidate.tanh()
    return output.sigmoid() * c.tanh(), c


def _lstm_coupled(x, h, c, w_x, w_h, b):
    _, forget, candidate, output = _gates(x, h, w_x, w_h, b)
    c = candidate.tanh() + forget.sigmoid() * (c - candidate.tanh())
    return output.sigmoid() * c.tanh(), c


def _lstm_interleaved(x, h, c, w_x, w_h, b):
    sorted_rows = [matrix.unflatten(0, (-1, 4)).transpose(0, 1).flatten(0, 1) for matrix in (w_x, w_h, b)]
    return _lstm(x, h, c, *sorted_rows)


LSTM = Exercise(
    "lstm_step",
    reference=_lstm,
    cases=_lstm_cases,
    mistakes=(
        Mistake("candidate-and-output-swapped", "The third stretch is the candidate, the fourth the output gate: you "
                "have them the other way round.", lambda *inputs: _lstm(*inputs, order=(0, 1, 3, 2))),
        Mistake("input-and-forget-swapped", "The first stretch is the input gate, the second the forget gate: you "
                "have them the other way round.", lambda *inputs: _lstm(*inputs, order=(1, 0, 2, 3))),
        Mistake("gates-interleaved", "Gate i takes every fourth number. It must take a stretch of D neighbours.",
                _lstm_interleaved),
        Mistake("candidate-squashed", "The candidate goes through a sigmoid, so it can never be negative. It is no "
                "gate.", lambda *inputs: _lstm(*inputs, bend=torch.sigmoid)),
        Mistake("candidate-not-bent", "The candidate is taken as it is: a function is missing there.",
                lambda *inputs: _lstm(*inputs, bend=_plain)),
        Mistake("gates-not-squashed", "The gates are taken as they are. A gate lies between 0 and 1.",
                lambda *inputs: _lstm(*inputs, squash=_plain)),
        Mistake("cell-not-bent", "The new c is right. For h, the cell is shown without a last tanh.",
                lambda *inputs: _lstm(*inputs, show=_plain)),
        Mistake("old-cell-shown", "The new c is right, but h shows the cell from before this step.",
                lambda x, h, c, *rest: (_gates(x, h, *rest)[3].sigmoid() * c.tanh(), _lstm(x, h, c, *rest)[1])),
        Mistake("never-forgets", "The old cell is kept whole: the forget gate is not used.", _lstm_never_forgets),
        Mistake("coupled", "What is taken in is what is forgotten, 1 − forget. That is nearly a GRU: an LSTM has an "
                "input gate of its own.", _lstm_coupled),
        Mistake("results-swapped", "Right numbers, but h comes first and c second.",
                lambda *inputs: _lstm(*inputs)[::-1]),
    ),
)  # fmt: skip


# --- a decoder's look back, padding hidden


def _look_cases() -> list[tuple]:
    def case(lengths: list[int], sizes: tuple[int, int, int], seed: int) -> tuple:
        d_query, d_state, d = sizes
        batch, longest = len(lengths), max(lengths) + 1  # padding everywhere: an inverted mask leaves something
        shapes = ((batch, d_query), (batch, longest, d_state), (d, d_query), (d, d_state), (d,))
        query, states, w, u, v = (random(*shape, seed=seed + i) for i, shape in enumerate(shapes))
        return query, states, torch.arange(longest) < torch.tensor(lengths)[:, None], w, u, v

    return [case([4, 2], (3, 2, 5), 60), case([1, 5, 3], (2, 4, 3), 70)]


def _hidden_by(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -torch.inf)


def _look(query, states, mask, w, u, v, bend=torch.tanh, hide=_hidden_by, axis=-1, after=None):
    scores = bend((query @ w.T)[:, None] + states @ u.T) @ v  # (B, S)
    weights = hide(scores, mask).softmax(dim=axis)
    weights = weights if after is None else after(weights, mask)
    return (weights[:, None] @ states)[:, 0], weights


def _look_at_one(query, states, mask, w, u, v):
    _, weights = _look(query, states, mask, w, u, v)
    best = torch.nn.functional.one_hot(weights.argmax(-1), weights.size(-1)).to(weights)
    return (best[:, None] @ states)[:, 0], best


def _keys_mixed(query, states, mask, w, u, v):
    weights = _look(query, states, mask, w, u, v)[1]
    return (weights[:, None] @ (states @ u.T))[:, 0], weights


LOOK = Exercise(
    "look_back",
    reference=_look,
    cases=_look_cases,
    mistakes=(
        Mistake("mask-forgotten", "Padding gets weight: the mask is not used.",
                lambda *inputs: _look(*inputs, hide=lambda scores, mask: scores)),
        Mistake("mask-inverted", "The mask works the wrong way round: True means a real word.",
                lambda q, s, mask, *rest: _look(q, s, ~mask, *rest)),
        Mistake("masked-after-softmax", "The mask comes after the softmax: the weights of a row with padding no longer "
                "sum to one.", lambda *inputs: _look(*inputs, hide=lambda s, m: s, after=torch.mul)),
        Mistake("scores-set-to-zero", "The scores of padding become 0. A score of 0 is a score like any other, and "
                "gets weight.", lambda *inputs: _look(*inputs, hide=torch.mul)),
        Mistake("wrong-axis", "The softmax runs over the sentences of the batch, not over the words.",
                lambda *inputs: _look(*inputs, hide=lambda s, m: s.masked_fill(~m, -1e9), axis=0)),
        Mistake("no-tanh", "The tanh is missing. Without it, the query adds the same number to every score of its "
                "sentence, and the softmax takes it out again.", lambda *inputs: _look(*inputs, bend=_plain)),
        Mistake("query-not-used", "The query has no say: every query would look at the same words.",
                lambda query, *rest: _look(0 * query, *rest)),
        Mistake("keys-mixed", "The weights are right, but they mix the projected states. Mixed are the states.",
                _keys_mixed),
        Mistake("best-word-only", "One word gets all the weight. Attention mixes all states, each by its weight.",
                _look_at_one),
    ),
)  # fmt: skip
